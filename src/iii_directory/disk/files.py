"""The one seam to the disk: every file operation of an install is a method of `FileOps`.

Names are single components below an open folder, so no path is ever resolved twice and no link is
followed. Tests put a `FileOps` in between that fails or kills the process at the n-th operation.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_AT_EXCHANGE: Final = 2  # RENAME_EXCHANGE of renameat2(2)
_CHUNK: Final = 1 << 20
# What a file system answers that has no hard links, or no exchange of names.
NOT_SUPPORTED: Final = frozenset(
    {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EMLINK}
)


class FileOps(Protocol):
    """One system call each; all raise OSError."""

    def open_root(self, path: str) -> int: ...
    def make_root(self, path: str) -> None: ...
    def remove_root(self, path: str) -> None: ...
    def open_folder(self, name: str, folder: int) -> int: ...
    def list_folder(self, folder: int) -> list[str]: ...
    def make_folder(self, name: str, folder: int) -> None: ...
    def remove_folder(self, name: str, folder: int) -> None: ...
    def make_writable(self, name: str, folder: int) -> None: ...
    def status(self, name: str, folder: int) -> os.stat_result: ...
    def adopt(self, opened: int, like: os.stat_result) -> None: ...
    def open_file(self, name: str, folder: int) -> int: ...
    def create(self, name: str, folder: int) -> int: ...
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
        return os.open(path, _FOLDER)

    def make_root(self, path: str) -> None:
        os.mkdir(path)

    def remove_root(self, path: str) -> None:
        os.rmdir(path)

    def open_folder(self, name: str, folder: int) -> int:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)

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
        # Without O_NONBLOCK a pipe put in the place of a file would hang the install.
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)

    def create(self, name: str, folder: int) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o644, dir_fd=folder)

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


@contextmanager
def opened_folder(files: FileOps, name: str, folder: int) -> Generator[int]:
    with closing_fd(files.open_folder(name, folder)) as opened:
        yield opened


@contextmanager
def opened_below(files: FileOps, names: Iterable[str], folder: int) -> Generator[int]:
    """The folder that names lead to from an open one, step by step."""
    with ExitStack() as steps:
        for name in names:
            folder = steps.enter_context(opened_folder(files, name, folder))
        yield folder


@contextmanager
def closing_fd(opened: int) -> Generator[int]:
    try:
        yield opened
    finally:
        os.close(opened)


def status_or_none(files: FileOps, name: str, folder: int) -> os.stat_result | None:
    try:
        return files.status(name, folder)
    except FileNotFoundError:
        return None


def read_file(files: FileOps, name: str, folder: int, limit: int) -> bytes | None:
    """The content of a regular file, None when there is none; a larger one is an error."""
    try:
        opened = files.open_file(name, folder)
    except FileNotFoundError:
        return None
    with closing_fd(opened):
        content = b"".join(_chunks(files, opened, limit + 1))
    if len(content) > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return content


def hash_file(files: FileOps, name: str, folder: int) -> tuple[str, os.stat_result]:
    """The SHA-256 of a regular file of any size, and its state before the first byte was read."""
    with closing_fd(files.open_file(name, folder)) as opened:
        state = os.fstat(opened)
        digest = hashlib.sha256()
        for chunk in _chunks(files, opened, state.st_size + _CHUNK):
            digest.update(chunk)
    return f"sha256:{digest.hexdigest()}", state


def _chunks(files: FileOps, opened: int, limit: int) -> Iterator[bytes]:
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    left = limit
    while left > 0:
        chunk = files.read(opened, min(left, _CHUNK))
        if not chunk:
            return
        left -= len(chunk)
        yield chunk


def write_file(
    files: FileOps, name: str, folder: int, content: bytes, like: os.stat_result | None = None
) -> None:
    """A new file that is on the disk when this returns; its name is once the folder is synced."""
    with closing_fd(files.create(name, folder)) as opened:
        files.write(opened, content)
        if like is not None:
            files.adopt(opened, like)
        files.sync(opened)


def carry(files: FileOps, name: str, folder: int, new_name: str, new_folder: int) -> None:
    """The same file under a second name: a hard link, or a copy where there are none."""
    try:
        files.link(name, folder, new_name, new_folder)
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise
        like = files.status(name, folder)
        content = read_file(files, name, folder, like.st_size)
        write_file(files, new_name, new_folder, content or b"", like)


def remove_tree(files: FileOps, name: str, folder: int) -> None:
    """Remove a name and all below it; links are removed, not followed. What is not there is fine."""
    state = status_or_none(files, name, folder)
    if state is None:
        return
    if not stat.S_ISDIR(state.st_mode):
        files.unlink(name, folder)
        return
    if state.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        files.make_writable(name, folder)
    with opened_folder(files, name, folder) as opened:
        for inner in files.list_folder(opened):
            remove_tree(files, inner, opened)
    files.remove_folder(name, folder)
