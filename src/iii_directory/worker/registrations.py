"""Load registered skills and prompts from the state after every connect, and follow it from then on.

The tables are loaded once events are known to arrive, so that no write falls between. Besides, the state is
listed once in a while, for writes that no event told of.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from typing import TYPE_CHECKING, Final

from iii_directory.bus.seam import CallError
from iii_directory.limits import HINTED_LOOK_SECONDS, LOOK_SECONDS
from iii_directory.shapes import is_count, object_of, rows_of, text_of
from iii_directory.wire.protocol import DEFAULT_NAMESPACE
from iii_directory.worker.collection import Collection
from iii_directory.worker.engine_calls import EngineCalls
from iii_directory.worker.shared_state import SharedStateHints, StateHome, find_state_home

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
        self._engine = EngineCalls(bus, settings)
        self._hints = SharedStateHints(self._engine)
        self._home = StateHome(None, None)
        self._is_home_known = False
        """Whether the engine of this connection has said where its state is."""
        self._is_recognised = False
        self._source = source
        self._namespace = namespace
        self._follow = follow

        def collection(scope: str, table: Table, topic: str) -> Collection:
            return Collection(
                scope,
                table,
                topic,
                engine=self._engine,
                events=events,
                hints=self._hints,
                look_again=self._look_again,
                clock=clock,
            )

        self.skills = collection(settings.scopes.skills, source.skills, "skills")
        self.prompts = collection(settings.scopes.prompts, source.prompts, "prompts")
        self._loaded = False
        self._engine_started: int | None = None
        self._pause = _FIRST_PAUSE_SECONDS
        self._cut_short = False
        self._look_wanted = asyncio.Event()
        self._loading: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes whose events :meth:`state_changed` wants."""
        return tuple(collection.scope for collection in self._both)

    # What is told

    def state_changed(self, event: Payload) -> None:
        """Take an event of the engine, which tells of every write to one of the scopes."""
        key = event.get("key")
        for collection in self._both:
            if event.get("scope") == collection.scope and isinstance(key, str):
                collection.changed(key, event.get("old_value"), event.get("new_value"))

    def state_may_have_changed(self, event: Payload) -> None:
        """Take an unsigned event, as old engines send them; it may be forged, so the state is asked."""
        key = event.get("key")
        for collection in self._both:
            if event.get("scope") == collection.scope and isinstance(key, str):
                collection.may_have_changed(key)

    def written_elsewhere(self, event: Payload) -> None:
        """Take hints of what a directory on another engine wrote."""
        hints = self._hints.heard(event)
        if hints is None:
            self._look_again()
            return
        for hint in hints:
            for collection in self._both:
                if hint.scope == collection.scope:
                    collection.hinted(hint)

    async def connected(self) -> None:
        """Load everything anew: while there was no connection, nobody told of changes."""
        self._stop_loading()
        self._look_wanted.clear()
        self._is_home_known = self._is_recognised = False
        self._source.outdated()
        loop = asyncio.get_running_loop()
        self._loading = loop.create_task(self._load())
        self._watching = loop.create_task(self._watch(self._loading))

    def connection_lost(self) -> None:
        self._stop_loading()
        self._hints.lost()
        for collection in self._both:
            collection.engine_gone()

    def close(self) -> None:
        for task in (self._watching, self._loading):
            if task is not None:
                task.cancel()
        self._hints.close()
        for collection in self._both:
            collection.close()

    # Inner workings

    @property
    def _both(self) -> tuple[Collection, Collection]:
        return self.skills, self.prompts

    def _stop_loading(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self._loading is not None and self._loading.cancel():
            self._cut_short = True
            self._source.says(
                "the connection ended while they were listed, perhaps because they are too many"
            )

    def _look_again(self) -> None:
        """Something cannot be settled by itself: all is listed anew, soon."""
        self._look_wanted.set()

    async def _watch(self, loading: asyncio.Task[None]) -> None:
        """After a load, look now and then: at what no event told, and whether our bindings are there."""
        while True:
            await asyncio.wait([loading])
            await asyncio.sleep(min(HINTED_LOOK_SECONDS, LOOK_SECONDS))
            await self._find_home()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._look_wanted.wait()
            self._look_wanted.clear()
            if not await self._is_following():
                log.warning("the engine does not tell of registrations any more; asking it to, again")
                self._follow()
            loading = self._loading = asyncio.get_running_loop().create_task(self._load())

    async def _load(self) -> None:
        """List until it worked while the events were already on their way, so that no write falls between."""
        if self._cut_short:
            # A listing too large for a message ends the connection; it must not do so again at once.
            await self._rest()
        # Both are asked at once, because callers wait for the load.
        following, _ = await asyncio.gather(self._is_following(), self._recognise())
        for look in itertools.count(1):
            problem = await self._load_all()
            self._source.tried(problem)
            if problem is None and following:
                break
            await self._rest()
            following = look >= _MOST_LOOKS or await self._is_following()
        self._pause, self._cut_short = _FIRST_PAUSE_SECONDS, False

    async def _rest(self) -> None:
        """Longer every time, until a load succeeds."""
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE_SECONDS)
        await asyncio.sleep(pause)

    async def _recognise(self) -> None:
        """Find out, once for each connection, whether the state can have lost anything with the engine."""
        if self._is_recognised:
            return
        workers, _ = await asyncio.gather(self._engine.find("engine::workers::list", {}), self._find_home())
        self._is_recognised = True
        before, self._engine_started = self._engine_started, started_at(workers)
        stayed = before is not None and before == self._engine_started
        # What is kept outside of the engine was not lost with it. An engine that is still starting may not
        # say yet where its state is; then it is where it was before.
        if stayed or self._home.is_shared:
            for collection in self._both:
                collection.nothing_lost()
        self._hints.connected(self._home)

    async def _find_home(self) -> None:
        """Ask where the state is, until the engine of this connection says so."""
        if self._is_home_known:
            return
        home = await find_state_home(self._engine)
        if home.state is not None:
            # The topics may come later than the state while the engine starts.
            self._is_home_known, self._home = home.topics is not None, home
            self._hints.moved(home)
            self._source.says_of_topics(home.finding)

    async def _load_all(self) -> str | None:
        """Load both kinds; return what went wrong, or None."""
        loads = (collection.load(first=not self._loaded) for collection in self._both)
        problems: list[str] = []
        for loaded in await asyncio.gather(*loads, return_exceptions=True):
            if isinstance(loaded, CallError):
                problems.append(str(loaded))
            elif isinstance(loaded, BaseException):
                raise loaded
            else:
                self._source.restored(loaded)
        self._loaded = self._loaded or not problems
        return problems[0] if problems else None

    async def _is_following(self) -> bool:
        """Whether the engine has our bindings; it takes them in some time after a connect."""
        try:
            asked = {"function_id": FOLLOWER, "namespace": self._namespace}
            answer = await self._engine.call("engine::functions::info", asked)
        except CallError:
            return False
        return set(self.scopes) <= bound_scopes(answer)


def bound_scopes(answer: object) -> set[str]:
    """The scopes of the state bindings in an answer of ``engine::functions::info``."""
    rows = [row for row in rows_of(answer, "registered_triggers") if row.get("trigger_type") == "state"]
    scopes = (text_of(object_of(row.get("config")).get("scope")) for row in rows)
    return {scope for scope in scopes if scope is not None}


def started_at(answer: object) -> int | None:
    """When an engine started, by its own rows in an answer of ``engine::workers::list``, if it has any."""
    own = [row for row in rows_of(answer, "workers") if row.get("runtime") == "engine"]
    return min((at for row in own if is_count(at := row.get("connected_at_ms"))), default=None)
