"""A client hears that a list changed, and then finds the change in the list."""

from __future__ import annotations

import asyncio
import queue
import uuid
from typing import TYPE_CHECKING

import pytest
from tests.mcp.stage import CHANGES, http_bridge, session, wait_for_stream
from tests.support.directory import directory as directory_on
from tests.support.engine import WAIT
from tests.support.git import make_repo
from tests.support.reader import OtherWorker

from iii_directory.mcp.notifications import Announcer, Change

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mcp.stage import Session
    from tests.support.engine import EngineThread
    from tests.support.reader import Reader

QUIET_SECONDS = 0.5
"""How long nothing may come where nothing should; a wait that a right program always sits out."""


@pytest.fixture(scope="module")
def listening(client: Session, directory: Reader) -> Session:
    """A client that certainly hears."""
    wait_for_stream(client, lambda: directory.call("skills::register", id="first", skill="# First\n"))
    return client


def _sit_out(client: Session) -> list[str]:
    heard: list[str] = []
    while True:
        try:
            heard.append(client.next_change(QUIET_SECONDS))
        except queue.Empty:
            return heard


def test_a_registered_skill_is_told_and_then_there(listening: Session, directory: Reader) -> None:
    directory.call("skills::register", id="new/skill", skill="# New\n")

    listening.told("resources")
    assert "iii://new/skill" in listening.uris()

    directory.call("skills::unregister", id="new/skill")

    listening.told("resources")
    assert "iii://new/skill" not in listening.uris()


def test_a_registered_prompt_is_told_and_then_there(listening: Session, directory: Reader) -> None:
    fields = {"description": "New", "function_id": "weather::greet"}
    directory.call("prompts::register", name="new", **fields)

    listening.told("prompts")
    assert "new" in {row.name for row in listening.ask("list_prompts").prompts}

    directory.call("prompts::unregister", name="new")

    listening.told("prompts")
    assert "new" not in {row.name for row in listening.ask("list_prompts").prompts}


def test_a_download_reports_progress_is_told_and_then_there(listening: Session, tmp_path: Path) -> None:
    name = f"latte-{uuid.uuid4().hex[:8]}"
    files = {
        f"skills/{name}/SKILL.md": b"# Latte\n\nWith milk.\n",
        f"skills/{name}/prompts/{name}.md": b"---\ndescription: Milk\n---\nMilk!\n",
    }
    make_repo(tmp_path / "repo", files)
    reports: list[float] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        assert "download_from_repo" in (message or "")
        reports.append(progress)

    arguments = {"repo": (tmp_path / "repo").as_uri(), "skill": name}
    result = listening.ask(
        "call_tool", "directory__skills__download_from_repo", arguments, progress_callback=report
    )

    assert not result.is_error, result.content
    listening.told("resources", "prompts")
    assert f"iii://{name}" in listening.uris()
    assert listening.text(f"iii://{name}") == "# Latte\n\nWith milk.\n"
    assert name in {row.name for row in listening.ask("list_prompts").prompts}
    assert reports[0] == 0
    assert reports == sorted(set(reports))


def test_a_download_that_fails_says_why(listening: Session, tmp_path: Path) -> None:
    arguments = {"repo": (tmp_path / "nowhere").as_uri(), "skill": "latte"}

    assert listening.tool_error("directory__skills__download_from_repo", **arguments).startswith("D33")


def test_a_new_function_is_told_if_it_is_a_tool(listening: Session, engine_url: str) -> None:
    listening.tools()
    with OtherWorker(engine_url) as other:
        other.offer("weather::forecast", lambda _: "rain")

        listening.told("tools")
        assert listening.call("weather__forecast") == "rain"

    listening.told("tools")
    assert "weather__forecast" not in listening.tools()


def test_a_new_function_that_is_not_a_tool_is_not_announced(
    listening: Session, directory: Reader, engine_url: str
) -> None:
    listening.tools()
    with OtherWorker(engine_url) as other:
        other.offer("private::thing", lambda _: "mine")
        _sit_out(listening)
        other.offer("private::other", lambda _: "mine")

        assert "tools" not in _sit_out(listening)


async def _nothing(_: str) -> None:
    return None


def test_changes_that_come_together_are_told_together() -> None:
    async def main() -> list[object]:
        announcer, told = Announcer(_nothing), asyncio.Queue[object]()
        announcer._bus.subscribe(told.put_nowait)
        for _ in range(50):
            announcer.changed([Change.RESOURCES])
            announcer.changed([Change.PROMPTS])
            announcer.changed([])
        async with asyncio.timeout(WAIT):
            heard = [await told.get(), await told.get()]
            announcer.changed([Change.TOOLS])
            return [*heard, await told.get()]

    heard = asyncio.run(main())
    assert {str(one) for one in heard[:2]} == {"ResourcesListChanged()", "PromptsListChanged()"}
    assert [str(one) for one in heard[2:]] == ["ToolsListChanged()"]


def test_the_directory_coming_and_going_is_told(
    engine: EngineThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MCP_SETTLE_SECONDS", "MCP_ENGINE_SECONDS"):
        monkeypatch.setattr(f"iii_directory.limits.{name}", 0.0)
    with http_bridge(engine.url) as url, session(url, "2026") as client:
        assert client.tools() == {}
        for method in ("list_resources", "list_prompts"):
            assert "iii-directory serve" in client.refusal(method).message

        with directory_on(engine.url, tmp_path):
            client.told(*CHANGES)
            assert "iii://skills" in client.uris()
            assert "skill__fetch" in client.tools()

        client.told(*CHANGES)
        assert client.tools() == {}
