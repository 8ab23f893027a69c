"""Being told of changes: what a watcher of the system offers, and which directory each watch belongs to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from iii_directory.folders.tree import Directory


class Event(NamedTuple):
    """Something happened to ``name`` in the watched directory, or to the directory itself (no name).

    A negative ``watch`` means that events were lost.
    """

    watch: int
    name: str
    is_directory: bool


class CannotWatchError(Exception):
    """This folder cannot be watched; the text is the reason, for the diagnostics."""


class Watcher(Protocol):
    """Directories whose changes are queued before the call that made them returns."""

    def add(self, directory: int) -> int:
        """Watch an open directory; the same number comes back for as long as it is the same directory."""
        ...

    def remove(self, watch: int) -> None: ...

    def read(self) -> Iterable[Event]:
        """Everything that happened since the last call; never waits."""
        ...

    def fileno(self) -> int:
        """Readable when there is something to read."""
        ...

    def close(self) -> None: ...


def system_watcher() -> Watcher | None:
    """The watcher of this system, or None: then every refresh looks at every file's state."""
    if sys.platform != "linux":
        return None
    from iii_directory.folders.inotify import Inotify

    try:
        return Inotify()
    except OSError:
        return None


class Watches:
    """Which directory of the tree holds which watch."""

    def __init__(self, watcher: Watcher | None) -> None:
        self.active = watcher is not None
        self._watcher = watcher
        self._holders: dict[int, Directory] = {}

    def claim(self, directory: Directory, fd: int) -> Directory:
        """Watch the open directory for ``directory``, and return who holds the watch.

        Another holder means that the directory was moved here and its event is still to come. What is
        known of a directory that was not watched all along is not believed any more.
        """
        if self._watcher is None or not self.active:
            return directory
        watch = self._watcher.add(fd)
        holder = self._holders.setdefault(watch, directory)
        if holder is directory and directory.watch != watch:
            self.release(directory)
            directory.watch = watch
            directory.stamps.clear()
        return holder

    def release(self, directory: Directory) -> None:
        if self._watcher is not None and directory.watch is not None:
            self._watcher.remove(directory.watch)
            self._holders.pop(directory.watch, None)
        directory.watch = None

    def events(self) -> Iterator[tuple[Directory | None, str, bool]]:
        """What happened: directory (None: events were lost), name ("": the directory itself), is it one."""
        for watch, name, is_directory in self._watcher.read() if self._watcher is not None else ():
            holder = self._holders.get(watch)
            if holder is not None or watch < 0:
                yield holder, name, is_directory

    def stop(self) -> None:
        """Give all watches back. The queue stays open, because a loop may be waiting on it."""
        for directory in list(self._holders.values()):
            self.release(directory)
        self.active = False

    def fileno(self) -> int | None:
        return self._watcher.fileno() if self._watcher is not None and self.active else None

    def close(self) -> None:
        self.active = False
        if self._watcher is not None:
            self._watcher.close()
