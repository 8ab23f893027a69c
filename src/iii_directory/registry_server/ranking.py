"""Which workers answer a search, and in which order. Pure.

Similarity is that of trigrams, as PostgreSQL's ``pg_trgm`` counts them, so that a search here and one in
the public registry find alike; for that promise it is not the matcher of `suggest`, which looks for slips.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD: Final = re.compile(r"\w+")
# A hit in the description counts a little less than the same hit in the name.
_DESCRIPTION_WEIGHT: Final = 0.8


class Place(NamedTuple):
    """Where a row stands: higher scores first, then by name."""

    score: float
    name: str

    def key(self) -> tuple[float, str]:
        return -self.score, self.name


class BadCursorError(ValueError):
    """A cursor that this registry did not give out."""


def trigrams(text: str) -> frozenset[str]:
    """Every three letters in a row, with two blanks before a word and one behind it."""
    padded = (f"  {word} " for word in _WORD.findall(text.lower()))
    return frozenset(word[at : at + 3] for word in padded for at in range(len(word) - 2))


def similarity(search: str, name: str, description: str) -> float:
    """How well a search fits: between 0 and 1, and 1 for the name itself."""
    wanted = trigrams(search)
    if not wanted:
        return 0.0
    in_name = trigrams(name)
    by_name = len(wanted & in_name) / len(wanted | in_name)
    contained = len(wanted & in_name) / len(wanted) * _DESCRIPTION_WEIGHT
    described = len(wanted & trigrams(description)) / len(wanted) * _DESCRIPTION_WEIGHT
    return max(by_name, contained, described)


def search_rows(rows: Sequence[dict[str, Any]], search: str | None) -> list[tuple[Place, dict[str, Any]]]:
    """The rows a search finds, best first; without one all of them, most downloaded first."""
    if search is None:
        placed = [(Place(float(row["total_downloads"]), row["name"]), row) for row in rows]
    else:
        scored = ((similarity(search, row["name"], row.get("description") or ""), row) for row in rows)
        placed = [(Place(score, row["name"]), row) for score, row in scored if score >= limits.MIN_SIMILARITY]
    return sorted(placed, key=lambda one: one[0].key())


def page_of(
    placed: Sequence[tuple[Place, dict[str, Any]]], cursor: str | None, size: int = limits.REGISTRY_PAGE_ROWS
) -> dict[str, Any]:
    """One page, starting after the row a cursor stands for."""
    after = None if cursor is None else decode_cursor(cursor).key()
    rest = [one for one in placed if after is None or one[0].key() > after]
    shown = rest[:size]
    more = len(rest) > size
    return {
        "workers": [row for _, row in shown],
        "pagination": {
            "next_cursor": encode_cursor(shown[-1][0]) if more else None,
            "has_more": more,
            "page_size": size,
        },
    }


def encode_cursor(place: Place) -> str:
    return base64.urlsafe_b64encode(json.dumps([place.score, place.name]).encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> Place:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        score, name = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if not isinstance(name, str) or not isinstance(score, float):
            raise BadCursorError(cursor)
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        raise BadCursorError(cursor) from error
    return Place(score, name)
