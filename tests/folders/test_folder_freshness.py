"""A reader who edited the folder and then asks sees the edit, watched or rescanned."""

from __future__ import annotations

import gc
import os
import shutil
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.folders import Folder, View, no_watcher, scanned

from iii_directory.catalog.folder_source import FolderSource
from iii_directory.catalog.folder_watching import CannotWatchError, Event, Inotify
from iii_directory.disk.install_record import LOCKFILE
from iii_directory.documents.parse import parse_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from iii_directory.documents.model import ParsedFile, Provenance


class RecordingParse:
    """parse_file, and a note of what was read."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def __call__(self, path: str, raw: bytes, size: int, modified_at: str, root: Provenance) -> ParsedFile:
        self.paths.append(path)
        return parse_file(path, raw, size, modified_at, root)


def settle(folder: Folder) -> None:
    """Put every time of the files far enough back, so that no file counts as racy but by its ctime."""
    for directory, _, names in os.walk(folder.root):
        for name in names:
            os.utime(os.path.join(directory, name), (1_600_000_000, 1_600_000_000))


def test_an_unchanged_folder_reports_nothing(skills: Folder, view: View) -> None:
    skills.document("ns/a.md", "A")
    assert view.refresh()

    assert not view.refresh()
    assert not view.refresh()


def test_a_new_an_edited_and_a_deleted_file_are_seen_by_the_next_refresh(skills: Folder, view: View) -> None:
    skills.document("ns/a.md", "A")
    assert view.titles() == {"ns/a.md": "A"}

    skills.document("ns/a.md", "A longer title")
    skills.document("ns/b.md", "B")
    assert view.titles() == {"ns/a.md": "A longer title", "ns/b.md": "B"}

    skills.remove("ns/a.md")
    assert set(view.refresh()) == {"ns/a.md"}
    assert view.titles() == {"ns/b.md": "B"}


def test_edits_of_the_same_size_in_one_tick_are_all_seen(skills: Folder, view: View) -> None:
    for number in range(100):
        skills.document("a.md", f"{number:03}")
        assert view.titles() == {"a.md": f"{number:03}"}


def test_an_edit_of_the_same_size_with_the_time_put_back_is_seen(skills: Folder, view: View) -> None:
    skills.document("a.md", "One")
    settle(skills)
    view.refresh()
    state = os.stat(skills.path("a.md"))

    skills.document("a.md", "Two")
    skills.put_time_back("a.md", state)

    assert os.stat(skills.path("a.md")).st_mtime_ns == state.st_mtime_ns
    assert view.titles() == {"a.md": "Two"}


def test_a_file_replaced_by_a_rename_is_seen(skills: Folder, view: View) -> None:
    skills.document("a.md", "One")
    view.refresh()

    skills.document(".a.md.new", "Two")
    skills.move(".a.md.new", "a.md")

    assert view.titles() == {"a.md": "Two"}


def test_a_write_is_seen_before_the_file_is_closed(skills: Folder, view: View) -> None:
    skills.document("a.md", "One")
    view.refresh()

    with open(skills.path("a.md"), "r+b", buffering=0) as file:
        file.write(b"# Two")
        assert view.titles() == {"a.md": "Two"}
        file.truncate(4)
        assert view.titles() == {"a.md": "Tw"}


def test_a_file_read_half_written_does_not_stay_so(skills: Folder, watcher: Any) -> None:
    skills.document("a.md", "Before")

    def writing_parse(path: str, raw: bytes, size: int, modified_at: str, root: Provenance) -> ParsedFile:
        if b"Before" in raw:
            skills.document("a.md", "Behind")
        return parse_file(path, raw, size, modified_at, root)

    view = View(FolderSource(skills.root, parse=writing_parse, watcher=watcher))

    assert view.titles() == {"a.md": "Before"}
    assert view.titles() == {"a.md": "Behind"}


def test_only_what_changed_is_read_again(skills: Folder, watcher: Any) -> None:
    for number in range(20):
        skills.document(f"ns-{number % 3}/doc-{number}.md", "Doc")
    parse = RecordingParse()
    view = View(FolderSource(skills.root, parse=parse, watcher=watcher))
    view.refresh()
    if watcher is no_watcher:
        # The files count as racy until their state is old; let the clock of the source be ahead.
        ahead = RecordingParse()
        view = View(FolderSource(skills.root, parse=ahead, watcher=watcher))
        parse = ahead
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("iii_directory.disk.files.time.time_ns", lambda: 2**62)
            view.refresh()
    parse.paths.clear()

    skills.document("ns-1/doc-4.md", "Edited")
    skills.document("ns-2/new.md", "New")
    skills.remove("ns-0/doc-0.md")
    view.refresh()

    assert sorted(parse.paths) == ["ns-1/doc-4.md", "ns-2/new.md"]


def test_a_young_file_is_read_again_without_a_watcher_and_reported_only_when_it_says_something_new(
    skills: Folder,
) -> None:
    skills.document("a.md", "A")
    parse = RecordingParse()
    view = View(FolderSource(skills.root, parse=parse, watcher=no_watcher))
    view.refresh()

    assert not view.refresh()
    assert parse.paths == ["a.md", "a.md"]


def test_a_directory_made_with_its_parents_is_seen(skills: Folder, view: View) -> None:
    skills.document("a/b/c/d.md", "D")
    assert view.titles() == {"a/b/c/d.md": "D"}

    skills.document("a/b/c/e.md", "E")
    assert view.titles() == {"a/b/c/d.md": "D", "a/b/c/e.md": "E"}


def test_a_renamed_directory_takes_its_documents_along_and_is_followed(skills: Folder, view: View) -> None:
    skills.document("a/deep/x.md", "X")
    view.refresh()

    skills.move("a", "b")
    assert view.titles() == {"b/deep/x.md": "X"}

    skills.document("b/deep/x.md", "Edited")
    skills.document("b/deep/y.md", "Y")
    assert view.titles() == {"b/deep/x.md": "Edited", "b/deep/y.md": "Y"}


def test_two_directories_that_change_places_are_both_seen(skills: Folder, view: View) -> None:
    skills.document("a/x.md", "From a")
    skills.document("b/x.md", "From b")
    view.refresh()

    skills.move("a", "c")
    skills.move("b", "a")
    skills.move("c", "b")

    assert view.titles() == {"a/x.md": "From b", "b/x.md": "From a"}
    skills.document("a/x.md", "In a")
    skills.document("b/x.md", "In b")
    assert view.titles() == {"a/x.md": "In a", "b/x.md": "In b"}


def test_a_directory_moved_into_another_is_followed_there(skills: Folder, view: View) -> None:
    skills.document("a/x.md", "X")
    skills.document("b/y.md", "Y")
    view.refresh()

    skills.move("a", "b/a")
    skills.document("b/a/x.md", "Moved")
    assert view.titles() == {"b/a/x.md": "Moved", "b/y.md": "Y"}

    skills.move("b/a", "a")
    skills.move("b", "a/b")
    skills.document("a/b/y.md", "Inside")
    assert view.titles() == {"a/x.md": "Moved", "a/b/y.md": "Inside"}


def test_a_directory_deleted_and_made_anew_is_another_one(skills: Folder, view: View) -> None:
    skills.document("a/x.md", "X")
    skills.document("a/only-before.md", "Before")
    view.refresh()

    skills.remove("a")
    skills.document("a/x.md", "Y")
    assert view.titles() == {"a/x.md": "Y"}

    skills.document("a/x.md", "Z")
    assert view.titles() == {"a/x.md": "Z"}


def test_directories_moved_in_and_out_of_the_folder_are_seen(
    tmp_path: Path, skills: Folder, view: View
) -> None:
    Folder(tmp_path / "outside").document("deep/x.md", "X")
    view.refresh()

    os.rename(tmp_path / "outside", skills.path("in"))
    assert view.titles() == {"in/deep/x.md": "X"}

    os.rename(skills.path("in"), tmp_path / "outside")
    assert view.titles() == {}
    Folder(tmp_path / "outside").document("deep/x.md", "No longer ours")
    assert not view.refresh()


def test_a_directory_that_becomes_a_file_and_a_file_that_becomes_a_directory_are_seen(
    skills: Folder, view: View
) -> None:
    skills.document("a.md", "File")
    skills.document("b.md/x.md", "In a directory")
    view.refresh()

    skills.remove("a.md")
    skills.document("a.md/x.md", "Was a file")
    skills.remove("b.md")
    skills.document("b.md", "Was a directory")

    assert view.titles() == {"b.md": "Was a directory"}
    assert set(view.files) == {"a.md/x.md", "b.md"}


def test_a_document_that_becomes_a_link_is_removed(skills: Folder, view: View) -> None:
    skills.document("a.md", "A")
    skills.document("b.md", "B")
    view.refresh()

    skills.remove("a.md")
    skills.link("a.md", "b.md")

    assert view.titles() == {"b.md": "B"}
    assert set(view.reasons()) == {"a.md"}


def test_the_folder_itself_may_be_deleted_and_come_back(skills: Folder, view: View) -> None:
    skills.document("a/x.md", "X")
    view.refresh()

    shutil.rmtree(skills.root)
    assert view.titles() == {}

    skills.document("a/x.md", "Back")
    assert view.titles() == {"a/x.md": "Back"}
    skills.document("a/x.md", "And followed")
    assert view.titles() == {"a/x.md": "And followed"}


def test_a_folder_replaced_by_way_of_a_directory_above_it_is_seen(tmp_path: Path, watcher: Any) -> None:
    Folder(tmp_path / "one" / "skills").document("a.md", "One")
    Folder(tmp_path / "two" / "skills").document("a.md", "Two")
    view = View(FolderSource(tmp_path / "one" / "skills", watcher=watcher))
    assert view.titles() == {"a.md": "One"}

    os.rename(tmp_path / "one", tmp_path / "three")
    os.rename(tmp_path / "two", tmp_path / "one")

    assert view.titles() == {"a.md": "Two"}
    Folder(tmp_path / "one" / "skills").document("a.md", "Followed")
    assert view.titles() == {"a.md": "Followed"}


def test_the_old_folder_put_into_the_new_one_is_followed_there(
    tmp_path: Path, skills: Folder, view: View
) -> None:
    skills.document("x.md", "Old")
    view.refresh()

    os.rename(skills.root, tmp_path / "old")
    skills.root.mkdir()
    os.rename(tmp_path / "old", skills.path("old"))

    assert view.titles() == {"old/x.md": "Old"}
    skills.document("old/x.md", "New")
    assert view.titles() == {"old/x.md": "New"}


def test_a_bulk_of_five_thousand_changes_is_seen(skills: Folder) -> None:
    view = View(FolderSource(skills.root))
    for number in range(2500):
        skills.write(f"ns-{number % 50}/doc-{number}.md", "# Before")
    view.refresh()

    for number in range(2500):
        skills.write(f"ns-{number % 50}/doc-{number}.md", "# After it")
        skills.write(f"ns-{number % 70}/more-{number}.md", "# More")

    titles = view.titles()
    assert len(titles) == 5000
    assert set(titles.values()) == {"After it", "More"}
    view.source.close()


def test_a_change_of_the_lock_file_is_noticed(skills: Folder, view: View) -> None:
    skills.document("a.md", "A")
    assert LOCKFILE not in view.refresh()

    skills.write("skills.lock.json", "{}")
    assert LOCKFILE in view.refresh()
    assert LOCKFILE not in view.refresh()

    skills.write(".new", '{"version": 1}')
    skills.move(".new", "skills.lock.json")
    assert LOCKFILE in view.refresh()

    skills.remove("skills.lock.json")
    assert LOCKFILE in view.refresh()
    assert LOCKFILE not in view.refresh()


def test_a_lock_file_that_goes_with_the_whole_folder_is_noticed(skills: Folder, view: View) -> None:
    skills.write("skills.lock.json", "{}")
    assert LOCKFILE in view.refresh()

    shutil.rmtree(skills.root)

    assert LOCKFILE in view.refresh()


def test_few_changes_are_read_at_once_and_many_are_left_to_a_later_call_without_loss(
    skills: Folder, view: View
) -> None:
    source = view.source
    skills.document("ns/a.md", "A")
    assert source.catch_up()
    assert source.pending
    view.apply(source.take_changes())
    assert not source.pending

    skills.document("ns/a.md", "Edited")
    assert source.catch_up(at_most=10)
    view.apply(source.take_changes())
    assert view.titles() == {"ns/a.md": "Edited"}

    for number in range(20):
        skills.document(f"ns/doc-{number}.md", "Doc")
    assert source.catch_up(at_most=1) is False
    assert not source.pending
    assert len(view.titles()) == 21


def test_a_second_thread_is_refused_at_once_while_one_reads(skills: Folder, watcher: Any) -> None:
    skills.document("a.md", "A")
    reading, go_on = threading.Event(), threading.Event()

    def slow_parse(path: str, raw: bytes, size: int, modified_at: str, root: Provenance) -> ParsedFile:
        reading.set()
        assert go_on.wait(10)
        return parse_file(path, raw, size, modified_at, root)

    view = View(FolderSource(skills.root, parse=slow_parse, watcher=watcher))
    thread = threading.Thread(target=view.source.catch_up)
    thread.start()
    assert reading.wait(10)

    assert view.source.catch_up(at_most=1000) is False
    assert not view.source.take_changes()

    go_on.set()
    assert view.titles() == {"a.md": "A"}
    thread.join(10)


class Shaky(Inotify):
    """A watcher that can lose its events, or run out of watches."""

    def __init__(self, room: int = 1000) -> None:
        super().__init__()
        self.room = room
        self.losing = False
        self.after_reading: Callable[[], None] = lambda: None

    def add(self, directory: int) -> int:
        if self.room == 0:
            raise CannotWatchError("no watches left")
        self.room -= 1
        return super().add(directory)

    def read(self) -> list[Event]:
        events = super().read()
        self.after_reading()
        return [Event(-1, "", False)] if self.losing and events else events


def test_lost_events_lead_to_a_look_at_everything(skills: Folder) -> None:
    skills.document("a/x.md", "X")
    skills.document("b/y.md", "Y")
    shaky = Shaky()
    view = View(FolderSource(skills.root, watcher=lambda: shaky))
    view.refresh()
    shaky.losing = True

    skills.document("a/x.md", "Edited")
    skills.remove("b")
    skills.document("c/d/z.md", "Z")

    assert view.titles() == {"a/x.md": "Edited", "c/d/z.md": "Z"}
    shaky.losing = False
    skills.document("c/d/z.md", "Followed")
    assert view.titles() == {"a/x.md": "Edited", "c/d/z.md": "Followed"}
    view.source.close()


@pytest.mark.parametrize("room", [0, 1, 3, 5])
def test_a_folder_with_no_watches_left_is_rescanned_and_says_so(skills: Folder, room: int) -> None:
    for name in ("a", "b", "c"):
        skills.document(f"{name}/x.md", name)
    shaky = Shaky(room)
    view = View(FolderSource(skills.root, watcher=lambda: shaky))
    view.refresh()
    skills.document("d/e/x.md", "new")
    skills.document("a/x.md", "A")

    assert view.titles() == {"a/x.md": "A", "b/x.md": "b", "c/x.md": "c", "d/e/x.md": "new"}
    assert view.source.wake_fds() == ()
    assert [(f.kind, f.subject) for f in view.source.findings] == [("watch", "skills_folder")]
    assert "no watches left" in view.source.findings[0].reason
    skills.document("a/x.md", "B")
    assert view.titles()["a/x.md"] == "B"
    view.source.close()


def test_a_directory_moved_before_its_event_is_read_is_known_at_its_new_place_only(skills: Folder) -> None:
    """The scan meets the directory at its new place while its record still is at the old one."""
    skills.document("a/sub/x.md", "X")
    skills.document("z/y.md", "Y")
    shaky = Shaky()
    view = View(FolderSource(skills.root, watcher=lambda: shaky))
    view.refresh()
    shaky.losing = True  # a look at everything: the order of the listing decides which place comes first

    skills.move("a/sub", "z/sub")
    skills.move("z", "b")
    skills.move("a", "b/sub/a")

    assert view.titles() == {"b/sub/x.md": "X", "b/y.md": "Y"}
    shaky.losing = False
    skills.document("b/sub/x.md", "Followed")
    skills.document("b/sub/a/w.md", "Too")
    assert view.titles() == {"b/sub/x.md": "Followed", "b/y.md": "Y", "b/sub/a/w.md": "Too"}
    assert view.files == scanned(skills.root)
    view.source.close()


def test_the_old_folder_met_in_the_new_one_before_anything_told_of_it_is_followed(
    tmp_path: Path, skills: Folder
) -> None:
    shaky = Shaky()
    view = View(FolderSource(skills.root, watcher=lambda: shaky))
    view.refresh()

    def replace_the_folder() -> None:
        shaky.after_reading = lambda: None
        os.rename(skills.root, tmp_path / "previous")
        skills.root.mkdir()
        os.rename(tmp_path / "previous", skills.path("old"))

    skills.document("old/x.md", "X")
    shaky.after_reading = replace_the_folder
    view.refresh()

    assert view.titles() == {"old/old/x.md": "X"}
    skills.document("old/old/x.md", "Followed")
    skills.document("y.md", "Y")
    assert view.titles() == {"old/old/x.md": "Followed", "y.md": "Y"}
    view.source.close()


def test_one_directory_at_two_places_is_rescanned_rather_than_lost(skills: Folder) -> None:
    """What a bind mount does; the same answer of the watcher for two directories stands in for it."""
    skills.document("a/x.md", "X")
    skills.document("b/x.md", "X")
    shaky = Shaky()
    really = os.path.samestat
    numbers: dict[str, int] = {}

    def same_watch(directory: int) -> int:
        path = os.readlink(f"/proc/self/fd/{directory}")
        name = os.path.basename(path)
        return numbers.setdefault("a" if name == "b" else name, len(numbers))

    shaky.add = same_watch  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os.path, "samestat", lambda one, other: really(one, one) and other is not None)
        view = View(FolderSource(skills.root, watcher=lambda: shaky))
        assert view.titles() == {"a/x.md": "X", "b/x.md": "X"}

    assert "two places" in view.source.findings[0].reason
    view.source.close()


@pytest.mark.parametrize("enabled", [True, False])
def test_a_scan_leaves_the_garbage_collector_as_it_found_it(skills: Folder, enabled: bool) -> None:
    skills.document("a.md", "A")
    source = FolderSource(skills.root, watcher=no_watcher)
    (gc.enable if enabled else gc.disable)()
    try:
        source.catch_up()
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_a_scan_that_was_interrupted_is_completed_by_the_next(skills: Folder, watcher: Any) -> None:
    skills.document("a.md", "A")
    skills.document("b/c.md", "C")
    broken = True

    def breaking_parse(path: str, raw: bytes, size: int, modified_at: str, root: Provenance) -> ParsedFile:
        if broken:
            raise MemoryError
        return parse_file(path, raw, size, modified_at, root)

    view = View(FolderSource(skills.root, parse=breaking_parse, watcher=watcher))
    with pytest.raises(MemoryError):
        view.refresh()
    broken = False

    assert view.titles() == {"a.md": "A", "b/c.md": "C"}
