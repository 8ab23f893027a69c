"""The tools that a client sees at first: few words, text, paths for the same user, calls where allowed."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mcp.client.stdio import StdioServerParameters
from tests.mcp.stage import Session, http_bridge, session
from tests.support.commands import environment, run
from tests.support.engine import EngineThread
from tests.support.reader import OtherWorker, Reader

from iii_directory.limits import MAX_BODY_BYTES
from iii_directory.mcp.hello import INSTRUCTIONS

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

SMALL = {
    "search",
    "skill__fetch",
    "directory__skills__list",
    "directory__skills__get",
    "directory__skills__files",
}
CALL = "directory__function__call"
SCRIPT = "#!/bin/sh\necho filled $1\n"


def tokens(value: Any) -> int:
    """As the specification counts them: four characters of the whole result each."""
    return len(json.dumps(value.model_dump(by_alias=True, exclude_none=True, mode="json"))) // 4


def make_project(home: Path, config: str = "") -> Path:
    """270 documents: 40 skills with pages, one of them with a script and a binary."""
    skills = home / "skills"
    for number in range(40):
        folder = skills / f"skill-{number:02}"
        folder.mkdir(parents=True)
        said = f"Does the work of number {number} in detail, {'and then some more of it, ' * 8}to the end."
        (folder / "SKILL.md").write_text(f"---\nname: skill-{number:02}\ndescription: {said}\n---\n# S\n")
        for page in range(6):
            (folder / f"page-{page}.md").write_text(f"# Page {page}\n\nAbout page {page} of {number}.\n")
    pdf = skills / "pdf"
    (pdf / "scripts").mkdir(parents=True)
    (pdf / "SKILL.md").write_text('---\nname: pdf\ndescription: Fills PDF forms.\n---\n# PDF\n\nSay "hi".\n')
    (pdf / "scripts" / "fill.sh").write_text(SCRIPT)
    (pdf / "scripts" / "fill.sh").chmod(0o755)
    (pdf / "logo.bin").write_bytes(bytes(range(256)))
    (pdf / "huge.txt").write_text("x" * (MAX_BODY_BYTES + 1))
    (home / "config.yaml").write_text(config or "user_roots: false\n")
    return skills


def started_in(home: Path, *arguments: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "iii_directory", "mcp", *arguments],
        cwd=home,
        env=environment(TMPDIR=str(home.parent)),
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("face")
    make_project(place)
    return place


@pytest.fixture(scope="module", params=["2025", "2026"])
def client(request: pytest.FixtureRequest, home: Path) -> Iterator[Session]:
    with session(started_in(home), request.param) as started:
        yield started


def test_the_tools_and_instructions_cost_few_tokens(client: Session) -> None:
    listing = client.ask("list_tools")

    assert {tool.name for tool in listing.tools} == SMALL
    assert tokens(listing) <= 1_000
    assert len(INSTRUCTIONS) <= 512
    assert client.client.instructions == INSTRUCTIONS
    assert INSTRUCTIONS.index("search") < 200


def test_every_tool_has_a_title_and_honest_hints(client: Session) -> None:
    for tool in client.ask("list_tools").tools:
        hints = tool.annotations
        assert tool.title
        assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) == (True, False, True)
        assert hints.open_world_hint is False


def test_all_tools_appear_where_they_are_asked_for(home: Path, tmp_path: Path) -> None:
    make_project(tmp_path, "mcp_tools: all\nuser_roots: false\n")
    for parameters in (started_in(home, "--tools", "all"), started_in(tmp_path)):
        with session(parameters, "2025") as started:
            names = set(started.tools())
            assert names > SMALL
            assert {"directory__diagnostics", "directory__registry__workers__list"} <= names


def test_lists_come_in_pages_of_few_tokens(client: Session) -> None:
    seen: list[str] = []
    cursor: dict[str, str] = {}
    pages = 0
    while True:
        page = client.ask("call_tool", "directory__skills__list", cursor)
        assert tokens(page) <= 3_000
        seen += [
            line.partition(":")[0]
            for line in page.content[0].text.splitlines()
            if not line.startswith("More")
        ]
        pages += 1
        following = page.structured_content["next_cursor"]
        if following is None:
            break
        cursor = {"cursor": following}
    documents = client.ask("call_tool", "directory__skills__list", {"kind": "document"})

    assert len(seen) == len(set(seen)) == page.structured_content["total"] == 42
    assert tokens(documents) <= 6_000
    assert documents.structured_content["total"] > 270


def test_a_document_is_text_and_its_metadata_is_structured(client: Session, home: Path) -> None:
    result = client.ask("call_tool", "directory__skills__get", {"id": "pdf"})

    assert result.content[0].text == '# PDF\n\nSay "hi".\n'
    assert result.structured_content["title"] == "PDF"
    assert result.structured_content["path"] == str(home / "skills" / "pdf" / "SKILL.md")


def test_a_script_that_was_found_can_be_run(client: Session, home: Path) -> None:
    found = client.call("search", query="fill a PDF form")
    place = next(line for line in found.splitlines() if line.startswith("- skill pdf ")).rpartition(
        "Lies at "
    )[2]
    files = client.ask("call_tool", "directory__skills__files", {"id": "pdf"})
    done = subprocess.run([f"{place}/scripts/fill.sh", "form"], capture_output=True, text=True, check=True)

    assert place == str(home / "skills" / "pdf") == files.structured_content["path"]
    assert "scripts/fill.sh 25 executable" in files.content[0].text
    assert done.stdout == "filled form\n"


def test_many_files_are_read_at_once_and_what_is_not_text_is_named(client: Session, home: Path) -> None:
    others = ("pdf/logo.bin", "pdf/huge.txt")
    text = client.call("skill__fetch", uris=["pdf", "pdf/scripts/fill.sh", *others, "skill://pdf/SKILL.md"])

    assert SCRIPT.rstrip() in text
    for path in others:
        assert f"Read it as the resource skill://{path}" in text
        assert f"On this machine: {home}/skills/{path}" in text
    assert "x" * 100 not in text
    assert "description: Fills PDF forms." in text


def test_a_search_says_each_thing_once(client: Session) -> None:
    result = client.ask("call_tool", "search", {"query": "fill PDF forms", "kinds": ["skill"]})

    assert (
        json.dumps([block.model_dump(mode="json") for block in result.content]).count("Fills PDF forms") == 1
    )
    assert result.structured_content is None
    assert "iii://pdf" in {block.uri for block in result.content[1:]}
    assert "skill__fetch" in result.content[0].text
    assert "::" not in result.content[0].text


# Paths are for the same user


@contextmanager
def served(place: Path, **settings: Any) -> Generator[tuple[EngineThread, Reader]]:
    with EngineThread() as engine, Reader(engine.url, place, **settings) as reader:
        reader.skills.write("pdf/SKILL.md", "# PDF\n\nFills forms.\n")
        yield engine, reader


@pytest.mark.parametrize(("shown", "told"), [("auto", True), (True, True), (False, False)])
def test_a_client_of_the_same_user_over_http_is_told_paths(tmp_path: Path, shown: Any, told: bool) -> None:
    with served(tmp_path, show_paths=shown) as (engine, reader):
        secret = reader.worker.secret
        with http_bridge(engine.url, secret=secret) as url, session(url, "2026") as started:
            found = started.ask("call_tool", "directory__skills__files", {"id": "pdf"}).structured_content

        assert ("path" in found) is told


def test_a_bridge_that_does_not_know_the_secret_is_told_no_path(tmp_path: Path) -> None:
    with served(tmp_path) as (engine, reader):
        for secret in (None, "0" * 32):
            with http_bridge(engine.url, secret=secret) as url, session(url, "2026") as started:
                found = started.ask("call_tool", "directory__skills__files", {"id": "pdf"}).structured_content
                assert "path" not in found
        assert "path" not in reader.call("directory::skills::get", id="pdf", local="x")


def test_a_client_of_another_user_is_told_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path) as (engine, reader):
        secret = reader.worker.secret
        with http_bridge(engine.url, secret=secret) as url, session(url, "2026") as started:
            # The bridge takes the client's user for another than its own.
            monkeypatch.setattr("os.getuid", lambda: 2**32 - 2)
            found = started.ask("call_tool", "directory__skills__files", {"id": "pdf"}).structured_content

        assert "path" not in found


# Calls are for the operator to allow


@contextmanager
def with_mailer(place: Path, setting: str) -> Generator[Session]:
    with ExitStack() as stack:
        engine, _ = stack.enter_context(served(place, mcp_calls=setting))
        worker = stack.enter_context(OtherWorker(engine.url, "mailer"))
        worker.offer("mailer::send", lambda data: f"sent to {data.get('to')}")
        worker.offer("mailer::outbox", lambda _: ["a letter"], {"readOnlyHint": True})
        url = stack.enter_context(http_bridge(engine.url, show_all=False))
        yield stack.enter_context(session(url, "2026"))


@pytest.mark.parametrize(
    ("setting", "callable_ones"), [("off", set()), ("read-only", {"outbox"}), ("all", {"send", "outbox"})]
)
def test_functions_are_called_as_far_as_the_operator_allows(
    tmp_path: Path, setting: str, callable_ones: set[str]
) -> None:
    with with_mailer(tmp_path, setting) as started:
        tools = started.tools()
        found = started.call("search", query="mailer send outbox", kinds=["function"])
        assert (CALL in tools) is (setting != "off")
        for name in ("send", "outbox"):
            line = next(line for line in found.splitlines() if f"function mailer::{name}" in line)
            assert line.endswith(f"callable: {str(name in callable_ones).lower()}")
        if setting == "off":
            assert "mcp_calls" in found
            return
        assert tools[CALL].annotations.read_only_hint is (setting == "read-only")
        assert json.loads(started.call(CALL, function_id="mailer::outbox", payload={})) == ["a letter"]
        if setting == "all":
            assert started.call(CALL, function_id="mailer::send", payload={"to": "Ada"}) == "sent to Ada"
        else:
            assert "mcp_calls" in started.tool_error(CALL, function_id="mailer::send", payload={})
        for internal in ("state::set", "engine::functions::list", "skills::register"):
            assert "cannot be called" in started.tool_error(CALL, function_id=internal, payload={})
        assert "not found" in started.tool_error(CALL, function_id="mailer::nothing")


# Whole skills


def test_an_archive_has_every_file_and_always_the_same_bytes(tmp_path: Path) -> None:
    with served(tmp_path) as (_, reader):
        reader.skills.write("pdf/scripts/fill.sh", SCRIPT)
        os.chmod(reader.skills.root / "pdf" / "scripts" / "fill.sh", 0o755)
        first = reader.call("directory::skills::archive", id="pdf")
        os.utime(reader.skills.root / "pdf" / "SKILL.md", (1, 1))
        again = reader.call("directory::skills::archive", id="pdf")

    raw = base64.b64decode(first["content"])
    assert first == again
    assert (first["bytes"], first["sha256"]) == (len(raw), hashlib.sha256(raw).hexdigest())
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        members = {member.name: (member.mode, member.mtime, member.uid) for member in archive}
    assert members == {"SKILL.md": (0o644, 0, 0), "scripts/fill.sh": (0o755, 0, 0)}


def test_a_skill_is_exported_and_nothing_that_differs_is_overwritten(home: Path, tmp_path: Path) -> None:
    done = run("skills", "export", "pdf", str(tmp_path), cwd=home)
    script = tmp_path / "pdf" / "scripts" / "fill.sh"

    assert done.returncode == 0, done.stderr
    assert script.read_text() == SCRIPT
    assert os.access(script, os.X_OK)
    assert run("skills", "export", "pdf", str(tmp_path), cwd=home).returncode == 0
    script.write_text("mine\n")
    refused = run("skills", "export", "pdf", str(tmp_path), cwd=home)
    assert refused.returncode == 1
    assert "scripts/fill.sh" in refused.stderr
    assert script.read_text() == "mine\n"


def test_the_next_steps_of_an_error_name_tools(client: Session) -> None:
    result = client.ask("call_tool", "directory__skills__get", {"id": "no-such-skill-at-all"})

    assert result.is_error
    assert "call directory__skills__list to see every skill id; or call search" in result.content[0].text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search", {}),
        ("search", {"query": "pdf", "limit": "many"}),
        ("skill__fetch", {}),
        ("skill__fetch", {"uris": ["iii://fn/no/function"]}),
        ("skill__fetch", {"uris": ["mail::send"]}),
        ("directory__skills__get", {"id": "No Id"}),
        ("directory__skills__files", {"id": "nothing"}),
        ("directory__skills__list", {"kind": "thing"}),
    ],
)
def test_an_error_names_only_tools_that_the_client_sees(
    client: Session, tool: str, arguments: dict[str, Any]
) -> None:
    told = client.tool_error(tool, **arguments)

    assert "Next: " in told
    assert "::" not in told.partition("Next: ")[2]
    assert set(re.findall(r"call ([\w-]+)", told)) <= SMALL


def test_a_function_that_is_a_tool_is_found_as_that_tool(client: Session) -> None:
    found = client.call("search", query="list skills", kinds=["function"])
    line = next(line for line in found.splitlines() if "function directory::skills::list " in line)

    assert line.endswith("callable: true, with the tool directory__skills__list")
