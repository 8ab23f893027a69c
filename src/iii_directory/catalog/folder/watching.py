"""Change notifications: the interface of a system watcher, and which directory holds which watch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from iii_directory.catalog.folder.folder_tree import Directory


class Event(NamedTuple):
    """A change of ``name`` in the watched directory, or of the directory itself (empty name).

    A negative ``watch`` means that events were lost.
    """

    watch: int
    name: str
    is_directory: bool


class CannotWatchError(Exception):
    """The folder cannot be watched; the message is the reason, shown in the diagnostics."""


class Watcher(Protocol):
    """Queues the changes of directories; a change is queued before the system call that made it returns."""

    def add(self, directory: int) -> int:
        """Watch an open directory; repeated calls for one directory return one number."""
        ...

    def remove(self, watch: int) -> None: ...

    def read(self) -> Iterable[Event]:
        """Return all events since the last call without waiting."""
        ...

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when events are queued."""
        ...

    def close(self) -> None: ...


def system_watcher() -> Watcher | None:
    """Return the watcher of this system, or None: then every refresh checks every file."""
    if sys.platform != "linux":
        return None
    from iii_directory.catalog.folder.inotify import Inotify

    try:
        return Inotify()
    except OSError:
        return None


class Watches:
    """Maps watches to the directories of the tree that hold them."""

    def __init__(self, watcher: Watcher | None) -> None:
        self.active = watcher is not None
        self._watcher = watcher
        self._holders: dict[int, Directory] = {}

    def claim(self, directory: Directory, fd: int) -> Directory:
        """Watch the open directory on behalf of ``directory`` and return the holder of the watch.

        A different holder means that the directory was moved and its event is still queued. The stamps of a
        directory are discarded when its watch is new, because changes before that were not seen.
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
        """Yield directory (None: events were lost), name ("": the directory itself), whether it is one."""
        for watch, name, is_directory in self._watcher.read() if self._watcher is not None else ():
            holder = self._holders.get(watch)
            if holder is not None or watch < 0:
                yield holder, name, is_directory

    def stop(self) -> None:
        """Release all watches. The queue stays open, because an event loop may be waiting on it."""
        for directory in list(self._holders.values()):
            self.release(directory)
        self.active = False

    def fileno(self) -> int | None:
        return self._watcher.fileno() if self._watcher is not None and self.active else None

    def close(self) -> None:
        self.active = False
        if self._watcher is not None:
            self._watcher.close()
