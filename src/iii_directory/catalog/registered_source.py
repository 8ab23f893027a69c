"""Provide registered documents to the catalogue, and remember recent writes that an engine may lose.

An engine that keeps its state itself may hold its newest writes in memory for some seconds. If it dies before
they are on disk, it loses writes that it had acknowledged to this worker, and this worker to a caller.

An engine loses the newest writes first. So if one write survived, every write that was acknowledged before it
was sent survived too; if such a record is missing, another worker deleted it since.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from iii_directory.catalog.registered import (
    PROMPTS,
    SKILLS,
    UNSEALED,
    RecordChange,
    Seal,
    Table,
    stamp_of,
)
from iii_directory.documents.model import Finding
from iii_directory.errors import SKILL_NOT_FOUND, DirectoryError
from iii_directory.limits import MAX_REMEMBERED_WRITES, REMEMBERED_WRITE_SECONDS

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Iterator, Mapping

    from iii_directory.catalog.registered import Record, RecordKind
    from iii_directory.documents.model import ParsedFile


class Write(NamedTuple):
    """One acknowledged write of one key. Times are of a clock that does not go back."""

    key: str
    stamp: int
    """``registered_at`` of what was written, or of what was deleted."""
    record: Record | None
    """None for a deletion."""
    sent: float
    acknowledged: float

    def is_missing(self, listed: int | None) -> bool:
        """Return whether a listing, in which the key has this stamp or is absent, is older than the write."""
        if self.record is None:
            return listed is not None and listed <= self.stamp
        return listed is None or listed < self.stamp


class RecentWrites:
    """Remembers the last write of each key, as long as this worker made it."""

    def __init__(self) -> None:
        self._writes: dict[str, Write] = {}
        """The oldest first."""
        self.endangered: dict[str, Write] = {}
        """Writes of the last moments of an engine that has gone, until each is known to be kept or lost."""
        self._judged = True
        """Whether the endangered writes have been compared with the state, and only lost ones are left."""

    def put(self, write: Write) -> None:
        self._writes.pop(write.key, None)
        self.endangered.pop(write.key, None)
        self._writes[write.key] = write
        oldest = next(iter(self._writes.values()))
        too_old = oldest.acknowledged < write.acknowledged - REMEMBERED_WRITE_SECONDS
        if len(self._writes) > MAX_REMEMBERED_WRITES or too_old:
            del self._writes[oldest.key]

    def superseded(self, key: str, value: object) -> None:
        """Forget the write of a key that holds another value now, or (None) no value."""
        for writes in (self._writes, self.endangered):
            write = writes.get(key)
            if write is not None and value != (write.record and write.record.value):
                del writes[key]

    def engine_gone(self, at: float) -> None:
        """Note that the engine may not have kept what it acknowledged shortly before this time."""
        since = at - REMEMBERED_WRITE_SECONDS
        recent = {key: write for key, write in self._writes.items() if write.acknowledged >= since}
        self.endangered |= recent
        self._writes = {}
        self._judged = False

    def believe(self) -> None:
        """Forget everything endangered, because the state is known to have lost nothing."""
        self.endangered = {}

    def lost(self, listed: Mapping[str, int]) -> list[Write]:
        """Return the writes that the state has lost, given the stamps of the keys in its listing.

        The first listing after the engine's return decides which writes were lost. In a later one, writes
        that were made again since would pass for survivors.
        """
        if not self._judged:
            self._judged = True
            # A listing proves a write by the very record; a key that is absent proves no deletion.
            proven = (w.sent for w in self.endangered.values() if w.record and listed.get(w.key) == w.stamp)
            survived = max(proven, default=-inf)
            # Nothing that comes later can prove that a lost write was kept.
            self.endangered = {
                write.key: write._replace(acknowledged=inf)
                for write in self.endangered.values()
                if write.acknowledged > survived and write.is_missing(listed.get(write.key))
            }
        return [write for write in self.endangered.values() if write.is_missing(listed.get(write.key))]


class FollowedTable(Table):
    """A table of records that others write too, with the recent writes of this worker."""

    def __init__(self, kind: RecordKind, seal: Seal = UNSEALED) -> None:
        super().__init__(kind, seal)
        self.recent = RecentWrites()

    def wrote(self, record: Record, sent: float, acknowledged: float) -> RecordChange:
        """Take a draft that the state took from us; a doubtful key is superseded once it is settled."""
        outcome = self.written(record)
        self.recent.put(Write(record.key, record.stamp, record, sent, acknowledged))
        if record.key not in self._doubts:
            self.recent.superseded(record.key, self.get(record.key))
        self.drop_draft(record)
        return outcome

    def removed(self, key: str, old: object, sent: float, acknowledged: float) -> RecordChange:
        """Take a deletion that the state did for us, with the value that was there."""
        outcome = self.deleted(key, old)
        if old is not None:
            self.recent.put(Write(key, stamp_of(old), None, sent, acknowledged))
            self.recent.superseded(key, self.get(key))
        return outcome

    def heard(self, key: str, old: object, new: object) -> tuple[str, RecordChange]:
        """Take an event; return the key of its record and the effect."""
        # The key in the record counts, because a listing has no other.
        key = self._named(old if new is None else new) or key
        return key, self._of_others(key, self.seen(key, old, new))

    def settled(self, key: str, value: object) -> RecordChange:
        """Take the state's value of a doubtful key."""
        outcome = self.settle(key, value)
        # An engine that may have lost what we wrote says nothing by a missing value; the listing will tell.
        return outcome if value is None and self.recent.endangered else self._of_others(key, outcome)

    def news_in(self, values: Iterable[object]) -> Iterator[tuple[str, RecordChange]]:
        """Take in a listing, one step for each record."""
        for key, outcome in self.listed(values):
            yield key, self._of_others(key, outcome)

    def _of_others(self, key: str, outcome: RecordChange) -> RecordChange:
        """Forget our write of a key of which there is news."""
        if outcome in (RecordChange.REGISTERED, RecordChange.UNREGISTERED):
            self.recent.superseded(key, self.get(key))
        return outcome


_KEEP = "nothing; writes survive a crash at once where the engine's state has a store that flushes each"
_FIX = "see that the engine runs iii-state; it is tried again until it answers"


class RegisteredSource:
    """Holds both tables of registered entries. The worker keeps them in step with iii-state."""

    def __init__(self, patience_seconds: float = 0.0, seal: Seal = UNSEALED) -> None:
        self.skills = FollowedTable(SKILLS, seal)
        self.prompts = FollowedTable(PROMPTS, seal)
        self.findings: tuple[Finding, ...] = ()
        """Why registered entries may be missing, and what was missing for a while."""
        self._problem: str | None = None
        self._topics: Finding | None = None
        self._restored = 0
        self._patience = patience_seconds
        self._patient_until: float | None = None
        self.is_ready = patience_seconds <= 0
        """True when readers need not wait for the first load."""
        self._waiting: asyncio.Event | None = None

    async def ready(self) -> None:
        """Wait for the first attempt to load after a connect, but not longer than the patience."""
        if self.is_ready:
            return
        # Only here, because a command that lists a folder should not pay for importing asyncio.
        import asyncio
        import contextlib

        if self._patient_until is None:
            self._patient_until = asyncio.get_running_loop().time() + self._patience
        if self._waiting is None:
            self._waiting = asyncio.Event()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._patient_until):
                await self._waiting.wait()

    def outdated(self) -> None:
        """Let readers wait for the next load, because writes during a lost connection are not known."""
        self.is_ready = self._patience <= 0
        self._patient_until = None

    def tried(self, problem: str | None) -> None:
        """Let readers go on, because the tables were loaded or could not be."""
        self.says(problem)
        self.is_ready = True
        if self._waiting is not None:
            self._waiting.set()
            self._waiting = None

    def says(self, problem: str | None) -> None:
        """Set why the tables are not complete; None if they are."""
        self._problem = problem
        self._find()

    def says_of_topics(self, finding: Finding | None) -> None:
        """Set why registrations of other engines are seen late; None if they are seen at once."""
        self._topics = finding
        self._find()

    def restored(self, count: int) -> None:
        """Count acknowledged writes that the state had lost and has again."""
        if count:
            self._restored += count
            self._find()

    def _find(self) -> None:
        found: list[Finding] = []
        if self._problem is not None:
            reason = f"registered skills and prompts cannot be loaded: {self._problem}"
            found.append(Finding("unavailable", "iii-state", reason, _FIX))
        if self._topics is not None:
            found.append(self._topics)
        if self._restored:
            reason = (
                f"the engine came back without {self._restored} of the last registrations that were "
                "acknowledged; they were written again"
            )
            found.append(Finding("restored", "iii-state", reason, _KEEP, urgent=False))
        self.findings = tuple(found)

    @property
    def has_changes(self) -> bool:
        """Return whether `take_changes` would return any change."""
        return self.skills.has_changes or self.prompts.has_changes

    def take_changes(self) -> dict[str, ParsedFile | None]:
        """Return and clear the documents that are new, changed or (None) gone, by a key of both kinds."""
        return {**self.skills.take_changes(), **self.prompts.take_changes()}

    def body(self, skill_id: str) -> str:
        """Return the body of a registered skill as it is now; D110 if it is missing."""
        record = self.skills.get(skill_id)
        if record is None:
            raise DirectoryError(SKILL_NOT_FOUND, f"skill '{skill_id}' not found: it has just gone")
        return record["skill"]
