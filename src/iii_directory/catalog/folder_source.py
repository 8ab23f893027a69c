"""Combine the folders that documents come from into one source.

The skills folder is the top layer, below it are the folders that other tools manage, and lowest the documents
of this package.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.catalog.folder_watching import system_watcher
from iii_directory.catalog.folders import BundledDocuments, FollowedFolder, roots_of
from iii_directory.disk.files import GONE, RefusedError
from iii_directory.disk.install_record import LOCKFILE, content_hash
from iii_directory.disk.lock_files import InstallRecord
from iii_directory.disk.safe_open import read_below, regular_below
from iii_directory.documents.model import Finding
from iii_directory.documents.parse import parse_file

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from iii_directory.catalog.folder_scanning import Parse
    from iii_directory.catalog.folder_watching import Inotify
    from iii_directory.catalog.folders import Changes, Layer
    from iii_directory.config import Settings
    from iii_directory.disk.files import Stamp

# The names of the two configured folders in rows.
MAIN_ROOT: Final = "skills"
LOCAL_ROOT: Final = "local"
_SHADOWED_FIX: Final = "nothing if this is intended; otherwise remove or rename one of the two"


class FolderSource:
    """Maps paths below the folder to `ParsedFile`, over all layers.

    A namespace directory of a layer replaces the whole namespace of that name in the layers below; a file at
    the root replaces the file of that name.

    ``catch_up`` may run in any thread. Changes must be applied in the order in which they are taken, so only
    one thread should call ``take_changes``.
    """

    def __init__(
        self,
        skills_folder: str | os.PathLike[str],
        local_skills_folder: str | os.PathLike[str] | None = None,
        *,
        below: Sequence[Layer] = (),
        refused: Sequence[Finding] = (),
        parse: Parse = parse_file,
        watcher: Callable[[], Inotify | None] = system_watcher,
    ) -> None:
        # Links are resolved once, at the start: a folder that becomes a link later is refused.
        self._folder = os.path.realpath(skills_folder)
        self._base = FollowedFolder(self._folder, "skills_folder", MAIN_ROOT, parse, watcher())
        self.record = InstallRecord(self._folder)
        """The content of ``skills.lock.json`` as of the last `catch_up`."""
        self._local: FollowedFolder | None = None
        if local_skills_folder is not None:
            path = os.path.realpath(local_skills_folder)
            self._local = FollowedFolder(path, "local_skills_folder", LOCAL_ROOT, parse, watcher())
        above = () if self._local is None else (self._local,)
        self._layers: tuple[Layer, ...] = (*above, self._base, *below)
        self._owners: dict[str, Layer] = {}
        """The layer that serves each namespace."""
        self._refused = tuple(refused)
        """Findings about folders that are not layers, though a user could expect them to be."""
        self._problems: tuple[Finding, ...] = ()
        self._shadowed: tuple[Finding, ...] = ()
        self.local_namespaces: frozenset[str] = frozenset()
        """The namespaces served from ``local_skills_folder``."""
        self.findings: tuple[Finding, ...] = ()
        """The findings about whole folders; findings about a file are in its `ParsedFile`."""
        # One lock for reading the disk, and one that is never held while the disk is read: `take_changes`
        # runs on the event loop and must not wait for a scan in a thread.
        self._work_lock = threading.Lock()
        self._publish_lock = threading.Lock()
        self.pending: Changes = {}
        """What `take_changes` would return."""

    def catch_up(self, at_most: int | None = None) -> bool:
        """Read the files that changed on disk and keep the result for `take_changes`.

        With ``at_most``, return False at once if about more entries than that wait, or if another thread is
        reading: the caller then repeats the call without ``at_most`` in a thread, off the event loop.
        """
        if not self._work_lock.acquire(blocking=at_most is None):
            return False
        try:
            # Ask every layer, even after one returned False, so that no layer loses its events.
            done = [layer.catch_up(at_most) for layer in self._layers]
            self._stage()
            return all(done)
        finally:
            self._work_lock.release()

    def take_changes(self) -> Changes:
        """Return and clear the new entry of each path that `catch_up` found changed; None for a removed one.

        The first call returns everything. ``skills.lock.json`` may be among the paths although it is not a
        document. Never waits for the disk.
        """
        with self._publish_lock:
            pending, self.pending = self.pending, {}
        return pending

    def read_body(self, path: str) -> bytes:
        """Read a known file; raise `RefusedError` if it is gone or no longer a regular file."""
        return self._owner(path).read(path)

    @contextmanager
    def opened(self, path: str) -> Generator[int | None]:
        """Open a known file and yield its descriptor, or None for a document that is not on disk.

        Raises `RefusedError` if it is gone or no longer a regular file.
        """
        owner = self._owner(path)
        if owner.tree.get(path) is None:
            raise RefusedError(GONE)
        if owner.path is None:
            yield None
            return
        with regular_below(owner.path, path) as file:
            yield file

    def place_of(self, path: str) -> str | None:
        """Return the path of a file or skill folder on this machine, or None if it is not on disk."""
        folder = (self._owners.get(path) or self._owner(path)).path
        return None if folder is None else f"{folder}/{path}"

    def layer_of(self, path: str) -> str | None:
        """Return the name of the layer that serves a path; None for ``skills_folder``, the writable one."""
        owner = self._owner(path)
        return None if owner is self._base else owner.label or "this package"

    def stamp(self, path: str) -> Stamp | None:
        """Return a value that differs after every change of the file, or None if only reading can tell."""
        return self._owner(path).stamp(path)

    def has_installed(self, path: str, digest: str) -> bool:
        """Return whether a document of ``skills_folder``, even a replaced one, has the content of a hash."""
        try:
            return content_hash(read_below(self._folder, path, limits.MAX_BODY_BYTES)) == digest
        except RefusedError:
            return False

    def wake_fds(self) -> tuple[int, ...]:
        """Return the descriptors that become readable when a watched folder changes."""
        return tuple(fd for layer in self._layers if (fd := layer.watches.fileno()) is not None)

    def close(self) -> None:
        """Release the watches of all layers."""
        with self._work_lock:
            for layer in self._layers:
                layer.watches.close()

    def _owner(self, path: str) -> Layer:
        """Return the layer that serves this path."""
        namespace, slash, _ = path.partition("/")
        if slash:
            return self._owners.get(namespace, self._base)
        return next((layer for layer in self._layers if path in layer.root_files), self._base)

    def _stage(self) -> None:
        """Merge the changes of all layers into the pending changes."""
        changed = [(layer, layer.take_changes()) for layer in self._layers if layer.tree.changed]
        found = (problem for layer in self._layers for problem in layer.problems.values())
        problems = (*self._refused, *found)
        if problems != self._problems:
            self._problems = problems
            self.findings = (*problems, *self._shadowed)
        if self.record.is_unread:
            self.record.read()
        moved = self._move_namespaces() if any(layer.tree.reshaped for layer in self._layers) else ()
        staged: Changes = {}
        for layer, changes in changed:
            if layer is not self._base:
                changes.pop(LOCKFILE, None)
            elif LOCKFILE in changes:
                self.record.read()
            for path, entry in changes.items():
                # A change in a layer that another layer covers is a change of nothing that is served.
                owner = self._owner(path)
                staged[path] = entry if owner is layer else owner.tree.get(path)
        for path in moved:
            staged[path] = self._owner(path).tree.get(path)
        if staged:
            with self._publish_lock:
                self.pending.update(staged)

    def _move_namespaces(self) -> set[str]:
        """Recompute the owner of each namespace and return the paths whose owner changed."""
        old = self._owners
        self._owners = {name: layer for layer in reversed(self._layers) for name in layer.namespaces}
        for layer in self._layers:
            layer.tree.reshaped = False
        self.local_namespaces = frozenset(() if self._local is None else self._local.namespaces)
        self._shadowed = tuple(
            Finding(
                "shadowed",
                namespace,
                f"the namespace of the same name in {self._owners[namespace].label} replaces it",
                _SHADOWED_FIX,
                urgent=False,
            )
            for layer in self._layers[1:]
            if layer.label is not None
            for namespace in sorted(layer.namespaces)
            if self._owners[namespace] is not layer
        )
        self.findings = (*self._problems, *self._shadowed)
        # A namespace that is new or gone in every layer is already among the changes.
        moved = [name for name in old.keys() & self._owners.keys() if old[name] is not self._owners[name]]
        return {path for name in moved for layer in self._layers for path in layer.tree.paths_in(name)}


def layers_of(settings: Settings) -> FolderSource:
    """Create the source for all folders in the settings, with the documents of this package at the bottom."""
    reason = "it is a link that leads out of this project; nothing in it is served"
    return FolderSource(
        settings.skills_folder,
        settings.local_skills_folder,
        below=[
            *roots_of((*settings.roots, *settings.user_folders), settings.skills_folder),
            BundledDocuments(),
        ],
        refused=[
            Finding(
                "skipped", root, reason, f"remove it, or serve it by a line in config.yaml: roots: [{root}]"
            )
            for root in settings.roots_outside
        ],
    )
