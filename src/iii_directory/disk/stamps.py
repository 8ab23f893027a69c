"""What tells one state of a file from any other, without reading it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from iii_directory import limits

if TYPE_CHECKING:
    import os

    Stamp = tuple[int, ...]


def stamp_of(state: os.stat_result) -> Stamp:
    """The state of a file: every change sets its ctime, and nobody can put that back."""
    return state.st_dev, state.st_ino, state.st_ctime_ns, state.st_size


def settled_stamp(state: os.stat_result) -> Stamp | None:
    """The same; None of a file that changed moments ago, whose times may not tell of the next change."""
    is_settled = state.st_ctime_ns < time.time_ns() - limits.RACY_SECONDS * 1_000_000_000
    return stamp_of(state) if is_settled else None
