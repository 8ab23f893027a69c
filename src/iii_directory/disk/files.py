"""The only interface to the disk: reads below a folder and steps of an install are methods of `FileOps`.

Names are single components below an open folder, so no path is resolved twice and no link is followed. Tests
substitute a `FileOps` that fails, or kills the process, at the n-th operation.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias

from iii_directory import limits
from iii_directory.errors import INSTALL_FAILED, DirectoryError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from iii_directory.errors import Step

Identity = tuple[int, int]
"""Device and inode: identifies a folder or file whatever its name is."""
_ROOT: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Entries of a folder are never opened through a link. Without O_NONBLOCK a pipe in the place of a file would
# block the reader for ever, and without O_NOCTTY a terminal could become our controlling terminal.
_FOLDER: Final = _ROOT | os.O_NOFOLLOW
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_AT_EXCHANGE: Final = 2  # RENAME_EXCHANGE of renameat2(2)
# Errors of file systems that have no hard links, or no atomic exchange of names.
NOT_SUPPORTED: Final = frozenset(
    {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EMLINK}
)


class FileOps:
    """System calls on the disk, one per method; each raises OSError."""

    def open_root(self, path: str) -> int:
        return os.open(path, _ROOT)

    def open_folder(self, name: str, folder: int | None) -> int:
        return os.open(name, _FOLDER, dir_fd=folder)

    def list_folder(self, folder: int) -> list[str]:
        return os.listdir(folder)

    def make_folder(self, name: str, folder: int | None) -> None:
        os.mkdir(name, dir_fd=folder)

    def remove_folder(self, name: str, folder: int | None) -> None:
        os.rmdir(name, dir_fd=folder)

    def make_writable(self, name: str, folder: int) -> None:
        os.chmod(name, stat.S_IRWXU, dir_fd=folder)

    def status(self, name: str, folder: int) -> os.stat_result:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def adopt(self, opened: int, like: os.stat_result) -> None:
        """Give a rebuilt file the owner and mode of the original."""
        mine = os.fstat(opened)
        if (mine.st_uid, mine.st_gid) != (like.st_uid, like.st_gid):
            # Only root may change the owner; otherwise the file stays ours, like any file we write.
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
        """Swap two names atomically, where the kernel and the file system support it."""
        import ctypes

        call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
        if call is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        if call(folder, os.fsencode(name), other_folder, os.fsencode(other_name), _AT_EXCHANGE):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def unlink(self, name: str, folder: int) -> None:
        os.unlink(name, dir_fd=folder)


POSIX: Final = FileOps()


@contextmanager
def closing_fd(opened: int) -> Generator[int]:
    try:
        yield opened
    finally:
        os.close(opened)


def identity_of(folder: str | Path | int, *, follow_links: bool = True) -> Identity | None:
    """Return the identity of a folder, which differs for another folder at the same path; None if missing."""
    try:
        status = os.stat(folder, follow_symlinks=follow_links)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class FolderAtStart(NamedTuple):
    """A folder as it was at one moment, with every link on its path followed."""

    path: str
    identity: Identity | None
    """None if the folder did not exist."""

    @classmethod
    def of(cls, path: str | Path) -> Self:
        real = os.path.realpath(path)
        return cls(real, identity_of(real))


@contextmanager
def disk_errors(outcome: str, next_steps: Sequence[Step] | None = None) -> Generator[None]:
    """Turn OSError into D340 with the reason and the outcome of the work, but without a path."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it gave no reason"
        problem = f"the disk refused ({reason}); {outcome}"
        raise DirectoryError(INSTALL_FAILED, problem, next_steps=next_steps) from error


Stamp: TypeAlias = tuple[int, int, int, int]
"""Device, inode, ctime and size. Every change sets the ctime, which no program can set back."""

Mark: TypeAlias = tuple[int, int, int]
"""Inode, size and mtime: unchanged by a hard link (which sets the ctime) and by a restart (after which a
device may have another number). An install creates links and must survive restarts, so it records marks."""


def stamp_of(state: os.stat_result) -> Stamp:
    return state.st_dev, state.st_ino, state.st_ctime_ns, state.st_size


def mark_of(state: os.stat_result) -> Mark:
    return state.st_ino, state.st_size, state.st_mtime_ns


def racy_after() -> int:
    """Return the ctime from which a file may change again without a visible change of its stamp.

    This is the rule that git calls "racy": the clock of the file system is coarser than two edits.
    """
    return time.time_ns() - limits.RACY_SECONDS * 1_000_000_000


def settled_stamp(state: os.stat_result, racy: int | None = None) -> Stamp | None:
    """Return the stamp, or None if the file changed so recently that its next change may not be visible.

    ``racy`` is the value of `racy_after` from before the status was taken; by default it is taken now.
    """
    return stamp_of(state) if state.st_ctime_ns < (racy_after() if racy is None else racy) else None


class Reason(NamedTuple):
    """A reason why an entry of a folder is not read, and what its owner can do."""

    text: str
    fix: str
    passing: bool = False
    """True if the cause is temporary, such as a shortage of memory: the next refresh tries again."""
    urgent: bool = True
    """False if no action is needed."""


GONE: Final = Reason("it is no longer there", "list again")
LINK: Final = Reason("symbolic links are not followed", "put the file itself in the folder")
SPECIAL: Final = Reason("it is neither a file nor a directory", "remove it from the folder")
TOO_LARGE: Final = Reason("it is larger than a document may be (256 KiB)", "split it into several documents")
UNREADABLE: Final = Reason("it cannot be read", "check its permissions")
BUSY: Final = Reason(
    "the system was out of files or memory", "nothing: it is tried again", passing=True, urgent=False
)
FAILED: Final = Reason("the disk failed while it was read", "check the disk", passing=True)

_BY_ERRNO: Final = {
    errno.ENOENT: GONE,
    errno.ENOTDIR: GONE,
    errno.ESTALE: GONE,
    errno.ELOOP: LINK,
    errno.EMLINK: LINK,  # FreeBSD reports this for a link that must not be followed
    errno.ENXIO: SPECIAL,
    errno.ENODEV: SPECIAL,
    errno.EOPNOTSUPP: SPECIAL,
    errno.EMFILE: BUSY,
    errno.ENFILE: BUSY,
    errno.ENOMEM: BUSY,
    errno.EIO: FAILED,
}
_ERRNOS: Final = {GONE: errno.ENOENT, SPECIAL: errno.EINVAL, TOO_LARGE: errno.EFBIG}


class RefusedError(OSError):
    """An entry of a folder was not read: the error of the disk with our reason for it."""

    def __init__(self, reason: Reason, number: int | None = None) -> None:
        self.reason = reason
        super().__init__(_ERRNOS.get(reason) if number is None else number, reason.text)

    @property
    def is_absence(self) -> bool:
        """Return whether the name does not exist; a stale handle or a link on the way does not prove that."""
        return self.errno == errno.ENOENT


def refusal(error: OSError | ValueError) -> RefusedError:
    """Turn the error of a system call into a `RefusedError`; a ValueError means an impossible name."""
    if isinstance(error, RefusedError):
        return error
    number = error.errno if isinstance(error, OSError) else errno.ENOENT
    return RefusedError(_BY_ERRNO.get(number or 0, UNREADABLE), number)
