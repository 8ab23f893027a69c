"""Changes of files as a patch a person can read. Pure."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from iii_directory.limits import MAX_DIFF_BYTES
from iii_directory.lockfile.format import content_hash
from iii_directory.text import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOTHING: Final = "/dev/null"


def unified_diff(namespace: str, changes: Sequence[tuple[str, bytes | None, bytes | None]]) -> str:
    """The changes of files as a patch a person can read; None is a file that is not there."""
    return "".join(_file_diff(f"{namespace}/{path}", old, new) for path, old, new in sorted(changes))


def _file_diff(path: str, old: bytes | None, new: bytes | None) -> str:
    before, after = _lines(old), _lines(new)
    if before is None or after is None:
        was, will = _described(old), _described(new)
        return "" if was == will else f"Binary file {escaped(path)}: {was} -> {will}\n"
    name_before = _NOTHING if old is None else escaped(f"a/{path}")
    name_after = _NOTHING if new is None else escaped(f"b/{path}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(before, after, name_before, name_after)
    )


def _lines(content: bytes | None) -> list[str] | None:
    """The lines of a text, terminal-safe; None when it is not one that is worth showing."""
    if content is None:
        return []
    if len(content) > MAX_DIFF_BYTES:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    parts = text.split("\n")
    whole = [f"{escaped(part.removesuffix(chr(13)))}\n" for part in parts[:-1]]
    return whole + ([escaped(parts[-1])] if parts[-1] else [])


def _described(content: bytes | None) -> str:
    return "nothing" if content is None else f"{len(content)} bytes, {content_hash(content)}"
