"""Which documents of one kind answer a question best. Pure.

BM25 over fields, where each word of the question is a group of alternatives of which the best counts, and
words that are neighbours in both count a little more.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.limits import MAX_READ_POSTINGS, MAX_READ_SOFT_POSTINGS
from iii_directory.search.alternatives import FORM, SYNONYM, Alternative, alternatives, synonyms
from iii_directory.search.fields import pair_hash
from iii_directory.search.index import number_in, strength_in
from iii_directory.search.words import form_key, is_pair

if TYPE_CHECKING:
    from iii_directory.search.index import Index
    from iii_directory.search.question import Question

NEIGHBOURS: Final = 0.3
"""What two words beside one another add, as a share of what the more ordinary of them tells."""
# In a script without spaces every other pair of characters belongs to two words; such a one nobody has.
_STRADDLING: Final = 0.5
CANDIDATES: Final = 60
"""The best by their words alone; neighbours only change the order among these."""


class Group(NamedTuple):
    """A word of a question, and what may stand for it in one index."""

    word: str
    alternatives: tuple[Alternative, ...]
    surprises: tuple[float, ...]
    """How much it tells that a document has an alternative, in nats; none tells more than the word itself."""
    information: float
    """How much the word itself asks for, in nats; the more ordinary it is, the less."""


class Match(NamedTuple):
    """A document and how well it answers."""

    id: str
    number: int
    score: float


def groups_of(index: Index, question: Question, misspelt: frozenset[str]) -> list[Group]:
    """The words of a question with what may stand for each; only those in ``misspelt`` may be slips."""
    return [_group(index, question, word, maybe_misspelt=word in misspelt) for word in question.words]


def rank(
    index: Index, question: Question, groups: list[Group], among: frozenset[int] | None = None
) -> list[Match]:
    """The best documents, best first, of all or only ``among`` some; equal ones in the order of their ids."""
    scores: dict[int, float] = {}
    for group in groups:
        for number, score in _best_of(index, group, among).items():
            scores[number] = scores.get(number, 0.0) + score
    best = nsmallest(CANDIDATES, scores, key=lambda number: (-scores[number], number))
    pairs = _pairs(index, question)
    matches = [
        Match(index.document(number).id, number, scores[number] + _together(index, number, pairs))
        for number in best
    ]
    matches.sort(key=lambda match: (-match.score, match.id))
    return matches


def _group(index: Index, question: Question, word: str, *, maybe_misspelt: bool) -> Group:
    found = alternatives(index, word, maybe_misspelt=maybe_misspelt)
    weights = dict(found)
    for one, as_written in question.joined.get(word, ()):
        if one in index:
            weights[one] = max(weights.get(one, 0.0), 1.0 if as_written else FORM)
        for other in synonyms(index, one):
            weights.setdefault(other, SYNONYM)
    most = index.surprise(word) if word in index else None
    surprises = (index.surprise(other) for other in weights)
    return Group(
        word,
        tuple(Alternative(other, weight) for other, weight in weights.items()),
        tuple(told if most is None else min(told, most) for told in surprises),
        index.surprise(word) * _share(index, word),
    )


def _share(index: Index, word: str) -> float:
    """How much a word counts: less if it is ordinary, or a pair of characters that may be of two words."""
    if word not in index and is_pair(word):
        return _STRADDLING
    return index.thesaurus.share_of(word)


def _best_of(index: Index, group: Group, among: frozenset[int] | None) -> dict[int, float]:
    """For each document the best alternative of one word."""
    best: dict[int, float] = {}
    for (word, weight), told in zip(group.alternatives, group.surprises, strict=True):
        limit = MAX_READ_POSTINGS if word == group.word else MAX_READ_SOFT_POSTINGS
        for posting in index.strongest(word, limit, among):
            number = number_in(posting)
            score = weight * told * strength_in(posting)
            if score > best.get(number, 0.0):
                best[number] = score
    return best


def _pairs(index: Index, question: Question) -> dict[int, float]:
    """What each pair of neighbouring words of a question adds."""
    return {
        pair_hash(left, right): NEIGHBOURS * min(_told(index, left), _told(index, right))
        for left, right in question.neighbours
    }


def _told(index: Index, word: str) -> float:
    """How much a word tells in whichever of its forms most documents have it."""
    return min(map(index.surprise, {word, *index.forms_of(form_key(word))}))


def _together(index: Index, number: int, pairs: dict[int, float]) -> float:
    return sum(added for pair, added in pairs.items() if index.says_side_by_side(number, pair))
