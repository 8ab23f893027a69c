"""Count the calls of this worker's functions by outcome and duration, for monitoring."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from iii_directory.errors import DirectoryError
from iii_directory.shapes import object_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.bus.seam import Handler, Payload

    Metric = dict[str, Any]

# Upper bounds of the histogram in seconds: a read, a search, an engine that answers, an install.
BUCKETS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
_SEARCH: Final = "directory::search"


class CallMetrics:
    """Counts calls; everything happens on the event loop of the bus."""

    def __init__(self) -> None:
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._durations: dict[str, list[int]] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._searches: Counter[str] = Counter()

    def measured(
        self, function_id: str, handler: Handler, note: Callable[[Payload, Any], None] | None = None
    ) -> Handler:
        """Wrap the handler of a function so that its calls are counted, and its answers noted."""
        counts = self._durations.setdefault(function_id, [0] * (len(BUCKETS) + 1))
        seconds, outcomes = self._seconds, self._outcomes
        clock = time.perf_counter

        async def counted(payload: Payload) -> object:
            outcome, started = "failed", clock()
            try:
                answer = await handler(payload)
                outcome = "ok"
            except DirectoryError as error:
                outcome = error.kind.name
                raise
            finally:
                took = clock() - started
                counts[bisect_left(BUCKETS, took)] += 1
                seconds[function_id] += took
                outcomes[function_id, outcome] += 1
            if note is not None:
                note(payload, answer)
            if function_id == _SEARCH:
                fits = any(result.get("fits") for result in rows_of(object_of(answer), "results"))
                self._searches["fits" if fits else "nothing fits"] += 1
            return answer

        return counted

    def report(self, gauges: Mapping[str, tuple[str, float]]) -> list[Metric]:
        """Return every metric with its samples; ``gauges`` maps a name to its help text and value."""
        return [
            _metric(
                "iii_directory_calls_total",
                "counter",
                "Calls of the directory's functions by outcome.",
                [
                    ({"function": function_id, "outcome": outcome}, count)
                    for (function_id, outcome), count in sorted(self._outcomes.items())
                ],
            ),
            _metric(
                "iii_directory_call_seconds", "histogram", "Duration of calls in seconds.", self._histogram()
            ),
            _metric(
                "iii_directory_searches_total",
                "counter",
                "Searches by whether anything fitted.",
                [({"status": status}, count) for status, count in sorted(self._searches.items())],
            ),
            *(_metric(name, "gauge", about, [({}, value)]) for name, (about, value) in gauges.items()),
        ]

    def _histogram(self) -> list[tuple[dict[str, str], float]]:
        found: list[tuple[dict[str, str], float]] = []
        for function_id, counts in sorted(self._durations.items()):
            total = 0
            if not any(counts):
                continue
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                total += count
                found.append(({"function": function_id, "le": bound}, total))
            found.append(({"function": function_id, "part": "sum"}, self._seconds[function_id]))
            found.append(({"function": function_id, "part": "count"}, total))
        return found


def _metric(name: str, kind: str, about: str, samples: list[tuple[dict[str, str], float]]) -> Metric:
    return {
        "name": name,
        "type": kind,
        "help": about,
        "samples": [{"labels": labels, "value": value} for labels, value in samples],
    }
