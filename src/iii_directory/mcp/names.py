"""Function ids as tool names: what every client takes, one name a function, the same every time. Pure."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from iii_directory.limits import MAX_TOOL_NAME_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterable

TOOL_NAME: Final = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_TOOL_NAME_CHARS}}}")
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")
_HASH_CHARS: Final = 8


def tool_names(function_ids: Iterable[str]) -> dict[str, str]:
    """A name for every id, from name to id.

    ``a::b`` becomes ``a__b``. An id that cannot be read back from such a name gets a hash of itself at the
    end, so that its name does not depend on which other functions there are.
    """
    ids = sorted(set(function_ids))
    names = {plain_name(one): one for one in ids if _is_reversible(one)}
    for one in ids:
        if not _is_reversible(one):
            names[_hashed_name(one, taken=names)] = one
    return names


def plain_name(function_id: str) -> str:
    """The id with ``__`` for ``::`` and ``_`` for what no client takes; not always unique, nor short."""
    return _FOREIGN.sub("_", function_id.replace("::", "__"))


def _is_reversible(function_id: str) -> bool:
    name = plain_name(function_id)
    return TOOL_NAME.fullmatch(name) is not None and name.replace("__", "::") == function_id


def _hashed_name(function_id: str, taken: dict[str, str]) -> str:
    digest = hashlib.sha256(function_id.encode(errors="surrogatepass")).hexdigest()
    # Longer where somebody took the short one on purpose, with a function of just that name.
    names = (
        f"{plain_name(function_id)[: MAX_TOOL_NAME_CHARS - 1 - length]}_{digest[:length]}"
        for length in range(_HASH_CHARS, MAX_TOOL_NAME_CHARS)
    )
    return next(name for name in names if name not in taken)
