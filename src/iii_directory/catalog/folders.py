"""Follow the folders that documents come from: find the files that must be read again before an answer.

With a watcher these are the files named by events. Without one (another system, a network file system, no
watches left) every file is checked every time. When events were lost or the folder itself was replaced,
everything is checked once.

On network file systems a check is as fresh as the client's cache of file attributes.
"""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.catalog.folder_scanning import Scanner, Tree
from iii_directory.catalog.folder_watching import CannotWatchError, Watches, system_watcher
from iii_directory.disk.files import GONE, LINK, RefusedError, identity_of, racy_after, settled_stamp
from iii_directory.disk.install_record import LOCKFILE
from iii_directory.disk.safe_open import read_below
from iii_directory.documents.ids import COPY_MARKER, OVERVIEW
from iii_directory.documents.model import Finding, Provenance
from iii_directory.documents.parse import parse_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from iii_directory.catalog.folder_scanning import Directory, Parse
    from iii_directory.catalog.folder_watching import Inotify
    from iii_directory.disk.files import Identity, Stamp
    from iii_directory.documents.model import ParsedFile

    Changes = dict[str, ParsedFile | None]

NAMESPACE: Final = "iii-directory"
# The bundled documents change only with the package, so one date stands for all of them.
MODIFIED_AT: Final = "2026-11-15T00:00:00Z"
_BUILT_IN: Final = Provenance("built-in")
# A lock file of this size takes about as long to read as one document.
_DOCUMENT_BYTES: Final = 16 * 1024


class Layer:
    """One of the folders. Callers hold a lock for all methods but `read` and `stamp`.

    This base serves a whole tree that never changes.
    """

    label: str | None = None
    """The name of the layer in findings; None if it may be replaced by another without a finding."""
    path: str | None = None
    """None for documents that are not in a folder on disk."""

    def __init__(self, tree: Tree, watches: Watches) -> None:
        self.tree = tree
        self.watches = watches
        self.namespaces: Collection[str] = tree.root.subdirectories.keys()
        """The names of the served directories at the root."""
        self.root_files: Collection[str] = tree.root.entries.keys()
        """The names of the served files at the root."""
        self.problems: dict[str, Finding] = {}
        """Problems of the folder as a whole, by the part concerned."""

    def take_changes(self) -> Changes:
        """Return and clear the paths that changed, possibly including the lock file."""
        changed, self.tree.changed = self.tree.changed, {}
        return changed

    def catch_up(self, at_most: int | None = None) -> bool:  # noqa: ARG002 (nothing changes)
        """Bring the tree up to date; return False without doing so if more than ``at_most`` entries wait."""
        return True

    def read(self, path: str) -> bytes:
        """Read a known file; raise `RefusedError` if it is gone or no longer a regular file."""
        raise NotImplementedError

    def stamp(self, path: str) -> Stamp | None:  # noqa: ARG002 (reading from memory is as quick)
        """Return a value that differs after every change of the file, or None if only reading can tell."""
        return None


class BundledDocuments(Layer):
    """The manual of this package, read once; the lowest layer, so that a first run is not empty."""

    def __init__(self) -> None:
        super().__init__(Tree(), Watches(None))
        self._raw: dict[str, bytes] = {}
        # importlib.resources takes longer to import than these files take to read (``joined.start``).
        folder = Path(__file__).parents[1] / "bundled_skills"
        namespace = self.tree.adopt(self.tree.root, NAMESPACE)
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if namespace is not None and entry.name.endswith(".md"):
                path, raw = f"{NAMESPACE}/{entry.name}", entry.read_bytes()
                self._raw[path] = raw
                parsed = parse_file(path, raw, len(raw), MODIFIED_AT, _BUILT_IN)
                self.tree.record(namespace, entry.name, path, parsed, None)

    def read(self, path: str) -> bytes:
        if path not in self._raw:
            raise RefusedError(GONE)
        return self._raw[path]


class FollowedFolder(Layer):
    """Keeps the tree of one folder on disk up to date."""

    def __init__(self, path: str, label: str, root: str, parse: Parse, watcher: Inotify | None) -> None:
        """``label`` names the folder in findings, ``root`` in the rows of its skills."""
        self.path = self._folder = path
        self.label = self._name = label
        self._scanner = Scanner(path, root, parse, Watches(watcher))
        super().__init__(self._scanner.tree, self._scanner.watches)
        self._identity: Identity | None = None
        self._stale = True
        self._dirty: set[tuple[Directory, str]] = set()
        self._dirty_directory = False
        if watcher is None:
            self._report_unwatched("this system offers no change notices")

    def catch_up(self, at_most: int | None = None) -> bool:
        # The folder may have been replaced by way of a directory above it, which raises no event here.
        if not self.watches.active or identity_of(self._folder, follow_links=False) != self._identity:
            self._stale = True
        for directory, name, is_directory in self.watches.events() if self.watches.active else ():
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
        if not self._stale and not self._dirty:
            return True
        if at_most is not None and self._waiting() > at_most:
            return False
        try:
            self._scan()
        except CannotWatchError as refused:
            self.watches.stop()
            self._report_unwatched(str(refused))
            self._stale = True
            self._scan()
        return True

    def read(self, path: str) -> bytes:
        if self.tree.get(path) is None:
            raise RefusedError(GONE)
        return read_below(self._folder, path, limits.MAX_BODY_BYTES)

    def stamp(self, path: str) -> Stamp | None:
        # On network file systems, and for a file that changed moments ago, a change may not show in the
        # file's status.
        if not self.watches.active:
            return None
        try:
            return settled_stamp(os.lstat(f"{self._folder}/{path}"))
        except (OSError, ValueError):
            return None

    def _waiting(self) -> int:
        """Estimate how many entries must be checked; a directory counts as the maximum."""
        if self._stale and not self.watches.active and self._identity is not None:
            return self.tree.count
        if self._stale or self._dirty_directory:
            return limits.MAX_FOLDER_ENTRIES
        waiting = len(self._dirty)
        if (self.tree.root, LOCKFILE) in self._dirty:
            # The lock file may be large, so it counts as several documents.
            with suppress(OSError):
                waiting += os.lstat(f"{self._folder}/{LOCKFILE}").st_size // _DOCUMENT_BYTES
        return waiting

    def _scan(self) -> None:
        scanner = self._scanner
        dirty, self._dirty, self._dirty_directory = self._dirty, set(), False
        was_full, count = self.tree.full, self.tree.count
        # If an exception ends this round, the next one must visit everything.
        everything, self._stale = self._stale, True
        scanner.racy = racy_after()
        if everything:
            if (self.tree.root, LOCKFILE) in dirty:
                scanner.lock_stamp = ()
            self._visit_everything()
        else:
            by_directory: dict[Directory, list[str]] = {}
            for directory, name in dirty:
                by_directory.setdefault(directory, []).append(name)
            for directory, names in by_directory.items():
                scanner.look_at(directory, names)
        # Entries left out because the tree was full are visited once it has room again.
        self._stale = scanner.root_again or (was_full and self.tree.count < count)
        self._dirty |= scanner.again
        scanner.root_again = False
        scanner.again.clear()
        self.problems.pop("full", None)
        if self.tree.full:
            most, fix = limits.MAX_FOLDER_ENTRIES, "move files that are not documents elsewhere"
            text = f"it holds more than {most} files and directories; the rest is left out"
            self.problems["full"] = Finding("skipped", self._name, text, fix)

    def _visit_everything(self) -> None:
        self._identity = None
        self.problems.pop("folder", None)
        # A scan frees nothing, and garbage collection would take a tenth of its time.
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            self._identity = self._scanner.visit_root()
        except RefusedError as refused:
            text, fix = refused.reason.text, refused.reason.fix
            if refused.reason is GONE:
                if identity_of(self._folder, follow_links=False) is None:
                    # A missing folder is an empty catalogue; anything else at its path is a mistake.
                    return
                text = "it is not a directory, or became a link after the start"
                fix = "put a directory there, or restart if the link is intended"
            self.problems["folder"] = Finding("skipped", self._name, text, fix)
        finally:
            if was_enabled:
                gc.enable()

    def _report_unwatched(self, reason: str) -> None:
        text = f"it is not watched: {reason}; every call looks at every file instead"
        fix = "nothing is stale; for speed keep it on a local disk"
        self.problems["watch"] = Finding("watch", self._name, text, fix, urgent=False)


class RootFolder(FollowedFolder):
    """A read-only folder of skills that another tool manages, such as ``.claude/skills``.

    Only directories with a ``SKILL.md`` are served. Installers of other tools also place links from one such
    folder to another: a link to a skill that is served anyway is ignored, any other link is refused and
    reported.
    """

    def __init__(self, path: str, label: str, homes: Collection[str], watcher: Inotify | None) -> None:
        """``homes`` are the other served folders, to which links may lead."""
        super().__init__(path, label, label, parse_file, watcher)
        self._homes = tuple(f"{home}/" for home in homes)
        self.namespaces = frozenset[str]()
        # Files beside the skills are never served.
        self.root_files = ()

    def take_changes(self) -> Changes:
        """Return and clear the changed paths; a gained or lost ``SKILL.md`` changes its whole directory."""
        changed = super().take_changes()
        self._report_links()
        before, folders = frozenset(self.namespaces), self.tree.root.subdirectories
        self.namespaces = shown = frozenset(
            name for name, folder in folders.items() if OVERVIEW in folder.entries and not self._is_copy(name)
        )
        self.tree.reshaped = self.tree.reshaped or shown != before
        for name in before ^ shown:
            for path in self.tree.paths_in(name):
                changed.setdefault(path, self.tree.get(path))
        return changed

    def _report_links(self) -> None:
        """Report the links at the root that do not lead to a skill that is served anyway."""
        for part in [part for part in self.problems if part.startswith("link ")]:
            del self.problems[part]
        for name, entry in self.tree.root.entries.items():
            if any(finding.reason == LINK.text for finding in entry.findings):
                target = os.path.realpath(os.path.join(self._folder, name))
                if target.startswith(self._homes) and os.path.isfile(os.path.join(target, OVERVIEW)):
                    continue
                reason = f"the link {name} does not lead to a skill of another root"
                self.problems[f"link {name}"] = Finding("skipped", self._name, reason, LINK.fix)

    def _is_copy(self, name: str) -> bool:
        """Return whether a directory is our copy, for a host, of a skill that is served anyway."""
        return os.path.isfile(os.path.join(self._folder, name, COPY_MARKER)) and any(
            os.path.isfile(os.path.join(home, name, OVERVIEW)) for home in self._homes
        )


def roots_of(
    roots: Sequence[Path], skills_folder: Path, *, watcher: Callable[[], Inotify | None] = system_watcher
) -> list[RootFolder]:
    """Create the root folders in order, without duplicates and without ``skills_folder`` itself."""
    main = os.path.realpath(skills_folder)
    paths = [path for path in dict.fromkeys(map(os.path.realpath, roots)) if path != main]
    return [
        RootFolder(
            path,
            # The last two parts name the root in rows and findings; more would reveal where it is.
            "/".join(path.rstrip("/").split("/")[-2:]),
            [main, *(other for other in paths if other != path)],
            watcher(),
        )
        for path in paths
    ]
