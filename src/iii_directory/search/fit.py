"""Decide whether a document is good enough to act on. Pure.

Four numbers say how likely it is that the first document answers a question: the share of what the question
asks that the document says, how close the two are in meaning, how much the words in common tell, and how many
they are. The coefficients come from a logistic regression over the public cases and one half of this
repository's own; docs/guide/finding.md has what came of it on the other half.
"""

from __future__ import annotations

from math import log1p
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.search.alternatives import SLIPS, SYNONYM
from iii_directory.search.fields import SATURATION
from iii_directory.search.meaning import word_vectors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from iii_directory.search.ranking import Group

_BASE: Final = -3.62
_PER_SHARE: Final = 2.57
_PER_CLOSENESS: Final = 0.41
_PER_INFORMATION: Final = 0.5
_PER_WORD: Final = 1.4
_MOST_WORDS: Final = 6
FLOOR: Final = -0.3
"""What is below this does not fit."""
HIGH_SHARE: Final = 0.6
HIGH_LEAD: Final = 0.15
"""A first row with this share of what was asked, so far ahead of the next one, has high confidence."""
_FEW_WORDS: Final = 2


class Evidence(NamedTuple):
    """What speaks for a document."""

    share: float
    """Of what the words of the question tell, in how far the document says it: 0 to 1."""
    information: float
    """The same in nats."""
    words: int
    """How many words of the question it has in any way."""
    closeness: float
    """The cosine of its vector and that of the question."""
    literal: bool
    """Whether the question is a word or two, all of them in what a caller is shown, as written."""

    @property
    def value(self) -> float:
        """The greater, the surer; comparable between kinds."""
        return (
            _BASE
            + _PER_SHARE * self.share
            + _PER_CLOSENESS * self.closeness
            + _PER_INFORMATION * log1p(self.information)
            + _PER_WORD * min(self.words, _MOST_WORDS)
        )

    @property
    def fits(self) -> bool:
        return self.literal or self.value >= FLOOR


def evidence(
    groups: Sequence[Group], heard: Mapping[str, float], shown: frozenset[str], closeness: float
) -> Evidence:
    """Return what speaks for a document.

    ``heard`` has how strongly it says words of the question, ``shown`` those that are not only in its body.
    """
    asked = told = 0.0
    words = 0
    wanted = frozenset(group.word for group in groups)
    for group in groups:
        said = _said(heard, group, wanted - {group.word})
        asked += group.information
        told += group.information * said
        words += said > 0
    literal = 0 < len(groups) <= _FEW_WORDS and all(group.word in shown for group in groups)
    return Evidence(told / asked if asked else 0.0, told, words, closeness, literal)


def _said(heard: Mapping[str, float], group: Group, others: frozenset[str]) -> float:
    """In how far a document says a word: by its best alternative, or by several synonyms together."""
    best, unsaid = 0.0, 1.0
    # What looks like a slip may bring a document up, but a word that exists is not taken for another one.
    unlikely = SLIPS if group.word in word_vectors() else ()
    for word, weight in group.alternatives:
        # A word that the question asks for itself does not count for another one as well.
        if word in heard and weight not in unlikely and word not in others:
            said = weight * _plainly(heard[word])
            best = max(best, said)
            if weight == SYNONYM:
                unsaid *= 1 - said
    return max(best, 1 - unsaid)


def _plainly(strength: float) -> float:
    """1 for what a description says once; less for what only a long body mentions."""
    return min(1.0, SATURATION * strength / (1 - strength)) if strength < 1 else 1.0
