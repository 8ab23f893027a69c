"""Subscribers hear of each edit on disk once, whether a reader or the background sees it first."""

from __future__ import annotations

import shutil
import threading
from typing import TYPE_CHECKING, Any

from tests.downloads.stage import V1, V2, event
from tests.registered.stage import until

from iii_directory import limits
from iii_directory.disk.install_record import content_hash
from iii_directory.install.writes import Edits

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from tests.downloads.stage import Depot

SKILLS, PROMPTS = "directory::skills::on-change", "directory::prompts::on-change"
PROMPT = "---\ndescription: Ask\n---\nAsk one.\n"


def external(*namespaces: str) -> dict[str, Any]:
    return {"op": "external", "namespaces": list(namespaces)}


def put(depot: Depot, path: str, text: str) -> None:
    file = depot.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_an_edit_on_disk_is_told_with_its_namespace(depot: Depot) -> None:
    skills, older = depot.listener(SKILLS), depot.listener("skills::on-change")

    for path, namespace in (("notes/page.md", "notes"), ("plain.md", "plain"), ("notes/run.sh", "notes")):
        put(depot, path, "# Page\n")
        assert skills.next() == external(namespace)
    put(depot, "notes/page.md", "# Other\n")
    assert skills.next() == external("notes")
    (depot.folder / "notes/page.md").unlink()
    assert skills.next() == external("notes")

    depot.call("skills::register", id="last", skill="# Last\n")
    assert older.heard_nothing_before({"op": "register", "id": "last"})


def test_many_edits_are_one_event_and_prompts_have_their_own(depot: Depot) -> None:
    skills, prompts = depot.listener(SKILLS), depot.listener(PROMPTS)
    aside = depot.folder.with_name("aside")
    for number in range(100):
        for name in ("one", "two"):
            (aside / name).mkdir(parents=True, exist_ok=True)
            (aside / name / f"page-{number}.md").write_text("# Page\n")
    (aside / "two" / "prompts").mkdir()
    (aside / "two" / "prompts" / "ask.md").write_text(PROMPT)
    depot.folder.mkdir(exist_ok=True)

    for name in ("one", "two"):
        (aside / name).rename(depot.folder / name)

    assert skills.next() == external("one", "two")
    assert prompts.next() == external("two")
    shutil.rmtree(depot.folder / "one")
    assert skills.next() == external("one")


def test_a_reader_who_sees_it_first_does_not_keep_it_from_being_told(depot: Depot) -> None:
    skills = depot.listener(SKILLS)

    for number in range(5):
        put(depot, "notes/page.md", f"# Page {number}\n")
        assert depot.title("notes/page") == f"Page {number}"
        assert skills.next() == external("notes")


def test_an_edit_that_another_event_covers_is_not_told_again(start: Callable[..., Depot]) -> None:
    depot = start(allow_writing=True)
    skills = depot.listener(SKILLS)
    for op, content in (
        ("create", "# One\n"),
        ("update", "# Two\n"),
        ("update", "# Two\n"),
        ("delete", None),
    ):
        fields = {"id": "notes/page"} | ({} if content is None else {"content": content})
        depot.call(f"directory::skills::{op}", **fields)
        assert skills.next() == {"op": op, "namespace": "notes", "id": "notes/page"}
    depot.world.publish("db", "1.0.0", V1)
    depot.call("directory::skills::download_from_registry", worker="db")
    assert skills.next() == event("db")
    depot.world.publish("db", "2.0.0", V2)
    depot.command("skills", "update", "db")
    assert skills.next() == event("db")
    until(lambda: not depot.worker.disk_edits._changed, "everything on disk was looked at")

    put(depot, "last/page.md", "# Last\n")

    assert skills.next() == external("last")


def test_an_edit_of_what_we_wrote_is_told_also_when_it_is_taken_back(start: Callable[..., Depot]) -> None:
    depot = start(allow_writing=True)
    skills = depot.listener(SKILLS)
    depot.call("directory::skills::create", id="notes/page", content="# Ours\n")
    assert skills.next()["op"] == "create"
    # When this is announced, our own write has been compared, too.
    put(depot, "other/page.md", "# Other\n")
    assert skills.next() == external("other")

    for text in ("# By hand\n", "# Ours\n"):
        put(depot, "notes/page.md", text)
        assert skills.next() == external("notes")


def test_an_edit_right_behind_a_write_is_told(start: Callable[..., Depot]) -> None:
    depot = start(allow_writing=True)
    skills = depot.listener(SKILLS)

    depot.call("directory::skills::create", id="notes/page", content="# Ours\n")
    put(depot, "notes/page.md", "# By hand\n")

    assert [skills.next(), skills.next()] == [
        {"op": "create", "namespace": "notes", "id": "notes/page"},
        external("notes"),
    ]


def test_files_that_come_before_their_record_wait_for_it(depot: Depot) -> None:
    """As an install in another process does, if it is slow between its last two steps."""
    skills = depot.listener(SKILLS)
    depot.world.publish("db", "1.0.0", V1)
    depot.call("directory::skills::download_from_registry", worker="db")
    assert skills.next() == event("db")
    busy = depot.folder / ".iii-directory" / "db.work"
    busy.mkdir(parents=True)
    record = depot.folder / "skills.lock.json"
    later = record.read_text().replace(content_hash(b"# get one\n"), content_hash(b"# get two\n"))

    put(depot, "db/get.md", "# get two\n")
    until(lambda: depot.worker.disk_edits._postponed["db/get.md"] > 1, "it is waited for")
    (busy / "record").write_text(later.replace('"1.0.0"', '"2.0.0"'))
    (busy / "record").rename(record)
    assert skills.next() == event("db")
    shutil.rmtree(busy.parent)
    put(depot, "last/page.md", "# Last\n")

    assert skills.next() == external("last")


def test_an_install_that_ends_while_its_files_are_examined_is_told_once(
    depot: Depot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is written and the traces are gone between two steps of the examination."""
    skills = depot.listener(SKILLS)
    depot.world.publish("db", "1.0.0", V1)
    depot.call("directory::skills::download_from_registry", worker="db")
    assert skills.next() == event("db")
    record = depot.folder / "skills.lock.json"
    later = record.read_text().replace(content_hash(b"# get one\n"), content_hash(b"# get two\n"))
    ended = threading.Event()

    def end_install(_: Edits) -> set[str]:
        if not ended.is_set():
            (depot.folder / ".record").write_text(later.replace('"1.0.0"', '"2.0.0"'))
            (depot.folder / ".record").rename(record)
            ended.set()
        return set()

    monkeypatch.setattr(Edits, "under_way", end_install)
    put(depot, "db/get.md", "# get two\n")

    assert skills.next() == event("db")
    put(depot, "last/page.md", "# Last\n")
    assert skills.next() == external("last")


def test_traces_of_a_crash_do_not_keep_edits_from_being_told(
    depot: Depot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_EDITS_POSTPONED", 2)
    skills = depot.listener(SKILLS)
    (depot.folder / ".iii-directory" / "notes.work").mkdir(parents=True)

    put(depot, "notes/page.md", "# Page\n")

    assert skills.next() == external("notes")


def test_an_edit_waits_less_than_a_second() -> None:
    assert limits.EDITS_QUIET_SECONDS < limits.EDITS_LATEST_SECONDS
    assert limits.EDITS_LATEST_SECONDS + 2 * limits.BURST_SECONDS < 1
