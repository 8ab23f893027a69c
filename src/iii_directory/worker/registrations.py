"""Registered skills and prompts: written to iii-state, read from memory, and kept true by the state's events.

No read asks the state. The tables are loaded after every connect, once the events are known to arrive, and
follow them from then on; so another instance's writes are seen here, and ours there.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from iii_directory.bus.seam import CallError
from iii_directory.bus.tasks import Tasks
from iii_directory.catalog.records import values_of
from iii_directory.catalog.registered import Outcome
from iii_directory.engine.protocol import DEFAULT_NAMESPACE
from iii_directory.errors import BAD_BODY, ENGINE_FAILED, DirectoryError
from iii_directory.limits import LOOK_SECONDS, MAX_REGISTERED_BYTES, MAX_RUMOURS

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.bus.seam import Bus, Payload
    from iii_directory.catalog.registered import Table
    from iii_directory.catalog.registered_source import RegisteredSource
    from iii_directory.config import Settings
    from iii_directory.worker.events import Events

log = logging.getLogger("iii_directory.worker")

FOLLOWER: Final = "directory::__on_state_changed"
_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 10.0
# An engine that has not shown our bindings by then, some seconds later, cannot or will not show them.
_MOST_LOOKS: Final = 7


@dataclass(frozen=True, slots=True)
class Collection:
    """One kind of registered entries: where the state keeps them, the copy in memory, and who is told."""

    scope: str
    table: Table
    topic: str


class Registrations:
    """Both kinds. Everything happens on the bus's event loop."""

    def __init__(
        self,
        bus: Bus,
        events: Events,
        source: RegisteredSource,
        settings: Settings,
        *,
        follow: Callable[[], None] = lambda: None,
        namespace: str = DEFAULT_NAMESPACE,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.skills = Collection(settings.skills_scope, source.skills, "skills")
        self.prompts = Collection(settings.prompts_scope, source.prompts, "prompts")
        self._bus = bus
        self._events = events
        self._source = source
        self._timeout_ms = settings.state_timeout_ms
        self._namespace = namespace
        self._follow = follow
        self._clock = clock
        self._loaded = False
        self._pause = _FIRST_PAUSE_SECONDS
        self._cut_short = False
        self._loading: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._asking = Tasks()
        self._listing = asyncio.Lock()
        self._rumours: dict[tuple[str, str], Collection] = {}
        """Keys that may have changed and are still to be asked for."""
        self._too_many_rumours = False
        self._checking: asyncio.Task[None] | None = None

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes whose events :meth:`state_changed` wants."""
        return self.skills.scope, self.prompts.scope

    # Writing

    async def register(self, collection: Collection, fields: dict[str, Any]) -> str:
        """Store checked fields as a record; the answer is its ``registered_at``."""
        record = collection.table.draft(fields, self._clock())
        size = collection.table.size_with(record)
        if size > MAX_REGISTERED_BYTES:
            raise DirectoryError(
                BAD_BODY,
                f"with this, everything registered would be too large to list: {size} bytes, "
                f"at most {MAX_REGISTERED_BYTES}",
                next_steps=("call skills::unregister for what is not needed any more",),
            )
        request = {"scope": collection.scope, "key": record.key, "value": record.value}
        await self._ask_state("state::set", request)
        self._learned(collection, record.key, collection.table.written(record))
        return record.registered_at

    async def unregister(self, collection: Collection, key: str) -> bool:
        """Delete a record; False when there was none."""
        old = await self._ask_state("state::delete", {"scope": collection.scope, "key": key})
        self._learned(collection, key, collection.table.deleted(key, old))
        return old is not None

    # Following

    def state_changed(self, event: Payload) -> None:
        """The engine tells of a write to one of the scopes, by whomever."""
        key, old, new = event.get("key"), event.get("old_value"), event.get("new_value")
        for collection in (self.skills, self.prompts):
            if event.get("scope") == collection.scope and isinstance(key, str):
                known_as = collection.table.key_of(key, old, new)
                self._learned(collection, known_as, collection.table.seen(known_as, old, new))

    def state_may_have_changed(self, event: Payload) -> None:
        """Somebody who may be the engine tells of a write: the state is asked, and its answer believed."""
        key = event.get("key")
        for collection in (self.skills, self.prompts):
            if event.get("scope") == collection.scope and isinstance(key, str):
                if len(self._rumours) < MAX_RUMOURS:
                    self._rumours[collection.scope, key] = collection
                else:
                    self._too_many_rumours = True
        if self._rumours and (self._checking is None or self._checking.done()):
            self._checking = asyncio.get_running_loop().create_task(self._check_rumours())

    async def connected(self) -> None:
        """Load everything anew: while there was no connection, nobody told of changes."""
        self.connection_lost()
        self._source.outdated()
        loop = asyncio.get_running_loop()
        self._loading = loop.create_task(self._load())
        self._watching = loop.create_task(self._watch(self._loading))

    def connection_lost(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self._loading is not None and self._loading.cancel():
            self._cut_short = True
            self._source.says(
                "the connection ended while they were listed, perhaps because they are too many"
            )

    def close(self) -> None:
        for task in (self._watching, self._loading, self._checking):
            if task is not None:
                task.cancel()
        self._asking.cancel()

    # Inner workings

    async def _watch(self, loading: asyncio.Task[None]) -> None:
        """After a load, look now and then: at what no event told, and whether our bindings are there."""
        while True:
            await asyncio.wait([loading])
            await asyncio.sleep(LOOK_SECONDS)
            if not await self._is_following():
                log.warning("the engine does not tell of registrations any more; asking it to, again")
                self._follow()
            loading = self._loading = asyncio.get_running_loop().create_task(self._load())

    async def _load(self) -> None:
        """List until it worked while the events were already on their way, so that no write falls between."""
        if self._cut_short:
            # A listing too large for a message ends the connection; it must not do so again at once.
            await self._rest()
        for look in itertools.count(1):
            following = look > _MOST_LOOKS or await self._is_following()
            problem = await self._list_all()
            self._source.tried(problem)
            if problem is None and following:
                break
            await self._rest()
        self._pause, self._cut_short = _FIRST_PAUSE_SECONDS, False

    async def _rest(self) -> None:
        """Longer every time, until a load succeeds."""
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE_SECONDS)
        await asyncio.sleep(pause)

    async def _list_all(self) -> str | None:
        """What went wrong, or None."""
        try:
            async with self._listing:
                for collection in (self.skills, self.prompts):
                    await self._list(collection)
        except CallError as error:
            return str(error)
        self._loaded = True
        return None

    async def _list(self, collection: Collection) -> None:
        collection.table.listing_asked()
        answer = await self._call("state::list", {"scope": collection.scope})
        for key, outcome in collection.table.listed(values_of(answer)):
            # The first load is no change; later ones tell of what happened meanwhile.
            if self._loaded:
                self._learned(collection, key, outcome)

    async def _is_following(self) -> bool:
        """Whether the engine has our bindings; it takes them in some time after a connect."""
        asked = {"function_id": FOLLOWER, "namespace": self._namespace}
        try:
            answer = await self._call("engine::functions::info", asked)
        except CallError:
            return False
        return set(self.scopes) <= bound_scopes(answer)

    def _learned(self, collection: Collection, key: str, outcome: Outcome) -> None:
        match outcome:
            case Outcome.REGISTERED | Outcome.UNREGISTERED:
                self._events.fire(
                    collection.topic, {"op": outcome.value, collection.table.kind.key_field: key}
                )
            case Outcome.DOUBTFUL:
                self._asking.start(self._settle(collection, key))
            case Outcome.NOTHING:
                pass

    async def _check_rumours(self) -> None:
        """One after the other; where there are too many, everything is listed instead."""
        while self._rumours:
            if self._too_many_rumours:
                self._rumours.clear()
                self._too_many_rumours = False
                await self._list_all()
                continue
            (_, key), collection = self._rumours.popitem()
            if collection.table.doubt(key) is Outcome.DOUBTFUL:
                await self._settle(collection, key)

    async def _settle(self, collection: Collection, key: str) -> None:
        outcome = Outcome.DOUBTFUL
        while outcome is Outcome.DOUBTFUL:
            try:
                value = await self._call("state::get", {"scope": collection.scope, "key": key})
            except CallError as error:
                log.warning("the state of %s is in doubt, and iii-state does not answer: %s", key, error)
                collection.table.leave_doubtful(key)
                await self.connected()
                return
            outcome = collection.table.settle(key, value)
        self._learned(collection, key, outcome)

    async def _ask_state(self, function_id: str, payload: Payload) -> Any:
        try:
            return await self._call(function_id, payload)
        except CallError as error:
            raise DirectoryError(
                ENGINE_FAILED, f"iii-state did not do it, and nothing was changed: {error}"
            ) from None

    async def _call(self, function_id: str, payload: Payload) -> Any:
        return await self._bus.call(
            function_id, payload, timeout_ms=self._timeout_ms, namespace=DEFAULT_NAMESPACE
        )


def bound_scopes(answer: object) -> set[str]:
    """The scopes of the state bindings in an answer of ``engine::functions::info``."""
    rows = cast("dict[str, Any]", answer).get("registered_triggers") if isinstance(answer, dict) else None
    found: set[str] = set()
    for row in cast("list[object]", rows) if isinstance(rows, list) else []:
        fields = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
        config = fields.get("config")
        if fields.get("trigger_type") == "state" and isinstance(config, dict):
            found.add(str(cast("dict[str, Any]", config).get("scope")))
    return found
