"""What this worker wrote to the state a moment ago, so that an engine that died can be told again. Pure.

An engine may keep its newest writes in memory for some seconds. What it had acknowledged to us, and we to a
caller, is gone with it if it dies before they are on disk. Absences older than that are somebody's deletion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from iii_directory.limits import MAX_REMEMBERED_WRITES, REMEMBERED_WRITE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iii_directory.catalog.records import Record


class Write(NamedTuple):
    """One acknowledged write of one key."""

    key: str
    stamp: int
    """``registered_at`` of what was written, or of what was deleted."""
    record: Record | None
    """None for a deletion."""
    at: float


class RecentWrites:
    """The last write of each key, if this worker made it. Times are of a clock that does not go back."""

    def __init__(self) -> None:
        self._writes: dict[str, Write] = {}
        """The oldest first."""
        self._endangered: dict[str, Write] = {}
        """Those of the last moments of an engine that has gone; empty while it is not known to have."""

    def wrote(self, record: Record, at: float) -> None:
        self._put(Write(record.key, record.stamp, record, at))

    def deleted(self, key: str, stamp: int, at: float) -> None:
        self._put(Write(key, stamp, None, at))

    def superseded(self, key: str) -> None:
        """Somebody else wrote the key since: what it holds is not ours to repeat."""
        self._writes.pop(key, None)
        self._endangered.pop(key, None)

    def engine_gone(self, at: float) -> None:
        """The connection ended; what was written shortly before may not have been kept."""
        since = at - REMEMBERED_WRITE_SECONDS
        self._endangered |= {key: write for key, write in self._writes.items() if write.at >= since}
        self._writes = {}

    def believe(self) -> None:
        """What the state holds is the truth: it is the engine it was, or has been told again."""
        self._endangered = {}

    def lost(self, listed: Mapping[str, int]) -> list[Write]:
        """What a listing does not have, though it was acknowledged. It is given by its keys and stamps."""
        return [write for write in self._endangered.values() if _is_lost(write, listed.get(write.key))]

    @property
    def endangered(self) -> bool:
        """Whether there is anything that a listing could lack."""
        return bool(self._endangered)

    def _put(self, write: Write) -> None:
        self._writes.pop(write.key, None)
        self._endangered.pop(write.key, None)
        self._writes[write.key] = write
        oldest = next(iter(self._writes.values()))
        if len(self._writes) > MAX_REMEMBERED_WRITES or oldest.at < write.at - REMEMBERED_WRITE_SECONDS:
            del self._writes[oldest.key]


def _is_lost(write: Write, listed: int | None) -> bool:
    if write.record is None:
        return listed is not None and listed <= write.stamp
    return listed is None or listed < write.stamp
