"""One installer at a time for each namespace, in this process and in every other.

The locks are flock(2) on files in a hidden folder below the skills folder: a process that dies lets go of
them by itself. Whoever lets go removes the file and, when it was the last, the folder, so that at rest
nothing of this is left; whoever waited checks that the file it locked is still the one with the name.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from iii_directory.disk.files import closing_fd
from iii_directory.disk.safe_open import status_or_none
from iii_directory.errors import refused

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from iii_directory.disk.files import FileOps

WORK_FOLDER: Final = ".iii-directory"
LOCK_SUFFIX: Final = ".lock"
# Not a name a namespace can have.
RECORD: Final = "RECORD"
_PAUSES: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)


def is_at_rest(folder: Path) -> bool:
    """Whether nobody works below a folder, and nobody left anything there; False where it cannot be told."""
    try:
        (folder / WORK_FOLDER).lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def held(files: FileOps, root: int, name: str, wait: float) -> Generator[int]:
    """Hold the lock of a name; gives the open work folder. Raises D340 when it takes too long."""
    deadline = time.monotonic() + wait
    attempt = 0
    while (found := _attempt(files, root, name)) is None:
        if time.monotonic() >= deadline:
            raise refused("another installation is still running")
        time.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
        attempt += 1
    work_folder, lock = found
    try:
        yield work_folder
    finally:
        _let_go(files, root, work_folder, lock, name)


def _attempt(files: FileOps, root: int, name: str) -> tuple[int, int] | None:
    """The open work folder and the open, locked file; None when someone else holds it or just left."""
    with suppress(FileExistsError):
        files.make_folder(WORK_FOLDER, root)
    try:
        work_folder = files.open_folder(WORK_FOLDER, root)
    except FileNotFoundError:
        return None
    try:
        lock = _locked(files, work_folder, name)
    except BaseException:
        os.close(work_folder)
        with suppress(OSError):
            files.remove_folder(WORK_FOLDER, root)
        raise
    if lock is None:
        os.close(work_folder)
        return None
    return work_folder, lock


def _locked(files: FileOps, work_folder: int, name: str) -> int | None:
    try:
        opened = files.open_lock(f"{name}{LOCK_SUFFIX}", work_folder)
    except FileNotFoundError:
        return None
    try:
        if files.try_lock(opened):
            state = status_or_none(files, f"{name}{LOCK_SUFFIX}", work_folder)
            if state is not None and state.st_ino == os.fstat(opened).st_ino:
                return opened
    except BaseException:
        os.close(opened)
        raise
    os.close(opened)
    return None


def _let_go(files: FileOps, root: int, work_folder: int, lock: int, name: str) -> None:
    with closing_fd(work_folder), closing_fd(lock), suppress(OSError):
        # What stays behind after an error is in nobody's way and goes with the next start.
        files.unlink(f"{name}{LOCK_SUFFIX}", work_folder)
        files.remove_folder(WORK_FOLDER, root)
