"""The one seam to the disk: what is read below a folder and what an install does are methods of `FileOps`.

Names are single components below an open folder, so no path is ever resolved twice and no link is
followed. Tests put a `FileOps` in between that fails or kills the process at the n-th operation.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol

from iii_directory.errors import INSTALL_FAILED, DirectoryError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

Identity = tuple[int, int]
"""A folder or file as the disk knows it, whatever it is called."""
_ROOT: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# What lies below a folder is never opened through a link. Without O_NONBLOCK a pipe put in the place of a
# file would hold the reader for ever, and without O_NOCTTY a terminal could become ours.
_FOLDER: Final = _ROOT | os.O_NOFOLLOW
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_AT_EXCHANGE: Final = 2  # RENAME_EXCHANGE of renameat2(2)
# What a file system answers that has no hard links, or no exchange of names.
NOT_SUPPORTED: Final = frozenset(
    {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EMLINK}
)


class FileOps(Protocol):
    """One system call each; all raise OSError."""

    def open_root(self, path: str) -> int: ...
    def make_root(self, path: str) -> None: ...
    def remove_root(self, path: str) -> None: ...
    def open_folder(self, name: str, folder: int | None) -> int: ...
    def list_folder(self, folder: int) -> list[str]: ...
    def make_folder(self, name: str, folder: int) -> None: ...
    def remove_folder(self, name: str, folder: int) -> None: ...
    def make_writable(self, name: str, folder: int) -> None: ...
    def status(self, name: str, folder: int) -> os.stat_result: ...
    def adopt(self, opened: int, like: os.stat_result) -> None: ...
    def open_file(self, name: str, folder: int) -> int: ...
    def create(self, name: str, folder: int, mode: int) -> int: ...
    def open_lock(self, name: str, folder: int) -> int: ...
    def try_lock(self, opened: int) -> bool: ...
    def read(self, opened: int, size: int) -> bytes: ...
    def write(self, opened: int, content: bytes) -> None: ...
    def sync(self, opened: int) -> None: ...
    def link(self, name: str, folder: int, new_name: str, new_folder: int) -> None: ...
    def rename(self, name: str, folder: int, new_name: str, new_folder: int) -> None: ...
    def exchange(self, name: str, folder: int, other_name: str, other_folder: int) -> None: ...
    def unlink(self, name: str, folder: int) -> None: ...


class PosixFiles:
    """The real disk."""

    def open_root(self, path: str) -> int:
        return os.open(path, _ROOT)

    def make_root(self, path: str) -> None:
        os.mkdir(path)

    def remove_root(self, path: str) -> None:
        os.rmdir(path)

    def open_folder(self, name: str, folder: int | None) -> int:
        return os.open(name, _FOLDER, dir_fd=folder)

    def list_folder(self, folder: int) -> list[str]:
        return os.listdir(folder)

    def make_folder(self, name: str, folder: int) -> None:
        os.mkdir(name, dir_fd=folder)

    def remove_folder(self, name: str, folder: int) -> None:
        os.rmdir(name, dir_fd=folder)

    def make_writable(self, name: str, folder: int) -> None:
        os.chmod(name, stat.S_IRWXU, dir_fd=folder)

    def status(self, name: str, folder: int) -> os.stat_result:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def adopt(self, opened: int, like: os.stat_result) -> None:
        """Give what was rebuilt the owner and the mode of what it stands for."""
        mine = os.fstat(opened)
        if (mine.st_uid, mine.st_gid) != (like.st_uid, like.st_gid):
            # Only root may give files away; without that right it is ours, as any file we write is.
            with suppress(PermissionError):
                os.fchown(opened, like.st_uid, like.st_gid)
        if stat.S_IMODE(mine.st_mode) != stat.S_IMODE(like.st_mode):
            os.fchmod(opened, stat.S_IMODE(like.st_mode))

    def open_file(self, name: str, folder: int) -> int:
        return os.open(name, _FILE, dir_fd=folder)

    def create(self, name: str, folder: int, mode: int) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, mode, dir_fd=folder)

    def open_lock(self, name: str, folder: int) -> int:
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder)

    def try_lock(self, opened: int) -> bool:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def read(self, opened: int, size: int) -> bytes:
        return os.read(opened, size)

    def write(self, opened: int, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(opened, rest) :]

    def sync(self, opened: int) -> None:
        os.fsync(opened)

    def link(self, name: str, folder: int, new_name: str, new_folder: int) -> None:
        os.link(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder, follow_symlinks=False)

    def rename(self, name: str, folder: int, new_name: str, new_folder: int) -> None:
        os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder)

    def exchange(self, name: str, folder: int, other_name: str, other_folder: int) -> None:
        """Swap two names in one step, where the kernel and the file system can."""
        import ctypes

        call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
        if call is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        if call(folder, os.fsencode(name), other_folder, os.fsencode(other_name), _AT_EXCHANGE):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def unlink(self, name: str, folder: int) -> None:
        os.unlink(name, dir_fd=folder)


POSIX: Final = PosixFiles()


@contextmanager
def closing_fd(opened: int) -> Generator[int]:
    try:
        yield opened
    finally:
        os.close(opened)


def identity_of(folder: str | Path | int, *, follow_links: bool = True) -> Identity | None:
    """Which folder it is, so that another one in its place is told apart; None where there is none."""
    try:
        status = os.stat(folder, follow_symlinks=follow_links)
    except OSError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def disk_errors(outcome: str, next_steps: Sequence[str] | None = None) -> Generator[None]:
    """D340 for whatever the disk refuses: what it said, without saying where, and what became of the work."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it gave no reason"
        problem = f"the disk refused ({reason}); {outcome}"
        raise DirectoryError(INSTALL_FAILED, problem, next_steps=next_steps) from error
