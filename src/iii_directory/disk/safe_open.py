"""Opening what lies below a folder so that no link, however late it appears, can lead outside.

Each component is opened relative to the one before it and never followed when it is a link; what was
opened is looked at again after opening. A path is only ever names joined by ``/``: ``..`` is refused.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from iii_directory.disk.reasons import BUSY, FAILED, GONE, LINK, SPECIAL, TOO_LARGE, UNREADABLE, Reason

if TYPE_CHECKING:
    from collections.abc import Generator

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK a fifo put in the place of a file would hold the reader for ever.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


_BY_ERRNO: Final = {
    errno.ENOENT: GONE,
    errno.ENOTDIR: GONE,
    errno.ESTALE: GONE,
    errno.ELOOP: LINK,
    errno.EMLINK: LINK,  # what FreeBSD says for a link that must not be followed
    errno.ENXIO: SPECIAL,
    errno.ENODEV: SPECIAL,
    errno.EOPNOTSUPP: SPECIAL,
    errno.EMFILE: BUSY,
    errno.ENFILE: BUSY,
    errno.ENOMEM: BUSY,
    errno.EIO: FAILED,
}


class RefusedError(Exception):
    """Something below the folder was not read; ``reason`` says why."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason
        super().__init__(reason.text)


def refusal(error: OSError | ValueError) -> RefusedError:
    """What a failed system call means to us. A ValueError is a name no file system can hold."""
    number = error.errno if isinstance(error, OSError) else errno.ENOENT
    return RefusedError(_BY_ERRNO.get(number or 0, UNREADABLE))


def open_directory(name: str, parent: int | None = None) -> int:
    """The descriptor of a directory that is no link, by path or, within ``parent``, by name."""
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except (OSError, ValueError) as error:
        raise refusal(error) from None


@contextmanager
def directory_below(root: str, names: list[str]) -> Generator[int]:
    """A descriptor of the directory that ``names`` lead to from ``root``, one safe step at a time."""
    current = open_directory(root)
    try:
        for name in names:
            if name in ("", ".", ".."):
                raise RefusedError(GONE)
            following = open_directory(name, current)
            os.close(current)
            current = following
        yield current
    finally:
        os.close(current)


def read_regular(directory: int, name: str, limit: int) -> tuple[os.stat_result, bytes]:
    """The whole of one regular file of at most ``limit`` bytes, with its state just before the read."""
    try:
        file = os.open(name, _FILE, dir_fd=directory)
    except (OSError, ValueError) as error:
        raise refusal(error) from None
    try:
        state = os.fstat(file)
        if not stat.S_ISREG(state.st_mode):
            raise RefusedError(SPECIAL)
        if state.st_size > limit:
            raise RefusedError(TOO_LARGE)
        raw = os.read(file, state.st_size + 1)
        if len(raw) != state.st_size:
            raw = _read_on(file, raw, limit)
        return state, raw
    except OSError as error:
        raise refusal(error) from None
    finally:
        os.close(file)


def _read_on(file: int, raw: bytes, limit: int) -> bytes:
    """The rest of a file whose size changed under us, or that the system hands out in pieces."""
    while piece := os.read(file, limit + 1):
        raw += piece
        if len(raw) > limit:
            raise RefusedError(TOO_LARGE)
    return raw


def read_below(root: str, path: str, limit: int) -> bytes:
    """The bytes of the regular file at ``path`` below ``root`` as they are now."""
    *names, name = path.split("/")
    if name in ("", ".", ".."):
        raise RefusedError(GONE)
    with directory_below(root, names) as directory:
        return read_regular(directory, name, limit)[1]
