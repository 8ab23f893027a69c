"""Read a folder into a tree in memory: single names that changed, or whole directories.

A directory is watched before it is listed, and the status of a file is taken before it is read, so a change
in between is found by the next scan. A known file is read again only if its stamp differs; a file that was
younger than `limits.RACY_SECONDS` when it was read is always read again, because a second edit within the
clock's resolution could leave its stamp unchanged (`disk.files`).
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.catalog.folder_watching import CannotWatchError
from iii_directory.disk import files
from iii_directory.disk.install_record import LOCKFILE
from iii_directory.disk.lock_files import WORK_FOLDER
from iii_directory.disk.safe_open import directory_below, open_directory, read_regular
from iii_directory.documents.ids import MERGE_SUFFIX
from iii_directory.documents.model import Finding, ParsedFile, Provenance
from iii_directory.text import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from iii_directory.catalog.folder_watching import Watches

    Parse = Callable[[str, bytes, int, str, Provenance], ParsedFile]


class Directory:
    """A directory of the tree: its parsed entries and the stamps that tell whether they are still valid."""

    __slots__ = (
        "attached",
        "entries",
        "name",
        "names",
        "parent",
        "prefix",
        "stamps",
        "subdirectories",
        "watch",
    )

    def __init__(self, name: str, parent: Directory | None) -> None:
        self.name = name
        self.parent = parent
        self.prefix: str = "" if parent is None else f"{parent.prefix}{name}/"
        self.names: list[str] = [] if parent is None else [*parent.names, name]
        """The names on the path from the root."""
        self.entries: dict[str, ParsedFile] = {}
        self.stamps: dict[str, files.Stamp | files.Reason] = {}
        """The state each entry was parsed from; missing for files that must always be read again."""
        self.subdirectories: dict[str, Directory] = {}
        self.watch: int | None = None
        self.attached = True

    def paths(self) -> Iterator[str]:
        """Yield the path of every entry in and below this directory."""
        for name in self.entries:
            yield self.prefix + name
        for directory in self.subdirectories.values():
            yield from directory.paths()


class Tree:
    """Holds the directories and entries of one folder and remembers which paths changed."""

    def __init__(self) -> None:
        self.root = Directory("", None)
        self.count = 0
        self.full = False
        """True when something was left out because of `limits.MAX_FOLDER_ENTRIES`."""
        self.changed: dict[str, ParsedFile | None] = {}
        """The new entry of each changed path, None for a removed one. `Layer.take_changes` empties it."""
        self.reshaped = False
        """Set when a directory at the root came or went; the reader of the flag clears it."""

    def record(
        self,
        directory: Directory,
        name: str,
        path: str,
        entry: ParsedFile,
        stamp: files.Stamp | files.Reason | None,
    ) -> None:
        """Store the entry of a file, unless its directory was detached meanwhile."""
        known = directory.entries.get(name)
        if not directory.attached or (known is None and not self._make_room()):
            return
        if stamp is None:
            directory.stamps.pop(name, None)
        else:
            directory.stamps[name] = stamp
        if known is None or known != entry:
            directory.entries[name] = entry
            self.changed[path] = entry

    def adopt(self, parent: Directory, name: str) -> Directory | None:
        """Return the subdirectory of that name, creating it; None when the tree is full."""
        known = parent.subdirectories.get(name)
        if known is not None or not parent.attached or not self._make_room():
            return known
        parent.subdirectories[name] = directory = Directory(name, parent)
        self.reshaped = self.reshaped or parent.parent is None
        return directory

    def forget(self, directory: Directory, name: str) -> None:
        """Remove a file, if it is known."""
        directory.stamps.pop(name, None)
        if directory.entries.pop(name, None) is not None:
            self.count -= 1
            self.changed[directory.prefix + name] = None

    def detach(self, parent: Directory, name: str) -> Iterator[Directory]:
        """Remove a subdirectory and everything below it, yielding the removed directories."""
        directory = parent.subdirectories.pop(name, None)
        if directory is None:
            return
        self.count -= 1
        self.reshaped = self.reshaped or parent.parent is None
        for below in list(directory.subdirectories):
            yield from self.detach(directory, below)
        for file in list(directory.entries):
            self.forget(directory, file)
        directory.attached = False
        yield directory

    def paths_in(self, namespace: str) -> Iterator[str]:
        """Yield every path below one directory of the root."""
        directory = self.root.subdirectories.get(namespace)
        if directory is not None:
            yield from directory.paths()

    def get(self, path: str) -> ParsedFile | None:
        """Return the entry at a path, if there is one."""
        directory: Directory | None = self.root
        *names, name = path.split("/")
        for step in names:
            directory = directory.subdirectories.get(step)
            if directory is None:
                return None
        return directory.entries.get(name)

    def _make_room(self) -> bool:
        if self.count >= limits.MAX_FOLDER_ENTRIES:
            self.full = True
            return False
        self.count += 1
        return True


_TOGETHER: Final = 32
_DOCUMENT: Final = ".md"

# Written by installs at the root of the folder; neither documents nor mistakes.
_OWN: Final = frozenset({LOCKFILE, WORK_FOLDER})

HIDDEN: Final = files.Reason(
    "hidden files and directories are not served", "nothing if intended", urgent=False
)
BAD_NAME: Final = files.Reason("its name is not UTF-8", "rename it")
MERGE: Final = files.Reason(
    "it holds both sides of a merge with conflicts", "settle it in the file beside it, then remove it"
)
TOO_DEEP: Final = files.Reason("it lies too many directories deep", "move it further up")


def why_not_taken(name: str, is_file: bool, is_link: bool) -> files.Reason | None:  # noqa: FBT001 - a hot path
    """Return why something other than a directory is not served as a file, or None if it is."""
    if name[0] == ".":
        return HIDDEN
    if not is_file:
        return files.LINK if is_link else files.SPECIAL
    if name.endswith(MERGE_SUFFIX):
        return MERGE
    return None if name.isascii() or decodable_name(name) == name else BAD_NAME


def decodable_name(path: str) -> str:
    """Replace bytes of a path that are not UTF-8 by escapes, so that it can be printed."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


class Scanner:
    """Reads one folder on disk into a tree."""

    def __init__(self, path: str, root: str, parse: Parse, watches: Watches) -> None:
        self.path = path
        self.tree = Tree()
        self.watches = watches
        self.again: set[tuple[Directory, str]] = set()
        """Names whose reading failed for a temporary reason."""
        self.root_again = False
        self.racy = 0
        """Set at the start of each round: files with a later ctime are always read again (`racy_after`)."""
        self._provenance = Provenance("file", root=root)
        self.lock_stamp: files.Stamp | tuple[()] | None = None
        """The stamp of the lock file; empty where it counts as changed even if its stamp is equal."""
        self._parse = parse

    # Names that changed

    def look_at(self, directory: Directory, names: Iterable[str]) -> None:
        """Check some names of a directory again."""
        if not directory.attached:
            return
        try:
            with directory_below(self.path, directory.names) as fd:
                documents = [name for name in names if self._look_at_name(directory, fd, name)]
                self._read(directory, fd, documents)
        except files.RefusedError as refused:
            if refused.reason.passing:
                self.again.update((directory, name) for name in names)
            elif directory.parent is None:
                self.root_again = True
            else:
                # The directory itself is gone or was replaced, which its parent tells.
                self.look_at(directory.parent, [directory.name])

    def _look_at_name(self, directory: Directory, fd: int, name: str) -> bool:
        """Handle everything but documents; return True for a document that must be read."""
        if directory.parent is None and name in _OWN:
            if name == LOCKFILE:
                self.lock_stamp = ()
                self._check_lock_file(fd)
            return False
        try:
            state = os.lstat(name, dir_fd=fd)
        except (OSError, ValueError) as error:
            self._refuse(directory, name, files.refusal(error).reason)
            return False
        if stat.S_ISDIR(state.st_mode):
            self._descend(directory, fd, name)
            return False
        # A directory of this name may have become a file.
        self._detach(directory, name)
        reason = why_not_taken(name, stat.S_ISREG(state.st_mode), stat.S_ISLNK(state.st_mode))
        if reason is not None:
            self._refuse(directory, name, reason)
        elif name.endswith(_DOCUMENT):
            return True
        else:
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
        except files.RefusedError:
            # Nothing can be read any more, so every entry is told as removed, and comes back with the folder.
            root = self.tree.root
            for name in [*root.entries, *root.subdirectories]:
                self._forget(root, name)
            self.watches.release(root)
            self._check_lock_file(None)
            raise

    def _enter(self, directory: Directory, fd: int) -> None:
        # Watch the directory before listing it, so that no change falls between the two.
        holder = self.watches.claim(directory, fd)
        if holder is not directory:
            # The directory was moved here. Check its old place twice, so that one which is moved back and
            # forth meanwhile does not seem to be at both.
            if all(self._is_at(place, fd) for place in (holder, directory, holder)):
                raise CannotWatchError("one directory is mounted at two places in it")
            if holder.parent is None:
                self.watches.release(holder)
                self.root_again = True
            else:
                self._detach(holder.parent, holder.name)
            self.watches.claim(directory, fd)
        self._visit(directory, fd)

    def _is_at(self, directory: Directory, fd: int) -> bool:
        try:
            with directory_below(self.path, directory.names) as there:
                return os.path.samestat(os.fstat(there), os.fstat(fd))
        except files.RefusedError:
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
            if directory.parent is None:
                self.root_again = True
            else:
                self.again.add((directory.parent, directory.name))
            return
        # Before the new names are read, so that there is room for them in a tree that was full.
        for name in [*directory.entries, *directory.subdirectories]:
            if name not in seen:
                self._forget(directory, name)
        self._read(directory, fd, documents)
        for name in children:
            self._descend(directory, fd, name)

    def _visit_item(self, directory: Directory, item: os.DirEntry[str]) -> bool:
        """Handle everything but documents; return True for a document that must be read."""
        name = item.name
        # A directory of this name may have become a file; most directories have none, and need no look.
        if directory.subdirectories:
            self._detach(directory, name)
        if directory.parent is None and name in _OWN:
            return False
        reason = why_not_taken(name, item.is_file(follow_symlinks=False), item.is_symlink())
        if reason is not None:
            self._refuse(directory, name, reason)
            return False
        is_document = name.endswith(_DOCUMENT)
        known = directory.stamps.get(name) if is_document else None
        # Without a stamp it is read again anyway, so its status need not be asked for.
        if is_document and (known is None or isinstance(known, files.Reason)):
            return True
        try:
            state = item.stat(follow_symlinks=False)
        except OSError as error:
            if not is_document:
                self._refuse(directory, name, files.refusal(error).reason)
            return is_document
        if is_document:
            return files.stamp_of(state) != known
        self._keep_plain(directory, name, state)
        return False

    def _descend(self, parent: Directory, fd: int, name: str) -> None:
        if parent.parent is None and name in _OWN:
            return
        try:
            if name[0] == ".":
                raise files.RefusedError(HIDDEN)
            if len(parent.names) >= limits.MAX_FOLDER_DEPTH:
                raise files.RefusedError(TOO_DEEP)
            if not name.isascii() and decodable_name(name) != name:
                raise files.RefusedError(BAD_NAME)
            child_fd = open_directory(name, fd)
        except files.RefusedError as refused:
            self._detach(parent, name)
            self._refuse(parent, name, refused.reason)
            return
        try:
            # A file of this name may have become a directory.
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
                except files.RefusedError as refused:
                    self._refuse(directory, name, refused.reason, fd)
            for name, state, raw in found:
                path = directory.prefix + name
                parsed = self._parse(path, raw, len(raw), rfc3339(state.st_mtime_ns), self._provenance)
                if state.st_mode & stat.S_IXUSR:
                    parsed = parsed._replace(executable=True)
                # The status was taken before the read. A file that changed moments ago gets no stamp: it
                # could change once more within the clock's resolution and have the same one.
                self.tree.record(directory, name, path, parsed, files.settled_stamp(state, self.racy))

    def _keep_plain(
        self, directory: Directory, name: str, state: os.stat_result, findings: tuple[Finding, ...] = ()
    ) -> None:
        """Record a file that is not a document: only its size and mode, checked every time."""
        entry = ParsedFile(None, None, findings, state.st_size, bool(state.st_mode & stat.S_IXUSR))
        self.tree.record(directory, name, directory.prefix + name, entry, None)

    def _refuse(self, directory: Directory, name: str, reason: files.Reason, fd: int | None = None) -> None:
        """Record why an entry is left out; an entry that is gone is removed without a finding.

        A file that is only too large for a document stays readable as a file of the directory ``fd``.
        """
        if reason is files.GONE:
            self._forget(directory, name)
            return
        if reason.passing:
            self.again.add((directory, name))
        if directory.stamps.get(name) is reason:
            return
        path = directory.prefix + name
        finding = Finding("skipped", decodable_name(path), reason.text, reason.fix, urgent=reason.urgent)
        if reason is files.TOO_LARGE and fd is not None:
            with suppress(OSError):
                # Its size may change while the reason stays, so it is checked every time.
                self._keep_plain(directory, name, os.lstat(name, dir_fd=fd), (finding,))
                return
        self.tree.record(directory, name, path, ParsedFile(findings=(finding,)), reason)

    def _forget(self, directory: Directory, name: str) -> None:
        self.tree.forget(directory, name)
        self._detach(directory, name)

    def _detach(self, parent: Directory, name: str) -> None:
        for directory in self.tree.detach(parent, name):
            self.watches.release(directory)

    def _check_lock_file(self, root: int | None) -> None:
        stamp = None
        if root is not None:
            with suppress(OSError):
                stamp = files.stamp_of(os.lstat(LOCKFILE, dir_fd=root))
        if stamp != self.lock_stamp:
            self.lock_stamp = stamp
            self.tree.changed[LOCKFILE] = None if stamp is None else ParsedFile()
