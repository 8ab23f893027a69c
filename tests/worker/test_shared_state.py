"""Directories on two engines that share one state, through random writes, deletions, restarts and kills.

The engines are doubles without sockets, so that two hundred rounds take seconds: calls take a random number
of turns of the loop, an engine tells only its own directory of a write, and topics reach both.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.engine import WAIT

from iii_directory.bus.seam import CallError, Subscription
from iii_directory.catalog.registered_source import RegisteredSource
from iii_directory.config import Settings
from iii_directory.errors import ENGINE_FAILED, OUTCOME_UNKNOWN, DirectoryError
from iii_directory.worker.change_events import ChangeEvents
from iii_directory.worker.registrations import Registrations

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from iii_directory.catalog.registered import Record

ROUNDS = 200
SCOPES = ("skills", "prompts")
BOUND = [{"trigger_type": "state", "config": {"scope": scope}} for scope in SCOPES]
Scope = dict[str, Any]


class SharedStore:
    """The state of two engines, as a Redis keeps it: it outlives the engines."""

    def __init__(self) -> None:
        self.scopes: dict[str, Scope] = {scope: {} for scope in SCOPES}
        self.written: list[tuple[str, str]] = []
        """Every record that was ever set, by its key and its time."""

    def apply(self, function_id: str, payload: Mapping[str, Any]) -> Any:
        values, key = self.scopes[payload["scope"]], payload.get("key", "")
        match function_id:
            case "state::list":
                return list(values.values())
            case "state::get":
                return values.get(key)
            case "state::set":
                self.written.append((key, payload["value"]["registered_at"]))
                values[key] = payload["value"]
                return {}
            case _:
                return values.pop(key, None)


class EngineDouble:
    """One engine, and the directory on it."""

    def __init__(self, store: SharedStore, chance: random.Random, topic: list[EngineDouble]) -> None:
        self._store = store
        self._chance = chance
        self._topic = topic
        topic.append(self)
        self._runs, self._started = True, 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.source = RegisteredSource(WAIT)
        self.registrations = Registrations(
            self, ChangeEvents(self), self.source, Settings(state_timeout_ms=int(WAIT * 1000))
        )

    async def call(
        self, function_id: str, payload: Mapping[str, Any], *, timeout_ms: int, namespace: str | None = None
    ) -> Any:
        await self._some_turns()
        if not self._runs:
            raise CallError("connection_lost", "the engine died before it")
        answer = self._answer(function_id, payload)
        await self._some_turns()
        if not self._runs:
            raise CallError("connection_lost", "the engine died after it")
        return answer

    async def tell(self, subscription: Subscription, event: Mapping[str, Any]) -> None:
        if self._runs and subscription.function_id == "publish":
            self._answer("publish", event)

    def _answer(self, function_id: str, payload: Mapping[str, Any]) -> Any:
        match function_id:
            case "engine::functions::info":
                return {"registered_triggers": BOUND}
            case "engine::workers::list":
                return {"workers": [{"runtime": "engine", "connected_at_ms": self._started}]}
            case "configuration::get":
                return {"value": {"adapter": {"name": "redis"}}}
            case "engine::health::check":
                return {}
            case "publish":
                for engine in self._topic:
                    self._later(engine, engine.registrations.written_elsewhere, payload["data"])
                return None
            case _:
                return self._state(function_id, payload)

    def _state(self, function_id: str, payload: Mapping[str, Any]) -> Any:
        scope, key = payload["scope"], payload.get("key", "")
        old = self._store.scopes[scope].get(key)
        answer = self._store.apply(function_id, payload)
        new = self._store.scopes[scope].get(key)
        if old != new:
            event = {"scope": scope, "key": key, "old_value": old, "new_value": new}
            self._later(self, self.registrations.state_changed, event)
        return answer

    def _later(self, engine: EngineDouble, hear: Callable[[Any], None], event: Any) -> None:
        async def deliver() -> None:
            await self._some_turns()
            if engine._runs:
                hear(event)

        task = asyncio.get_running_loop().create_task(deliver())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _some_turns(self) -> None:
        for _ in range(self._chance.randrange(4)):
            await asyncio.sleep(0)

    # What tests do

    async def stop(self) -> None:
        self._runs = False
        self.registrations.connection_lost()
        # Whatever was under way comes to know of it.
        for _ in range(20):
            await asyncio.sleep(0)

    async def start(self) -> None:
        self._runs, self._started = True, self._started + 1
        await self.registrations.connected()
        await self.source.ready()

    def served(self) -> Scope:
        """The registered skills as callers of this directory see them."""
        table = self.source.skills
        held: dict[str, Record] = table._held
        return {key: table.get(key) for key in held}

    async def attempt(self, operation: Coroutine[Any, Any, object]) -> None:
        """Do something that may fail because the engine dies meanwhile."""
        try:
            await operation
        except DirectoryError as error:
            if error.kind not in (ENGINE_FAILED, OUTCOME_UNKNOWN):
                raise

    def write(self, key: str, body: str) -> Coroutine[Any, Any, None]:
        return self.attempt(self.registrations.skills.register({"id": key, "skill": body}))

    def delete(self, key: str) -> Coroutine[Any, Any, None]:
        return self.attempt(self.registrations.skills.unregister(key))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints are published without a pause, and nothing is left to the look of every minute."""
    monkeypatch.setattr("iii_directory.worker.shared_state.HINT_BURST_SECONDS", 0)
    monkeypatch.setattr("iii_directory.worker.registrations._FIRST_PAUSE_SECONDS", 0)
    monkeypatch.setattr("iii_directory.worker.registrations.HINTED_LOOK_SECONDS", 3600)


async def agree(store: SharedStore, *engines: EngineDouble) -> None:
    """Wait until every directory serves exactly what the state holds."""
    try:
        async with asyncio.timeout(WAIT):
            while any(engine.served() != store.scopes["skills"] for engine in engines):  # noqa: ASYNC110
                await asyncio.sleep(0)
    except TimeoutError:
        stored = store.scopes["skills"]
        for engine in engines:
            assert engine.served() == stored


async def operations(engine: EngineDouble, chance: random.Random, keys: list[str]) -> None:
    """Write and delete some keys, some at a time."""
    for number in range(chance.randrange(1, 5)):
        chosen = chance.sample(keys, chance.randrange(1, 4))
        bodies = {key: "" if chance.random() < 0.4 else f"# {number} {chance.random()}" for key in chosen}
        await asyncio.gather(
            *(engine.write(key, body) if body else engine.delete(key) for key, body in bodies.items())
        )


async def a_round(seed: int) -> None:
    chance, topic, store = random.Random(seed), list[EngineDouble](), SharedStore()
    here, there = EngineDouble(store, chance, topic), EngineDouble(store, chance, topic)
    keys = [f"key-{number}" for number in range(6)]
    for engine in (here, there):
        await engine.start()
    for _ in range(3):
        # Both write the same keys at the same moment, and one of the engines may die in the middle of it.
        both = asyncio.gather(operations(here, chance, keys), operations(there, chance, keys))
        if chance.random() < 0.5:
            await both
            await agree(store, here, there)
            await here.stop()
        else:
            for _ in range(chance.randrange(30)):
                await asyncio.sleep(0)
            await here.stop()
            await both
        # While one is away, the other goes on.
        await operations(there, chance, keys)
        await here.start()
        await agree(store, here, there)
    assert len(store.written) == len(set(store.written)), "a record was written a second time"
    for engine in (here, there):
        engine.registrations.close()


def test_directories_agree_and_bring_nothing_back_through_writes_deletions_and_restarts() -> None:
    for seed in range(ROUNDS):
        try:
            asyncio.run(a_round(seed))
        except (AssertionError, TimeoutError) as error:
            raise AssertionError(f"in the round of the seed {seed}") from error
