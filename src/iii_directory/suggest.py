"""Names close to one that was not found: a slip of the fingers, a part of a name, or the name above it.

Pure.

Nothing unrelated is ever offered, and every name one slip away is. Letters are compared by rapidfuzz: a hint
out of ten thousand names takes one to two milliseconds, where an index of slips and pieces by hand took four.
It is imported with the first hint, which takes about 20 ms, because most runs give none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from iii_directory.limits import MAX_SUGGESTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

# Half of all workers are called iii-something, and people leave it out.
_COMMON_PREFIX: Final = "iii-"
# A shorter name is a slip away from too many others; a longer one was not typed by hand.
_SLIP_LENGTHS: Final = range(4, 121)
_MOST_SLIPS: Final = 3
_LETTERS_PER_SLIP: Final = 4
_MIN_PART: Final = 3


def close_names(asked: str, known: AbstractSet[str]) -> list[str]:
    """A few names out of ``known`` that ``asked`` may have meant, the likeliest first."""
    asked = asked.strip().casefold()
    one_slip, some_slips = _slips_away(asked, known)
    likeliest_first = (*one_slip, *_starting_a_word(asked, known), *some_slips, *_above(asked, known))
    return list(dict.fromkeys(likeliest_first))[:MAX_SUGGESTIONS]


def _slips_away(asked: str, known: AbstractSet[str]) -> tuple[list[str], list[str]]:
    """Names that one letter dropped, added, mistaken or swapped makes of the wanted one; and those a few do.

    For one slip the common prefix may be missing or too much as well.
    """
    if len(asked) not in _SLIP_LENGTHS:
        return [], []
    stem = asked.removeprefix(_COMMON_PREFIX)
    other = stem if stem != asked else _COMMON_PREFIX + asked
    most = max(1, min(len(asked) // _LETTERS_PER_SLIP, _MOST_SLIPS))
    shortest, longest = min(len(asked) - most, len(other) - 1), max(len(asked) + most, len(other) + 1)
    alike = [name for name in known if shortest <= len(name) <= longest]
    distances = _distances(asked, alike, most)
    one_slip = {name for name, slips in distances.items() if slips <= 1}
    if len(stem) in _SLIP_LENGTHS:
        one_slip |= _distances(other, alike, 1).keys()
    return sorted(one_slip), sorted(distances, key=lambda name: (distances[name], name))


def _distances(asked: str, names: Sequence[str], most: int) -> dict[str, int]:
    """How many slips away each name is that is at most so many away."""
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    close = process.extract(asked, names, scorer=OSA.distance, score_cutoff=most, limit=None)
    return {name: slips for name, slips, _ in close}


def _starting_a_word(asked: str, known: AbstractSet[str]) -> list[str]:
    """Names with a word that starts like the wanted one, shortest first."""
    if len(asked) < _MIN_PART:
        return []
    at_a_word = re.compile(rf"(?:^|[/_-]){re.escape(asked)}")
    holding = [name for name in known if asked in name and at_a_word.search(name)]
    return sorted(holding, key=lambda name: (len(name), name))[:MAX_SUGGESTIONS]


def _above(asked: str, known: AbstractSet[str]) -> list[str]:
    """The nearest known name that the wanted one lies below."""
    while "/" in asked:
        asked = asked.rpartition("/")[0]
        if asked in known:
            return [asked]
    return []
