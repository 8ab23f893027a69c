"""The in-memory tree of one folder: its directories and the parsed content of each file. No disk access."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory import limits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from iii_directory.disk.files import Stamp
    from iii_directory.disk.reasons import Reason
    from iii_directory.documents.model import ParsedFile


class Directory:
    """A directory of the tree: its parsed entries and the stamps that tell whether they are still valid."""

    __slots__ = (
        "attached",
        "depth",
        "entries",
        "name",
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
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.entries: dict[str, ParsedFile] = {}
        self.stamps: dict[str, Stamp | Reason] = {}
        """The state each entry was parsed from; missing for files that must always be read again."""
        self.subdirectories: dict[str, Directory] = {}
        self.watch: int | None = None
        self.attached = True

    @property
    def names(self) -> list[str]:
        """Return the names on the path from the root."""
        return self.prefix.split("/")[:-1]

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
        """The new entry of each changed path, None for a removed one. `ShownTree.take_changes` empties it."""
        self._reshaped = False

    def take_reshaped(self) -> bool:
        """Return whether a directory at the root came or went since the last call."""
        reshaped, self._reshaped = self._reshaped, False
        return reshaped

    def record(
        self, directory: Directory, name: str, path: str, entry: ParsedFile, stamp: Stamp | Reason | None
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
        self._reshaped = self._reshaped or parent.parent is None
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
        self._reshaped = self._reshaped or parent.parent is None
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


class ShownTree:
    """Base of a layer that serves its whole tree."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def namespaces(self) -> Collection[str]:
        """Return the names of the directories at the root."""
        return self.tree.root.subdirectories.keys()

    def has_file(self, name: str) -> bool:
        return name in self.tree.root.entries

    def take_reshaped(self) -> bool:
        """Return whether a directory at the root came or went since the last call."""
        return self.tree.take_reshaped()

    def take_changes(self) -> dict[str, ParsedFile | None]:
        """Return and clear the paths that changed, possibly including the lock file."""
        changed, self.tree.changed = self.tree.changed, {}
        return changed
