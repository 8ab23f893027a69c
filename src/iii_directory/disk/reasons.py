"""Why something on disk was not read, and what its owner can do about it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something below the folder is not read, and what its owner can do about it."""

    text: str
    fix: str
    passing: bool = False
    """True when the machine was short of something: worth another try at the next refresh."""


GONE: Final = Reason("it is no longer there", "list again")
LINK: Final = Reason("symbolic links are not followed", "put the file itself in the folder")
SPECIAL: Final = Reason("it is neither a file nor a directory", "remove it from the folder")
TOO_LARGE: Final = Reason("it is larger than a document may be (256 KiB)", "split it into several documents")
UNREADABLE: Final = Reason("it cannot be read", "check its permissions")
BUSY: Final = Reason("the system was out of files or memory", "nothing: it is tried again", passing=True)
FAILED: Final = Reason("the disk failed while it was read", "check the disk", passing=True)
