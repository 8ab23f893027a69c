"""Whether skills are found by what people ask: example requests judged one by one. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.search.replies import found_by
from iii_directory.search.request import Request
from iii_directory.shapes import items_of, object_of, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iii_directory.search.replies import Library

NOTHING: Final = "nothing"
"""What is expected where no skill should be found."""
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
    """What came first, with the words that led there; empty if nothing fits."""
    why: str

    @property
    def passed(self) -> bool:
        return not self.winner if self.case.expect == NOTHING else self.rank is not None


class Collision(NamedTuple):
    """Another skill that has most of what a description says."""

    skill: str
    other: str
    why: str


def parse_cases(document: object, default: str | None) -> list[Case] | str:
    """The ``cases`` of a file, each a ``request`` and what to ``expect``; or what is wrong with it."""
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
    found = found_by(library, Request([case.request], kinds=("skill",), limit=_SHOWN), case.request)
    hits = [hit for section in found.sections for hit in section.hits]
    places = [at for at, hit in enumerate(hits, 1) if case.expect in (hit.document.id, hit.inside)]
    first = hits[0] if hits else None
    return Outcome(
        case,
        places[0] if places else None,
        first.inside or first.document.id if first else "",
        first.why if first else "",
    )


def collisions(library: Library, skills: Sequence[str]) -> list[Collision]:
    """The skills that a description would be taken for."""
    found: list[Collision] = []
    for skill in skills:
        document = library.indexes["skill"].find(skill)
        if document is None or not document.description:
            continue
        asked = document.description
        finding = found_by(library, Request([asked], kinds=("skill",), limit=_SHOWN), asked)
        for section in finding.sections:
            found += [
                Collision(skill, hit.document.id, hit.why)
                for hit in section.hits
                if hit.document.id != skill and hit.inside != skill and hit.evidence.share >= _NEARLY
            ]
    return found
