"""Receive change notices of directories: Linux inotify through libc, and which directory holds which watch.

The kernel queues an event before the system call that caused it returns, so a reader that drains the queue
after a write has returned sees that write. Directories are watched, not files, and by their descriptor, so
that the watched directory is the opened one even if its path changes meanwhile.

Not seen: writes through a memory map until the file is closed, writes through another hard link outside
the folder, and a mount put over a directory below the folder.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
import weakref
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iii_directory.catalog.folder_scanning import Directory

_ISDIR: Final = 0x40000000
# From <sys/inotify.h>, in this order: MODIFY, ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE,
# DELETE_SELF, MOVE_SELF, ONLYDIR.
_CHANGES: Final = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800 | 0x1000000

_HEADER: Final = struct.Struct("iIII")
_READ_BYTES: Final = 64 * 1024
_STATFS_BYTES: Final = 512  # more than struct statfs takes anywhere

# File systems whose changes all pass through this kernel. On others (NFS, CIFS, FUSE, 9p, …) a change made on
# another machine raises no event here, so unknown file systems are not trusted.
_LOCAL_FILE_SYSTEMS: Final = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # xfs
        0x9123683E,  # btrfs
        0xCA451A4E,  # bcachefs
        0x2FC12FC1,  # zfs
        0xF2F52010,  # f2fs
        0x01021994,  # tmpfs
        0x858458F6,  # ramfs
        0x794C7630,  # overlayfs
        0x3153464A,  # jfs
        0x4D44,  # fat
        0x2011BAB0,  # exfat
        0x7366746E,  # ntfs3
        0x73717368,  # squashfs
        0xE0F5E1E2,  # erofs
        0x9660,  # iso9660
    }
)

_libc: Any = None
if sys.platform == "linux":
    _libc = ctypes.CDLL(None, use_errno=True)
    _libc.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
    _libc.fstatfs.argtypes = (ctypes.c_int, ctypes.c_void_p)


class Event(NamedTuple):
    """A change of ``name`` in the watched directory, or of the directory itself (empty name).

    A negative ``watch`` means that events were lost.
    """

    watch: int
    name: str
    is_directory: bool


class CannotWatchError(Exception):
    """The folder cannot be watched; the message is the reason, shown in the diagnostics."""


class Inotify:
    """Queues the changes of directories; a change is queued before the system call that made it returns."""

    def __init__(self) -> None:
        self._queue: int = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._queue < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        # A user may have only 128 queues, so a queue must not outlive its object if close() is never called.
        self.close = weakref.finalize(self, os.close, self._queue)

    def add(self, directory: int) -> int:
        """Watch an open directory; repeated calls for one directory return one number."""
        state = ctypes.create_string_buffer(_STATFS_BYTES)
        if _libc.fstatfs(directory, state) == 0:
            file_system = ctypes.c_long.from_buffer(state).value & 0xFFFFFFFF  # the first member
        else:
            file_system = 0
        if file_system not in _LOCAL_FILE_SYSTEMS:
            raise CannotWatchError("it is on a network or unknown file system, which reports no changes")
        watch: int = _libc.inotify_add_watch(self._queue, b"/proc/self/fd/%d" % directory, _CHANGES)
        if watch >= 0:
            return watch
        if ctypes.get_errno() == errno.ENOSPC:
            raise CannotWatchError("the system has no inotify watches left (fs.inotify.max_user_watches)")
        raise CannotWatchError("the system refused to watch it")

    def remove(self, watch: int) -> None:
        # Fails for a deleted directory, whose watch the kernel has already removed.
        _libc.inotify_rm_watch(self._queue, watch)

    def read(self) -> list[Event]:
        """Return all events since the last call without waiting."""
        events: list[Event] = []
        while True:
            try:
                data = os.read(self._queue, _READ_BYTES)
            except BlockingIOError:
                return events
            position = 0
            while position < len(data):
                watch, mask, _, length = _HEADER.unpack_from(data, position)
                position += _HEADER.size + length
                # The kernel pads names with zero bytes up to the next header.
                name = os.fsdecode(data[position - length : position].rstrip(b"\0"))
                events.append(Event(watch, name, bool(mask & _ISDIR)))

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when events are queued."""
        return self._queue


def system_watcher() -> Inotify | None:
    """Return the watcher of this system, or None: then every refresh checks every file."""
    try:
        return Inotify() if sys.platform == "linux" else None
    except OSError:
        return None


class Watches:
    """Maps watches to the directories of the tree that hold them."""

    def __init__(self, watcher: Inotify | None) -> None:
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
            # Events of released watches are still in the queue, and are dropped.
            if holder is not None or watch < 0:
                yield holder, name, is_directory

    def stop(self) -> None:
        """Release all watches. The queue stays open, because an event loop may be waiting on it."""
        for directory in list(self._holders.values()):
            self.release(directory)
        self.active = False

    def fileno(self) -> int | None:
        """Return a descriptor that becomes readable on changes, or None for an unwatched folder."""
        return self._watcher.fileno() if self._watcher is not None and self.active else None

    def close(self) -> None:
        self.active = False
        if self._watcher is not None:
            self._watcher.close()
