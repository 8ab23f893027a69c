"""Answer one request over every kind of document, with reasons, or with what came nearest. Pure.

Each kind has an index, statistics and a ranking of its own: in one mixed list the many skills would push out
the few functions. Kinds are in the order in which their best hits fit.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.limits import MAX_CORRECTED_WORDS
from iii_directory.search import relevance
from iii_directory.search.relevance import MANUAL_ORDER, Evidence, Ranking, corrected, merged
from iii_directory.search.search_request import KINDS, parse_question, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from iii_directory.search.fields import Document
    from iii_directory.search.index import Index
    from iii_directory.search.relevance import Ranked
    from iii_directory.search.search_request import Kind

_WHY_CHARS: Final = 60
_CLOSE: Final = 0.35
_PLAINLY: Final = 0.6
_TYPED: Final = Evidence(1.0, 0.0, 0, 1.0, literal=True)
"""What speaks for a document whose whole id was typed."""
_FUNCTION_ID: Final = re.compile(r"[\w-]+(?:::[\w-]+)+$")


class Hit(NamedTuple):
    """A document that was found, and why."""

    kind: Kind
    document: Document
    """What a row is about; of a page of a skill the skill."""
    page: Document
    """What matched: the document itself, or a page of it."""
    why: str
    evidence: Evidence
    words: tuple[str, ...]
    """The words of the document that matched, most telling first."""
    high: bool
    """Whether it is almost certainly what is looked for."""
    only_body: bool
    """Whether nothing of what a caller is shown matched."""

    @property
    def inside(self) -> str:
        """Return the id of the page that matched; empty if it was the document itself."""
        return "" if self.page is self.document else self.page.id


class Section(NamedTuple):
    kind: Kind
    hits: Sequence[Hit]


class SearchResult(NamedTuple):
    """What one request found."""

    request: str
    sections: Sequence[Section]
    """What fits, by kind, the kind whose best hit fits best first; empty when nothing fits."""
    nearest: Sequence[Hit]
    """What came nearest when nothing fits."""
    corrected: Mapping[str, str]
    """Words that no document has, and what they were taken for."""
    unread: bool
    """Whether the request was longer than what is read of one."""

    @property
    def fits(self) -> bool:
        return bool(self.sections)


def find(
    indexes: Mapping[Kind, Index],
    request: str,
    *,
    kinds: Iterable[Kind] = KINDS,
    limit: int = 5,
    shown: Callable[[Document], bool] | None = None,
    exactly: Callable[[Kind, str], str | None] | None = None,
    skill_of: Callable[[str], str] | None = None,
) -> SearchResult:
    """Return the best of each kind.

    ``shown`` leaves documents out, ``exactly`` knows ids in other spellings, and ``skill_of`` names the skill
    that a document is part of and counts for.
    """
    question = parse_question(request)
    # A word may be misspelt if no document and no list of synonyms has it.
    strange = (
        word
        for word in question.words
        if not any(word in index or index.thesaurus.knows(word) for index in indexes.values())
    )
    unknown = frozenset(islice(strange, MAX_CORRECTED_WORDS))
    questions = [question, *parts_of(question)]
    wanted = frozenset(kinds)
    found: list[_KindResult] = []
    for kind in KINDS:
        index = indexes.get(kind)
        if kind in wanted and index:
            among = None
            if shown is not None:
                among = frozenset(one for one in index.numbers.values() if shown(index.document(one)))
            exact = index.called(question.text) or (exactly and exactly(kind, question.text))
            rankings = [Ranking(index, one, unknown, among) for one in questions]
            typed = index.numbers.get(exact or "")
            if among is not None and typed not in among:
                typed = None
            found.append(_KindResult(kind, index, rankings, typed, skill_of if kind == "skill" else None))
    found.sort(key=lambda one: -one.value)
    fitting = [one for one in found if one.fits]
    if _FUNCTION_ID.match(question.text) and not any(one.exact is not None for one in found):
        fitting = []
    sections = [Section(one.kind, one.hits(limit)) for one in fitting]
    nearest: list[Hit] = []
    if not fitting:
        # The best of the kind that comes nearest, then of the next, and so round.
        rows = [one.hits(limit, least=0.0) for one in found]
        nearest = [hits[at] for at in range(limit) for hits in rows if at < len(hits)][:limit]
    taken: dict[str, str] = {}
    for one in fitting or found:
        for group in one.rankings[0].groups:
            if group.word in unknown and (slip := corrected(group)):
                taken.setdefault(group.word, slip)
    return SearchResult(question.text, sections, nearest, taken, question.unread)


class _KindResult:
    """One kind's answer to a question and to its parts."""

    def __init__(
        self,
        kind: Kind,
        index: Index,
        rankings: Sequence[Ranking],
        exact: int | None,
        skill_of: Callable[[str], str] | None,
    ) -> None:
        self.kind: Kind = kind
        self.rankings = rankings
        self.exact = exact
        """The number of the document whose id was typed."""
        self._index = index
        self._skill_of = skill_of or str
        ranked = merged(rankings)
        manual = [one for one in ranked if one.match.order == MANUAL_ORDER]
        others = [one for one in ranked if one.match.order != MANUAL_ORDER]
        best = _best_evidence(others)
        self.fits = exact is not None or (best is not None and best.fits)
        # The manual of this package comes last, and alone it fits only if it is plainly what was asked for.
        self._ranked = [*others, *manual] if self.fits else ranked
        if not self.fits:
            near = (one for one in manual if one.match.closeness >= _CLOSE)
            asked = _best_evidence([one for one in near if one.ranking.evidence(one.match).share >= _PLAINLY])
            self.fits, best = asked is not None and asked.fits, asked or best
        self.value = float("-inf") if best is None else best.value
        if exact is not None:
            self.value = float("inf")

    def hits(self, limit: int, least: float = _CLOSE) -> list[Hit]:
        """Return the best rows; a document of a skill counts for its skill.

        After the first one, a document without a word in common must be at least so close.
        """
        rows: dict[str, Hit] = {}
        if self.exact is not None:
            document = self._index.document(self.exact)
            typed = Hit(self.kind, document, document, "exact id", _TYPED, (), high=True, only_body=False)
            rows[self._skill_of(document.id)] = typed
        for ranked in self._ranked:
            match = ranked.match
            if len(rows) >= limit:
                break
            if rows and match.closeness < least and not ranked.ranking.matching_words(match.number):
                continue
            key = self._skill_of(match.id)
            if key not in rows:
                others = (one.match.score for one in self._ranked if self._skill_of(one.match.id) != key)
                is_ahead = not rows and match.score - next(others, 0.0) >= relevance.HIGH_LEAD
                rows[key] = self._hit(ranked, key, is_ahead=is_ahead)
        return list(rows.values())

    def _hit(self, ranked: Ranked, key: str, *, is_ahead: bool) -> Hit:
        match, ranking = ranked
        matching = ranking.matching_words(match.number)
        reasons: list[_Reason] = []
        for group in ranking.groups:
            scored = [
                (weight * idf * matching[word][0], word)
                for (word, weight), idf in zip(group.alternatives.items(), group.idfs, strict=True)
                if word in matching
            ]
            if scored:
                score, word = max(scored)
                reasons.append(_Reason(group.word, word, matching[word][1], score))
        reasons.sort(key=lambda reason: -reason.score)
        document = self._index.document(match.number)
        found = ranking.evidence(match)
        return Hit(
            self.kind,
            self._index.find(key) or document,
            document,
            _why(reasons) or "alike in meaning",
            found,
            tuple(reason.word for reason in reasons),
            high=is_ahead and found.share >= relevance.HIGH_SHARE,
            only_body=bool(reasons) and all(reason.field == "body" for reason in reasons),
        )


class _Reason(NamedTuple):
    """A word of a question, the word of a document that stands for it, and where it stands."""

    asked: str
    word: str
    field: str
    score: float


def _best_evidence(ranked: Sequence[Ranked]) -> Evidence | None:
    """Return what speaks for the first document, or for the first one that answers a part of the question."""
    firsts = {id(one.ranking): one for one in reversed(ranked)}.values()
    found = [one.ranking.evidence(one.match) for one in firsts]
    return max(found, key=lambda first: (first.literal, first.value), default=None)


def _why(reasons: Sequence[_Reason]) -> str:
    """Write reasons like ``photo→image, resize (name); bucket (body)``, as many as are short."""
    text = ""
    for field in dict.fromkeys(reason.field for reason in reasons):
        of_field = [reason for reason in reasons if reason.field == field]
        for count in range(len(of_field), 0, -1):
            words = ", ".join(
                r.word if r.word == r.asked else f"{r.asked}→{r.word}" for r in of_field[:count]
            )
            longer = f"{text}; {words} ({field})" if text else f"{words} ({field})"
            if len(longer) <= _WHY_CHARS:
                text = longer
                break
    return text
