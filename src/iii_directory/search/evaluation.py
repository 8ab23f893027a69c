"""Judge whether skills are found by example requests, with the ranking that agents get. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.search.search_replies import found_by
from iii_directory.search.search_request import SearchRequest
from iii_directory.shapes import items_of, object_of, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iii_directory.search.document_indexes import Library
    from iii_directory.search.finding import Hit

NOTHING: Final = "nothing"
"""What a case expects where no skill should be found."""
_SHOWN: Final = 5
_NEARLY: Final = 0.7
"""Another skill with so much of a description would be found in its place."""


class Case(NamedTuple):
    request: str
    expect: str


class Outcome(NamedTuple):
    """How one request was answered."""

    case: Case
    rank: int | None
    """The place of what was expected; None if it was not among what an agent is shown."""
    winner: str
    """What came first; empty if nothing fits."""
    why: str
    """The words that led to what came first."""

    @property
    def passed(self) -> bool:
        return not self.winner if self.case.expect == NOTHING else self.rank is not None


class Collision(NamedTuple):
    """Another skill that has most of what a description says."""

    skill: str
    other: str
    why: str


class Confusion(NamedTuple):
    """A skill, or nothing, that was returned first instead of the expected one."""

    expected: str
    returned: str
    requests: list[str]


def parse_cases(document: object, default: str | None) -> list[Case] | str:
    """Read the ``cases`` of a file, each a ``request`` and what to ``expect``, or say what is wrong."""
    rows = items_of(object_of(document).get("cases"))
    if not rows:
        return "it has no list called cases"
    cases: list[Case] = []
    for number, row in enumerate(rows, 1):
        request = text_of(object_of(row).get("request"))
        expect = text_of(object_of(row).get("expect")) or default
        if not request or not request.strip():
            return f"case {number} has no request"
        if expect is None:
            return f"case {number} does not say what to expect: the id of a skill, or {NOTHING}"
        cases.append(Case(request, expect))
    return cases


def judge(library: Library, case: Case) -> Outcome:
    """Ask for one case as an agent would, among skills."""
    hits = _hits(library, case.request)
    places = [at for at, hit in enumerate(hits, 1) if case.expect in (hit.document.id, hit.inside)]
    if not hits:
        return Outcome(case, None, "", "")
    return Outcome(case, min(places, default=None), hits[0].inside or hits[0].document.id, hits[0].why)


def confusions(outcomes: Sequence[Outcome]) -> list[Confusion]:
    """Return what was returned first instead of what was expected, with the requests that led there."""
    found: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        returned = outcome.winner or NOTHING
        if outcome.rank != 1 and returned != outcome.case.expect:
            found.setdefault((outcome.case.expect, returned), []).append(outcome.case.request)
    most_first = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [Confusion(expected, returned, requests) for (expected, returned), requests in most_first]


def collisions(library: Library, skills: Sequence[str]) -> list[Collision]:
    """Return the skills that a description would be taken for."""
    found: list[Collision] = []
    for skill in skills:
        document = library.indexes["skill"].find(skill)
        if document is not None and document.description:
            found += [
                Collision(skill, hit.document.id, hit.why)
                for hit in _hits(library, document.description)
                if hit.document.id != skill and hit.inside != skill and hit.evidence.share >= _NEARLY
            ]
    return found


def _hits(library: Library, request: str) -> list[Hit]:
    found = found_by(library, SearchRequest([request], kinds=("skill",), limit=_SHOWN), request)
    return [hit for section in found.sections for hit in section.hits]
