"""What is known of one folder: its directories and, for each file, what was made of it. No disk here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory import limits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from iii_directory.disk.reasons import Reason
    from iii_directory.disk.stamps import Stamp
    from iii_directory.documents.model import ParsedFile


class Directory:
    """A directory of the tree: what was read in it, and when to believe that it is still so."""

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
        """What each entry was made from; nothing when the file must be looked at again in any case."""
        self.subdirectories: dict[str, Directory] = {}
        self.watch: int | None = None
        self.attached = True

    @property
    def names(self) -> list[str]:
        """The names that lead here from the root."""
        return self.prefix.split("/")[:-1]

    def paths(self) -> Iterator[str]:
        """The path of every entry of this directory and of those below it."""
        for name in self.entries:
            yield self.prefix + name
        for directory in self.subdirectories.values():
            yield from directory.paths()


class Tree:
    """The directories and entries of one folder, with a note of every path that changed."""

    def __init__(self) -> None:
        self.root = Directory("", None)
        self.count = 0
        self.full = False
        """True when something was left out because of `limits.MAX_FOLDER_ENTRIES`."""
        self.changed: dict[str, ParsedFile | None] = {}
        """What became of each path that changed, None when it is gone. Whoever reads it empties it."""
        self._reshaped = False

    def take_reshaped(self) -> bool:
        """Whether a directory at the root came or went since the last call."""
        reshaped, self._reshaped = self._reshaped, False
        return reshaped

    def record(
        self, directory: Directory, name: str, path: str, entry: ParsedFile, stamp: Stamp | Reason | None
    ) -> None:
        """Keep what was made of a file. A directory that was moved away meanwhile takes nothing more."""
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
        """The subdirectory of that name, made if need be; None when there is no room for it."""
        known = parent.subdirectories.get(name)
        if known is not None or not parent.attached or not self._make_room():
            return known
        parent.subdirectories[name] = directory = Directory(name, parent)
        self._reshaped = self._reshaped or parent.parent is None
        return directory

    def forget(self, directory: Directory, name: str) -> None:
        """Drop the file of that name, if one is known."""
        directory.stamps.pop(name, None)
        if directory.entries.pop(name, None) is not None:
            self.count -= 1
            self.changed[directory.prefix + name] = None

    def detach(self, parent: Directory, name: str) -> Iterator[Directory]:
        """Drop a subdirectory and all below it, if one is known; yields those dropped."""
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
        """Every path below one directory of the root."""
        directory = self.root.subdirectories.get(namespace)
        if directory is not None:
            yield from directory.paths()

    def get(self, path: str) -> ParsedFile | None:
        """The entry at a path."""
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
    """What a layer shows of the tree it keeps: all of it."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def namespaces(self) -> Collection[str]:
        """The directories at its root."""
        return self.tree.root.subdirectories.keys()

    def has_file(self, name: str) -> bool:
        return name in self.tree.root.entries

    def take_reshaped(self) -> bool:
        """Whether a directory at the root came or went since the last call."""
        return self.tree.take_reshaped()

    def take_changes(self) -> dict[str, ParsedFile | None]:
        """What became of the paths that changed since the last time; the lock file may be one of them."""
        changed, self.tree.changed = self.tree.changed, {}
        return changed
