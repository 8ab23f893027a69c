"""Count calls: how often each skill is offered, read and used, and how calls end, for monitoring.

A call only notes what it answered. Within a second the notes are counted and written to a file in the data
folder, so a process that dies loses at most the last second. Nothing is ever sent anywhere.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from iii_directory import limits
from iii_directory.catalog.resolve import resolve_skill
from iii_directory.catalog.skill_folders import every_skill, skill_at, skill_of, topmost_skills
from iii_directory.documents.uris import LOOKING, SCHEME
from iii_directory.errors import DirectoryError
from iii_directory.shapes import is_count, is_list, items_of, object_of, rows_of
from iii_directory.text import cut, one_line, rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from iii_directory.bus.seam import Handler, Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.catalog.view import CatalogueView
    from iii_directory.config import Settings

    Row = dict[str, Any]
    Noter = Callable[[Payload, Any], None]
    Metric = dict[str, Any]
    Samples = list[tuple[dict[str, str], float]]

FILE_NAME: Final = "usage.json"
# Answers are held for so long before they are noted: longer than a caller takes to get one.
_NOTE_SECONDS: Final = 0.01
KINDS: Final = ("offered", "read", "used")
_SEARCH: Final = "directory::search"


class UsageTable:
    """Counts by day and skill; the oldest days are dropped first when there is too much."""

    def __init__(self, said: object = None) -> None:
        self.days: dict[str, dict[str, list[int]]] = {}
        self.misses: dict[str, tuple[int, str]] = {}
        """How often nothing was found for some words, and when last; the newest are at the end."""
        document = object_of(said)
        for day, skills in sorted(object_of(document.get("days")).items()):
            self.days[day] = {
                key: [int(str(number)) for number in items_of(counts)]
                for key, counts in object_of(skills).items()
                if is_list(counts) and len(counts) == len(KINDS) and all(map(is_count, counts))
            }
        for row in rows_of(document, "misses"):
            words, count, last = row.get("words"), row.get("count"), row.get("last")
            if isinstance(words, str) and is_count(count) and isinstance(last, str):
                self.misses[words] = count, last
        self.trim()

    def add(self, day: str, kind: str, skills: Iterable[str], times: int = 1) -> None:
        at = KINDS.index(kind)
        table = self.days.setdefault(day, {})
        for skill in skills:
            table.setdefault(skill, [0] * len(KINDS))[at] += times

    def miss(self, words: str, now: str, times: int = 1) -> None:
        count, _ = self.misses.pop(words, (0, ""))
        self.misses[words] = count + times, now

    def as_dict(self) -> Row:
        rows = [{"words": key, "count": count, "last": last} for key, (count, last) in self.misses.items()]
        return {"days": self.days, "misses": rows}

    def reply(self, known: Iterable[str] = ()) -> Row:
        """Return the answer of ``directory::skills::usage``, with unused skills of ``known``."""
        totals: dict[str, list[int]] = {skill: [0] * len(KINDS) for skill in known}
        for skills in self.days.values():
            for skill, counts in skills.items():
                total = totals.setdefault(skill, [0] * len(KINDS))
                for at, count in enumerate(counts):
                    total[at] += count
        ordered = sorted(totals.items(), key=lambda item: ([-count for count in reversed(item[1])], item[0]))
        return {
            "skills": [{"id": skill, **dict(zip(KINDS, counts, strict=True))} for skill, counts in ordered],
            "misses": list(reversed(self.as_dict()["misses"])),
            "since": min(self.days, default=None),
        }

    def trim(self) -> None:
        """Drop the oldest counts beyond the limits."""
        while len(self.days) > 1 and sum(map(len, self.days.values())) > limits.MAX_USAGE_ROWS:
            del self.days[min(self.days)]
        for skills in self.days.values():
            for skill in list(skills)[limits.MAX_USAGE_ROWS :]:
                del skills[skill]
        for words in list(self.misses)[: max(len(self.misses) - limits.MAX_USAGE_MISSES, 0)]:
            del self.misses[words]


class _Notes:
    """What calls answered since it was counted last."""

    def __init__(self) -> None:
        self.lists: dict[int, tuple[list[Row], int]] = {}
        """Lists that were answered, which calls share, and how often."""
        self.indexes = 0
        self.found: Counter[tuple[str, str]] = Counter()
        """How often a kind of use was made of what an id, a path or an address stands for."""
        self.missed: Counter[str] = Counter()
        """How often nothing was found for some words, the newest at the end."""
        self.by_kind: dict[str, Counter[str]] = {"read": Counter(), "used": Counter()}


class Usage:
    """Notes what calls answer, on the event loop of the bus, and keeps the counts in a file."""

    def __init__(self, settings: Settings, catalogue: Catalogue, data: Path | None) -> None:
        self._settings = settings
        self._catalogue = catalogue
        self._path = None if data is None else data / FILE_NAME
        self._table: UsageTable | None = None
        self._notes = _Notes()
        self.unnoted: list[tuple[Noter, Payload, Any]] = []
        """Answers that are noted in a moment, when their callers have them."""
        self._waiting: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._expanded: tuple[list[Row], list[str]] | None = None
        """The list that was counted last, and its skills."""
        self.noters: Mapping[str, Noter] = {
            "directory::skills::list": self._note_list,
            "skills::list": self._note_list,
            "directory::skills::index": self._note_index,
            _SEARCH: self._note_search,
            "directory::skills::get": self._note_read,
            "directory::skills::file": self._note_read,
            "skill::fetch": self._note_fetch,
            "skills::fetch_skill": self._note_fetch,
            "directory::skills::fetch-skill": self._note_fetch,
            "skills::resources-read": self._note_fetch,
        }
        """What notes the answers of the functions that offer, read or use skills."""

    def note_answers(self) -> None:
        """Note the answers of the last moment."""
        answers = self.unnoted.copy()
        self.unnoted.clear()
        for note, payload, answer in answers:
            if self._settings.usage and not payload.get(LOOKING):
                note(payload, answer)
                if self._waiting is None:
                    self._waiting = asyncio.get_running_loop().create_task(self._write_soon())

    async def reply(self, _: Payload) -> Row:
        """Answer ``directory::skills::usage``."""
        if not self._settings.usage:
            return {"skills": [], "misses": [], "since": None}
        self.note_answers()
        look = await self._catalogue.current()
        async with self._writing:
            table = await asyncio.to_thread(self._count, look, self._taken())
            return table.reply(key for key, _ in every_skill(look.snapshot))

    async def close(self) -> None:
        """Write what was noted until now."""
        self.note_answers()
        if self._waiting is not None:
            self._waiting.cancel()
            # An ordinary look would wait for the engine to say what is installed, and that has been closed.
            await self._write(self._catalogue.load())

    def _note_read(self, _: Payload, answer: Any) -> None:
        # A file of a skill has its skill's id; a document and a text say which skill they are part of.
        skill = answer["id"] if "encoding" in answer else answer.get("skill")
        if skill is not None:
            is_file = "encoding" in answer or answer["type"] == "file"
            self._notes.by_kind["used" if is_file else "read"][skill] += 1

    def _note_list(self, _: Payload, answer: Any) -> None:
        rows: list[Row] = answer["skills"]
        lists = self._notes.lists
        if len(lists) < limits.MAX_USAGE_NOTES:
            lists[id(rows)] = rows, lists.get(id(rows), (rows, 0))[1] + 1

    def _note_index(self, _: Payload, _answer: Any) -> None:
        self._notes.indexes += 1

    def _note_fetch(self, payload: Payload, _: Any) -> None:
        uris = [payload.get("uri"), *items_of(payload.get("uris"))]
        if len(self._notes.found) < limits.MAX_USAGE_NOTES:
            self._notes.found.update(("read", uri) for uri in dict.fromkeys(map(str, filter(None, uris))))

    def _note_search(self, _: Payload, answer: Row) -> None:
        ids: dict[str, None] = {}
        for result in rows_of(answer, "results"):
            for section in rows_of(result, "sections"):
                if section.get("kind") == "skill":
                    ids.update((str(hit.get("id")), None) for hit in rows_of(section, "hits"))
            if not result.get("fits"):
                words = cut(one_line(str(result.get("capability"))), limits.QUOTED_CHARS)
                self._notes.missed[words] = self._notes.missed.pop(words, 0) + 1
        self._notes.found.update(("offered", one) for one in ids)

    async def _write_soon(self) -> None:
        await asyncio.sleep(limits.USAGE_SECONDS)
        self._waiting = None
        await self._write(await self._catalogue.current())

    async def _write(self, look: CatalogueView) -> None:
        async with self._writing:
            table = await asyncio.to_thread(self._count, look, self._taken())
            if self._path is not None:
                await asyncio.to_thread(_replace, self._path, table)

    def _taken(self) -> _Notes:
        """Take what was noted; calls note anew from now on."""
        taken, self._notes = self._notes, _Notes()
        return taken

    def _count(self, look: CatalogueView, noted: _Notes) -> UsageTable:
        """Turn what was noted into counts, in a thread; a call counts a skill once."""
        if self._table is None:
            self._table = read_usage(self._path)
        table, now = self._table, rfc3339(time.time_ns())
        day = now[:10]
        for rows, times in noted.lists.values():
            table.add(day, "offered", self._skills_in(look.snapshot, rows), times)
        if noted.indexes:
            table.add(day, "offered", [key for key, _ in topmost_skills(look.listed)], noted.indexes)
        for kind, skills in noted.by_kind.items():
            for skill, times in skills.items():
                table.add(day, kind, [skill], times)
        for (kind, name), times in noted.found.items():
            for actual, skill in _uses(look, kind, name):
                table.add(day, actual, [skill], times)
        for words, times in noted.missed.items():
            table.miss(words, now, times)
        table.trim()
        return table

    def _skills_in(self, snapshot: Snapshot, rows: list[Row]) -> list[str]:
        """Return the skills of a list, which calls share until a document changes."""
        if self._expanded is None or self._expanded[0] is not rows:
            documents = (snapshot.find(row["id"]) for row in rows)
            skills = (skill_of(snapshot, document) for document in documents if document is not None)
            names = (snapshot.display_id(skill) for skill in skills if skill is not None)
            self._expanded = rows, list(dict.fromkeys(names))
        return self._expanded[1]


def read_usage(path: Path | None) -> UsageTable:
    """Read the counts that are kept in a file; one that cannot be read counts as empty."""
    said = None
    if path is not None:
        with suppress(OSError, ValueError), path.open("rb") as file:
            said = json.loads(file.read(limits.MAX_USAGE_BYTES))
    return UsageTable(said)


def _uses(look: CatalogueView, kind: str, name: str) -> Iterator[tuple[str, str]]:
    """Return the use that was made of a name or an address: a skill whose file is read is used."""
    snapshot = look.snapshot
    path = name.removeprefix(SCHEME)
    document, place = snapshot.find(path), None
    if document is None:
        try:
            target = resolve_skill(snapshot, path)
        except DirectoryError:
            return
        document, place = getattr(target, "skill", None), getattr(target, "path", None)
    skill = skill_of(snapshot, document) if document is not None else skill_at(snapshot, place or "")
    if skill is not None:
        yield "used" if kind == "read" and document is None else kind, snapshot.display_id(skill)


def _replace(path: Path, table: UsageTable) -> None:
    """Write the counts to their file, which is whole at every moment."""
    content = json.dumps(table.as_dict(), ensure_ascii=False).encode()
    # A full or missing disk must not fail calls; the next second tries again.
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.{os.getpid()}")
        new.write_bytes(content)
        os.replace(new, path)


# Upper bounds of the histogram in seconds: a read, a search, an engine that answers, an install.
BUCKETS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)


class CallMetrics:
    """Counts calls; everything happens on the event loop of the bus."""

    def __init__(self) -> None:
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._durations: dict[str, list[int]] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._searches: Counter[str] = Counter()

    def measured(self, function_id: str, handler: Handler, usage: Usage | None = None) -> Handler:
        """Wrap the handler of a function so that its calls are counted, and its answers noted."""
        note = None if usage is None else usage.noters.get(function_id)
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
            if usage is not None and note is not None:
                # A moment later, so that the caller has the answer by then, in this process too.
                if not usage.unnoted:
                    asyncio.get_running_loop().call_later(_NOTE_SECONDS, usage.note_answers)
                usage.unnoted.append((note, payload, answer))
            if function_id == _SEARCH:
                fits = any(result.get("fits") for result in rows_of(object_of(answer), "results"))
                self._searches["fits" if fits else "nothing fits"] += 1
            return answer

        return counted

    def report(self, gauges: Mapping[str, tuple[str, float]]) -> list[Metric]:
        """Return every metric with its samples; ``gauges`` maps a name to its help text and value."""
        calls: Samples = [
            ({"function": function_id, "outcome": outcome}, count)
            for (function_id, outcome), count in sorted(self._outcomes.items())
        ]
        searches: Samples = [({"status": status}, count) for status, count in sorted(self._searches.items())]
        metrics: list[tuple[str, str, str, Samples]] = [
            ("calls_total", "counter", "Calls of the directory's functions by outcome.", calls),
            ("call_seconds", "histogram", "Duration of calls in seconds.", self._histogram()),
            ("searches_total", "counter", "Searches by whether anything fitted.", searches),
            *((name, "gauge", about, [({}, value)]) for name, (about, value) in gauges.items()),
        ]
        return [
            {
                "name": f"iii_directory_{name}",
                "type": kind,
                "help": about,
                "samples": [{"labels": labels, "value": value} for labels, value in samples],
            }
            for name, kind, about, samples in metrics
        ]

    def _histogram(self) -> Samples:
        found: Samples = []
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
