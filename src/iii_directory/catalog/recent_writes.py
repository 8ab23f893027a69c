"""Remember what this worker wrote to the state a moment ago, to write it again if the engine lost it. Pure.

An engine that keeps its state itself may hold its newest writes in memory for some seconds. If it dies before
they are on disk, writes are gone that it had acknowledged to us, and we to a caller.

What an engine loses is the end of what it had written. So if one write survived, all that were acknowledged
before it was sent have survived too, and are missing because somebody deleted them since.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from iii_directory.limits import MAX_REMEMBERED_WRITES, REMEMBERED_WRITE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from iii_directory.catalog.records import Record


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
        """Whether a listing, in which the key has this stamp or is absent, is from before the write."""
        if self.record is None:
            return listed is not None and listed <= self.stamp
        return listed is None or listed < self.stamp


class RecentWrites:
    """The last write of each key, as long as it is this worker's."""

    def __init__(self) -> None:
        self._writes: dict[str, Write] = {}
        """The oldest first."""
        self._endangered: dict[str, Write] = {}
        """Writes of the last moments of an engine that has gone, until each is known to be kept or lost."""
        self._judged = True
        """Whether the endangered writes have been compared with the state, and only lost ones are left."""

    def put(self, write: Write) -> None:
        self._writes.pop(write.key, None)
        self._endangered.pop(write.key, None)
        self._writes[write.key] = write
        oldest = next(iter(self._writes.values()))
        too_old = oldest.acknowledged < write.acknowledged - REMEMBERED_WRITE_SECONDS
        if len(self._writes) > MAX_REMEMBERED_WRITES or too_old:
            del self._writes[oldest.key]

    def superseded(self, key: str, value: object) -> None:
        """Forget the write of a key that holds another value now, or (None) no value."""
        for writes in (self._writes, self._endangered):
            write = writes.get(key)
            if write is not None and value != (write.record and write.record.value):
                del writes[key]

    def engine_gone(self, at: float) -> None:
        """Note that the engine may not have kept what it acknowledged shortly before this time."""
        since = at - REMEMBERED_WRITE_SECONDS
        recent = {key: write for key, write in self._writes.items() if write.acknowledged >= since}
        self._endangered |= recent
        self._writes = {}
        self._judged = False

    def believe(self) -> None:
        """Forget everything endangered, because the state is known to have lost nothing."""
        self._endangered = {}

    def lost(self, listed: Mapping[str, int]) -> list[Write]:
        """Return the writes that the state has lost, given the stamps of the keys in its listing.

        The first listing after the engine's return decides which writes were lost. In a later one, writes
        that were made again since would pass for survivors.
        """
        if not self._judged:
            self._judged = True
            survived = max((w.sent for w in self._endangered.values() if _survived(w, listed)), default=-inf)
            # Nothing that comes later can prove that a lost write was kept.
            self._endangered = {
                write.key: write._replace(acknowledged=inf)
                for write in self._endangered.values()
                if write.acknowledged > survived and write.is_missing(listed.get(write.key))
            }
        return [write for write in self._endangered.values() if write.is_missing(listed.get(write.key))]

    @property
    def endangered(self) -> Collection[Write]:
        """The writes that a listing could lack."""
        return self._endangered.values()


def _survived(write: Write, listed: Mapping[str, int]) -> bool:
    """Whether a listing shows the very record; a key that is absent proves nothing of its deletion."""
    return write.record is not None and listed.get(write.key) == write.stamp
