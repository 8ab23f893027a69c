"""The registry of one's own offers the skills of its workers in the well-known index."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import httpx2
import pytest
from tests.mcp.stage import http_bridge
from tests.support.engine import WAIT, EngineThread
from tests.support.reader import Reader
from tests.support.registry import publish_worker

from iii_directory.registry_server.registry_http import RegistryServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INDEX = "/.well-known/agent-skills/index.json"
PDF = {
    "skills/SKILL.md": "---\nname: pdf\ndescription: Fills forms. Use it for PDF files.\n---\n# PDF\n",
    "skills/scripts/fill.py": "print('é')\r\n",
    "skills/deep/SKILL.md": "---\nname: deep\ndescription: Goes deep. Use it below.\n---\n# Deep\n",
}
NOTES = {"skills/index.md": "# Notes\n\nKeeps notes.\n"}


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "registry"
    publish_worker(tmp_path, folder, "pdf", "1.0.0", {**PDF, "skills/old.md": "# Old\n\nIs gone later.\n"})
    publish_worker(tmp_path, folder, "pdf", "1.1.0", PDF)
    publish_worker(tmp_path, folder, "notes", "1.0.0", NOTES)
    publish_worker(tmp_path, folder, "silent", "1.0.0", {"skills/page.md": "# A page\n"})
    with RegistryServer(folder) as server:
        yield server.url


def get(url: str, **headers: str) -> httpx2.Response:
    return httpx2.get(url, headers=headers, timeout=WAIT)


def test_the_index_names_the_skills_of_the_latest_versions_with_their_digests(registry: str) -> None:
    answer = get(registry + INDEX)
    index = answer.json()

    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert index["$schema"] == "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
    assert {(row["name"], row["type"]) for row in index["skills"]} == {
        ("pdf", "archive"),
        ("deep", "skill-md"),
        ("notes", "archive"),
    }
    for row in index["skills"]:
        artifact = get(urljoin(registry + INDEX, row["url"]))
        assert row["digest"] == f"sha256:{hashlib.sha256(artifact.content).hexdigest()}"
        assert artifact.headers["etag"] == f'"{row["digest"]}"'
        assert get(str(artifact.url), **{"If-None-Match": artifact.headers["etag"]}).status_code == 304
        assert httpx2.head(str(artifact.url), timeout=WAIT).status_code == 200


def test_an_archive_has_every_file_and_is_also_served_file_by_file(registry: str) -> None:
    base = registry + "/.well-known/agent-skills/"
    with tarfile.open(fileobj=io.BytesIO(get(f"{base}pdf.tar.gz").content)) as archive:
        members = {member.name: archive.extractfile(member) for member in archive}
        assert {name.removeprefix("skills/") for name in PDF} == set(members)
        for name, content in members.items():
            assert content is not None
            raw = content.read()
            assert raw == PDF[f"skills/{name}"].encode()
            assert get(f"{base}pdf/{name}").content == raw
    for missing in ("nothing.tar.gz", "deep.tar.gz", "pdf/old.md", "pdf/../../pdf/1.0.0", "pdf/", "pdf", ""):
        assert get(base + missing).status_code == 404


def test_a_directory_that_installed_the_worker_offers_the_same_digests(registry: str, tmp_path: Path) -> None:
    with (
        EngineThread() as engine,
        Reader(engine.url, tmp_path / "mine", registry_url=registry) as reader,
        http_bridge(engine.url) as url,
    ):
        for worker in ("pdf", "notes"):
            reader.call("directory::skills::download_from_registry", worker=worker)
        theirs = {row["name"]: row for row in get(registry + INDEX).json()["skills"]}
        ours = {row["name"]: row for row in get(url.removesuffix("/mcp") + INDEX).json()["skills"]}

        assert {name: ours[name] for name in theirs} == theirs


def test_a_version_that_is_published_later_or_yanked_changes_the_index(registry: str, tmp_path: Path) -> None:
    before = get(registry + INDEX)
    changed = {**PDF, "skills/SKILL.md": PDF["skills/SKILL.md"] + "More.\n"}
    publish_worker(tmp_path, tmp_path / "registry", "pdf", "1.2.0", changed)
    after = get(registry + INDEX)

    assert after.headers["etag"] != before.headers["etag"]
    assert get(registry + INDEX).content == after.content
    (tmp_path / "registry" / "pdf" / "yanked.json").write_text(json.dumps(["1.2.0"]), encoding="utf-8")
    assert get(registry + INDEX).content == before.content
