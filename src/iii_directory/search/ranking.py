"""Which documents of one kind answer a question best. Pure.

BM25 over fields, where each word of the question is a group of alternatives of which the best counts, and
words that are neighbours in both count a little more.
"""

from __future__ import annotations

from heapq import nlargest
from itertools import starmap
from math import sqrt
from operator import add
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.documents.provenance import Provenance
from iii_directory.limits import MAX_READ_POSTINGS, MAX_READ_SOFT_POSTINGS
from iii_directory.search.alternatives import FORM, SLIPS, SYNONYM, Alternative, alternatives, synonyms
from iii_directory.search.fields import pair_hash
from iii_directory.search.fit import Evidence, evidence
from iii_directory.search.meaning import word_vectors
from iii_directory.search.words import form_key, is_pair

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from iii_directory.search.fields import Document
    from iii_directory.search.index import Index
    from iii_directory.search.question import Question

NEIGHBOURS: Final = 0.3
"""What two words beside one another add, as a share of what the more ordinary of them tells."""
# In a script without spaces every other pair of characters belongs to two words; such a one nobody has.
_STRADDLING: Final = 0.5
BY_MEANING: Final = 0.6
"""What closeness in meaning counts; the rest is the score by words."""
_MOST_BY_WORDS: Final = 1.5
MANUAL_ORDER: Final = Provenance("built-in").order
"""The place of this package's own manual among the sources of documents."""
PART_SHARE: Final = 0.9
"""What an answer to a part of a question counts beside one to all of it."""
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
    closeness: float
    """The cosine of its vector and that of the question."""
    order: int
    """The place of its source among equals, see :func:`tie_order`."""

    def place(self) -> tuple[float, int, str]:
        """Return what sorts matches: the best first, equal ones by their source and id."""
        return -self.score, self.order, self.id


def groups_of(index: Index, question: Question, misspelt: frozenset[str]) -> list[Group]:
    """The words of a question with what may stand for each; only those in ``misspelt`` may be slips."""
    return [_group(index, question, word, maybe_misspelt=word in misspelt) for word in question.words]


def by_words(
    index: Index, question: Question, groups: Sequence[Group], among: frozenset[int] | None = None
) -> dict[int, float]:
    """Return the best documents by their words alone, with their scores."""
    scores: dict[int, float] = {}
    for group in groups:
        _merge(scores, _best_of(index, group, among), add)
    pairs = _pairs(index, question)
    return {number: scores[number] + index.together(number, pairs) for number in _best(scores)}


def tie_order(document: Document) -> tuple[int, str]:
    """Return the order of equally relevant documents: by their source, then by their id."""
    return 0 if document.provenance is None else document.provenance.order, document.id


class Answer:
    """The documents of one kind that answer one question best, by words and by meaning."""

    def __init__(
        self, index: Index, question: Question, misspelt: frozenset[str], among: frozenset[int] | None = None
    ) -> None:
        self._index = index
        self.groups = groups_of(index, question, misspelt)
        said = by_words(index, question, self.groups, among)
        vector = word_vectors().vector(_corrected(question, self.groups))
        self._closeness = index.vectors.closeness(vector)
        self._listened_for = frozenset(word for group in self.groups for word, _ in group.alternatives)
        self._heard: dict[int, dict[str, float]] = {}
        usual = sqrt(max(said.values(), default=0.0) * sum(group.information for group in self.groups)) or 1.0
        found: list[Match] = []
        for number in {*said, *self._closeness.closest(CANDIDATES, among)}:
            close = self._closeness[number]
            share = min(_MOST_BY_WORDS, said.get(number, 0.0) / usual)
            score = BY_MEANING * close + (1 - BY_MEANING) * share**2
            order, document_id = tie_order(index.document(number))
            found.append(Match(document_id, number, score, close, order))
        self.matches = sorted(found, key=Match.place)

    def heard(self, number: int) -> dict[str, float]:
        """Return how strongly a document says the words of the question."""
        if number not in self._heard:
            self._heard[number] = self._index.heard(number, self._listened_for)
        return self._heard[number]

    def evidence(self, match: Match) -> Evidence:
        """Return what speaks for a document."""
        heard = self.heard(match.number)
        shown = frozenset(word for word in heard if self._index.loudest(match.number, word) != "body")
        return evidence(self.groups, heard, shown, match.closeness)


class Ranked(NamedTuple):
    """A document, and the part of a question that it answers best."""

    match: Match
    answer: Answer


def merged(answers: Sequence[Answer]) -> list[Ranked]:
    """Return the documents that answer a question or a part of it, best first."""
    best: dict[int, Ranked] = {}
    for at, answer in enumerate(answers):
        for match in answer.matches:
            score = match.score if at == 0 else match.score * PART_SHARE
            known = best.get(match.number)
            if known is None or known.match.score < score:
                best[match.number] = Ranked(match._replace(score=score), answer)
    return sorted(best.values(), key=lambda ranked: ranked.match.place())


def _corrected(question: Question, groups: Sequence[Group]) -> list[str]:
    """Return the words of a question, misspelt ones in their best spelling."""
    spelt = {
        group.word: next((word for word, weight in group.alternatives if weight in SLIPS), group.word)
        for group in groups
    }
    return [spelt.get(word, word) for word in question.all_words]


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
