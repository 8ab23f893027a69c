"""Suggest names close to one that was not found: a typo, a part of a name, or the name above it. Pure.

Every name one typo away is suggested, and nothing unrelated. rapidfuzz compares all names by its fastest
distance first and the remaining ones by the distance that knows swapped letters; a suggestion out of 10,000
names takes a millisecond (goal ``beside.missing``). It is imported with the first suggestion, because that
takes about 20 ms and most runs need none.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

from iii_directory.limits import MAX_SUGGESTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

# Half of all workers are called iii-something, and people omit the prefix.
_COMMON_PREFIX: Final = "iii-"
# A shorter name is one typo away from too many others; a longer one was not typed by hand.
_SLIP_LENGTHS: Final = range(4, 121)
_MOST_SLIPS: Final = 3
_LETTERS_PER_SLIP: Final = 4
_MIN_PART: Final = 3
# No valid name contains it, so a match cannot reach from one name into the next.
_BETWEEN: Final = "\0"
_BEFORE_A_WORD: Final = f"{_BETWEEN}/_-"


class Names:
    """The known names, prepared for searching: shortest first."""

    def __init__(self, names: AbstractSet[str]) -> None:
        self.all = names
        ordered = _BETWEEN.join(sorted(sorted(name for name in names if _BETWEEN not in name), key=len))
        self.text = f"{_BETWEEN}{ordered}{_BETWEEN}"
        # Splitting makes copies that lie side by side in memory, which are read several times as fast.
        self.shortest_first = ordered.split(_BETWEEN)

    def as_long_as(self, asked: str, give_or_take: int) -> list[str]:
        start = bisect_left(self.shortest_first, len(asked) - give_or_take, key=len)
        return self.shortest_first[
            start : bisect_right(self.shortest_first, len(asked) + give_or_take, lo=start, key=len)
        ]


def close_names(asked: str, known: AbstractSet[str] | Names) -> list[str]:
    """Return a few names of ``known`` that the caller may have meant, the most likely first."""
    names = known if isinstance(known, Names) else Names(known)
    asked = asked.strip().casefold()
    one_slip, some_slips = _slips_away(asked, names)
    likeliest_first = (*one_slip, *_starting_a_word(asked, names), *some_slips, *_above(asked, names.all))
    return list(dict.fromkeys(likeliest_first))[:MAX_SUGGESTIONS]


def _slips_away(asked: str, names: Names) -> tuple[list[str], list[str]]:
    """Return the names one typo away and those a few typos away.

    A typo is one letter dropped, added, mistaken or swapped. For names one typo away the common prefix may be
    missing or superfluous as well.
    """
    if len(asked) not in _SLIP_LENGTHS:
        return [], []
    stem = asked.removeprefix(_COMMON_PREFIX)
    other = stem if stem != asked else _COMMON_PREFIX + asked
    most = max(1, min(len(asked) // _LETTERS_PER_SLIP, _MOST_SLIPS))
    distances = _distances(asked, names, most)
    one_slip = {name for name, slips in distances.items() if slips <= 1}
    if len(stem) in _SLIP_LENGTHS:
        one_slip |= _distances(other, names, 1).keys()
    return sorted(one_slip), sorted(distances, key=lambda name: (distances[name], name))


def _distances(asked: str, names: Names, most: int) -> dict[str, int]:
    """Return the number of typos for each name with at most ``most``."""
    from rapidfuzz import process
    from rapidfuzz.distance import OSA, Indel

    # A typo is at most one deletion and one insertion, which Indel counts in half of the time.
    alike = names.as_long_as(asked, most)
    near = process.extract(asked, alike, scorer=Indel.distance, score_cutoff=2 * most, limit=None)
    alike = [name for name, _, _ in near]
    close = process.extract(asked, alike, scorer=OSA.distance, score_cutoff=most, limit=None)
    return {name: slips for name, slips, _ in close}


def _starting_a_word(asked: str, names: Names) -> list[str]:
    """Return the names with a word that starts like the wanted one, shortest first."""
    if len(asked) < _MIN_PART or _BETWEEN in asked:
        return []
    return [name for name, _ in zip(_holding(asked, names.text), range(MAX_SUGGESTIONS), strict=False)]


def _holding(asked: str, text: str) -> Iterator[str]:
    at = text.find(asked)
    while at >= 0:
        end = at
        if text[at - 1] in _BEFORE_A_WORD:
            end = text.index(_BETWEEN, at)
            yield text[text.rindex(_BETWEEN, 0, at) + 1 : end]
        at = text.find(asked, end + 1)


def _above(asked: str, known: AbstractSet[str]) -> list[str]:
    """Return the nearest known name above the wanted one, such as ``a`` for ``a/b``."""
    while "/" in asked:
        asked = asked.rpartition("/")[0]
        if asked in known:
            return [asked]
    return []
