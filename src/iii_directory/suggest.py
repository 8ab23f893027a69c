"""Names close to one that was not found: a slip of the fingers, a part of a name, or the name above it.

Pure.

Nothing unrelated is ever offered. With ten thousand names this takes a few milliseconds: a name one slip away
is found by trying every slip, and only names that share pieces with the wanted one are compared by letters.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from iii_directory.limits import MAX_SUGGESTION_COMPARISONS, MAX_SUGGESTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789-_/"
# Half of all workers are called iii-something, and people leave it out.
_COMMON_PREFIX: Final = "iii-"
# A shorter name is one slip away from too many others; a longer one is too dear to vary.
_SLIP_LENGTHS: Final = range(4, 121)
_MIN_PART: Final = 3


def close_names(asked: str, known: AbstractSet[str], limit: int = MAX_SUGGESTIONS) -> list[str]:
    """Up to ``limit`` names out of ``known`` that ``asked`` may have meant, the likeliest first."""
    asked = asked.strip().casefold()
    found: dict[str, None] = {}
    for names in (_one_slip_away, _starting_a_word, _some_slips_away, _above):
        found.update(dict.fromkeys(names(asked, known)))
        if len(found) >= limit:
            break
    return list(found)[:limit]


def distance(left: str, right: str, limit: int) -> int:
    """How many letters to drop, add, replace or swap with the next; above ``limit``, any larger number."""
    left, right = _trimmed(left, right)
    width = len(right)
    before: list[int] = []
    above = list(range(width + 1))
    for i, letter in enumerate(left, 1):
        row = [i] + [limit + 1] * width
        for j in range(max(1, i - limit), min(width, i + limit) + 1):
            other = right[j - 1]
            row[j] = above[j - 1] if letter == other else 1 + min(above[j - 1], above[j], row[j - 1])
            if i > 1 and j > 1 and letter == right[j - 2] and left[i - 2] == other:
                row[j] = min(row[j], before[j - 2] + 1)
        if min(row) > limit:
            return limit + 1
        before, above = above, row
    return above[width]


def _trimmed(left: str, right: str) -> tuple[str, str]:
    """Both words without what they begin and end with alike."""
    start = 0
    while start < len(left) and start < len(right) and left[start] == right[start]:
        start += 1
    left, right = left[start:], right[start:]
    end = 0
    while end < len(left) and end < len(right) and left[-1 - end] == right[-1 - end]:
        end += 1
    return (left[:-end], right[:-end]) if end else (left, right)


def _one_slip_away(asked: str, known: AbstractSet[str]) -> list[str]:
    if len(asked) not in _SLIP_LENGTHS:
        return []
    stem = asked.removeprefix(_COMMON_PREFIX)
    forms = {asked, stem, _COMMON_PREFIX + stem} if len(stem) in _SLIP_LENGTHS else {asked}
    slips = {slip for form in forms for slip in _slips(form)} | forms
    return sorted(slips & known)


def _slips(word: str) -> Iterable[str]:
    """Everything that one letter dropped, added, mistaken or swapped away makes of a word."""
    for at in range(len(word) + 1):
        before, after = word[:at], word[at:]
        yield before + after[1:]
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]
        for letter in _LETTERS:
            yield before + letter + after
            yield before + letter + after[1:]


def _starting_a_word(asked: str, known: AbstractSet[str]) -> list[str]:
    """Names with a word that starts like the wanted one, shortest first."""
    if len(asked) < _MIN_PART:
        return []
    at_a_word = re.compile(rf"(?:^|[/_-]){re.escape(asked)}")
    holding = [name for name in known if asked in name and at_a_word.search(name)]
    return sorted(holding, key=lambda name: (len(name), name))[:MAX_SUGGESTIONS]


def _some_slips_away(asked: str, known: AbstractSet[str]) -> list[str]:
    allowed = min(len(asked) // 4, 3)
    if allowed < 2 or len(asked) not in _SLIP_LENGTHS:
        return []
    candidates = _sharing_pieces(asked, known, allowed)[:MAX_SUGGESTION_COMPARISONS]
    ranked = sorted((distance(asked, name, allowed), name) for name in candidates)
    return [name for slips, name in ranked if slips <= allowed]


def _sharing_pieces(asked: str, known: AbstractSet[str], allowed: int) -> list[str]:
    """Names of about the same length that hold pieces of the wanted one, those that hold the most first.

    Of ``allowed + 1`` pieces, that many slips leave one whole, unless letters were swapped across two.
    """
    step = -(-len(asked) // (allowed + 1))
    any_piece = re.compile("|".join(re.escape(asked[at : at + step]) for at in range(0, len(asked), step)))
    lengths = range(len(asked) - allowed, len(asked) + allowed + 1)
    sharing = [name for name in known if len(name) in lengths and any_piece.search(name)]
    sharing.sort(key=lambda name: (-len(any_piece.findall(name)), name))
    return sharing


def _above(asked: str, known: AbstractSet[str]) -> list[str]:
    """The nearest known name that the wanted one lies below."""
    while "/" in asked:
        asked = asked.rpartition("/")[0]
        if asked in known:
            return [asked]
    return []
