"""The folder source of the catalogue: layers of documents on disk, seen as one folder.

From the top: ``local_skills_folder``, ``skills_folder``, and what is laid below them, such as the documents
this package brings. It keeps no bodies: `FolderSource.read_body` reads the file as it is at the call.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from iii_directory import limits
from iii_directory.disk.reasons import GONE, RefusedError
from iii_directory.disk.safe_open import read_below, regular_below
from iii_directory.documents.model import Finding
from iii_directory.documents.parse import parse_file
from iii_directory.folders.follow import FollowedFolder
from iii_directory.folders.watch import system_watcher
from iii_directory.lockfile.format import LOCKFILE
from iii_directory.lockfile.reading import InstallRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping, Sequence

    from iii_directory.disk.stamps import Stamp
    from iii_directory.documents.model import ParsedFile
    from iii_directory.folders.scan import Parse
    from iii_directory.folders.tree import Tree
    from iii_directory.folders.watch import Watcher

    Changes = dict[str, ParsedFile | None]

# What rows call the two folders that are no roots.
MAIN_ROOT: Final = "skills"
LOCAL_ROOT: Final = "local"
_SHADOWED_FIX: Final = "nothing, if that is meant; else remove or rename one of the two"


class Layer(Protocol):
    """One folder of several. Whoever follows it holds a lock; reading and its stamp are for any thread."""

    @property
    def label(self) -> str | None:
        """What the settings call it; None for one that nobody need be told of when another replaces it."""
        ...

    @property
    def path(self) -> str | None:
        """Where it is on this machine; None of one that is in no folder of the disk."""
        ...

    @property
    def tree(self) -> Tree: ...

    @property
    def problems(self) -> Mapping[str, Finding]:
        """What is wrong with the folder as a whole."""
        ...

    def namespaces(self) -> Collection[str]:
        """The directories at its root that it shows."""
        ...

    def has_file(self, name: str) -> bool:
        """Whether it shows a file of this name at its root."""
        ...

    def catch_up(self, at_most: int | None = None) -> bool: ...

    def take_changes(self) -> Changes: ...

    def take_reshaped(self) -> bool:
        """Whether `namespaces` are others than at the last call."""
        ...

    def read(self, path: str) -> bytes: ...

    def stamp(self, path: str) -> Stamp | None: ...

    def wake_fd(self) -> int | None: ...

    def close(self) -> None: ...


class FolderSource:
    """What the files of all layers are: path below the folder -> `ParsedFile`.

    A namespace directory of a layer replaces the whole namespace of the same name in those below it; a file
    at its root replaces the file of the same name.

    Whoever keeps a view of the files applies what was taken in that order, so one thread should take it;
    ``catch_up`` may run in any.
    """

    def __init__(
        self,
        skills_folder: str | os.PathLike[str],
        local_skills_folder: str | os.PathLike[str] | None = None,
        *,
        below: Sequence[Layer] = (),
        parse: Parse = parse_file,
        watcher: Callable[[], Watcher | None] = system_watcher,
    ) -> None:
        # Links on the way to a folder, and the folder itself as a link, count once, at the start.
        self._base = FollowedFolder(
            os.path.realpath(skills_folder), "skills_folder", MAIN_ROOT, parse, watcher()
        )
        self.record = InstallRecord(self._base.path)
        """What ``skills.lock.json`` of ``skills_folder`` says, as of the last `catch_up`."""
        self._local: FollowedFolder | None = None
        if local_skills_folder is not None:
            path = os.path.realpath(local_skills_folder)
            self._local = FollowedFolder(path, "local_skills_folder", LOCAL_ROOT, parse, watcher())
        above = () if self._local is None else (self._local,)
        self._layers: tuple[Layer, ...] = (*above, self._base, *below)
        self._owners: dict[str, Layer] = {}
        """Whose namespaces are shown."""
        self._problems: tuple[Finding, ...] = ()
        self._shadowed: tuple[Finding, ...] = ()
        self._local_namespaces: frozenset[str] = frozenset()
        self._findings: tuple[Finding, ...] = ()
        self._work_lock = threading.Lock()
        self._publish_lock = threading.Lock()
        self._pending: Changes = {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is odd about the folders as a whole; what concerns one file is in its `ParsedFile`."""
        return self._findings

    @property
    def local_namespaces(self) -> frozenset[str]:
        """The namespaces that come from ``local_skills_folder``."""
        return self._local_namespaces

    @property
    def has_changes(self) -> bool:
        """True when `take_changes` has something to give."""
        return bool(self._pending)

    def catch_up(self, at_most: int | None = None) -> bool:
        """Read what changed on disk and keep it for `take_changes`.

        With ``at_most``, False at once when about more entries than that wait, or when another thread is at
        it: then call it without ``at_most`` in a thread, so that an event loop does not stand still.
        """
        if not self._work_lock.acquire(blocking=at_most is None):
            return False
        try:
            # All are asked, even if one has too much to do: what it learnt is not lost.
            done = [layer.catch_up(at_most) for layer in self._layers]
            self._stage()
            return all(done)
        finally:
            self._work_lock.release()

    def take_changes(self) -> Changes:
        """What became of each path that `catch_up` found changed since the last time; None when it is gone.

        At first that is everything. ``skills.lock.json`` of ``skills_folder`` may be one of them, and is no
        document. Never waits for the disk.
        """
        with self._publish_lock:
            pending, self._pending = self._pending, {}
        return pending

    def read_body(self, path: str) -> bytes:
        """The bytes of a known file as they are now; `RefusedError` when it is gone or a file no more."""
        return self._owner(path).read(path)

    @contextmanager
    def opened(self, path: str) -> Generator[int | None]:
        """A descriptor of a known file, whatever is in it; None of one that lies in no folder of the disk.

        `RefusedError` when it is gone, or a regular file no more.
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
        """Where a file, or the folder of a skill, is on this machine, if it is anywhere."""
        folder = (self._owners.get(path) or self._owner(path)).path
        return None if folder is None else f"{folder}/{path}"

    def layer_of(self, path: str) -> str | None:
        """What the layer of a path is called; None of ``skills_folder``, the one that can be written."""
        owner = self._owner(path)
        return None if owner is self._base else owner.label or "this package"

    def stamp(self, path: str) -> Stamp | None:
        """What tells the present state of a file from any other; None where only reading it can tell."""
        return self._owner(path).stamp(path)

    def read_installed(self, path: str) -> bytes:
        """The bytes of a document of ``skills_folder``, also where another layer replaces it."""
        return read_below(self._base.path, path, limits.MAX_BODY_BYTES)

    def wake_fds(self) -> tuple[int, ...]:
        """Descriptors that are readable when there is something to catch up with, of the watched folders."""
        return tuple(fd for layer in self._layers if (fd := layer.wake_fd()) is not None)

    def close(self) -> None:
        """Give the watches back."""
        with self._work_lock:
            for layer in self._layers:
                layer.close()

    def _owner(self, path: str) -> Layer:
        """The layer whose file is shown at this path."""
        namespace, slash, _ = path.partition("/")
        if slash:
            return self._owners.get(namespace, self._base)
        return next((layer for layer in self._layers if layer.has_file(path)), self._base)

    def _stage(self) -> None:
        """Merge what changed in the layers into what waits to be taken."""
        changed = [(layer, layer.take_changes()) for layer in self._layers if layer.tree.changed]
        problems = tuple(problem for layer in self._layers for problem in layer.problems.values())
        if problems != self._problems:
            self._problems = problems
            self._findings = (*problems, *self._shadowed)
        if self.record.is_unread:
            self.record.read()
        moved = self._move_namespaces()
        staged: Changes = {}
        for layer, changes in changed:
            if layer is not self._base:
                changes.pop(LOCKFILE, None)
            elif LOCKFILE in changes:
                self.record.read()
            for path, entry in changes.items():
                owner = self._owner(path)
                staged[path] = entry if owner is layer else owner.tree.get(path)
        for path in moved:
            staged[path] = self._owner(path).tree.get(path)
        if staged:
            with self._publish_lock:
                self._pending.update(staged)

    def _move_namespaces(self) -> set[str]:
        """See which layer owns each namespace now; the paths whose layer is another one than before."""
        # Every one is asked, so that every one forgets that it changed.
        reshaped = [layer.take_reshaped() for layer in self._layers]
        if not any(reshaped):
            return set()
        before = self._owners
        self._owners = {
            namespace: layer for layer in reversed(self._layers) for namespace in layer.namespaces()
        }
        local = () if self._local is None else self._local.namespaces()
        self._local_namespaces = frozenset(local)
        self._shadowed = tuple(
            _shadowed(namespace, self._owners[namespace])
            for layer in self._layers[1:]
            if layer.label is not None
            for namespace in sorted(layer.namespaces())
            if self._owners[namespace] is not layer
        )
        self._findings = (*self._problems, *self._shadowed)
        # One that came or went in every layer is among their changes.
        moved = [
            name for name in before.keys() & self._owners.keys() if before[name] is not self._owners[name]
        ]
        return {path for name in moved for layer in self._layers for path in layer.tree.paths_in(name)}


def _shadowed(namespace: str, owner: Layer) -> Finding:
    reason = f"the namespace of the same name in {owner.label} replaces it"
    return Finding("shadowed", namespace, reason, _SHADOWED_FIX, urgent=False)
