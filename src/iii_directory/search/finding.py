"""One request answered over every kind of document, with reasons, or with what came nearest. Pure.

Each kind has an index, statistics and a ranking of its own: in one mixed list the many skills would push out
the few functions. Kinds stand in the order in which their best hits fit.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.limits import MAX_CORRECTED_WORDS
from iii_directory.search.alternatives import SLIPS
from iii_directory.search.fit import HIGH_LEAD, HIGH_SHARE, Evidence
from iii_directory.search.question import parse_question, parts_of
from iii_directory.search.ranking import MANUAL_ORDER, Answer, merged
from iii_directory.search.request import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from iii_directory.search.fields import Document
    from iii_directory.search.index import Index
    from iii_directory.search.question import Question
    from iii_directory.search.ranking import Ranked
    from iii_directory.search.request import Kind

_WHY_CHARS: Final = 60
_EXACT: Final = "exact id"
_ALIKE: Final = "alike in meaning"
_CLOSE: Final = 0.35
_TYPED: Final = Evidence(1.0, 0.0, 0, 1.0, literal=True)
"""What speaks for a document whose id was typed whole."""
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
    """Whether it is hardly anything else that is looked for."""
    only_body: bool
    """Whether nothing of what a caller is shown matched."""

    @property
    def inside(self) -> str:
        """The id of the page that matched; empty if it was the document itself."""
        return "" if self.page is self.document else self.page.id


class Section(NamedTuple):
    kind: Kind
    hits: Sequence[Hit]


class Finding(NamedTuple):
    """What one request found."""

    request: str
    sections: Sequence[Section]
    """What fits, by kind, the kind whose best hit fits best first. None: nothing does."""
    nearest: Sequence[Hit]
    """What came nearest when nothing fits."""
    corrected: Mapping[str, str]
    """Words that nothing has, and what they were taken for."""
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
    shown: Callable[[Kind, Document], bool] | None = None,
    exactly: Callable[[Kind, str], str | None] | None = None,
    skill_of: Callable[[str], str] | None = None,
) -> Finding:
    """Return the best of each kind.

    ``shown`` leaves documents out, ``exactly`` knows ids in other spellings, and ``skill_of`` names the skill
    that a document is part of and counts for.
    """
    question = parse_question(request)
    strange = (word for word in question.words if _is_unknown(word, indexes.values()))
    unknown = frozenset(islice(strange, MAX_CORRECTED_WORDS))
    questions = [question, *parts_of(question)]
    wanted = frozenset(kinds)
    asked: list[Kind] = [kind for kind in KINDS if kind in wanted and kind in indexes]
    owners: dict[Kind, Callable[[str], str]] = {"skill": skill_of} if skill_of else {}
    found = [
        _Ranking(kind, indexes[kind], questions, unknown, shown, exactly, owners.get(kind, _itself))
        for kind in asked
    ]
    fitting = sorted((one for one in found if one.fits), key=lambda one: -one.value)
    if _FUNCTION_ID.match(question.text) and not any(one.exact for one in found):
        fitting = []
    nearest = [] if fitting else _nearest(found, limit)
    sections = [Section(one.kind, one.hits(limit)) for one in fitting]
    return Finding(question.text, sections, nearest, _corrected(fitting or found, unknown), question.unread)


class _Ranking:
    """One kind's answer to a question and to its parts."""

    def __init__(
        self,
        kind: Kind,
        index: Index,
        questions: Sequence[Question],
        unknown: frozenset[str],
        shown: Callable[[Kind, Document], bool] | None,
        exactly: Callable[[Kind, str], str | None] | None,
        owner_of: Callable[[str], str],
    ) -> None:
        self.kind: Kind = kind
        self._index = index
        self._owner_of = owner_of
        among = None if shown is None else _numbers(index, lambda document: shown(kind, document))
        self.answers = [Answer(index, question, unknown, among) for question in questions]
        text = questions[0].text
        exact = index.called(text) or (exactly and exactly(kind, text))
        number = index.number(exact) if exact and index.find(exact) else None
        self.exact = number if among is None or number in among else None
        ranked = merged(self.answers)
        manual = [one for one in ranked if one.match.order == MANUAL_ORDER]
        others = [one for one in ranked if one.match.order != MANUAL_ORDER]
        self._best = _surest(others)
        # The manual of this package comes last, and alone it fits only if it is plainly what was asked for.
        self._ranked = [*others, *manual] if self.fits else ranked
        if not self.fits:
            self._best = _surest([one for one in manual if _is_plainly_asked(one)]) or self._best

    @property
    def fits(self) -> bool:
        return self.exact is not None or (self._best is not None and self._best.fits)

    @property
    def value(self) -> float:
        if self.exact is not None:
            return float("inf")
        return self._best.value if self._best else float("-inf")

    def hits(self, limit: int, least: float = _CLOSE) -> list[Hit]:
        """Return the best rows; a document of a skill counts for its skill.

        Behind the first one, what has no word in common must be at least so close.
        """
        rows: dict[str, Hit] = {}
        if self.exact is not None:
            document = self._index.document(self.exact)
            typed = Hit(self.kind, document, document, _EXACT, _TYPED, (), high=True, only_body=False)
            rows[self._owner_of(document.id)] = typed
        for ranked in self._ranked:
            if len(rows) >= limit:
                break
            key = self._owner_of(ranked.match.id)
            if rows and ranked.match.closeness < least and not ranked.answer.heard(ranked.match.number):
                continue
            if key not in rows:
                rows[key] = self._hit(ranked, is_ahead=not rows and self._lead(key) >= HIGH_LEAD)
        return list(rows.values())

    def _lead(self, first: str) -> float:
        """Return by how much the first row is ahead of the next one."""
        others = (one.match.score for one in self._ranked if self._owner_of(one.match.id) != first)
        return self._ranked[0].match.score - next(others, 0.0)

    def _hit(self, ranked: Ranked, *, is_ahead: bool) -> Hit:
        number = ranked.match.number
        document = self._index.document(number)
        reasons = _reasons(self._index, ranked.answer, number)
        owner = self._index.find(self._owner_of(document.id)) or document
        found = ranked.answer.evidence(ranked.match)
        return Hit(
            self.kind,
            owner,
            document,
            _why(reasons) or _ALIKE,
            found,
            tuple(reason.said for reason in reasons),
            high=is_ahead and found.share >= HIGH_SHARE,
            only_body=bool(reasons) and all(reason.field == "body" for reason in reasons),
        )


def _surest(ranked: Sequence[Ranked]) -> Evidence | None:
    """Return what speaks for the first document, or for the first one that answers a part of the question."""
    firsts = {id(one.answer): one for one in reversed(ranked)}.values()
    found = [one.answer.evidence(one.match) for one in firsts]
    return max(found, key=lambda first: (first.literal, first.value), default=None)


def _is_plainly_asked(one: Ranked) -> bool:
    found = one.answer.evidence(one.match)
    return found.share >= HIGH_SHARE and found.closeness >= _CLOSE


def _reasons(index: Index, answer: Answer, number: int) -> list[_Reason]:
    """Return the words that led to a document, most telling first, each with its loudest field."""
    heard = answer.heard(number)
    found: list[_Reason] = []
    for group in answer.groups:
        scored = [
            (weight * told * heard[word], word)
            for (word, weight), told in zip(group.alternatives, group.surprises, strict=True)
            if word in heard
        ]
        if scored:
            score, said = max(scored)
            found.append(_Reason(group.word, said, index.loudest(number, said), score))
    return sorted(found, key=lambda reason: -reason.score)


class _Reason(NamedTuple):
    asked: str
    said: str
    field: str
    score: float


def _why(reasons: Sequence[_Reason]) -> str:
    """``photo→image, resize (name); bucket (body)``, as much of it as is short."""
    text = ""
    for field in dict.fromkeys(reason.field for reason in reasons):
        of_field = [reason for reason in reasons if reason.field == field]
        for count in range(len(of_field), 0, -1):
            words = ", ".join(
                r.said if r.said == r.asked else f"{r.asked}→{r.said}" for r in of_field[:count]
            )
            longer = f"{text}; {words} ({field})" if text else f"{words} ({field})"
            if len(longer) <= _WHY_CHARS:
                text = longer
                break
    return text


def _itself(document_id: str) -> str:
    return document_id


def _is_unknown(word: str, indexes: Iterable[Index]) -> bool:
    """Return whether a word may be misspelt: no document and no list of synonyms has it."""
    return not any(word in index or index.thesaurus.knows(word) for index in indexes)


def _numbers(index: Index, shown: Callable[[Document], bool]) -> frozenset[int]:
    numbers = map(index.number, index.ids())
    return frozenset(number for number in numbers if shown(index.document(number)))


def _nearest(found: Sequence[_Ranking], limit: int) -> list[Hit]:
    """Return the best of the kind that comes nearest, then of the next, and so round."""
    rows = [one.hits(limit, least=0.0) for one in sorted(found, key=lambda one: -one.value)]
    return [hits[at] for at in range(limit) for hits in rows if at < len(hits)][:limit]


def _corrected(found: Sequence[_Ranking], unknown: frozenset[str]) -> dict[str, str]:
    corrected: dict[str, str] = {}
    for one in found:
        for group in one.answers[0].groups:
            spelt = [word for word, weight in group.alternatives if weight in SLIPS]
            if group.word in unknown and spelt:
                corrected.setdefault(group.word, spelt[0])
    return corrected
