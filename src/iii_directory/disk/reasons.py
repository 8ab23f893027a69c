"""Why something on disk was not read, and what its owner can do about it. Pure."""

from __future__ import annotations

import errno
from typing import Final, NamedTuple


class Reason(NamedTuple):
    """Why something below the folder is not read, and what its owner can do about it."""

    text: str
    fix: str
    passing: bool = False
    """True when the machine was short of something: worth another try at the next refresh."""
    urgent: bool = True
    """False when nobody need do anything about it."""


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
    errno.EMLINK: LINK,  # what FreeBSD says for a link that must not be followed
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
    """Something below a folder was not read: the disk's own error, and what it means to us."""

    def __init__(self, reason: Reason, number: int | None = None) -> None:
        self.reason = reason
        super().__init__(_ERRNOS.get(reason) if number is None else number, reason.text)

    @property
    def is_absence(self) -> bool:
        """Whether nothing has the name; a handle gone stale or a link on the way are no proof of that."""
        return self.errno == errno.ENOENT


def refusal(error: OSError | ValueError) -> RefusedError:
    """What a failed system call means to us. A ValueError is a name no file system can hold."""
    if isinstance(error, RefusedError):
        return error
    number = error.errno if isinstance(error, OSError) else errno.ENOENT
    return RefusedError(_BY_ERRNO.get(number or 0, UNREADABLE), number)
