"""Keep registered skills and prompts in iii-state, with a copy in memory that follows the state's events.

Reads never ask the state. A write is done when the state has answered; a write without an answer in time
leaves its key in doubt, and the state is asked what it holds. After every connect the tables are loaded once
events are known to arrive, so that no write falls between. Besides, the state is listed once in a while, for
writes that no event reported.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from iii_directory.bus.seam import CallError
from iii_directory.bus.tasks import Tasks, each_in_turns
from iii_directory.catalog.registered import RecordChange, values_of
from iii_directory.documents.model import NO_AUTHOR
from iii_directory.errors import ENGINE_FAILED, OUTCOME_UNKNOWN, DirectoryError
from iii_directory.limits import HINTED_LOOK_SECONDS, LOOK_SECONDS, MAX_HINTS
from iii_directory.shapes import is_count, object_of, rows_of, text_of
from iii_directory.wire.access import REGISTRANTS_KEY
from iii_directory.wire.ownership import ExposedError, made_secret, new_secret
from iii_directory.wire.protocol import DEFAULT_NAMESPACE
from iii_directory.worker.change_events import PROMPTS, SKILLS
from iii_directory.worker.engine_view import EngineCalls
from iii_directory.worker.shared_state import Hint, SharedStateHints, StateHome, find_state_home

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from iii_directory.bus.seam import Bus, Payload
    from iii_directory.catalog.registered import Table, Write
    from iii_directory.catalog.registered_source import RegisteredSource
    from iii_directory.config import Settings
    from iii_directory.documents.model import Author
    from iii_directory.worker.change_events import ChangeEvents

log = logging.getLogger("iii_directory.worker")

FOLLOWER: Final = "directory::__on_state_changed"
_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 10.0
# An engine that has not shown our bindings by then, some seconds later, cannot or will not show them.
_MOST_LOOKS: Final = 7


@dataclass(eq=False)
class RegisteredCollection:
    """The registered skills, or the registered prompts. Belongs to the bus's event loop."""

    _engine: EngineCalls
    _events: ChangeEvents
    _hints: SharedStateHints
    _look_again: Callable[[], None]
    scope: str
    _table: Table
    _topic: str
    _asking: Tasks = field(default_factory=Tasks)
    _settling: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])
    """The one task for each doubtful key that asks the state for it."""

    # Writing

    async def register(self, fields: dict[str, Any], author: Author = NO_AUTHOR) -> str:
        """Store checked fields as a record of this author; the answer is its ``registered_at``."""
        record = self._table.draft(fields, time.time_ns(), author)
        registered_at, sent = record.registered_at, time.monotonic()
        hint = Hint(self.scope, record.key, registered_at)
        try:
            await self._write("state::set", hint, value=record.value)
        except BaseException:
            self._table.drop_draft(record)
            raise
        outcome = self._table.wrote(record, sent, time.monotonic())
        self._hints.wrote(hint)
        self._learned(record.key, outcome)
        if record.key in self._settling:
            # Another worker wrote the key meanwhile: the caller may read only what the state holds now.
            await asyncio.wait([self._settling[record.key]])
        return registered_at

    async def unregister(self, key: str) -> bool:
        """Delete a record; return whether it existed."""
        sent = time.monotonic()
        hint = Hint(self.scope, key, None)
        old = await self._write("state::delete", hint)
        outcome = self._table.removed(key, old, sent, time.monotonic())
        if old is not None:
            self._hints.wrote(hint)
        self._learned(key, outcome)
        return old is not None

    # Following

    def changed(self, key: str, old: object, new: object) -> None:
        """Take an event of the engine, which tells of every write to the scope."""
        self._learned(*self._table.heard(key, old, new))

    def hinted(self, hint: Hint) -> None:
        """Ask the state for a key that a directory on another engine says it wrote, if that is news."""
        if len(self._asking) < MAX_HINTS:
            self._learned(hint.key, self._table.hinted(hint.key, hint.at))
        else:
            # Too many keys are asked for one by one already, so everything is listed instead.
            self._look_again()

    def engine_gone(self) -> None:
        """Note that the latest writes may be lost with the engine, and the hints of them as well."""
        self._table.recent.engine_gone(time.monotonic())
        for write in self._table.recent.endangered.values():
            self._hints.wrote(self._hint_of(write))

    def nothing_lost(self) -> None:
        """Note that the state has lost nothing: what is missing was deleted."""
        self._table.recent.believe()

    async def load(self, *, first: bool) -> int:
        """Take over what the state holds, and return how many lost writes were made again before that.

        Raises:
            CallError: the state did not answer.
        """
        self._table.listing_asked()
        values = values_of(await self._engine.call("state::list", {"scope": self.scope}))
        lost = self._table.recent.lost(self._table.stamps_in(values)) if self._table.recent.endangered else []
        for start in range(0, len(lost), MAX_HINTS):
            await asyncio.gather(*map(self._restore, lost[start : start + MAX_HINTS]))
        self._table.recent.believe()
        # The first load is not a change; later ones tell of what happened meanwhile.
        changes = self._table.news_in(values)
        await each_in_turns(changes, lambda change: None if first else self._learned(*change))
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
        self._table.recent.put(write._replace(sent=sent, acknowledged=time.monotonic()))
        self._hints.wrote(self._hint_of(write))

    def _hint_of(self, write: Write) -> Hint:
        return Hint(self.scope, write.key, None if write.record is None else write.record.registered_at)

    def _learned(self, key: str, outcome: RecordChange) -> None:
        match outcome:
            case RecordChange.REGISTERED | RecordChange.UNREGISTERED:
                self._events.fire(self._topic, {"op": outcome.value, self._table.kind.key_field: key})
            case RecordChange.DOUBTFUL:
                self._settling[key] = self._asking.start(self._settle(key))
            case RecordChange.NOTHING:
                pass

    async def _settle(self, key: str) -> None:
        outcome = RecordChange.DOUBTFUL
        try:
            while outcome is RecordChange.DOUBTFUL:
                value = await self._engine.call("state::get", {"scope": self.scope, "key": key})
                outcome = self._table.settled(key, value)
        except CallError as error:
            log.warning("%s may have changed, and iii-state does not answer: %s", key, error)
            self._table.leave_doubtful(key)
            self._look_again()
            return
        finally:
            del self._settling[key]
        self._learned(key, outcome)

    async def _write(self, function_id: str, hint: Hint, **more: Any) -> Any:
        try:
            return await self._engine.call(function_id, {"scope": hint.scope, "key": hint.key, **more})
        except CallError as error:
            kind, problem = ENGINE_FAILED, "iii-state did not do it, and nothing was changed"
            if error.may_be_done:
                self._hints.wrote(hint._replace(at=""))
                self._learned(hint.key, self._table.doubt(hint.key))
                kind = OUTCOME_UNKNOWN
                problem = "iii-state did not say whether it was done, and it may have been"
            raise DirectoryError(kind, f"{problem}: {error}") from None


class Registrations:
    """Loads and follows both kinds. Belongs to the bus's event loop."""

    def __init__(
        self,
        bus: Bus,
        events: ChangeEvents,
        source: RegisteredSource,
        settings: Settings,
        *,
        follow: Callable[[], None] = lambda: None,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> None:
        self._engine = EngineCalls(bus, settings)
        self._hints = SharedStateHints(self._engine)
        self._look_wanted = asyncio.Event()
        self._home = StateHome(None, None)
        self._is_home_known = False
        """Whether the engine of this connection has said where its state is."""
        self._is_recognised = False
        self._source = source
        self._namespace = namespace
        self._follow = follow
        shared = self._engine, events, self._hints, self._look_wanted.set
        self.skills = RegisteredCollection(*shared, settings.scopes.skills, source.skills, SKILLS)
        self.prompts = RegisteredCollection(*shared, settings.scopes.prompts, source.prompts, PROMPTS)
        self._both = self.skills, self.prompts
        self.scopes = tuple(collection.scope for collection in self._both)
        """The scopes of the state whose events :meth:`state_changed` takes."""
        self._loaded = False
        self._engine_started: int | None = None
        self._pause = _FIRST_PAUSE_SECONDS
        self._cut_short = False
        self._loading: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    # What is told

    def state_changed(self, event: Payload) -> None:
        """Take an event of the engine, which tells of every write to one of the scopes."""
        key = event.get("key")
        for collection in self._both:
            if event.get("scope") == collection.scope and isinstance(key, str):
                collection.changed(key, event.get("old_value"), event.get("new_value"))

    def written_elsewhere(self, event: Payload) -> None:
        """Take hints of what a directory on another engine wrote."""
        hints = self._hints.heard(event)
        if hints is None:
            self._look_wanted.set()
            return
        for hint in hints:
            for collection in self._both:
                if hint.scope == collection.scope:
                    collection.hinted(hint)

    async def connected(self) -> None:
        """Load everything anew, because no event comes without a connection."""
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

    def _stop_loading(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self._loading is not None and self._loading.cancel():
            self._cut_short = True
            self._source.problem = (
                "the connection ended while they were listed, perhaps because they are too many"
            )

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
        """Pause longer every time, until a load succeeds."""
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE_SECONDS)
        await asyncio.sleep(pause)

    async def _recognise(self) -> None:
        """Find out, once for each connection, whether the state can have lost anything with the engine."""
        if self._is_recognised:
            return
        workers, _ = await asyncio.gather(self._engine.find("engine::workers::list", {}), self._find_home())
        self._is_recognised = True
        # Its own parts are as old as the engine.
        own = [row for row in rows_of(workers, "workers") if row.get("runtime") == "engine"]
        started = min((at for row in own if is_count(at := row.get("connected_at_ms"))), default=None)
        before, self._engine_started = self._engine_started, started
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
            self._source.topics = home.finding

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
                self._source.restored += loaded
        self._loaded = self._loaded or not problems
        return problems[0] if problems else None

    async def _is_following(self) -> bool:
        """Return whether the engine has our bindings, which it takes in some time after a connect."""
        try:
            asked = {"function_id": FOLLOWER, "namespace": self._namespace}
            answer = await self._engine.call("engine::functions::info", asked)
        except CallError:
            return False
        return set(self.scopes) <= bound_scopes(answer)


def bound_scopes(answer: object) -> set[str]:
    """Return the scopes of the state bindings in an answer of ``engine::functions::info``."""
    rows = [row for row in rows_of(answer, "registered_triggers") if row.get("trigger_type") == "state"]
    scopes = (text_of(object_of(row.get("config")).get("scope")) for row in rows)
    return {scope for scope in scopes if scope is not None}


def sealing_key(data: Path | None) -> Callable[[], bytes]:
    """Return a function that reads or makes the key of a data directory; without one, a key of this run."""

    @cache
    def key() -> bytes:
        try:
            return (new_secret() if data is None else made_secret(data, REGISTRANTS_KEY)).encode()
        except (OSError, ExposedError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            log.warning(
                "the key that seals registrations cannot be kept (%s): after a restart the workers that "
                "registered documents until then are unknown",
                reason,
            )
            return new_secret().encode()

    return key
