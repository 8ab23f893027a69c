from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.folders import Folder, View, no_watcher

from iii_directory import limits
from iii_directory.catalog.catalogue import keep_fresh
from iii_directory.catalog.folder_source import FolderSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def following(
    view: View, scenario: Callable[[Callable[[str], Awaitable[None]]], Awaitable[None]]
) -> None:
    """Run a scenario beside keep_fresh; its argument waits until the view shows a title."""
    changed = asyncio.Event()

    def take() -> None:
        view.apply(view.source.take_changes())
        changed.set()

    async def shows(title: str) -> None:
        async with asyncio.timeout(30):
            while title not in {file.skill.title for file in view.files.values() if file.skill}:
                changed.clear()
                await changed.wait()

    task = asyncio.create_task(keep_fresh(view.source, take, asyncio.Event()))
    try:
        await scenario(shows)
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_changes_are_taken_up_without_a_reader(
    skills: Folder, local: Folder, watcher: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RESCAN_SECONDS", 0.01 if watcher is no_watcher else 60)
    skills.document("a.md", "First")
    view = View(FolderSource(skills.root, local.root, watcher=watcher))

    async def scenario(shows: Callable[[str], Awaitable[None]]) -> None:
        await shows("First")
        skills.document("ns/b.md", "Second")
        await shows("Second")
        local.document("ns/b.md", "Third")
        await shows("Third")
        for number in range(200):
            skills.document(f"ns-{number % 10}/doc.md", f"Doc {number}")
        await shows("Doc 199")

    asyncio.run(following(view, scenario))
    view.source.close()


def test_a_folder_that_appears_is_found_at_the_next_look(
    tmp_path: Any, watcher: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RESCAN_SECONDS", 0.01)
    looked_in_vain = threading.Event()

    class Source(FolderSource):
        def catch_up(self, at_most: int | None = None) -> bool:
            done = super().catch_up(at_most)
            if not self.pending:
                looked_in_vain.set()
            return done

    view = View(Source(tmp_path / "later", watcher=watcher))

    async def scenario(shows: Callable[[str], Awaitable[None]]) -> None:
        assert await asyncio.to_thread(looked_in_vain.wait, 30)
        await asyncio.to_thread(Folder(tmp_path / "later").document, "a.md", "There")
        await shows("There")

    asyncio.run(following(view, scenario))
    view.source.close()


def test_a_look_that_fails_is_told_once_and_made_again(
    skills: Folder, watcher: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "RESCAN_SECONDS", 0.01)
    reasons = ["out of order"] * 5 + ["another reason"] * 5

    class Source(FolderSource):
        def catch_up(self, at_most: int | None = None) -> bool:
            if reasons:
                raise ValueError(reasons.pop())
            return super().catch_up(at_most)

    view = View(Source(skills.root, watcher=watcher))

    async def scenario(shows: Callable[[str], Awaitable[None]]) -> None:
        skills.document("a.md", "First")
        await shows("First")
        skills.document("a.md", "Second")
        await shows("Second")

    asyncio.run(following(view, scenario))
    view.source.close()

    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == [
        "another reason",
        "out of order",
    ]


def test_changes_that_cannot_be_taken_up_do_not_end_it(
    skills: Folder, watcher: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "RESCAN_SECONDS", 0.01)
    skills.document("a.md", "First")
    source = FolderSource(skills.root, watcher=watcher)

    async def scenario() -> None:
        taken = asyncio.Event()
        tries = iter([ValueError("not now"), ValueError("not now")])

        def take() -> None:
            for error in tries:
                raise error
            taken.set()

        task = asyncio.create_task(keep_fresh(source, take, asyncio.Event()))
        async with asyncio.timeout(30):
            await taken.wait()
        task.cancel()

    asyncio.run(scenario())
    source.close()

    assert len(caplog.records) == 1
