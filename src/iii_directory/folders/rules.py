"""Which names in a folder are taken up, and why the others are not. Pure."""

from __future__ import annotations

from typing import Final

from iii_directory import limits
from iii_directory.disk.reasons import LINK, SPECIAL, Reason
from iii_directory.lockfile.names import MERGE_SUFFIX

HIDDEN: Final = Reason(
    "hidden files and directories are not served", "nothing, if that is meant", urgent=False
)
BAD_NAME: Final = Reason("its name is not UTF-8", "rename it")
MERGE: Final = Reason(
    "it holds both sides of a merge with conflicts", "settle it in the file beside it, then remove it"
)
TOO_DEEP: Final = Reason("it lies too many directories deep", "move it further up")


def why_not_taken(name: str, is_file: bool, is_link: bool) -> Reason | None:  # noqa: FBT001 - a hot path
    """Why something that is no directory is no file of ours, or None."""
    if name[0] == ".":
        return HIDDEN
    if not is_file:
        return LINK if is_link else SPECIAL
    if name.endswith(MERGE_SUFFIX):
        return MERGE
    return None if name.isascii() or decodable_name(name) == name else BAD_NAME


def why_not_entered(name: str, depth: int) -> Reason | None:
    """Why a directory so many steps below the folder is not entered, or None."""
    if name[0] == ".":
        return HIDDEN
    if depth > limits.MAX_FOLDER_DEPTH:
        return TOO_DEEP
    return None if name.isascii() or decodable_name(name) == name else BAD_NAME


def decodable_name(path: str) -> str:
    """A path that can be written out: bytes of a name that are not UTF-8 become escapes."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")
