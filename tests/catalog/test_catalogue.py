"""One look at every source: what it shows, when a new one is made, and who may read what it shows."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.engine import WAIT

from iii_directory.catalog.catalogue import Catalogue, InstalledSource
from iii_directory.catalog.diagnostics import FindingLog, Notes
from iii_directory.catalog.folder_source import FolderSource
from iii_directory.catalog.registered import RecordChange, decode
from iii_directory.catalog.registered_source import RegisteredSource
from iii_directory.catalog.view import BodyCache
from iii_directory.documents.model import Finding
from iii_directory.documents.parse import document_of
from iii_directory.errors import DirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tests.support.folders import Folder

    from iii_directory.catalog.view import CatalogueView


class Workers(InstalledSource):
    """Installed workers as a test says."""

    def __init__(self, *names: str) -> None:
        self.names: frozenset[str] | None = frozenset(names)
        self.are_all = True
        self.is_current = False
        self.asked = 0

    async def known(self) -> frozenset[str] | None:
        self.asked += 1
        return self.names


def registered(skill_id: str, body: str = "# It\n") -> dict[str, Any]:
    return {"id": skill_id, "skill": body, "registered_at": "2026-01-01T00:00:00Z"}


class Desk:
    """A catalogue with every source, opened on the loop of a test."""

    def __init__(self, folder: Folder, *names: str) -> None:
        self.source = RegisteredSource()
        self.workers = Workers(*names)
        self.notes = Notes()
        self.followed: asyncio.Queue[CatalogueView] = asyncio.Queue()
        self.catalogue = Catalogue(FolderSource(folder.root), self.source, self.workers, notes=self.notes)

    def register(self, skill_id: str) -> None:
        record = decode(self.source.skills.kind, registered(skill_id), skill_id)
        assert self.source.skills.wrote(record, 0.0, 0.0) is RecordChange.REGISTERED

    def unregister(self, skill_id: str) -> None:
        self.source.skills.removed(skill_id, registered(skill_id), 0.0, 0.0)

    async def ids(self) -> list[str]:
        return ids(await self.catalogue.current())


def ids(view: CatalogueView) -> list[str]:
    """Of every skill but those that the package brings."""
    return [key for key in view.snapshot.skills.keys if not key.startswith("iii-directory")]


def on_loop(desk: Desk, scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def opened() -> None:
        await desk.catalogue.open(lambda view, _: desk.followed.put_nowait(view))
        try:
            async with asyncio.timeout(WAIT):
                await scenario()
        finally:
            desk.catalogue.close()

    asyncio.run(opened())


def test_a_look_shows_files_and_registrations_with_their_bodies(skills: Folder) -> None:
    skills.document("db/index.md", "Database")
    desk = Desk(skills, "db")
    desk.register("mail/send")

    async def scenario() -> None:
        view = await desk.catalogue.current()
        assert ids(view) == ["db", "mail/send"]
        assert view.installed == {"db"}
        bodies = {key: view.read_skill(skill) for key, skill in view.snapshot.skill_claims.winners.items()}
        assert bodies["db/index"] == "# Database\n\nAbout Database.\n"
        assert bodies["mail/send"] == "# It\n"

    on_loop(desk, scenario)


def test_calls_of_one_turn_share_one_look_and_the_next_turn_has_its_own(skills: Folder) -> None:
    desk = Desk(skills)
    desk.catalogue.load()

    async def scenario() -> None:
        first, second = await asyncio.gather(desk.catalogue.current(), desk.catalogue.current())
        assert second is first
        assert desk.workers.asked == 1
        await asyncio.sleep(0)
        await desk.catalogue.current()
        assert desk.workers.asked == 2

    asyncio.run(scenario())


def test_a_registration_is_seen_by_every_look_after_it_even_in_the_same_turn(skills: Folder) -> None:
    desk = Desk(skills)

    async def scenario() -> None:
        assert await desk.ids() == []
        desk.register("x")
        assert await desk.ids() == ["x"]
        desk.unregister("x")
        assert await desk.ids() == []

    on_loop(desk, scenario)


def test_a_download_that_ends_in_the_same_turn_takes_nothing_from_a_reader(skills: Folder) -> None:
    """Let two readers look; the second must see no less than it would have seen alone."""
    desk = Desk(skills)

    async def scenario() -> None:
        await desk.catalogue.current()
        await asyncio.sleep(0)
        desk.register("x")
        download, reader = await asyncio.gather(desk.catalogue.current(), desk.catalogue.current())
        assert ids(download) == ids(reader) == ["x"]

    on_loop(desk, scenario)


def test_a_look_never_changes(skills: Folder) -> None:
    skills.document("a.md", "A")
    desk = Desk(skills)

    async def scenario() -> None:
        before = await desk.catalogue.current()
        await asyncio.sleep(0)
        skills.document("b.md", "B")
        desk.register("c")
        desk.workers.names = None
        desk.notes.put("n", Finding("download", "n", "reason", "fix"))
        after = await desk.catalogue.current()
        assert (ids(before), ids(after)) == (["a"], ["a", "b", "c"])
        assert (before.installed, after.installed) == (frozenset(), None)
        assert "n" not in {finding.subject for finding in before.findings()}
        assert "n" in {finding.subject for finding in after.findings()}

    on_loop(desk, scenario)


def test_a_follower_hears_of_a_change_that_a_reader_saw_first(skills: Folder) -> None:
    desk = Desk(skills)

    async def scenario() -> None:
        skills.document("a.md", "A")
        assert await desk.ids() == ["a"]
        while ids(await desk.followed.get()) != ["a"]:
            pass

    on_loop(desk, scenario)


def test_a_reader_waits_for_the_first_load_of_what_is_registered_but_not_for_ever(skills: Folder) -> None:
    async def scenario() -> None:
        source = RegisteredSource(patience_seconds=0.01)
        catalogue = Catalogue(FolderSource(skills.root), source)
        async with asyncio.timeout(WAIT):
            assert ids(await catalogue.current()) == []
            source.tried("no answer")
            assert [finding.kind for finding in (await catalogue.current()).findings()] == ["unavailable"]

    asyncio.run(scenario())


def test_the_body_of_what_is_registered_no_more_is_not_found(skills: Folder) -> None:
    desk = Desk(skills)
    desk.register("x")
    view = desk.catalogue.load()
    skill = view.snapshot.find("x")
    assert skill is not None
    desk.unregister("x")

    with pytest.raises(DirectoryError, match=r"D110 .*not found"):
        view.read_skill(skill)


def test_the_log_says_a_finding_once_and_does_not_remember_for_ever(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.catalog.diagnostics.MAX_LOGGED_FINDINGS", 100)
    said = FindingLog()

    with caplog.at_level(logging.INFO, "iii_directory.catalog"):
        for number in range(2_000):
            said.say([Finding("invisible_text", f"a/{number}", "why", "look at it")] * 2)
            said.say([Finding("invisible_text", f"a/{number}", "why", "look at it")])

    assert len(caplog.records) == 2_000
    assert len(said) == 100


def test_bodies_may_be_read_in_two_threads_at_once() -> None:
    bodies, stamp, failed = BodyCache(room=2_000), (1, 2, 3, 4), list[Exception]()

    def work(start: int) -> None:
        try:
            for number in range(start, start + 20_000):
                path = f"p{number % 12}"
                if bodies.get(path, stamp) is None:
                    bodies.keep(path, stamp, document_of("x" * 200))
        except (RuntimeError, KeyError, StopIteration) as error:
            failed.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(start,)) for start in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)

    assert failed == []
    kept = [path for path in (f"p{number}" for number in range(12)) if bodies.get(path, stamp)]
    assert 200 * len(kept) <= 2_000
    bodies.keep("all", stamp, document_of("x" * 2_000))
    assert bodies.get("all", stamp) == document_of("x" * 2_000), "the room that is left is still what it was"
