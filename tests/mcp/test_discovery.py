"""What installers and crawlers find on the HTTP listener: the well-known index, its artifacts, llms.txt."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import httpx2
import pytest
from tests.mcp.stage import http_bridge, published_packages
from tests.sdk.installation import NODE
from tests.support.commands import environment
from tests.support.engine import WAIT, EngineThread
from tests.support.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INDEX = "/.well-known/agent-skills/index.json"
PDF = "---\nname: pdf\ndescription: Fills PDF forms. Use it for forms.\n---\n# PDF\n"
SCRIPT = "#!/bin/sh\necho filled\n"
BINARY = bytes(range(256))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Reader]]:
    with EngineThread() as engine, Reader(engine.url, tmp_path_factory.mktemp("site")) as reader:
        reader.skills.write("pdf/SKILL.md", PDF)
        reader.skills.write("pdf/scripts/fill.sh", SCRIPT)
        (reader.skills.root / "pdf" / "scripts" / "fill.sh").chmod(0o755)
        (reader.skills.root / "pdf" / "logo.bin").write_bytes(BINARY)
        reader.skills.write("coffee/index.md", "# Coffee\n\nHow to order coffee.\n")
        reader.skills.write("lone.md", f"# Lone\n\n{'A very long description. ' * 80}\n")
        with http_bridge(engine.url) as url:
            yield url.removesuffix("/mcp"), reader


def get(url: str, **headers: str) -> Any:
    return httpx2.get(url, headers=headers, timeout=WAIT)


def test_every_artifact_of_the_index_has_its_digest(site: tuple[str, Reader]) -> None:
    base, _ = site
    answer = get(base + INDEX)
    index = answer.json()

    assert answer.headers["content-type"] == "application/json"
    assert "access-control-allow-origin" not in answer.headers
    assert index["$schema"] == "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
    assert {row["name"]: row["type"] for row in index["skills"]}.items() >= {
        ("pdf", "archive"),
        ("coffee", "archive"),
        ("lone", "skill-md"),
    }
    for row in index["skills"]:
        artifact = get(urljoin(base + INDEX, row["url"]))
        assert row["digest"] == f"sha256:{hashlib.sha256(artifact.content).hexdigest()}"
        assert artifact.headers["etag"] == f'"{row["digest"]}"'
        assert get(str(artifact.url), **{"If-None-Match": artifact.headers["etag"]}).status_code == 304
        assert 0 < len(row["description"]) <= 1024


def test_an_archive_is_also_served_file_by_file(site: tuple[str, Reader]) -> None:
    base, reader = site
    packed = get(f"{base}/.well-known/agent-skills/pdf.tar.gz").content
    told = reader.call("directory::skills::archive", id="pdf")

    assert hashlib.sha256(packed).hexdigest() == told["sha256"]
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            assert get(f"{base}/.well-known/agent-skills/pdf/{member.name}").content == content.read()
    for missing in ("nothing.tar.gz", "lone.tar.gz", "pdf/nothing", "pdf/../../secret", "pdf/", ""):
        assert get(f"{base}/.well-known/agent-skills/{missing}").status_code == 404


def test_only_a_public_index_is_open_to_pages_of_any_origin(tmp_path: Path) -> None:
    with (
        EngineThread() as engine,
        Reader(engine.url, tmp_path, public_index=True),
        http_bridge(engine.url) as url,
    ):
        assert get(url.removesuffix("/mcp") + INDEX).headers["access-control-allow-origin"] == "*"


def test_llms_txt_names_every_skill_and_its_links_lead_to_documents(site: tuple[str, Reader]) -> None:
    base, _ = site
    text = get(f"{base}/llms.txt").text
    full = get(f"{base}/llms-full.txt").text

    assert text.startswith("# Skills\n\n> ")
    assert "- [Coffee](/skills/coffee.md): How to order coffee." in text
    assert "How to order coffee." in get(f"{base}/skills/coffee.md").text
    assert "## coffee\n\n# Coffee\n\nHow to order coffee.\n" in full
    assert httpx2.post(f"{base}/llms.txt", timeout=WAIT).status_code == 405


def test_of_two_skills_with_one_name_the_first_is_offered_and_the_other_reported(tmp_path: Path) -> None:
    with EngineThread() as engine, Reader(engine.url, tmp_path) as reader, http_bridge(engine.url) as url:
        reader.skills.write("one/pdf/SKILL.md", PDF)
        reader.skills.write("two/pdf/SKILL.md", PDF + "Other.\n")
        index = get(url.removesuffix("/mcp") + INDEX).json()["skills"]
        found = reader.call("directory::diagnostics", check=True)["findings"]

    (offered,) = [row for row in index if row["name"] == "pdf"]
    (reported,) = [row for row in found if "same name" in row["reason"]]
    assert offered["digest"] == f"sha256:{hashlib.sha256(PDF.encode()).hexdigest()}"
    assert reported["subject"] == "two/pdf"
    assert reported["reason"].startswith("one/pdf has the same name")


def test_npx_skills_installs_every_file_byte_for_byte(site: tuple[str, Reader], tmp_path: Path) -> None:
    base, reader = site
    program = published_packages() / "skills" / "bin" / "cli.mjs"
    arguments = ("add", base, "--all", "--yes", "--copy", "--agent", "claude-code")
    done = subprocess.run(
        [str(NODE), str(program), *arguments],
        cwd=tmp_path,
        env=environment(HOME=str(tmp_path), DISABLE_TELEMETRY="1", DO_NOT_TRACK="1"),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        stdin=subprocess.DEVNULL,
    )
    placed = {path.parent.name: path.parent for path in tmp_path.rglob("SKILL.md")}

    assert done.returncode == 0, done.stdout + done.stderr
    assert {"pdf", "coffee", "lone"} <= set(placed), done.stdout
    for name in ("SKILL.md", "scripts/fill.sh", "logo.bin"):
        assert (placed["pdf"] / name).read_bytes() == (reader.skills.root / "pdf" / name).read_bytes()
    assert json.dumps(done.stdout)
