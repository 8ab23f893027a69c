"""One kind of registered entries: written to iii-state, held in memory, and kept true by the state's events.

No read asks the state. A write is done when the state has said so; one that had no answer in time is in
doubt, and the state is asked what it holds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

from iii_directory.bus.seam import CallError
from iii_directory.bus.tasks import Tasks, each_in_turns
from iii_directory.catalog.recent_writes import RecentWrites
from iii_directory.catalog.records import values_of
from iii_directory.catalog.registered import Outcome, stamp_of
from iii_directory.documents.provenance import NO_AUTHOR
from iii_directory.errors import BAD_BODY, ENGINE_FAILED, OUTCOME_UNKNOWN, DirectoryError
from iii_directory.limits import MAX_REGISTERED_BYTES, MAX_RUMOURS
from iii_directory.worker.neighbours import Hint

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.catalog.recent_writes import Write
    from iii_directory.catalog.records import Record
    from iii_directory.catalog.registered import Table
    from iii_directory.documents.provenance import Author
    from iii_directory.worker.engine_calls import EngineCalls
    from iii_directory.worker.events import Events
    from iii_directory.worker.neighbours import Neighbours

log = logging.getLogger("iii_directory.worker")


class Collection:
    """The skills, or the prompts. Everything happens on the bus's event loop."""

    def __init__(
        self,
        scope: str,
        table: Table,
        topic: str,
        *,
        engine: EngineCalls,
        events: Events,
        neighbours: Neighbours,
        look_again: Callable[[], None],
        clock: Callable[[], int],
    ) -> None:
        self.scope = scope
        self._table = table
        self._topic = topic
        self._engine = engine
        self._events = events
        self._neighbours = neighbours
        self._look_again = look_again
        self._clock = clock
        self._recent = RecentWrites()
        self._asking = Tasks()

    # Writing

    async def register(self, fields: dict[str, Any], author: Author = NO_AUTHOR) -> str:
        """Store checked fields as a record of this author; the answer is its ``registered_at``."""
        record = self._table.draft(fields, self._clock(), author)
        try:
            return await self._register(record)
        finally:
            self._table.drop_draft(record)

    async def _register(self, record: Record) -> str:
        size = self._table.size_with(record)
        if size > MAX_REGISTERED_BYTES:
            raise DirectoryError(
                BAD_BODY,
                f"with this, everything registered would be too large to list: {size} bytes, "
                f"at most {MAX_REGISTERED_BYTES}",
                next_steps=("call skills::unregister for what is not needed any more",),
            )
        await self._write("state::set", record.key, value=record.value)
        outcome = self._table.written(record)
        if self._table.get(record.key) == record.value:
            self._recent.wrote(record, time.monotonic())
        self._neighbours.wrote(Hint(self.scope, record.key, record.registered_at))
        self._learned(record.key, outcome)
        return record.registered_at

    async def unregister(self, key: str) -> bool:
        """Delete a record; False when there was none."""
        old = await self._write("state::delete", key)
        outcome = self._table.deleted(key, old)
        if old is not None:
            if self._table.get(key) is None:
                self._recent.deleted(key, stamp_of(old), time.monotonic())
            self._neighbours.wrote(Hint(self.scope, key, None))
        self._learned(key, outcome)
        return old is not None

    # Following

    def changed(self, key: str, old: object, new: object) -> None:
        """The engine tells of a write to the scope, by whomever."""
        known_as = self._table.key_of(key, old, new)
        outcome = self._table.seen(known_as, old, new)
        if outcome is not Outcome.NOTHING:
            self._recent.superseded(known_as)
        self._learned(known_as, outcome)

    def may_have_changed(self, key: str) -> None:
        """Somebody who may be the engine tells of a write: the state is asked, and its answer believed."""
        if len(self._asking) >= MAX_RUMOURS:
            self._look_again()
        else:
            self._learned(key, self._table.doubt(key))

    def hinted(self, hint: Hint) -> None:
        """Somebody on another engine says that it wrote a key."""
        if len(self._asking) >= MAX_RUMOURS:
            self._look_again()
        else:
            self._learned(hint.key, self._table.hinted(hint.key, hint.at))

    def engine_gone(self) -> None:
        """What was written a moment ago may be lost with the engine."""
        self._recent.engine_gone(time.monotonic())

    def engine_stayed(self) -> None:
        """It was the connection alone that ended: what is missing was deleted by somebody."""
        self._recent.believe()

    async def load(self, *, first: bool) -> int:
        """Take over what the state holds; how many acknowledged writes it had lost, and was told again.

        Raises:
            CallError: the state did not answer.
        """
        self._table.listing_asked()
        values = values_of(await self._engine.call("state::list", {"scope": self.scope}))
        lost = self._recent.lost(self._table.stamps_in(values)) if self._recent.endangered else []
        await self._tell_again(lost)
        # The first load is no change; later ones tell of what happened meanwhile.
        tell = _quietly if first else self._learned
        await each_in_turns(self._table.listed(values), lambda step: tell(*step))
        return len(lost)

    def close(self) -> None:
        self._asking.cancel()

    # Inner workings

    async def _tell_again(self, lost: list[Write]) -> None:
        for start in range(0, len(lost), MAX_RUMOURS):
            await asyncio.gather(*(self._tell(write) for write in lost[start : start + MAX_RUMOURS]))
        self._recent.believe()

    async def _tell(self, write: Write) -> None:
        address = {"scope": self.scope, "key": write.key}
        if write.record is None:
            await self._engine.call("state::delete", address)
        else:
            await self._engine.call("state::set", {**address, "value": write.record.value})
        self._table.keep(write.key)

    def _learned(self, key: str, outcome: Outcome) -> None:
        match outcome:
            case Outcome.REGISTERED | Outcome.UNREGISTERED:
                self._events.fire(self._topic, {"op": outcome.value, self._table.kind.key_field: key})
            case Outcome.DOUBTFUL:
                self._asking.start(self._settle(key))
            case Outcome.NOTHING:
                pass

    async def _settle(self, key: str) -> None:
        outcome = Outcome.DOUBTFUL
        while outcome is Outcome.DOUBTFUL:
            try:
                value = await self._engine.call("state::get", {"scope": self.scope, "key": key})
            except CallError as error:
                log.warning("the state of %s is in doubt, and iii-state does not answer: %s", key, error)
                self._table.leave_doubtful(key)
                self._look_again()
                return
            outcome = self._table.settle(key, value)
        self._learned(key, outcome)

    async def _write(self, function_id: str, key: str, **more: Any) -> Any:
        try:
            return await self._engine.call(function_id, {"scope": self.scope, "key": key, **more})
        except CallError as error:
            if not error.may_be_done:
                raise DirectoryError(
                    ENGINE_FAILED, f"iii-state did not do it, and nothing was changed: {error}"
                ) from None
            self._learned(key, self._table.doubt(key))
            raise DirectoryError(
                OUTCOME_UNKNOWN, f"iii-state did not say whether it was done, and it may have been: {error}"
            ) from None


def _quietly(_key: str, _outcome: Outcome) -> None:
    pass
