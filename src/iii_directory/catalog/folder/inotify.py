"""Linux inotify through libc.

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
import weakref
from typing import Final

from iii_directory.catalog.folder.watching import CannotWatchError, Event

_MODIFY: Final = 0x2
_ATTRIB: Final = 0x4
_CLOSE_WRITE: Final = 0x8
_MOVED_FROM: Final = 0x40
_MOVED_TO: Final = 0x80
_CREATE: Final = 0x100
_DELETE: Final = 0x200
_DELETE_SELF: Final = 0x400
_MOVE_SELF: Final = 0x800
_ONLYDIR: Final = 0x1000000
_ISDIR: Final = 0x40000000
_CHANGES: Final = (
    _MODIFY
    | _ATTRIB
    | _CLOSE_WRITE
    | _MOVED_FROM
    | _MOVED_TO
    | _CREATE
    | _DELETE
    | _DELETE_SELF
    | _MOVE_SELF
    | _ONLYDIR
)

_HEADER: Final = struct.Struct("iIII")
_READ_BYTES: Final = 64 * 1024

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

_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
_libc.fstatfs.argtypes = (ctypes.c_int, ctypes.c_void_p)
_STATFS_BYTES: Final = 512  # more than struct statfs takes anywhere


class Inotify:
    """Implements `Watcher` with one inotify queue."""

    def __init__(self) -> None:
        self._queue: int = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._queue < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        # A user may have only 128 queues, so a queue must not outlive its object if close() is never called.
        self._close = weakref.finalize(self, os.close, self._queue)

    def add(self, directory: int) -> int:
        if not _is_local(directory):
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
        events: list[Event] = []
        while True:
            try:
                data = os.read(self._queue, _READ_BYTES)
            except BlockingIOError:
                return events
            _decode(data, events)

    def fileno(self) -> int:
        return self._queue

    def close(self) -> None:
        self._close()


def _decode(data: bytes, events: list[Event]) -> None:
    position = 0
    while position < len(data):
        watch, mask, _, length = _HEADER.unpack_from(data, position)
        position += _HEADER.size + length
        name = os.fsdecode(data[position - length : position].rstrip(b"\0"))
        events.append(Event(watch, name, bool(mask & _ISDIR)))


def _is_local(directory: int) -> bool:
    state = ctypes.create_string_buffer(_STATFS_BYTES)
    if _libc.fstatfs(directory, state) != 0:
        return False
    kind = ctypes.c_long.from_buffer(state).value  # the first member
    return kind & 0xFFFFFFFF in _LOCAL_FILE_SYSTEMS
