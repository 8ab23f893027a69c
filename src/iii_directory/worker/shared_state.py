"""Share one state with directories on other engines: learn where the state is, and tell them of writes.

An engine tells only its own workers of a write to the state. Where engines keep their state in one place,
such as a Redis, the directories tell one another on a topic. What is heard on the topic is only a hint,
because anybody can publish: the state is asked for what it holds.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.bus.seam import CallError, is_embedded
from iii_directory.bus.tasks import Tasks
from iii_directory.documents.model import Finding
from iii_directory.limits import HINT_BURST_SECONDS, LOOK_SECONDS, MAX_HINTS
from iii_directory.shapes import is_list, is_object, object_of, text_of
from iii_directory.wire.protocol import FUNCTION_NOT_FOUND

if TYPE_CHECKING:
    from iii_directory.bus.seam import Payload
    from iii_directory.worker.engine_view import EngineCalls

log = logging.getLogger("iii_directory.worker")

TOPIC: Final = "iii-directory::written"
HINT_LISTENER: Final = "directory::__on_written_elsewhere"
_STATE, _TOPICS = "iii-state", "iii-pubsub"


class StateHome(NamedTuple):
    """Where an engine keeps its state and its topics, as far as it tells."""

    state: str | None
    """The adapter of ``iii-state``: ``kv`` is inside the engine; None where the engine does not say."""
    topics: str | None
    """The adapter of ``iii-pubsub``: ``local`` is inside the engine."""

    @property
    def is_shared(self) -> bool:
        """Return whether other engines may use the state, which outlives this engine."""
        return self.state not in (None, "kv")

    @property
    def finding(self) -> Finding | None:
        """Return what keeps the directories that share the state from telling one another, if anything."""
        if not self.is_shared or self.topics not in (None, "local"):
            return None
        lacks = "has no topics" if self.topics is None else "keeps its topics to itself"
        return Finding(
            "unavailable",
            _TOPICS,
            f"the engine keeps its state in {self.state} and {lacks}: what directories on other engines "
            f"register there is seen here after up to {LOOK_SECONDS:.0f} seconds",
            f"give {_TOPICS} the redis adapter too, with the same redis_url on every engine; "
            "nothing, if no other engine uses this state",
            urgent=False,
        )


async def find_state_home(engine: EngineCalls) -> StateHome:
    """Ask the engine where it keeps its state and topics; the embedded engine keeps them to itself."""
    state, topics, health = await asyncio.gather(
        engine.find("configuration::get", {"id": _STATE}),
        engine.find("configuration::get", {"id": _TOPICS}),
        engine.find("engine::health::check", {}),
    )
    if state is None and is_embedded(health):
        return StateHome("kv", "local")
    return StateHome(_adapter_in(state, "kv"), _adapter_in(topics, "local"))


def _adapter_in(answer: object, default: str) -> str | None:
    value = object_of(answer).get("value")
    if not is_object(value):
        return None
    return text_of(object_of(value.get("adapter")).get("name")) or default


class Hint(NamedTuple):
    """A key of a scope was written.

    ``at`` is the record's ``registered_at``, None when it was deleted, empty when that is not known.
    """

    scope: str
    key: str
    at: str | None


class SharedStateHints:
    """Publishes hints of our writes and reads those of others. Belongs to the bus's event loop."""

    def __init__(self, engine: EngineCalls) -> None:
        self._engine = engine
        self._me = str(uuid.uuid4())
        self._unpublished: dict[tuple[str, str], str | None] = {}
        self._wanted = True
        """Whether another engine may use the state, and this engine has topics."""
        self._answered = False
        """Whether this engine has answered a ``publish``."""
        self._is_connected = False
        self._tasks = Tasks()

    def connected(self, home: StateHome) -> None:
        """Begin on an engine, with the hints that could not be published on the last one."""
        self._is_connected, self._answered = True, False
        self.moved(home)
        if self._unpublished:
            self._tasks.start(self._publish_soon())

    def moved(self, home: StateHome) -> None:
        """Publish only where another engine may use the state; no other can use one inside the engine."""
        self._wanted = home.state != "kv"

    def lost(self) -> None:
        """Keep hints until there is a connection again."""
        self._is_connected = False

    def wrote(self, hint: Hint) -> None:
        """Publish a hint soon, together with others of the same moment."""
        if not self._wanted:
            return
        if self._is_connected and not self._unpublished:
            self._tasks.start(self._publish_soon())
        if len(self._unpublished) <= MAX_HINTS:
            self._unpublished[hint.scope, hint.key] = hint.at

    def heard(self, event: Payload) -> list[Hint] | None:
        """Return the hints in an event; None when they are too many to be followed one by one."""
        if event.get("by") == self._me:
            return []
        writes = event.get("writes")
        if not is_list(writes) or len(writes) > MAX_HINTS:
            return None
        hints: list[Hint] = []
        for write in map(object_of, writes):
            scope, key = text_of(write.get("scope")), text_of(write.get("key"))
            if scope is not None and key is not None:
                hints.append(Hint(scope, key, text_of(write.get("at"))))
        return hints

    def close(self) -> None:
        self._tasks.cancel()

    # Inner workings

    async def _publish_soon(self) -> None:
        await asyncio.sleep(HINT_BURST_SECONDS)
        if not (self._is_connected and self._wanted):
            return
        hints, self._unpublished = self._unpublished, {}
        rows = [{"scope": scope, "key": key, "at": at} for (scope, key), at in hints.items()]
        payload = {
            "topic": TOPIC,
            "data": {"by": self._me, "writes": rows if len(rows) <= MAX_HINTS else None},
        }
        if self._answered:
            # Without an answer: one that we have nothing to reply to makes the engine's next message wait
            # for a delayed acknowledgement of TCP, 40 ms.
            await self._engine.send("publish", payload)
            return
        try:
            await self._engine.call("publish", payload)
            self._answered = True
        except CallError as error:
            self._wanted = error.code != FUNCTION_NOT_FOUND
            self._unpublished = hints | self._unpublished
            log.debug("directories on other engines were not told of writes: %s", error)
