"""Follow one folder: find the files that must be read again before the next answer.

With a watcher these are the files named by events. Without one (another system, a network file system, no
watches left) every file is checked every time. When events were lost or the folder itself was replaced,
everything is checked once.

On network file systems a check is as fresh as the client's cache of file attributes.
"""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from iii_directory import limits
from iii_directory.catalog.folder.folder_tree import ShownTree
from iii_directory.catalog.folder.scanning import Scanner
from iii_directory.catalog.folder.watching import CannotWatchError, Watches
from iii_directory.disk.files import identity_of, settled_stamp
from iii_directory.disk.reasons import GONE, Reason, RefusedError
from iii_directory.disk.safe_open import read_below
from iii_directory.documents.model import Finding
from iii_directory.lockfile.format import LOCKFILE

if TYPE_CHECKING:
    from collections.abc import Generator

    from iii_directory.catalog.folder.folder_tree import Directory
    from iii_directory.catalog.folder.scanning import Parse
    from iii_directory.catalog.folder.watching import Watcher
    from iii_directory.disk.files import Identity, Stamp


class FollowedFolder(ShownTree):
    """Keeps the tree of one folder up to date.

    The owner must hold a lock for all methods but `read` and `stamp`, which any thread may call.
    """

    def __init__(self, path: str, label: str, root: str, parse: Parse, watcher: Watcher | None) -> None:
        """``label`` names the folder in findings, ``root`` in the rows of its skills."""
        self.path = path
        self.problems: dict[str, Finding] = {}
        """Problems of the folder as a whole, by the part concerned."""
        self.label = label
        self._watches = Watches(watcher)
        self._scanner = Scanner(path, root, parse, self._watches)
        super().__init__(self._scanner.tree)
        self._identity: Identity | None = None
        self._stale = True
        self._dirty: set[tuple[Directory, str]] = set()
        self._dirty_directory = False
        if watcher is None:
            self._report_unwatched("this system offers no change notices")

    @property
    def is_watched(self) -> bool:
        return self._watches.active

    def catch_up(self, at_most: int | None = None) -> bool:
        """Bring the tree up to date; return False without doing so if more than ``at_most`` entries wait."""
        self._look_for_work()
        if not self._stale and not self._dirty:
            return True
        if at_most is not None and self._waiting() > at_most:
            return False
        try:
            self._work()
        except CannotWatchError as refused:
            self._watches.stop()
            self._report_unwatched(str(refused))
            self._stale = True
            self._work()
        return True

    def read(self, path: str) -> bytes:
        """Read a known file; raise `RefusedError` if it is gone or no longer a regular file."""
        if self.tree.get(path) is None:
            raise RefusedError(GONE)
        return read_below(self.path, path, limits.MAX_BODY_BYTES)

    def stamp(self, path: str) -> Stamp | None:
        """Return a value that differs after every change of the file, or None if only reading can tell.

        A change may not show in the file's status on network file systems, nor for a file that changed
        moments ago.
        """
        if not self.is_watched:
            return None
        try:
            return settled_stamp(os.lstat(f"{self.path}/{path}"))
        except (OSError, ValueError):
            return None

    def wake_fd(self) -> int | None:
        """Return a descriptor that becomes readable on changes, or None for an unwatched folder."""
        return self._watches.fileno()

    def close(self) -> None:
        self._watches.close()

    def _look_for_work(self) -> None:
        if not self._watches.active:
            self._stale = True
            return
        # The folder may have been replaced by way of a directory above it, which raises no event here.
        if identity_of(self.path, follow_links=False) != self._identity:
            self._stale = True
        for directory, name, is_directory in self._watches.events():
            if directory is None:
                self._stale = True
            elif name:
                self._dirty.add((directory, name))
                self._dirty_directory = self._dirty_directory or is_directory
            elif directory.parent is None:
                self._stale = True
            else:
                self._dirty.add((directory.parent, directory.name))
                self._dirty_directory = True

    def _waiting(self) -> int:
        """Estimate how many entries must be checked; a directory counts as the maximum."""
        if self._stale and not self._watches.active and self._identity is not None:
            return self.tree.count
        if self._stale or self._dirty_directory:
            return limits.MAX_FOLDER_ENTRIES
        return len(self._dirty) + self._scanner.weight_of_lock_file(self._dirty)

    def _work(self) -> None:
        dirty, self._dirty, self._dirty_directory = self._dirty, set(), False
        was_full, count = self.tree.full, self.tree.count
        # If an exception ends this round, the next one must visit everything.
        everything, self._stale = self._stale, True
        self._scanner.start()
        if everything:
            if (self.tree.root, LOCKFILE) in dirty:
                self._scanner.doubt_lock_file()
            self._visit_everything()
        else:
            by_directory: dict[Directory, list[str]] = {}
            for directory, name in dirty:
                by_directory.setdefault(directory, []).append(name)
            for directory, names in by_directory.items():
                self._scanner.look_at(directory, names)
        # Entries left out because the tree was full are visited once it has room again.
        self._stale = self._scanner.root_again or (was_full and self.tree.count < count)
        self._dirty |= self._scanner.again
        self._scanner.root_again = False
        self._scanner.again.clear()
        self._report_full()

    def _visit_everything(self) -> None:
        self._identity = None
        self.problems.pop("folder", None)
        try:
            with _collector_paused():
                self._identity = self._scanner.visit_root()
        except RefusedError as refused:
            self._report_no_folder(refused.reason)

    def _report_no_folder(self, reason: Reason) -> None:
        if reason is not GONE:
            self._report("folder", reason.text, reason.fix)
        elif identity_of(self.path, follow_links=False) is not None:
            # A missing folder is an empty catalogue; anything else at its path is a mistake.
            text = "it is not a directory, or became a link after the start"
            self._report("folder", text, "put a directory there, or restart if the link is intended")

    def _report_full(self) -> None:
        self.problems.pop("full", None)
        if self.tree.full:
            text = (
                f"it holds more than {limits.MAX_FOLDER_ENTRIES} files and directories; the rest is left out"
            )
            self._report("full", text, "move files that are not documents elsewhere")

    def _report_unwatched(self, reason: str) -> None:
        text = f"it is not watched: {reason}; every call looks at every file instead"
        self.problems["watch"] = Finding(
            "watch", self.label, text, "nothing is stale; for speed keep it on a local disk", urgent=False
        )

    def _report(self, part: str, reason: str, fix: str) -> None:
        self.problems[part] = Finding("skipped", self.label, reason, fix)


@contextmanager
def _collector_paused() -> Generator[None]:
    """Pause garbage collection: a scan frees nothing, and collecting would take a tenth of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
