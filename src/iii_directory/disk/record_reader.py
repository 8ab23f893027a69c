"""Read ``skills.lock.json`` from the disk, for the catalogue and for the installer.

A file that exists and cannot be read, because it is a link, a directory, too large or not permitted, is
broken. It never counts as absent: what it hides would be shown, and what it records be written over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iii_directory.disk.files import POSIX
from iii_directory.disk.install_record import LOCKFILE, LockFile, broken_lock, parse_lock
from iii_directory.disk.reasons import LINK, SPECIAL, TOO_LARGE, RefusedError
from iii_directory.disk.safe_open import directory_below, read_file
from iii_directory.limits import MAX_LOCKFILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iii_directory.disk.files import FileOps
    from iii_directory.disk.install_record import Entry
    from iii_directory.disk.reasons import Reason

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
