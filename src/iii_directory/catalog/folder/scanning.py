"""Read a folder into a `Tree`: single names that changed, or whole directories.

A directory is watched before it is listed, and the status of a file is taken before it is read, so a change
in between is found by the next scan. A known file is read again only if its stamp differs; a file that was
younger than `limits.RACY_SECONDS` when it was read is always read again, because a second edit within the
clock's resolution could leave its stamp unchanged (`disk.stamps`).
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.catalog.folder.folder_tree import Tree
from iii_directory.catalog.folder.watching import CannotWatchError
from iii_directory.disk.files import racy_after, settled_stamp, stamp_of
from iii_directory.disk.locking import WORK_FOLDER
from iii_directory.disk.reasons import GONE, LINK, SPECIAL, TOO_LARGE, Reason, RefusedError, refusal
from iii_directory.disk.safe_open import directory_below, open_directory, read_regular
from iii_directory.documents.model import Finding, ParsedFile
from iii_directory.documents.provenance import Provenance
from iii_directory.lockfile.format import LOCKFILE
from iii_directory.lockfile.names import MERGE_SUFFIX
from iii_directory.text import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from iii_directory.catalog.folder.folder_tree import Directory
    from iii_directory.catalog.folder.watching import Watches
    from iii_directory.disk.files import Stamp

    Parse = Callable[[str, bytes, int, str, Provenance], ParsedFile]

_TOGETHER: Final = 32
# A lock file of this size takes about as long to read as one document.
_DOCUMENT_BYTES: Final = 16 * 1024
_DOCUMENT: Final = ".md"

# Written by installs at the root of the folder; neither documents nor mistakes.
_OWN: Final = frozenset({LOCKFILE, WORK_FOLDER})

HIDDEN: Final = Reason("hidden files and directories are not served", "nothing if intended", urgent=False)
BAD_NAME: Final = Reason("its name is not UTF-8", "rename it")
MERGE: Final = Reason(
    "it holds both sides of a merge with conflicts", "settle it in the file beside it, then remove it"
)
TOO_DEEP: Final = Reason("it lies too many directories deep", "move it further up")


def why_not_taken(name: str, is_file: bool, is_link: bool) -> Reason | None:  # noqa: FBT001 - a hot path
    """Return why something other than a directory is not served as a file, or None if it is."""
    if name[0] == ".":
        return HIDDEN
    if not is_file:
        return LINK if is_link else SPECIAL
    if name.endswith(MERGE_SUFFIX):
        return MERGE
    return None if name.isascii() or decodable_name(name) == name else BAD_NAME


def why_not_entered(name: str, depth: int) -> Reason | None:
    """Return why a directory at this depth below the folder is not entered, or None if it is."""
    if name[0] == ".":
        return HIDDEN
    if depth > limits.MAX_FOLDER_DEPTH:
        return TOO_DEEP
    return None if name.isascii() or decodable_name(name) == name else BAD_NAME


def decodable_name(path: str) -> str:
    """Replace bytes of a path that are not UTF-8 by escapes, so that it can be printed."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


class Scanner:
    """Reads one folder on disk into a tree."""

    def __init__(self, path: str, root: str, parse: Parse, watches: Watches) -> None:
        self.path = path
        self._provenance = Provenance("file", root=root)
        self.tree = Tree()
        self.again: set[tuple[Directory, str]] = set()
        """Names whose reading failed for a temporary reason."""
        self.root_again = False
        self._lock_stamp: Stamp | tuple[()] | None = None
        self._parse = parse
        self._watches = watches
        self._racy = 0

    def start(self) -> None:
        """Begin a round of scanning."""
        self._racy = racy_after()

    # Names that changed

    def look_at(self, directory: Directory, names: Iterable[str]) -> None:
        """Check some names of a directory again."""
        if not directory.attached:
            return
        try:
            with directory_below(self.path, directory.names) as fd:
                documents = [name for name in names if self._look_at_name(directory, fd, name)]
                self._read(directory, fd, documents)
        except RefusedError as refused:
            if refused.reason.passing:
                self.again.update((directory, name) for name in names)
            elif directory.parent is None:
                self.root_again = True
            else:
                self.look_at(directory.parent, [directory.name])

    def _look_at_name(self, directory: Directory, fd: int, name: str) -> bool:
        """Handle everything but documents; return True for a document that must be read."""
        if directory.parent is None and name in _OWN:
            if name == LOCKFILE:
                self.doubt_lock_file()
                self._check_lock_file(fd)
            return False
        try:
            state = os.lstat(name, dir_fd=fd)
        except (OSError, ValueError) as error:
            self._refuse(directory, name, refusal(error).reason)
            return False
        if stat.S_ISDIR(state.st_mode):
            self._descend(directory, fd, name)
            return False
        self._detach(directory, name)
        reason = why_not_taken(name, stat.S_ISREG(state.st_mode), stat.S_ISLNK(state.st_mode))
        if reason is not None:
            self._refuse(directory, name, reason)
            return False
        if name.endswith(_DOCUMENT):
            return True
        self._keep_plain(directory, name, state)
        return False

    # Whole directories

    def visit_root(self) -> tuple[int, int]:
        """Visit everything and return the folder's identity; raise `RefusedError` if it cannot be opened."""
        self.tree.full = False
        try:
            with directory_below(self.path, []) as fd:
                state = os.fstat(fd)
                self._enter(self.tree.root, fd)
                self._check_lock_file(fd)
                return state.st_dev, state.st_ino
        except RefusedError:
            root = self.tree.root
            for name in [*root.entries, *root.subdirectories]:
                self._forget(root, name)
            self._watches.release(root)
            self._check_lock_file(None)
            raise

    def _enter(self, directory: Directory, fd: int) -> None:
        holder = self._watches.claim(directory, fd)
        if holder is not directory:
            self._make_way(holder, directory, fd)
            self._watches.claim(directory, fd)
        self._visit(directory, fd)

    def _make_way(self, holder: Directory, directory: Directory, fd: int) -> None:
        """Detach the place at which the open directory was known before it was moved."""
        # Check the old place twice, so that a directory moved back and forth does not seem to be at both.
        if all(self._is_at(place, fd) for place in (holder, directory, holder)):
            raise CannotWatchError("one directory is mounted at two places in it")
        if holder.parent is None:
            self._watches.release(holder)
            self.root_again = True
        else:
            self._detach(holder.parent, holder.name)

    def _is_at(self, directory: Directory, fd: int) -> bool:
        try:
            with directory_below(self.path, directory.names) as there:
                return os.path.samestat(os.fstat(there), os.fstat(fd))
        except RefusedError:
            return False

    def _visit(self, directory: Directory, fd: int) -> None:
        seen: set[str] = set()
        children: list[str] = []
        documents: list[str] = []
        try:
            with os.scandir(fd) as listing:
                for item in listing:
                    seen.add(item.name)
                    if item.is_dir(follow_symlinks=False):
                        children.append(item.name)
                    elif self._visit_item(directory, item):
                        documents.append(item.name)
        except OSError:
            # Keep the known entries and list the directory again in the next scan.
            self._try_again(directory)
            return
        for name in [*directory.entries, *directory.subdirectories]:
            if name not in seen:
                self._forget(directory, name)
        self._read(directory, fd, documents)
        for name in children:
            self._descend(directory, fd, name)

    def _visit_item(self, directory: Directory, item: os.DirEntry[str]) -> bool:
        """Handle everything but documents; return True for a document that must be read."""
        name = item.name
        if directory.subdirectories:
            self._detach(directory, name)
        if directory.parent is None and name in _OWN:
            return False
        reason = why_not_taken(name, item.is_file(follow_symlinks=False), item.is_symlink())
        if reason is not None:
            self._refuse(directory, name, reason)
            return False
        if name.endswith(_DOCUMENT):
            return name not in directory.stamps or not self._is_unchanged(directory, item)
        try:
            self._keep_plain(directory, name, item.stat(follow_symlinks=False))
        except OSError as error:
            self._refuse(directory, name, refusal(error).reason)
        return False

    def _is_unchanged(self, directory: Directory, item: os.DirEntry[str]) -> bool:
        known = directory.stamps.get(item.name)
        if known is None or isinstance(known, Reason):
            return False
        try:
            return stamp_of(item.stat(follow_symlinks=False)) == known
        except OSError:
            return False

    def _descend(self, parent: Directory, fd: int, name: str) -> None:
        if parent.parent is None and name in _OWN:
            return
        reason = why_not_entered(name, parent.depth + 1)
        if reason is not None:
            self._refuse_directory(parent, name, reason)
            return
        try:
            child_fd = open_directory(name, fd)
        except RefusedError as refused:
            self._refuse_directory(parent, name, refused.reason)
            return
        try:
            self.tree.forget(parent, name)
            child = self.tree.adopt(parent, name)
            if child is not None:
                self._enter(child, child_fd)
        finally:
            os.close(child_fd)

    # Single entries

    def _read(self, directory: Directory, fd: int, names: Sequence[str]) -> None:
        # Reading a batch of files and then parsing it is a seventh faster than alternating.
        for start in range(0, len(names), _TOGETHER):
            found: list[tuple[str, os.stat_result, bytes]] = []
            for name in names[start : start + _TOGETHER]:
                try:
                    found.append((name, *read_regular(fd, name, limits.MAX_BODY_BYTES)))
                except RefusedError as refused:
                    self._refuse(directory, name, refused.reason, fd)
            for name, state, raw in found:
                self._keep(directory, name, state, raw)

    def _keep(self, directory: Directory, name: str, state: os.stat_result, raw: bytes) -> None:
        path = directory.prefix + name
        parsed = self._parse(path, raw, len(raw), rfc3339(state.st_mtime_ns), self._provenance)
        if _is_executable(state):
            parsed = parsed._replace(executable=True)
        self.tree.record(directory, name, path, parsed, settled_stamp(state, self._racy))

    def _keep_plain(self, directory: Directory, name: str, state: os.stat_result) -> None:
        """Record a file that is not a document: only its size and mode, checked every time."""
        entry = ParsedFile(None, None, (), state.st_size, _is_executable(state))
        self.tree.record(directory, name, directory.prefix + name, entry, None)

    def _refuse(self, directory: Directory, name: str, reason: Reason, fd: int | None = None) -> None:
        """Record why an entry is left out; an entry that is gone is removed without a finding.

        A file that is only too large for a document stays readable as a file of the directory ``fd``.
        """
        if reason is GONE:
            self._forget(directory, name)
            return
        if reason.passing:
            self.again.add((directory, name))
        if directory.stamps.get(name) is not reason:
            path = directory.prefix + name
            finding = Finding("skipped", decodable_name(path), reason.text, reason.fix, urgent=reason.urgent)
            state = None
            if reason is TOO_LARGE and fd is not None:
                with suppress(OSError):
                    state = os.lstat(name, dir_fd=fd)
            if state is None:
                self.tree.record(directory, name, path, ParsedFile(findings=(finding,)), reason)
            else:
                # Its size may change while the reason stays, so it is checked every time.
                entry = ParsedFile(None, None, (finding,), state.st_size, _is_executable(state))
                self.tree.record(directory, name, path, entry, None)

    def _refuse_directory(self, parent: Directory, name: str, reason: Reason) -> None:
        self._detach(parent, name)
        self._refuse(parent, name, reason)

    def _forget(self, directory: Directory, name: str) -> None:
        self.tree.forget(directory, name)
        self._detach(directory, name)

    def _detach(self, parent: Directory, name: str) -> None:
        for directory in self.tree.detach(parent, name):
            self._watches.release(directory)

    def _try_again(self, directory: Directory) -> None:
        if directory.parent is None:
            self.root_again = True
        else:
            self.again.add((directory.parent, directory.name))

    def doubt_lock_file(self) -> None:
        """Treat the lock file as changed even if its stamp is equal."""
        self._lock_stamp = ()

    def weight_of_lock_file(self, names: Collection[tuple[Directory, str]]) -> int:
        """Return as how many documents a changed lock file counts, because it may be large."""
        if (self.tree.root, LOCKFILE) not in names:
            return 0
        try:
            return os.lstat(f"{self.path}/{LOCKFILE}").st_size // _DOCUMENT_BYTES
        except OSError:
            return 0

    def _check_lock_file(self, root: int | None) -> None:
        stamp = None
        if root is not None:
            with suppress(OSError):
                stamp = stamp_of(os.lstat(LOCKFILE, dir_fd=root))
        if stamp != self._lock_stamp:
            self._lock_stamp = stamp
            self.tree.changed[LOCKFILE] = None if stamp is None else ParsedFile()


def _is_executable(state: os.stat_result) -> bool:
    return state.st_mode & stat.S_IXUSR != 0
