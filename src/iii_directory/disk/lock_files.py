"""Read ``skills.lock.json``, and allow one installer at a time per namespace, across threads and processes.

A record that exists and cannot be read, because it is a link, a directory, too large or not permitted, is
broken. It never counts as absent: what it hides would be shown, and what it records be written over.

The locks are flock(2) on files in a hidden folder below the skills folder, so the kernel releases the locks
of a process that dies. The holder removes its lock file and, if it is empty, the folder, so nothing is left
at rest; a process that waited checks that the file it locked still has that name.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from iii_directory.disk.files import LINK, POSIX, SPECIAL, TOO_LARGE, RefusedError, closing_fd
from iii_directory.disk.install_record import LOCKFILE, LockFile, broken_lock, parse_lock
from iii_directory.disk.safe_open import directory_below, read_file, status_or_none
from iii_directory.errors import refused
from iii_directory.limits import MAX_LOCKFILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from iii_directory.disk.files import FileOps, Reason
    from iii_directory.disk.install_record import Entry

# The reasons of the disk speak of documents.
_REASONS: Final[dict[Reason, str]] = {
    LINK: "it is a symbolic link, which is not followed",
    SPECIAL: "it is not a file",
    TOO_LARGE: f"it is larger than {MAX_LOCKFILE_BYTES >> 20} MiB",
}


def read_lock(files: FileOps, root: int) -> LockFile:
    """Read the record of an open skills folder; an empty one if the file is missing.

    Raise `RefusedError` if the cause may pass, such as a shortage of memory: another try may succeed.
    """
    try:
        return parse_lock(read_file(files, LOCKFILE, root, MAX_LOCKFILE_BYTES))
    except RefusedError as refused:
        if refused.reason.passing:
            raise
        return broken_lock(_REASONS.get(refused.reason, refused.reason.text))


class InstallRecord:
    """Hold the record of one skills folder, read whenever its follower says that it changed."""

    def __init__(self, folder: str) -> None:
        self.lock = LockFile()
        """What the file says; empty if the file is missing."""
        self.namespaces: Mapping[str, Entry] = {}
        """What is recorded; of a file that broke, what it said before: what is hidden stays hidden."""
        self.is_unread = False
        """True when the machine was short of something: worth another try at the next look."""
        self._folder = folder

    def read(self) -> None:
        """Read the file as it is now."""
        self.is_unread = False
        try:
            with directory_below(self._folder, ()) as root:
                self.lock = read_lock(POSIX, root)
        except RefusedError as refused:
            self.is_unread = refused.reason.passing
            # Without the folder there is nothing to hide; its follower reports what is wrong with it.
            self.lock = broken_lock(refused.reason.text) if self.is_unread else LockFile()
        if not self.lock.broken:
            self.namespaces = self.lock.namespaces


WORK_FOLDER: Final = ".iii-directory"
LOCK_SUFFIX: Final = ".lock"
# Not a valid namespace, so it cannot collide with the lock of one.
RECORD: Final = "RECORD"
_PAUSES: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)


def is_at_rest(folder: Path) -> bool:
    """Return whether no install is running or was interrupted below a folder; False if that is unknown."""
    try:
        (folder / WORK_FOLDER).lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def held(files: FileOps, root: int, name: str, wait: float) -> Generator[int]:
    """Hold the lock of a name and yield the open work folder; raise D340 after ``wait`` seconds."""
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
        with closing_fd(work_folder), closing_fd(lock), suppress(OSError):
            # A file left behind by an error does no harm and is removed at the next start.
            files.unlink(f"{name}{LOCK_SUFFIX}", work_folder)
            files.remove_folder(WORK_FOLDER, root)


def _attempt(files: FileOps, root: int, name: str) -> tuple[int, int] | None:
    """Return the open work folder and the locked file; None if another process holds or just left it."""
    with suppress(FileExistsError):
        files.make_folder(WORK_FOLDER, root)
    try:
        work_folder = files.open_folder(WORK_FOLDER, root)
    except FileNotFoundError:
        return None
    with ExitStack() as opened:
        opened.callback(os.close, work_folder)
        try:
            lock = files.open_lock(f"{name}{LOCK_SUFFIX}", work_folder)
            opened.callback(os.close, lock)
            if files.try_lock(lock):
                state = status_or_none(files, f"{name}{LOCK_SUFFIX}", work_folder)
                if state is not None and state.st_ino == os.fstat(lock).st_ino:
                    opened.pop_all()
                    return work_folder, lock
        except FileNotFoundError:
            # The process that left removed the folder, too.
            return None
        except BaseException:
            with suppress(OSError):
                files.remove_folder(WORK_FOLDER, root)
            raise
    return None
