"""Reading ``skills.lock.json``: one way for whoever serves what is installed and for whoever installs.

A file that is there and cannot be read, because it is a link, a directory, too large or not permitted, is
broken: it never counts as absent, or what it hides would be shown, and what it records be written over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iii_directory.disk.files import POSIX
from iii_directory.disk.reasons import LINK, SPECIAL, TOO_LARGE, RefusedError
from iii_directory.disk.safe_open import directory_below, read_file
from iii_directory.limits import MAX_LOCKFILE_BYTES
from iii_directory.lockfile.format import LOCKFILE, LockFile, broken_lock, parse_lock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iii_directory.disk.files import FileOps
    from iii_directory.disk.reasons import Reason
    from iii_directory.lockfile.format import Entry

# The reasons of the disk speak of documents.
_REASONS: Final[dict[Reason, str]] = {
    LINK: "it is a symbolic link, which is not followed",
    SPECIAL: "it is not a file",
    TOO_LARGE: f"it is larger than {MAX_LOCKFILE_BYTES >> 20} MiB",
}


def read_lock(files: FileOps, root: int) -> LockFile:
    """The record of an open skills folder, an empty one when there is none.

    `RefusedError` when the machine was short of something, or failed: another try may tell more.
    """
    try:
        return parse_lock(read_file(files, LOCKFILE, root, MAX_LOCKFILE_BYTES))
    except RefusedError as refused:
        if refused.reason.passing:
            raise
        return broken_lock(_REASONS.get(refused.reason, refused.reason.text))


class InstallRecord:
    """The record of one skills folder, read whenever its follower says that it changed."""

    def __init__(self, folder: str) -> None:
        self.lock = LockFile()
        """What the file says; an empty record where there is none."""
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
            # Without the folder there is nothing to hide; whoever follows it says what is wrong with it.
            self.lock = broken_lock(refused.reason.text) if self.is_unread else LockFile()
        if not self.lock.broken:
            self.namespaces = self.lock.namespaces
