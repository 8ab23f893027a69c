"""A directory on each of two engines that share one state, and an engine that dies with its newest writes."""

from __future__ import annotations

import json
import threading
from collections import Counter
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Protocol, cast

import pytest
from iii import InvocationError
from tests.registered.stage import House, on_every_engine
from tests.support.commands import free_port
from tests.support.engine import EngineThread, RawClient
from tests.support.reader import until
from tests.support.real_engine import RealMortal, program_or_skip, redis_server

from iii_directory.engine.store import MemoryStore
from iii_directory.worker.shared_state import TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.real_engine import MortalEngine

    from iii_directory.engine.sqlite_store import Database

PROMPT = {"description": "d", "function_id": "a::b"}
ROUNDS = 5
"""How often an engine is stopped in the tests of every day; 200 times in the soak."""


class Engine(Protocol):
    """One of two engines that share their state; it can be stopped and comes back at its address."""

    @property
    def url(self) -> str: ...

    def start(self) -> None: ...

    def kill(self) -> None: ...


class SharedState:
    """What an engine keeps its state in, as in a Redis, and its configuration that says so."""

    set_aside = None

    def __init__(self, state: MemoryStore, *, topics: str) -> None:
        self._state = state
        self._configuration = MemoryStore()
        for name, adapter in (("iii-state", "redis"), ("iii-pubsub", topics)):
            entry = {"id": name, "name": name, "description": "", "value": {"adapter": {"name": adapter}}}
            self._configuration.set("configuration", name, entry)

    is_open = keeps_open = False

    def store(self, name: str) -> MemoryStore:
        return self._state if name == "state" else self._configuration

    def close(self) -> None:
        """Nothing is open."""


class SharingEngine:
    """An embedded engine that keeps its state as a real one with a Redis does."""

    def __init__(self, state: MemoryStore, *, relayed: bool) -> None:
        self._port = free_port()
        self._database = cast("Database", SharedState(state, topics="redis" if relayed else "local"))
        self._relayed = relayed
        self._running: EngineThread | None = None
        self._relay: Relay | None = None
        self.other: SharingEngine
        self.carried: Counter[str] = Counter()
        self.url = f"ws://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._running = EngineThread(port=self._port, database=self._database).__enter__()
        if self._relayed:
            self._relay = Relay(self)

    def kill(self) -> None:
        if self._running is not None:
            self._running.__exit__(None, None, None)
            self._running = None
        if self._relay is not None:
            self._relay.close()
            self._relay = None


class Relay(threading.Thread):
    """Carries what is published on an engine to the other one, as their Redis would."""

    def __init__(self, source: SharingEngine) -> None:
        super().__init__(daemon=True)
        self._from, self._to = source, source.other
        self._client = RawClient(source.url, name="relay")
        self._client.send(type="registerfunction", id="relay::carry")
        self._client.send(
            type="registertrigger",
            id="relay",
            trigger_type="subscribe",
            function_id="relay::carry",
            config={"topic": TOPIC},
        )
        assert self._client.result("engine::workers::list")
        self.start()

    def run(self) -> None:
        # Until the engine hangs up, or the test is over.
        with suppress(Exception):
            while True:
                message = self._client.receive(timeout=60)
                if message["type"] == "invokefunction":
                    self._carry(message["data"])

    def _carry(self, data: Any) -> None:
        text = json.dumps(data, sort_keys=True)
        if self._from.carried[text]:
            # It came from the other engine, and must not go back.
            self._from.carried[text] -= 1
            return
        self._to.carried[text] += 1
        # The other engine may be away.
        with suppress(OSError), RawClient(self._to.url) as target:
            target.result("publish", {"topic": TOPIC, "data": data})

    def close(self) -> None:
        self._client.socket.close()
        self.join()


class Pair:
    """Two engines that share their state, and a directory on each."""

    def __init__(self, engines: list[Engine], folder: Path, opened: ExitStack) -> None:
        self.engines = engines
        self.houses = [House(engine.url, folder / f"skills-{n}") for n, engine in enumerate(engines)]
        for house in self.houses:
            opened.callback(house.close)

    def both_serve(self, bodies: dict[str, str]) -> None:
        """Wait until both directories and the state have exactly these skills."""
        for house in self.houses:
            until(lambda house=house: served(house) == bodies, f"both serve {bodies}")
        assert {row["id"]: row["skill"] for row in self.houses[1].state()} == bodies

    def return_of(self, number: int) -> None:
        self.engines[number].start()
        until(lambda: answers(self.houses[number]), "the directory is back")


def served(house: House) -> dict[str, str]:
    """The bodies of the registered skills, as a caller reads them."""
    bodies: dict[str, str] = {}
    for skill_id in house.skill_rows():
        # It may have gone since it was listed.
        with suppress(InvocationError):
            bodies[skill_id] = house.call("directory::skills::get", id=skill_id)["body"]
    return bodies


def reasons(house: House) -> list[str]:
    """The reasons of all findings."""
    return [row["reason"] for row in house.call("directory::diagnostics")["findings"]]


def answers(house: House) -> bool:
    try:
        house.client.call("skills::list", timeout_ms=500)
    except InvocationError:
        return False
    return True


@pytest.fixture(params=["embedded", "real"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Pair]]:
    """Opens directories on two engines with one state, whose topics reach one another or do not."""
    with ExitStack() as opened:

        def build(*, relayed: bool) -> Pair:
            make = real_pair if request.param == "real" else embedded_pair
            engines = make(opened, tmp_path, relayed=relayed)
            for engine in engines:
                engine.start()
                opened.callback(engine.kill)
            return Pair(engines, tmp_path, opened)

        yield build


def embedded_pair(_: ExitStack, __: Path, *, relayed: bool) -> list[Engine]:
    """Two embedded engines, with one state in memory and relays for their topics."""
    state = MemoryStore()
    one, two = SharingEngine(state, relayed=relayed), SharingEngine(state, relayed=relayed)
    one.other, two.other = two, one
    return [one, two]


def real_pair(opened: ExitStack, folder: Path, *, relayed: bool) -> list[Engine]:
    """Two real engines, with their state and perhaps their topics in one Redis."""
    program_or_skip()
    redis, address = redis_server(folder)
    opened.enter_context(redis).wait_for("eady to accept connections")
    return [RealMortal(folder / name, redis=address, shared_topics=relayed) for name in ("one", "two")]


def test_what_a_directory_on_another_engine_writes_and_deletes_is_seen_here(
    pair: Callable[..., Pair],
) -> None:
    here, there = pair(relayed=True).houses
    listener = there.listener("skills::on-change")
    here.call("skills::register", id="shared", skill="# one")
    here.call("prompts::register", name="shared", **PROMPT)
    until(lambda: list(there.skill_rows()) == ["shared"], "the skill is seen there")
    until(lambda: "shared" in there.prompt_rows(), "the prompt is seen there")
    assert listener.next() == {"op": "register", "id": "shared"}
    there.call("skills::register", id="shared", skill="# two")
    assert listener.next() == {"op": "register", "id": "shared"}
    until(lambda: here.call("directory::skills::get", id="shared")["body"] == "# two", "the change is seen")
    there.call("skills::unregister", id="shared")
    until(lambda: here.skill_rows() == {}, "the deletion is seen here")
    assert listener.next() == {"op": "unregister", "id": "shared"}
    assert not [reason for reason in reasons(here) if "topics" in reason]


def test_a_great_many_writes_at_once_are_all_seen_on_the_other_engine(
    pair: Callable[..., Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.worker.shared_state.HINT_BURST_SECONDS", 2.0)
    here, there = pair(relayed=True).houses
    for number in range(300):
        here.call("skills::register", id=f"many/{number:03}", skill="# x")
    until(lambda: len(there.skill_rows()) == 300, "all are seen there")


def test_the_state_is_listed_now_and_then_even_without_events(
    pair: Callable[..., Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.worker.registrations.LOOK_SECONDS", 0.1)
    here, there = pair(relayed=False).houses
    here.call("skills::register", id="untold", skill="# x")
    until(lambda: list(there.skill_rows()) == ["untold"], "it is found")
    here.call("skills::unregister", id="untold")
    until(lambda: there.skill_rows() == {}, "its deletion is found")
    until(lambda: any("keeps its topics to itself" in reason for reason in reasons(here)), "it is said why")


def test_what_was_deleted_elsewhere_stays_deleted_when_an_engine_comes_back(
    pair: Callable[..., Pair],
) -> None:
    shared = pair(relayed=True)
    for number in range(ROUNDS):
        write_delete_and_restart(shared, number)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_what_was_deleted_elsewhere_stays_deleted_in_200_rounds(pair: Callable[..., Pair]) -> None:
    shared = pair(relayed=True)
    for number in range(200):
        write_delete_and_restart(shared, number)


def write_delete_and_restart(pair: Pair, number: int) -> None:
    """Write at one moment on both, stop one engine, delete and write on the other, and start it again."""
    here, there = pair.houses
    writers = [
        threading.Thread(
            target=lambda house=house: [
                house.call("skills::register", id=f"same-{n}", skill=f"# {house.url} {number}")
                for n in range(5)
            ]
        )
        for house in pair.houses
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    agreed = {row["id"]: row["skill"] for row in here.state()}
    pair.both_serve(agreed)

    # Deleted there, seen here, and then gone for good.
    here.call("skills::register", id="seen", skill="# x")
    until(lambda: "seen" in there.skill_rows(), "it is seen there")
    there.call("skills::unregister", id="seen")
    until(lambda: "seen" not in here.skill_rows(), "its deletion is seen here")
    here.call("skills::register", id="kept", skill=f"# {number}")
    here.call("skills::register", id="unseen", skill="# x")
    pair.engines[0].kill()

    # The newest write of an engine that is away: nothing that survived is later.
    there.call("skills::unregister", id="unseen")
    there.call("skills::unregister", id="same-0")
    there.call("skills::register", id="same-1", skill=f"# while away {number}")
    pair.return_of(0)
    del agreed["same-0"]
    pair.both_serve({**agreed, "same-1": f"# while away {number}", "kept": f"# {number}"})
    assert not [row for row in here.call("directory::diagnostics")["findings"] if row["kind"] == "restored"]


@on_every_engine
def test_a_forged_hint_of_writes_elsewhere_changes_nothing(own_house: House) -> None:
    own_house.call("skills::register", id="real", skill="# real")
    scope = own_house.scope("skills")
    forged: list[Any] = [
        {"by": "me", "writes": [{"scope": scope, "key": "real", "at": None}]},
        {"by": "me", "writes": [{"scope": scope, "key": "ghost", "at": "2099-01-01T00:00:00Z"}]},
        {"writes": "everything"},
        "no object",
        None,
    ]
    for data in forged:
        own_house.call("publish", topic=TOPIC, data=data)
    assert list(own_house.skill_rows()) == ["real"]


def test_an_engine_killed_before_its_flush_is_told_again_and_no_subscriber_hears_of_removals(
    mortal: MortalEngine, mortal_house: House
) -> None:
    house = mortal_house
    ids = [f"kept/{number:04}" for number in range(mortal.writes)]
    for skill_id in ids:
        house.call("skills::register", id=skill_id, skill="# x")
    house.call("prompts::register", name="kept", **PROMPT)
    listener = house.listener("skills::on-change")
    mortal.kill()
    # It comes back with nothing: all of it was in its memory.
    mortal.start()
    until(lambda: house.is_back(listener.function_id), "the directory is back")
    assert list(house.skill_rows()) == ids
    assert list(house.prompt_rows()) == ["kept"]
    assert len(house.state()) == mortal.writes
    found = house.call("directory::diagnostics")["findings"]
    (restored,) = [row for row in found if row["kind"] == "restored"]
    assert f"without {mortal.writes + 1} of the last registrations" in restored["reason"]
    house.call("skills::register", id="after", skill="# x")
    assert listener.heard_nothing_before({"op": "register", "id": "after"})
