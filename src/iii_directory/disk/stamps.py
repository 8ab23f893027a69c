"""What tells one state of a file from another, without reading it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeAlias

from iii_directory import limits

if TYPE_CHECKING:
    import os

Stamp: TypeAlias = tuple[int, int, int, int]
"""Device, inode, ctime and size: every change sets the ctime, and nobody can put that back."""

Mark: TypeAlias = tuple[int, int, int]
"""Inode, size and mtime: what a file keeps when it gets a second name and when the machine starts anew.

A hard link sets the ctime, and a device may have another number after a restart, so an install, which does
the one and must survive the other, notes these of the files it replaces."""


def stamp_of(state: os.stat_result) -> Stamp:
    return state.st_dev, state.st_ino, state.st_ctime_ns, state.st_size


def mark_of(state: os.stat_result) -> Mark:
    return state.st_ino, state.st_size, state.st_mtime_ns


def racy_after() -> int:
    """The ctime after which a file that is looked at from now on may change once more without telling."""
    return time.time_ns() - limits.RACY_SECONDS * 1_000_000_000


def settled_stamp(state: os.stat_result, racy: int | None = None) -> Stamp | None:
    """The stamp; None of a file that had changed moments ago, whose times may not tell of the next change.

    ``racy`` is what `racy_after` said before the file was looked at, where that was not just now.
    """
    return stamp_of(state) if state.st_ctime_ns < (racy_after() if racy is None else racy) else None
