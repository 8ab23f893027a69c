"""The folder source of the catalogue: the documents of ``skills_folder`` with a local folder laid over it.

It keeps no bodies: `FolderSource.read_body` reads the file as it is at the call.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.disk.reasons import GONE
from iii_directory.disk.safe_open import RefusedError, read_below
from iii_directory.disk.stamps import settled_stamp
from iii_directory.documents.model import Finding
from iii_directory.documents.parse import parse_file
from iii_directory.folders.follow import FollowedFolder
from iii_directory.folders.watch import system_watcher
from iii_directory.lockfile.format import LOCKFILE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.disk.stamps import Stamp
    from iii_directory.documents.model import ParsedFile
    from iii_directory.folders.scan import Parse
    from iii_directory.folders.watch import Watcher


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different since the changes were last taken."""

    files: Mapping[str, ParsedFile | None] = field(default_factory=dict[str, "ParsedFile | None"])
    """What became of each path that changed; None when it is gone."""
    lock_file: bool = False
    """True when ``skills.lock.json`` of ``skills_folder`` changed; also when it is first seen."""

    def __bool__(self) -> bool:
        return bool(self.files) or self.lock_file


_NOTHING: Final = Changes()
_SHADOWED: Final = "the namespace of the same name in local_skills_folder replaces it"
_SHADOWED_FIX: Final = "nothing, if that is meant; else remove or rename one of the two"


class FolderSource:
    """What the files of a folder are, a local one laid over it: path below the folder -> `ParsedFile`.

    A namespace directory of the local folder replaces the whole namespace of the same name; a file at the
    root of the local folder replaces the file of the same name.

    Whoever keeps a view of the files applies each `Changes` to it in the order they were taken, so one thread
    should take them; ``catch_up`` may run in any.
    """

    def __init__(
        self,
        skills_folder: str | os.PathLike[str],
        local_skills_folder: str | os.PathLike[str] | None = None,
        *,
        parse: Parse = parse_file,
        watcher: Callable[[], Watcher | None] = system_watcher,
    ) -> None:
        # Links on the way to a folder, and the folder itself as a link, count once, at the start.
        self._base = FollowedFolder(os.path.realpath(skills_folder), "skills_folder", parse, watcher())
        self._local: FollowedFolder | None = None
        if local_skills_folder is not None:
            path = os.path.realpath(local_skills_folder)
            self._local = FollowedFolder(path, "local_skills_folder", parse, watcher())
        self._replaced: frozenset[str] = frozenset()
        self._findings: tuple[Finding, ...] = ()
        self._rounds = 0
        self._work_lock = threading.Lock()
        self._publish_lock = threading.Lock()
        self._pending: dict[str, ParsedFile | None] = {}
        self._pending_lock_file = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is odd about the folders as a whole; what concerns one file is in its `ParsedFile`."""
        return self._findings

    @property
    def local_namespaces(self) -> frozenset[str]:
        """The namespaces that come from ``local_skills_folder``."""
        return self._replaced

    @property
    def has_changes(self) -> bool:
        """True when `take_changes` has something to give."""
        return bool(self._pending) or self._pending_lock_file

    def refresh(self) -> Changes:
        """What changed on disk up to now; at first everything. Call it before every answer."""
        self.catch_up()
        return self.take_changes()

    def catch_up(self, at_most: int | None = None) -> bool:
        """Read what changed on disk and keep it for `take_changes`.

        With ``at_most``, False at once when about more entries than that wait, or when another thread is at
        it: then call it without ``at_most`` in a thread, so that an event loop does not stand still.
        """
        if not self._work_lock.acquire(blocking=at_most is None):
            return False
        try:
            # Both are asked, even if one has too much to do: what it learnt is not lost.
            done = [folder.catch_up(at_most) for folder in self._folders()]
            self._stage()
            return all(done)
        finally:
            self._work_lock.release()

    def take_changes(self) -> Changes:
        """What `catch_up` found since the last time. Never waits for the disk."""
        if not self.has_changes:
            return _NOTHING
        with self._publish_lock:
            pending, self._pending = self._pending, {}
            lock_file, self._pending_lock_file = self._pending_lock_file, False
        return Changes(pending, lock_file)

    def read_body(self, path: str) -> bytes:
        """The bytes of a known file as they are now; `RefusedError` when it is gone or a file no more."""
        folder = self._owner(path)
        if folder.tree.get(path) is None:
            raise RefusedError(GONE)
        return read_below(folder.path, path, limits.MAX_BODY_BYTES)

    def stamp(self, path: str) -> Stamp | None:
        """What tells the present state of a file from any other; None where only reading it can tell.

        That is so where a change may not show at once: on network file systems, and in the times of a file
        that changed moments ago.
        """
        folder = self._owner(path)
        if not folder.is_watched:
            return None
        try:
            return settled_stamp(os.lstat(f"{folder.path}/{path}"))
        except (OSError, ValueError):
            return None

    def read_installed(self, path: str) -> bytes:
        """The bytes of a document of ``skills_folder``, also where a local one replaces it."""
        return read_below(self._base.path, path, limits.MAX_BODY_BYTES)

    def read_lock_file(self) -> bytes:
        """The bytes of ``skills.lock.json``; `RefusedError` when there is none that can be read."""
        return read_below(self._base.path, LOCKFILE, limits.MAX_LOCK_FILE_BYTES)

    def wake_fds(self) -> tuple[int, ...]:
        """Descriptors that are readable when there is something to catch up with, of the watched folders."""
        return tuple(fd for folder in self._folders() if (fd := folder.wake_fd()) is not None)

    def close(self) -> None:
        """Give the watches back."""
        with self._work_lock:
            for folder in self._folders():
                folder.close()

    def _folders(self) -> tuple[FollowedFolder, ...]:
        return (self._base,) if self._local is None else (self._base, self._local)

    def _owner(self, path: str) -> FollowedFolder:
        """The folder whose file is shown at this path."""
        if self._local is None:
            return self._base
        namespace, slash, _ = path.partition("/")
        is_local = namespace in self._replaced if slash else path in self._local.tree.root.entries
        return self._local if is_local else self._base

    def _stage(self) -> None:
        """Merge what changed in the folders into what waits to be taken."""
        changed, lock_file = self._base.take_changes()
        if self._local is not None:
            changed = self._overlay(self._local, changed)
        if changed or lock_file:
            with self._publish_lock:
                self._pending.update(changed)
                self._pending_lock_file = self._pending_lock_file or lock_file
        rounds = sum(folder.rounds for folder in self._folders())
        if rounds != self._rounds:
            self._rounds = rounds
            self._findings = self._find()

    def _overlay(
        self, local: FollowedFolder, base_changed: Mapping[str, ParsedFile | None]
    ) -> dict[str, ParsedFile | None]:
        touched = {*base_changed, *local.take_changes()[0]}
        namespaces = local.tree.root.subdirectories
        if namespaces.keys() != self._replaced:
            before, self._replaced = self._replaced, frozenset(namespaces)
            for namespace in before ^ self._replaced:
                for folder in (self._base, local):
                    touched.update(folder.tree.paths_in(namespace))
        return {path: self._owner(path).tree.get(path) for path in touched}

    def _find(self) -> tuple[Finding, ...]:
        problems = [problem for folder in self._folders() for problem in folder.problems.values()]
        shadowed = sorted(self._replaced & self._base.tree.root.subdirectories.keys())
        return (*problems, *(Finding("shadowed", name, _SHADOWED, _SHADOWED_FIX) for name in shadowed))
