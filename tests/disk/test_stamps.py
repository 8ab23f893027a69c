"""The state of a file: which notes of it survive what, and when they can be believed."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from iii_directory.disk.files import mark_of, racy_after, settled_stamp, stamp_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_change_that_puts_size_and_mtime_back_shows_in_the_stamp(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"one")
    before = file.stat()
    file.write_bytes(b"two")
    while (after := file.stat()).st_ctime_ns == before.st_ctime_ns:
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert mark_of(file.stat()) == mark_of(before)
    assert stamp_of(after) != stamp_of(before)


def test_a_second_name_leaves_the_mark_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"one")
    before = mark_of(file.stat())

    os.link(file, tmp_path / "b")

    assert mark_of(file.stat()) == mark_of((tmp_path / "b").stat()) == before


def test_a_file_that_changed_just_before_it_was_looked_at_is_never_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"one")
    racy = racy_after()
    state = (tmp_path / "a").stat()
    later = time.time_ns() + 60 * 10**9
    monkeypatch.setattr("iii_directory.disk.files.time.time_ns", lambda: later)

    # It may be read for a minute: what counts is when the reader began.
    assert settled_stamp(state, racy) is None
    assert settled_stamp(state) == stamp_of(state)
