"""Check names from outside that become names on disk. Pure.

A path of a bundle is taken apart once, here; what passes is safe to create below a namespace on every
system the folder may be copied to. Nothing is repaired: a name that is not right is refused.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final, Literal

from iii_directory import limits
from iii_directory.documents.ids import path_to_id, skill_id_problem
from iii_directory.errors import DirectoryError, refused
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

MERGE_SUFFIX: Final = ".merge"
"""Ends the name of the file with both sides of a merge that has conflicts; it is never served."""
COPY_MARKER: Final = ".iii-directory-copy.json"
"""The file in a copy of a skill that says where it was copied from; it is never served."""
FileKind = Literal["skill", "prompt", "file"]

# Device names of Windows, with or without an extension, in any case.
_DEVICE: Final = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\..*)?", re.IGNORECASE)
# An encoded dot, slash, backslash or NUL: harmless here, but not to a program that decodes a listing.
_ENCODED: Final = re.compile(r"%(2e|2f|5c|00)", re.IGNORECASE)


def is_namespace(name: str) -> bool:
    """Return whether a folder of this name can hold skills: one segment, and not the one URIs reserve."""
    return "/" not in name and skill_id_problem(name) is None


def kind_of(namespace: str, path: str) -> FileKind:
    """Return what a file is to the catalogue; markdown without a valid skill id is a plain file."""
    place = path_to_id(f"{namespace}/{path}")
    if place.problem is not None:
        return "file"
    return "prompt" if place.is_prompt else "skill"


def is_hidden(path: str) -> bool:
    """Whether the path or a folder on the way to it starts with a dot."""
    return any(part.startswith(".") for part in path.split("/"))


def vet_path(path: str) -> None:
    """Raise unless every component of a bundle's path is safe to create."""
    if not path or path.startswith("/"):
        raise refused(f"the path {quoted(path)} is not relative to its bundle")
    # Neither control nor format characters (bidi marks, zero width), lone surrogates or odd spaces.
    if not path.isprintable():
        raise refused(f"the path {quoted(path)} holds characters that cannot be seen")
    if "\\" in path or ":" in path or _ENCODED.search(path):
        raise refused(f"the path {quoted(path)} holds a backslash, a colon or an encoded separator")
    parts = path.split("/")
    if len(parts) > limits.MAX_BUNDLE_DEPTH or len(path.encode()) > limits.MAX_BUNDLE_PATH_BYTES:
        raise refused(f"the path {quoted(path)} is too long")
    for part in parts:
        _vet_component(part, path)


def is_safe_path(path: str) -> bool:
    """Whether `vet_path` lets the path pass."""
    try:
        vet_path(path)
    except DirectoryError:
        return False
    return True


def _vet_component(part: str, path: str) -> None:
    if part in ("", ".", ".."):
        raise refused(f"the path {quoted(path)} is not a plain relative path")
    if part[-1] in ". ":
        raise refused(f"the path {quoted(path)} has a name that ends with a dot or a space")
    if _DEVICE.fullmatch(part):
        raise refused(f"the path {quoted(path)} has a name that Windows reserves")
    if len(part.encode()) > limits.MAX_FILE_NAME_BYTES:
        raise refused(f"the path {quoted(path)} has a name that is too long")


def vet_together(paths: Iterable[str]) -> None:
    """Raise when two paths would meet on some disk: equal, equal but for case or form, or file and folder."""
    spelled: dict[str, str] = {}
    files: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        if path in files:
            raise refused(f"the path {quoted(path)} comes twice")
        files.add(path)
        for prefix in _prefixes(path):
            other = spelled.setdefault(_folded(prefix), prefix)
            if other != prefix:
                raise refused(f"the paths {quoted(other)} and {quoted(prefix)} differ only in case or form")
        folders.update(_prefixes(path)[:-1])
    clash = files & folders
    if clash:
        raise refused(f"the path {quoted(min(clash))} is both a file and a folder")


def _prefixes(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[: length + 1]) for length in range(len(parts))]


def _folded(path: str) -> str:
    """What a file system without case, or one that normalises, may take two spellings for."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", path).casefold())
