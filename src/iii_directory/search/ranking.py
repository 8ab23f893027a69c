"""Which documents of one kind answer a question best. Pure.

BM25 over fields, where each word of the question is a group of alternatives of which the best counts, and
words that are neighbours in both count a little more.
"""

from __future__ import annotations

from heapq import nlargest, nsmallest
from itertools import starmap
from operator import add
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.limits import MAX_READ_POSTINGS, MAX_READ_SOFT_POSTINGS
from iii_directory.search.alternatives import FORM, SYNONYM, Alternative, alternatives, synonyms
from iii_directory.search.fields import pair_hash
from iii_directory.search.words import form_key, is_pair

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from iii_directory.search.fields import Document
    from iii_directory.search.index import Index
    from iii_directory.search.question import Question

NEIGHBOURS: Final = 0.3
"""What two words beside one another add, as a share of what the more ordinary of them tells."""
# In a script without spaces every other pair of characters belongs to two words; such a one nobody has.
_STRADDLING: Final = 0.5
BY_MEANING: Final = 0.65
"""What closeness counts where a model says it; the rest is the share of the best score by words."""
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
    """Return the best documents, best first, of all or only ``among`` some; equal ones by `tie_order`."""
    scores: dict[int, float] = {}
    for group in groups:
        _merge(scores, _best_of(index, group, among), add)
    pairs = _pairs(index, question)
    ranked = [
        (-scores[number] - index.together(number, pairs), *tie_order(index.document(number)), number)
        for number in _best(scores)
    ]
    return [Match(document_id, number, -score) for score, _, document_id, number in sorted(ranked)]


def tie_order(document: Document) -> tuple[int, str]:
    """The order of equally relevant documents: by their source, then by their id."""
    return 0 if document.provenance is None else document.provenance.order, document.id


def fused(
    index: Index,
    matches: Sequence[Match],
    closeness: Mapping[str, float],
    among: frozenset[int] | None = None,
) -> list[Match]:
    """The best by words and the closest by meaning in one order, each document with its part of both."""
    best = matches[0].score if matches else 1.0
    by_words = {match.id: match.score / best for match in matches}
    shown = (one for one in closeness if among is None or index.number(one) in among)
    closest = nsmallest(CANDIDATES, shown, key=lambda one: (-closeness[one], one))
    ranked = [
        (-(BY_MEANING * closeness.get(one, 0.0) + (1 - BY_MEANING) * by_words.get(one, 0.0)), one)
        for one in {*by_words, *closest}
    ]
    return [Match(one, index.number(one), -score) for score, one in sorted(ranked)]


def _merge(scores: dict[int, float], more: dict[int, float], both: Callable[[float, float], float]) -> None:
    """Take ``more`` in; what is in both becomes what ``both`` makes of it. Few are: most is one update."""
    for number in scores.keys() & more.keys():
        more[number] = both(scores[number], more[number])
    scores.update(more)


def _best(scores: dict[int, float]) -> list[int]:
    """The documents of the highest scores; of equals those whose numbers come first."""
    if len(scores) > CANDIDATES:
        least = nlargest(CANDIDATES, scores.values())[-1]
        best = [(-score, number) for number, score in scores.items() if score >= least]
    else:
        best = [(-score, number) for number, score in scores.items()]
    return [number for _, number in sorted(best)[:CANDIDATES]]


def _group(index: Index, question: Question, word: str, *, maybe_misspelt: bool) -> Group:
    found = alternatives(index, word, maybe_misspelt=maybe_misspelt)
    weights = dict(found)
    for one, as_written in question.joined.get(word, ()):
        if one in index:
            weights[one] = max(weights.get(one, 0.0), 1.0 if as_written else FORM)
        for other in synonyms(index, one):
            weights.setdefault(other, SYNONYM)
    told = index.surprise(word)
    surprises = map(index.surprise, weights)
    return Group(
        word,
        tuple(starmap(Alternative, weights.items())),
        tuple(min(other, told) for other in surprises) if word in index else tuple(surprises),
        told * _share(index, word),
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
        _merge(best, index.scores(word, weight * told, limit, among), max)
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
