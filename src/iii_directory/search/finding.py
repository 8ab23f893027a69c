"""One request answered over every kind of document, with reasons, or with what came nearest. Pure.

Each kind has an index, statistics and a ranking of its own: in one mixed list the many skills would push out
the few functions. Kinds stand in the order in which their best hits fit.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from iii_directory.limits import MAX_CORRECTED_WORDS
from iii_directory.search.alternatives import ONE_SLIP, TWO_SLIPS
from iii_directory.search.fit import Evidence, evidence
from iii_directory.search.question import parse_question
from iii_directory.search.ranking import fused, groups_of, rank
from iii_directory.search.request import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from iii_directory.search.fields import Document
    from iii_directory.search.index import Index
    from iii_directory.search.question import Question
    from iii_directory.search.request import Kind

# Under this share of the best score words were met by chance; nothing right was lost on the public cases.
_TAIL: Final = 0.3
_NEAREST: Final = 3
_CONSIDERED: Final = 12
_WHY_CHARS: Final = 60
_EXACT: Final = "exact id"
_ALIKE: Final = "alike in meaning"
# With a model: what is closer than this may be a hit without a word in common, as the reference has it, and
# what is closer than that fits. No public request without an answer comes above .4.
_CLOSE: Final = 0.3
_VERY_CLOSE: Final = 0.5
_TYPED: Final = Evidence(1.0, 0.0, 0, literal=True)
"""What speaks for a document whose id was typed whole."""
_FUNCTION_ID: Final = re.compile(r"[\w-]+(?:::[\w-]+)+$")


class Hit(NamedTuple):
    """A document that was found, and why."""

    kind: Kind
    document: Document
    why: str
    evidence: Evidence
    inside: str
    """The document of this one that matched, if it was not the first of them itself."""
    words: tuple[str, ...]
    """The words of the document that matched, most telling first."""
    only_body: bool
    """Whether nothing of what a caller is shown matched."""


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
    closeness: Mapping[Kind, Mapping[str, float]] | None = None,
) -> Finding:
    """The best of each kind.

    ``shown`` leaves documents out, ``exactly`` knows ids in other spellings, ``skill_of`` says which skill a
    document is part of and counts for, and ``closeness`` how close the documents of a kind are in meaning.
    """
    question = parse_question(request)
    strange = (word for word in question.words if _is_unknown(word, indexes.values()))
    unknown = frozenset(islice(strange, MAX_CORRECTED_WORDS))
    wanted = frozenset(kinds)
    asked: list[Kind] = [kind for kind in KINDS if kind in wanted and kind in indexes]
    rankings = [_Ranking(kind, indexes[kind], question, unknown, shown, exactly) for kind in asked]
    for one in rankings:
        if closeness and one.kind in closeness:
            one.fuse(closeness[one.kind])
    found = [one.folded(skill_of) if one.kind == "skill" and skill_of else one for one in rankings]
    fitting = sorted((one for one in found if one.fits), key=lambda one: -one.value)
    if _FUNCTION_ID.match(question.text) and not any(one.exact for one in found):
        fitting = []
    nearest = [] if fitting else _nearest(found)
    sections = [Section(one.kind, one.hits(limit)) for one in fitting]
    return Finding(question.text, sections, nearest, _corrected(fitting or found, unknown), question.unread)


class _Ranking:
    """One kind's answer to a question."""

    def __init__(
        self,
        kind: Kind,
        index: Index,
        question: Question,
        unknown: frozenset[str],
        shown: Callable[[Kind, Document], bool] | None,
        exactly: Callable[[Kind, str], str | None] | None,
    ) -> None:
        self.kind: Kind = kind
        self._index = index
        self._among = among = (
            None if shown is None else _numbers(index, lambda document: shown(kind, document))
        )
        self.groups = groups_of(index, question, unknown)
        self._listened_for = frozenset(word for group in self.groups for word, _ in group.alternatives)
        self._heard: dict[int, dict[str, float]] = {}
        """What the documents looked at say of the question."""
        self._matches = rank(index, question, self.groups, among)
        exact = index.called(question.text) or (exactly and exactly(kind, question.text))
        number = index.number(exact) if exact and index.find(exact) else None
        self.exact = number if among is None or number in among else None
        self._best = self._evidence(self._matches[0].number) if self._matches else None
        self._owner_of: Callable[[str], str] = _itself
        self._closeness: Mapping[str, float] = {}

    def fuse(self, closeness: Mapping[str, float]) -> None:
        """Order by words and by meaning together. Whether anything fits is still said from words, or else by
        a document that is very close."""
        self._closeness = closeness
        self._matches = fused(self._index, self._matches, closeness, self._among)

    def folded(self, owner_of: Callable[[str], str]) -> Self:
        """The same with one row for everything that has the same owner."""
        self._owner_of = owner_of
        return self

    @property
    def fits(self) -> bool:
        by_words = self.exact is not None or (self._best is not None and self._best.fits)
        return by_words or (bool(self._matches) and self._close(self._matches[0].id) >= _VERY_CLOSE)

    @property
    def value(self) -> float:
        if self.exact is not None:
            return float("inf")
        return self._best.value if self._best else float("-inf")

    def hits(self, limit: int) -> list[Hit]:
        """The best rows, a document of a skill counted for its skill."""
        return [self._hit(*row) for row in self._rows(limit)]

    def nearest(self) -> list[Hit]:
        """Where nothing fits, what speaks for a document tells more than its place in the ranking."""
        rows = self._rows(_CONSIDERED)
        if not self._closeness:
            rows.sort(key=lambda row: -row[1].value)
        return [self._hit(*row) for row in rows[:_NEAREST]]

    def _rows(self, limit: int) -> list[tuple[int, Evidence]]:
        """Numbers of documents with what speaks for them, best first."""
        rows: dict[str, tuple[int, Evidence]] = {}
        if self.exact is not None:
            rows[self._key(self.exact)] = self.exact, _TYPED
        least = _TAIL * self._matches[0].score if self._matches else 0.0
        for match in self._matches:
            if len(rows) >= limit or match.score < least:
                break
            key = self._key(match.number)
            if key not in rows:
                found = self._evidence(match.number)
                if not rows or found.more_than_chance or self._close(match.id) >= _CLOSE:
                    rows[key] = match.number, found
        return list(rows.values())

    def _close(self, document_id: str) -> float:
        return self._closeness.get(document_id, 0.0)

    def _key(self, number: int) -> str:
        return self._owner_of(self._index.document(number).id)

    def _hit(self, number: int, found: Evidence) -> Hit:
        document = self._index.document(number)
        if found is _TYPED:
            return Hit(self.kind, document, _EXACT, found, "", (), only_body=False)
        reasons = self._reasons(number)
        owner = self._index.find(self._owner_of(document.id)) or document
        return Hit(
            self.kind,
            owner,
            _why(reasons) or _ALIKE,
            found,
            document.id if owner is not document else "",
            tuple(reason.said for reason in reasons),
            only_body=bool(reasons) and all(reason.field == "body" for reason in reasons),
        )

    def _evidence(self, number: int) -> Evidence:
        heard = self._heard[number] = self._index.heard(number, self._listened_for)
        return evidence(self.groups, heard)

    def _reasons(self, number: int) -> list[_Reason]:
        """The words that led to a document, most telling first, each with the field that says it loudest."""
        heard = self._heard[number]
        found: list[_Reason] = []
        for group in self.groups:
            scored = [
                (weight * told * heard[word], word)
                for (word, weight), told in zip(group.alternatives, group.surprises, strict=True)
                if word in heard
            ]
            if scored:
                score, said = max(scored)
                found.append(_Reason(group.word, said, self._index.loudest(number, said), score))
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
    """Whether no document has a word and it is no word of English either, so that it may be misspelt."""
    return not any(word in index or index.thesaurus.knows(word) for index in indexes)


def _numbers(index: Index, shown: Callable[[Document], bool]) -> frozenset[int]:
    numbers = map(index.number, index.ids())
    return frozenset(number for number in numbers if shown(index.document(number)))


def _nearest(found: Sequence[_Ranking]) -> list[Hit]:
    """The best of the kind that comes nearest, then of the next, and so round until there are three."""
    rows = [one.nearest() for one in sorted(found, key=lambda one: -one.value)]
    return [hits[at] for at in range(_NEAREST) for hits in rows if at < len(hits)][:_NEAREST]


def _corrected(found: Sequence[_Ranking], unknown: frozenset[str]) -> dict[str, str]:
    corrected: dict[str, str] = {}
    for one in found:
        for group in one.groups:
            spelt = [word for word, weight in group.alternatives if weight in (ONE_SLIP, TWO_SLIPS)]
            if group.word in unknown and spelt:
                corrected.setdefault(group.word, spelt[0])
    return corrected
