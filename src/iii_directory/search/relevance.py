"""Rank the documents of one kind by a question, and decide whether the first one is good enough. Pure.

The score is BM25 over fields, where each word of the question is a group of alternatives of which the best
counts and neighbouring words count a little more, fused with closeness in meaning.

Four numbers tell how likely it is that the first document answers a question: the share of the question's
information that the document has, how close the two are in meaning, the information of the words in common,
and how many they are. The coefficients come from a logistic regression over the public cases and one half of
this repository's own; docs/guide/finding.md has what came of it on the other half.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import nlargest
from math import log1p, sqrt
from operator import add
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.documents.model import Provenance
from iii_directory.limits import MAX_READ_POSTINGS, MAX_READ_SOFT_POSTINGS
from iii_directory.search.fields import SATURATION, pair_hash
from iii_directory.search.meaning import word_vectors
from iii_directory.search.words import FORM, SLIPS, SYNONYM, alternatives, form_key, is_pair, synonyms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from iii_directory.search.index import Index
    from iii_directory.search.meaning import Vector
    from iii_directory.search.search_request import Question

NEIGHBOURS: Final = 0.3
"""What two words beside one another add, as a share of what the more ordinary of them tells."""
# In a script without spaces every other pair of characters belongs to two words, so that no document has it.
_STRADDLING: Final = 0.5
BY_MEANING: Final = 0.65
"""What closeness in meaning counts; the rest is the score by words."""
_MOST_BY_WORDS: Final = 1.5
MANUAL_ORDER: Final = Provenance("built-in").order
"""The place of this package's own manual among the sources of documents."""
PART_SHARE: Final = 0.9
"""What an answer to a part of a question counts beside one to all of it."""
CANDIDATES: Final = 60
"""How many of the best documents by words are considered; neighbours only change the order among these."""

_BASE: Final = -3.62
_PER_SHARE: Final = 2.57
_PER_CLOSENESS: Final = 0.41
_PER_INFORMATION: Final = 0.5
_PER_WORD: Final = 1.4
_MOST_WORDS: Final = 6
FLOOR: Final = -0.3
"""What is below this does not fit."""
HIGH_SHARE: Final = 0.6
HIGH_LEAD: Final = 0.28
"""A first row with this share of what was asked, so far ahead of the next one, has high confidence."""
_FEW_WORDS: Final = 2


class WordGroup(NamedTuple):
    """A word of a question, and what may stand for it in one index."""

    word: str
    alternatives: Mapping[str, float]
    """Words of the index with their weights."""
    idfs: tuple[float, ...]
    """How much each alternative tells documents apart, in nats; at most as much as the word itself."""
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
    """The place of its source among equally relevant documents."""

    def place(self) -> tuple[float, int, str]:
        """Return what sorts matches: the best first, equal ones by their source and id."""
        return -self.score, self.order, self.id


class Evidence(NamedTuple):
    """What speaks for a document."""

    share: float
    """The share of the information of the question's words that the document has: 0 to 1."""
    information: float
    """The information that the document has of it, in nats."""
    words: int
    """How many words of the question it has in any way."""
    closeness: float
    """The cosine of its vector and that of the question."""
    literal: bool
    """Whether the question is a word or two, all of them in what a caller is shown, as written."""

    @property
    def value(self) -> float:
        """Return how sure the hit is, the greater the surer; comparable between kinds."""
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


def groups_of(index: Index, question: Question, misspelt: frozenset[str]) -> list[WordGroup]:
    """Return the words of a question with what may stand for each; only some words may be misspelt."""
    groups: list[WordGroup] = []
    for word in question.words:
        weights = dict(alternatives(index, word, maybe_misspelt=word in misspelt))
        for one, as_written in question.joined.get(word, ()):
            if one in index:
                weights[one] = max(weights.get(one, 0.0), 1.0 if as_written else FORM)
            for other in synonyms(index, one):
                weights.setdefault(other, SYNONYM)
        idf = index.idf(word)
        known = word in index
        idfs = (min(one, idf) if known else one for one in map(index.idf, weights))
        # An ordinary word asks for less, and so does a pair of characters that may be of two words.
        share = _STRADDLING if not known and is_pair(word) else index.thesaurus.share_of(word)
        groups.append(WordGroup(word, weights, tuple(idfs), idf * share))
    return groups


def by_words(
    index: Index, question: Question, groups: Sequence[WordGroup], among: frozenset[int] | None = None
) -> dict[int, float]:
    """Return the best documents by their words alone, with their scores."""
    scores: dict[int, float] = {}
    for group in groups:
        best: dict[int, float] = {}
        for (word, weight), idf in zip(group.alternatives.items(), group.idfs, strict=True):
            limit = MAX_READ_POSTINGS if word == group.word else MAX_READ_SOFT_POSTINGS
            _merge(best, index.scores(word, weight * idf, limit, among), max)
        _merge(scores, best, add)
    if len(scores) > CANDIDATES:
        least = nlargest(CANDIDATES, scores.values())[-1]
        scores = {number: score for number, score in scores.items() if score >= least}
    # Of equals those whose numbers come first, so that the order of changes makes no difference.
    considered = sorted((-score, number) for number, score in scores.items())[:CANDIDATES]

    def least_idf(word: str) -> float:
        return min(map(index.idf, {word, *index.forms_of(form_key(word))}))

    pairs = {
        pair_hash(left, right): NEIGHBOURS * min(least_idf(left), least_idf(right))
        for left, right in question.neighbours
    }
    return {number: index.neighbour_score(number, pairs) - negative for negative, number in considered}


class Ranking:
    """The documents of one kind that answer one question best, by words and by meaning."""

    def __init__(
        self, index: Index, question: Question, misspelt: frozenset[str], among: frozenset[int] | None = None
    ) -> None:
        self._index = index
        self.groups = groups_of(index, question, misspelt)
        self._alternatives = frozenset(word for group in self.groups for word in group.alternatives)
        self._matching: dict[int, dict[str, tuple[float, str]]] = {}
        scores = by_words(index, question, self.groups, among)
        spelt = {group.word: slip for group in self.groups if (slip := corrected(group))}
        closeness = index.closeness(_vector(tuple(spelt.get(word, word) for word in question.all_words)))
        information = sum(group.information for group in self.groups)
        usual = sqrt(max(scores.values(), default=0.0) * information) or 1.0
        found: list[Match] = []
        for number in {*scores, *closeness.closest(CANDIDATES, among)}:
            close = closeness[number]
            share = min(_MOST_BY_WORDS, scores.get(number, 0.0) / usual)
            score = BY_MEANING * close + (1 - BY_MEANING) * share**2
            document = index.document(number)
            order = 0 if document.provenance is None else document.provenance.order
            found.append(Match(document.id, number, score, close, order))
        self.matches = sorted(found, key=Match.place)

    def matching_words(self, number: int) -> dict[str, tuple[float, str]]:
        """Return which words of the question a document has: how strongly, and its strongest field."""
        if number not in self._matching:
            self._matching[number] = self._index.matching_words(number, self._alternatives)
        return self._matching[number]

    def evidence(self, match: Match) -> Evidence:
        """Return what speaks for a document."""
        matching = self.matching_words(match.number)
        asked = found = 0.0
        words = 0
        wanted = frozenset(group.word for group in self.groups)
        for group in self.groups:
            degree = _degree(matching, group, wanted - {group.word})
            asked += group.information
            found += group.information * degree
            words += degree > 0
        shown = (matching.get(group.word, (0.0, "body"))[1] != "body" for group in self.groups)
        literal = 0 < len(self.groups) <= _FEW_WORDS and all(shown)
        return Evidence(found / asked if asked else 0.0, found, words, match.closeness, literal)


class Ranked(NamedTuple):
    """A document, and the question or part of a question that it answers best."""

    match: Match
    ranking: Ranking


def merged(rankings: Sequence[Ranking]) -> list[Ranked]:
    """Return the documents that answer a question or a part of it, best first; all of it comes first."""
    whole, *parts = rankings
    best = {match.number: Ranked(match, whole) for match in whole.matches}
    for ranking in parts:
        for match in ranking.matches:
            score = match.score * PART_SHARE
            known = best.get(match.number)
            if known is None or known.match.score < score:
                best[match.number] = Ranked(match._replace(score=score), ranking)
    # Without parts they are in this order already.
    return sorted(best.values(), key=lambda ranked: ranked.match.place()) if parts else list(best.values())


@lru_cache(maxsize=64)
def _vector(words: tuple[str, ...]) -> Vector:
    """Return the vector of a question, which is nearly always the same for every kind of document."""
    return word_vectors().vector(words)


def corrected(group: WordGroup) -> str | None:
    """Return the likeliest spelling of a misspelt word."""
    return next((word for word, weight in group.alternatives.items() if weight in SLIPS), None)


def _merge(scores: dict[int, float], more: dict[int, float], both: Callable[[float, float], float]) -> None:
    """Add ``more``; what is in both becomes what ``both`` makes of it. Few are: most is one update."""
    for number in scores.keys() & more.keys():
        more[number] = both(scores[number], more[number])
    scores.update(more)


def _degree(matching: Mapping[str, tuple[float, str]], group: WordGroup, others: frozenset[str]) -> float:
    """Return how plainly a document has a word, 0 to 1: by its best alternative, or by several synonyms."""
    best, unsaid = 0.0, 1.0
    # What looks like a slip may bring a document up, but a word that exists is not taken for another one.
    unlikely = SLIPS if group.word in word_vectors() else ()
    for word, weight in group.alternatives.items():
        # A word that the question asks for itself does not count for another one as well.
        if word in matching and weight not in unlikely and word not in others:
            strength = matching[word][0]
            # 1 for a word that stands once in a description; less for what only a long body mentions.
            plainly = min(1.0, SATURATION * strength / (1 - strength)) if strength < 1 else 1.0
            best = max(best, weight * plainly)
            if weight == SYNONYM:
                unsaid *= 1 - weight * plainly
    return max(best, 1 - unsaid)
