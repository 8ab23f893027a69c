"""Directories on other engines that share the state: told of our writes, and heard of theirs.

An engine tells its own workers of a write, and nobody else. Where several engines keep their state in one
place, their topics reach one another too: what we wrote is published there. What is heard there is a hint and
no more, for anybody can publish: the state is asked what it holds.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.bus.seam import CallError
from iii_directory.bus.tasks import Tasks
from iii_directory.engine.protocol import FUNCTION_NOT_FOUND
from iii_directory.limits import MAX_RUMOURS, NEIGHBOUR_BURST_SECONDS
from iii_directory.shapes import is_list, object_of, text_of

if TYPE_CHECKING:
    from iii_directory.bus.seam import Payload
    from iii_directory.shapes import Json
    from iii_directory.worker.engine_calls import EngineCalls

log = logging.getLogger("iii_directory.worker")

TOPIC: Final = "iii-directory::written"
NEIGHBOUR: Final = "directory::__on_written_elsewhere"
_PUBLISH: Final = "publish"


class Hint(NamedTuple):
    """Somebody wrote a key of a scope; ``at`` is the record's ``registered_at``, None when it was deleted."""

    scope: str
    key: str
    at: str | None


class Neighbours:
    """The way to the others and back. Everything happens on the bus's event loop."""

    def __init__(self, engine: EngineCalls) -> None:
        self._engine = engine
        self._me = str(uuid.uuid4())
        self._written: dict[tuple[str, str], str | None] = {}
        self._has_topics = True
        self._tasks = Tasks()

    def connected(self) -> None:
        """The engine may be another one now, and have topics."""
        self._has_topics = True

    def wrote(self, hint: Hint) -> None:
        """Tell the others, together with what else is written in this moment."""
        if not self._has_topics:
            return
        if not self._written:
            self._tasks.start(self._tell_soon())
        self._written[hint.scope, hint.key] = hint.at

    def heard(self, event: Payload) -> list[Hint] | None:
        """What the others say they wrote; None when it is so much that all should be looked at."""
        if event.get("by") == self._me:
            return []
        writes = event.get("writes")
        if not is_list(writes) or len(writes) > MAX_RUMOURS:
            return None
        return [hint for write in writes if (hint := _hint_in(object_of(write))) is not None]

    def close(self) -> None:
        self._tasks.cancel()

    # Inner workings

    async def _tell_soon(self) -> None:
        await asyncio.sleep(NEIGHBOUR_BURST_SECONDS)
        written, self._written = self._written, {}
        rows = [{"scope": scope, "key": key, "at": at} for (scope, key), at in written.items()]
        data = {"by": self._me, "writes": rows if len(rows) <= MAX_RUMOURS else None}
        try:
            await self._engine.call(_PUBLISH, {"topic": TOPIC, "data": data})
        except CallError as error:
            # The others look for themselves now and then; an engine without topics is not asked each time.
            self._has_topics = error.code != FUNCTION_NOT_FOUND
            log.debug("directories on other engines are not told of %d writes: %s", len(rows), error)


def _hint_in(write: Json) -> Hint | None:
    scope, key = text_of(write.get("scope")), text_of(write.get("key"))
    return None if scope is None or key is None else Hint(scope, key, text_of(write.get("at")))
