"""Write the registered entries of one kind to iii-state, and keep a copy in memory true by its events.

No read asks the state. A write is done when the state has answered. A write without an answer in time leaves
its key in doubt, and the state is asked what it holds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

from iii_directory.bus.seam import CallError
from iii_directory.bus.tasks import Tasks, each_in_turns
from iii_directory.catalog.recent_writes import RecentWrites, Write
from iii_directory.catalog.records import values_of
from iii_directory.catalog.registered import Outcome, stamp_of
from iii_directory.documents.provenance import NO_AUTHOR
from iii_directory.errors import BAD_BODY, ENGINE_FAILED, OUTCOME_UNKNOWN, DirectoryError, Step
from iii_directory.limits import MAX_HINTS, MAX_REGISTERED_BYTES
from iii_directory.worker.shared_state import Hint

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.catalog.records import Record
    from iii_directory.catalog.registered import Table
    from iii_directory.documents.provenance import Author
    from iii_directory.worker.engine_calls import EngineCalls
    from iii_directory.worker.events import Events
    from iii_directory.worker.shared_state import SharedStateHints

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
        hints: SharedStateHints,
        look_again: Callable[[], None],
        clock: Callable[[], int],
    ) -> None:
        self.scope = scope
        self._table = table
        self._topic = topic
        self._engine = engine
        self._events = events
        self._hints = hints
        self._look_again = look_again
        self._clock = clock
        self._recent = RecentWrites()
        self._asking = Tasks()
        self._settling: dict[str, asyncio.Task[None]] = {}
        """The one task for each doubtful key that asks the state for it."""

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
                next_steps=(Step("for what is not needed any more", "skills::unregister"),),
            )
        sent = time.monotonic()
        hint = Hint(self.scope, record.key, record.registered_at)
        await self._write("state::set", hint, value=record.value)
        outcome = self._table.written(record)
        self._recent.put(Write(record.key, record.stamp, record, sent, time.monotonic()))
        self._hints.wrote(hint)
        self._learned(record.key, outcome)
        if record.key in self._settling:
            # Somebody else wrote the key meanwhile: the caller may read only what the state holds now.
            await asyncio.wait([self._settling[record.key]])
        else:
            self._recent.superseded(record.key, self._table.get(record.key))
        return record.registered_at

    async def unregister(self, key: str) -> bool:
        """Delete a record; False when there was none."""
        sent = time.monotonic()
        hint = Hint(self.scope, key, None)
        old = await self._write("state::delete", hint)
        outcome = self._table.deleted(key, old)
        if old is not None:
            self._recent.put(Write(key, stamp_of(old), None, sent, time.monotonic()))
            self._recent.superseded(key, self._table.get(key))
            self._hints.wrote(hint)
        self._learned(key, outcome)
        return old is not None

    # Following

    def changed(self, key: str, old: object, new: object) -> None:
        """Take an event of the engine, which tells of every write to the scope."""
        known_as = self._table.key_of(key, old, new)
        self._learned_of_others(known_as, self._table.seen(known_as, old, new))

    def may_have_changed(self, key: str) -> None:
        """Ask the state for a key of which an unsigned event tells: it need not be the engine's."""
        if self._may_ask():
            self._learned(key, self._table.doubt(key))

    def hinted(self, hint: Hint) -> None:
        """Ask the state for a key that a directory on another engine says it wrote, if that is news."""
        if self._may_ask():
            self._learned(hint.key, self._table.hinted(hint.key, hint.at))

    def engine_gone(self) -> None:
        """Note that the latest writes may be lost with the engine, and the hints of them as well."""
        self._recent.engine_gone(time.monotonic())
        for write in self._recent.endangered:
            self._hints.wrote(self._hint_of(write))

    def nothing_lost(self) -> None:
        """Note that the state is as it was: what is missing was deleted by somebody."""
        self._recent.believe()

    async def load(self, *, first: bool) -> int:
        """Take over what the state holds, and return how many lost writes were made again before that.

        Raises:
            CallError: the state did not answer.
        """
        self._table.listing_asked()
        values = values_of(await self._engine.call("state::list", {"scope": self.scope}))
        lost = self._recent.lost(self._table.stamps_in(values)) if self._recent.endangered else []
        for start in range(0, len(lost), MAX_HINTS):
            await asyncio.gather(*map(self._restore, lost[start : start + MAX_HINTS]))
        self._recent.believe()
        # The first load is not a change; later ones tell of what happened meanwhile.
        tell = _ignore if first else self._learned_of_others
        await each_in_turns(self._table.listed(values), lambda step: tell(*step))
        return len(lost)

    def close(self) -> None:
        self._asking.cancel()

    # Inner workings

    async def _restore(self, write: Write) -> None:
        """Write once more what the state has lost, and tell the others as of any write."""
        address, sent = {"scope": self.scope, "key": write.key}, time.monotonic()
        if write.record is None:
            await self._engine.call("state::delete", address)
        else:
            await self._engine.call("state::set", {**address, "value": write.record.value})
        self._table.keep(write.key)
        self._recent.put(write._replace(sent=sent, acknowledged=time.monotonic()))
        self._hints.wrote(self._hint_of(write))

    def _hint_of(self, write: Write) -> Hint:
        return Hint(self.scope, write.key, None if write.record is None else write.record.registered_at)

    def _may_ask(self) -> bool:
        """Whether one more key may be asked for by itself; otherwise everything is listed soon."""
        if len(self._asking) < MAX_HINTS:
            return True
        self._look_again()
        return False

    def _learned_of_others(self, key: str, outcome: Outcome) -> None:
        """Act on news that is not the answer to a write of ours."""
        if outcome in (Outcome.REGISTERED, Outcome.UNREGISTERED):
            self._recent.superseded(key, self._table.get(key))
        self._learned(key, outcome)

    def _learned(self, key: str, outcome: Outcome) -> None:
        match outcome:
            case Outcome.REGISTERED | Outcome.UNREGISTERED:
                self._events.fire(self._topic, {"op": outcome.value, self._table.kind.key_field: key})
            case Outcome.DOUBTFUL:
                self._settling[key] = self._asking.start(self._settle(key))
            case Outcome.NOTHING:
                pass

    async def _settle(self, key: str) -> None:
        value, outcome = None, Outcome.DOUBTFUL
        try:
            while outcome is Outcome.DOUBTFUL:
                value = await self._engine.call("state::get", {"scope": self.scope, "key": key})
                outcome = self._table.settle(key, value)
        except CallError as error:
            log.warning("%s may have changed, and iii-state does not answer: %s", key, error)
            self._table.leave_doubtful(key)
            self._look_again()
            return
        finally:
            del self._settling[key]
        if value is None and self._recent.endangered:
            # The engine may have lost what we wrote; the listing will tell.
            self._learned(key, outcome)
        else:
            self._learned_of_others(key, outcome)

    async def _write(self, function_id: str, hint: Hint, **more: Any) -> Any:
        try:
            return await self._engine.call(function_id, {"scope": hint.scope, "key": hint.key, **more})
        except CallError as error:
            if not error.may_be_done:
                raise DirectoryError(
                    ENGINE_FAILED, f"iii-state did not do it, and nothing was changed: {error}"
                ) from None
            self._hints.wrote(hint._replace(at=""))
            self._learned(hint.key, self._table.doubt(hint.key))
            raise DirectoryError(
                OUTCOME_UNKNOWN, f"iii-state did not say whether it was done, and it may have been: {error}"
            ) from None


def _ignore(_key: str, _outcome: Outcome) -> None:
    pass
