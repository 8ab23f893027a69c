from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from iii_directory.disk import files
from iii_directory.disk.files import RefusedError, refusal
from iii_directory.disk.safe_open import directory_below, open_directory, read_below, read_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    fd = open_directory(os.fspath(tmp_path))
    yield fd
    os.close(fd)


def reason_of(call: Callable[[], object]) -> files.Reason:
    with pytest.raises(RefusedError) as refused:
        call()
    return refused.value.reason


def test_a_file_comes_with_its_state(tmp_path: Path, directory: int) -> None:
    (tmp_path / "a").write_bytes(b"text")

    state, raw = read_regular(directory, "a", 4)

    assert (state.st_size, raw) == (4, b"text")


def test_a_file_above_the_limit_is_refused_by_its_size(tmp_path: Path, directory: int) -> None:
    (tmp_path / "a").write_bytes(b"text")

    assert reason_of(lambda: read_regular(directory, "a", 3)) is files.TOO_LARGE


def test_a_file_that_the_system_returns_in_pieces_is_put_together(
    tmp_path: Path, directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    really = os.read
    monkeypatch.setattr(os, "read", lambda fd, size: really(fd, min(size, 3)))

    assert read_regular(directory, "a", 100)[1] == b"0123456789"


def test_a_file_that_grows_past_the_limit_during_the_read_is_refused(
    tmp_path: Path, directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"0123")
    really = os.read

    def growing(fd: int, size: int) -> bytes:
        with open(tmp_path / "a", "ab") as file:
            file.write(b"more")
        return really(fd, size)

    monkeypatch.setattr(os, "read", growing)

    assert reason_of(lambda: read_regular(directory, "a", 20)) is files.TOO_LARGE


def test_a_read_that_fails_is_refused_and_leaves_no_descriptor(
    tmp_path: Path, directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"text")
    before = len(os.listdir("/proc/self/fd"))

    def failing(_fd: int, _size: int) -> bytes:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "read", failing)

    assert reason_of(lambda: read_regular(directory, "a", 20)) is files.FAILED
    assert len(os.listdir("/proc/self/fd")) == before


def test_each_kind_of_entry_that_is_not_a_file_has_its_reason(tmp_path: Path, directory: int) -> None:
    (tmp_path / "directory").mkdir()
    os.symlink("directory", tmp_path / "link")
    os.mkfifo(tmp_path / "fifo")

    def reason(name: str) -> files.Reason:
        return reason_of(lambda: read_regular(directory, name, 20))

    assert reason("directory") is files.SPECIAL
    assert reason("link") is files.LINK
    assert reason("fifo") is files.SPECIAL
    assert reason("nothing") is files.GONE
    assert reason("no\0name") is files.GONE
    assert reason("no\ud800name") is files.GONE


@pytest.mark.parametrize("path", ["..", "../a", "a/..", "./a", "a//b", "", "/", "a/", "a/../a/b"])
def test_a_path_that_is_not_names_joined_by_slashes_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"text")

    assert reason_of(lambda: read_below(os.fspath(tmp_path), path, 20)) is files.GONE


def test_links_on_the_way_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"text")
    os.symlink("a", tmp_path / "link")
    root = os.fspath(tmp_path)

    assert read_below(root, "a/b", 20) == b"text"
    assert reason_of(lambda: read_below(root, "link/b", 20)) is files.GONE
    assert reason_of(lambda: read_below(f"{root}/link", "b", 20)) is files.GONE


def test_no_descriptor_is_left_when_the_way_ends_early(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    before = len(os.listdir("/proc/self/fd"))

    with pytest.raises(RefusedError), directory_below(os.fspath(tmp_path), ["a", "b", "c"]):
        pass

    assert len(os.listdir("/proc/self/fd")) == before


def test_an_unforeseen_error_means_unreadable() -> None:
    assert refusal(OSError(errno.EPERM, "no")).reason is files.UNREADABLE
    assert refusal(OSError("no number")).reason is files.UNREADABLE
    assert refusal(OSError(errno.EMFILE, "none left")).reason.passing
