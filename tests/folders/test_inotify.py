from __future__ import annotations

import ctypes
import errno
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.folders import Folder, View

from iii_directory.catalog.folder_source import FolderSource
from iii_directory.catalog.folder_watching import CannotWatchError, Event, system_watcher

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

if sys.platform != "linux":
    pytest.skip("only Linux has inotify", allow_module_level=True)

from iii_directory.catalog import folder_watching as inotify
from iii_directory.catalog.folder_watching import Inotify


class FakeLibc:
    """The C library, but for one call that fails."""

    def __init__(self, call: str, number: int) -> None:
        self._call = call
        self._number = number

    def __getattr__(self, name: str) -> Any:
        if name != self._call:
            return getattr(ctypes.CDLL(None, use_errno=True), name)

        def failing(*_: object) -> int:
            ctypes.set_errno(self._number)
            return -1

        return failing


@pytest.fixture
def watcher() -> Iterator[Inotify]:
    found = Inotify()
    yield found
    found.close()


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def test_events_are_there_when_the_call_that_made_them_has_returned(
    tmp_path: Path, watcher: Inotify, directory: int
) -> None:
    watch = watcher.add(directory)
    assert watcher.read() == []

    (tmp_path / "a").write_bytes(b"x")
    assert Event(watch, "a", is_directory=False) in watcher.read()
    (tmp_path / "d").mkdir()
    assert watcher.read() == [Event(watch, "d", is_directory=True)]
    os.utime(tmp_path / "a", (1, 1))
    assert watcher.read() == [Event(watch, "a", is_directory=False)]


def test_the_same_directory_has_the_same_watch_until_it_is_given_back(
    watcher: Inotify, directory: int, tmp_path: Path
) -> None:
    watch = watcher.add(directory)
    assert watcher.add(directory) == watch

    watcher.remove(watch)
    watcher.remove(watch)
    (tmp_path / "a").mkdir()

    assert [event for event in watcher.read() if event.name] == []
    assert watcher.add(directory) != watch


def test_more_events_than_one_read_takes_are_all_returned(
    tmp_path: Path, watcher: Inotify, directory: int
) -> None:
    watcher.add(directory)
    names = {f"{number:04}-{'x' * 200}" for number in range(700)}
    for name in names:
        (tmp_path / name).mkdir()

    assert {event.name for event in watcher.read()} == names


def test_a_queue_that_overflows_says_so(tmp_path: Path, watcher: Inotify, directory: int) -> None:
    with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as setting:
        room = int(setting.read())
    if room > 100_000:
        pytest.skip("the queue is too long to fill in a test")
    watcher.add(directory)
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    for number in range(room + 10):
        # Two names in turn: events alike in a row are merged into one.
        os.utime(tmp_path / "ab"[number % 2], (1, 1))

    assert watcher.read()[-1].watch < 0


def test_a_name_that_is_not_utf8_survives(tmp_path: Path, watcher: Inotify, directory: int) -> None:
    watch = watcher.add(directory)
    os.mkdir(os.fsencode(tmp_path) + b"/\xff")
    assert watcher.read() == [Event(watch, "\udcff", is_directory=True)]


def test_a_file_system_that_reports_no_changes_is_not_watched(watcher: Inotify) -> None:
    directory = os.open("/proc", os.O_RDONLY)
    try:
        with pytest.raises(CannotWatchError, match="network or unknown file system"):
            watcher.add(directory)
    finally:
        os.close(directory)


@pytest.mark.parametrize(
    ("call", "number", "reason"),
    [
        ("inotify_add_watch", errno.ENOSPC, "max_user_watches"),
        ("inotify_add_watch", errno.ENOMEM, "refused"),
        ("fstatfs", errno.EIO, "file system"),
    ],
)
def test_a_refusal_of_the_system_says_what_is_missing_and_the_folder_is_rescanned(
    skills: Folder, monkeypatch: pytest.MonkeyPatch, call: str, number: int, reason: str
) -> None:
    skills.document("a/b.md", "B")
    monkeypatch.setattr(inotify, "_libc", FakeLibc(call, number))
    view = View(FolderSource(skills.root))

    assert view.titles() == {"a/b.md": "B"}
    skills.document("a/b.md", "C")
    assert view.titles() == {"a/b.md": "C"}
    assert reason in view.source.findings[0].reason
    view.source.close()


def test_a_system_without_room_for_another_queue_has_no_watcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify, "_libc", FakeLibc("inotify_init1", errno.EMFILE))

    assert system_watcher() is None


def test_another_system_has_no_watcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert system_watcher() is None


def test_closing_twice_is_allowed() -> None:
    watcher = Inotify()
    watcher.close()
    watcher.close()


def test_an_unclosed_queue_is_closed_with_its_object() -> None:
    before = len(os.listdir("/proc/self/fd"))
    watcher = Inotify()
    assert len(os.listdir("/proc/self/fd")) == before + 1

    del watcher

    assert len(os.listdir("/proc/self/fd")) == before


def test_closing_a_source_releases_its_descriptors(skills: Folder) -> None:
    skills.document("a/b/c.md", "C")
    before = len(os.listdir("/proc/self/fd"))
    source = FolderSource(skills.root, skills.path("a"))
    source.catch_up()
    assert len(source.wake_fds()) == 2

    source.close()

    assert len(os.listdir("/proc/self/fd")) == before
    assert source.wake_fds() == ()
