"""A better ranker on top of search, where the engine has one: the ``judge`` worker orders the best hits anew.

It is asked what helps most, of at most sixteen, within two seconds. Whatever goes wrong, the order stays.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from iii_directory.bus.seam import CallError
from iii_directory.limits import JUDGE_CANDIDATES, JUDGE_SECONDS
from iii_directory.search.answers import DESCRIPTION_CHARS, shortened
from iii_directory.shapes import object_of
from iii_directory.text import cut
from iii_directory.wire.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from iii_directory.bus.seam import Bus
    from iii_directory.search.finding import Finding, Hit

log = logging.getLogger("iii_directory.worker")
JUDGE: Final = "judge::evaluate"
MODE: Final = "judge"
# After a failure it is left alone for a while; one that was only too slow is asked again.
_PAUSE_SECONDS: Final = 30.0
_JUDGED: Final = ("function", "skill")
# An option with less than this is no better than chance and keeps its place.
_LEAST: Final = 0.1
_REQUEST_CHARS: Final = 4000
_NONE: Final = "none"
_TIMEOUT: Final = "timeout"


class Ranker(Protocol):
    """Who can say better than words alone what answers a request."""

    @property
    def mode(self) -> str:
        """What the answer adds to the name of a search that it took part in."""
        ...

    async def scores(self, request: str, hits: Sequence[Hit]) -> Mapping[str, float] | None:
        """How well each document answers, by its id; None when it cannot say."""
        ...


class Judge:
    """The ranker behind ``judge::evaluate``."""

    mode = MODE

    def __init__(self, bus: Bus, clock: Callable[[], float] = time.monotonic) -> None:
        self._bus = bus
        self._clock = clock
        self._quiet_until = 0.0

    async def scores(self, request: str, hits: Sequence[Hit]) -> Mapping[str, float] | None:
        if self._clock() < self._quiet_until:
            return None
        timeout_ms = int(JUDGE_SECONDS * 1000)
        try:
            answer = await self._bus.call(
                JUDGE, question(request, hits, timeout_ms), timeout_ms=timeout_ms, namespace=DEFAULT_NAMESPACE
            )
        except CallError as error:
            if _TIMEOUT not in error.code.lower():
                self._pause(error.code)
            return None
        probabilities = chosen(answer)
        if probabilities is None:
            self._pause("an answer of another shape")
            return None
        return {hit.document.id: probabilities.get(str(at), 0.0) for at, hit in enumerate(hits, 1)}

    def _pause(self, reason: str) -> None:
        log.info("search: %s is left alone for %d s: %s", JUDGE, _PAUSE_SECONDS, cut(reason, 80))
        self._quiet_until = self._clock() + _PAUSE_SECONDS


def question(request: str, hits: Sequence[Hit], timeout_ms: int) -> dict[str, Any]:
    """One choice among descriptions. Ids are left out: a judge takes a name for a promise."""
    options = {str(at): _described(hit) for at, hit in enumerate(hits, 1)}
    return {
        "timeout_ms": timeout_ms,
        "evaluations": [
            {
                "id": "search",
                "state": {"request": cut(request, _REQUEST_CHARS)},
                "questions": {
                    "best": {
                        "type": "choice",
                        "instructions": "Which of these helps most with the request?",
                        "criteria": {**options, _NONE: "none of them helps"},
                    }
                },
            }
        ],
    }


def chosen(answer: object) -> dict[str, float] | None:
    """The probability of each option; None for an answer that has none."""
    result = object_of(object_of(object_of(answer).get("results")).get("search"))
    best = object_of(object_of(result.get("answers")).get("best"))
    found = {
        option: float(value)
        for option, value in object_of(best.get("probabilities")).items()
        if isinstance(value, (int, float)) and 0 <= value <= 1
    }
    return found or None


async def ranked_by(ranker: Ranker, finding: Finding, limit: int) -> tuple[Finding, bool]:
    """A finding with functions and skills in a ranker's order, ``limit`` of each; whether it took part."""
    sections = list(finding.sections)
    taken = False
    for at, section in enumerate(sections):
        hits = list(section.hits)
        if section.kind in _JUDGED and len(hits) > 1:
            scores = await ranker.scores(finding.request, hits[:JUDGE_CANDIDATES])
            taken = taken or scores is not None
            hits = ordered(hits, scores or {})
        sections[at] = section._replace(hits=hits[:limit])
    return finding._replace(sections=sections), taken


def ordered(hits: Sequence[Hit], scores: Mapping[str, float]) -> list[Hit]:
    """The hits a ranker thinks something of first, best first; the others behind them as they were."""

    def place(hit: Hit) -> float:
        score = scores.get(hit.document.id, 0.0)
        return -score if score >= _LEAST else 0.0

    return sorted(hits, key=place)


def _described(hit: Hit) -> str:
    text = hit.document.description or hit.document.title
    return shortened(text, DESCRIPTION_CHARS) or "no description"
