"""Whether what was found is good enough to act on, said from three numbers. Pure.

The share of what a question asks that a document has, how much that tells, and how many words it is. The
coefficients were found on the public cases of function search, which have requests that nothing answers, and
held on questions nobody had seen; docs/guide/finding.md has the measurements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.search.alternatives import SYNONYM
from iii_directory.search.fields import SATURATION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from iii_directory.search.ranking import Group

_BASE: Final = -9.24
_PER_SHARE: Final = 11.0
_PER_NAT: Final = 0.43
_PER_WORD: Final = 0.755
FLOOR: Final = -1.0
"""What is below this does not fit."""
_CHANCE: Final = -5.0
"""What is below this has a word or two by chance and is no hit, not even behind a better one."""
HIGH_SHARE: Final = 0.6
"""A document that has this much of what was asked is a hit of high confidence."""
# One or two words that are all there as written need no further evidence.
_FEW_WORDS: Final = 2


class Evidence(NamedTuple):
    """What speaks for a document."""

    share: float
    """Of what the words of the question tell, in how far the document says it: 0 to 1."""
    information: float
    """The same in nats."""
    words: int
    """How many words of the question it has in any way."""
    literal: bool
    """Whether the question is a word or two, all of them there as written."""

    @property
    def value(self) -> float:
        """The greater, the surer; comparable between kinds."""
        return _BASE + _PER_SHARE * self.share + _PER_NAT * self.information + _PER_WORD * self.words

    @property
    def fits(self) -> bool:
        return self.literal or self.value >= FLOOR

    @property
    def more_than_chance(self) -> bool:
        return self.literal or self.value >= _CHANCE

    @property
    def high(self) -> bool:
        return self.share >= HIGH_SHARE


def evidence(groups: Sequence[Group], heard: Mapping[str, float]) -> Evidence:
    """What speaks for a document as the answer to a question, by how strongly it says the words of it."""
    asked = told = 0.0
    words = as_written = 0
    for group in groups:
        said = _said(heard, group)
        asked += group.information
        told += group.information * said
        words += said > 0
        as_written += group.word in heard
    literal = 0 < len(groups) <= _FEW_WORDS and as_written == len(groups)
    return Evidence(told / asked if asked else 0.0, told, words, literal)


def _said(heard: Mapping[str, float], group: Group) -> float:
    """In how far a document says a word: by its best alternative, or by several synonyms together."""
    best, unsaid = 0.0, 1.0
    for word, weight in group.alternatives:
        if word in heard:
            said = weight * _plainly(heard[word])
            best = max(best, said)
            if weight == SYNONYM:
                unsaid *= 1 - said
    return max(best, 1 - unsaid)


def _plainly(strength: float) -> float:
    """1 for what a description says once; less for what only a long body mentions."""
    return min(1.0, SATURATION * strength / (1 - strength)) if strength < 1 else 1.0
