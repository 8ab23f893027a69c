"""Reasons why an entry of a folder is not read, with the advice for its owner. Pure."""

from __future__ import annotations

import errno
from typing import Final, NamedTuple


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
