"""A directory on each of two engines that share one state, and an engine that dies with its newest writes."""

from __future__ import annotations

import json
import threading
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.registered.stage import House, on_every_engine
from tests.support.engine import EngineThread, RawClient
from tests.support.reader import until
from tests.support.real_engine import RealMortal, program_or_skip, redis_server

from iii_directory.engine.store import MemoryStore
from iii_directory.worker.neighbours import TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.real_engine import MortalEngine

    from iii_directory.engine.sqlite_store import Database

PROMPT = {"description": "d", "function_id": "a::b"}


class SharedState:
    """What two engines keep their state in, as a Redis would be."""

    def __init__(self) -> None:
        self._state = MemoryStore()
        self.set_aside = None

    def store(self, name: str) -> MemoryStore:
        return self._state if name == "state" else MemoryStore()

    def close(self) -> None:
        """Nothing is open."""


class Relay(threading.Thread):
    """Carries what is published on one engine to the other, as their Redis would."""

    def __init__(self, source: EngineThread, target: EngineThread, carried: Counter[str]) -> None:
        super().__init__(daemon=True)
        self._carried = carried
        """What the two relays published themselves, which must not go back and forth."""
        self._source, self._target = RawClient(source.url, name="relay"), RawClient(target.url, name="back")
        self._source.send(type="registerfunction", id="relay::carry")
        config = {"topic": TOPIC}
        self._source.send(
            type="registertrigger",
            id=f"relay-{id(self)}",
            trigger_type="subscribe",
            function_id="relay::carry",
            config=config,
        )
        assert self._source.result("engine::workers::list")

    def run(self) -> None:
        while True:
            try:
                message = self._source.receive(timeout=60)
            except Exception:  # noqa: BLE001 (the test is over)
                return
            if message["type"] != "invokefunction":
                continue
            text = json.dumps(message["data"], sort_keys=True)
            if self._carried[text]:
                self._carried[text] -= 1
                continue
            self._carried[text] += 1
            self._target.result("publish", {"topic": TOPIC, "data": message["data"]})

    def close(self) -> None:
        self._source.socket.close()
        self.join()
        self._target.socket.close()


@pytest.fixture(params=["embedded", "real"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., tuple[House, House]]]:
    """Opens directories on two engines with one state, whose topics reach one another or do not."""
    with ExitStack() as opened:

        def build(*, relayed: bool) -> tuple[House, House]:
            engines = real_pair if request.param == "real" else embedded_pair
            houses = [
                House(url, tmp_path / f"skills-{n}")
                for n, url in enumerate(engines(opened, tmp_path, relayed=relayed))
            ]
            for house in houses:
                opened.callback(house.close)
            return houses[0], houses[1]

        yield build


def embedded_pair(opened: ExitStack, _: Path, *, relayed: bool) -> list[str]:
    """The addresses of two embedded engines, with one state in memory and relays for their topics."""
    shared = cast("Database", SharedState())
    engines = [opened.enter_context(EngineThread(database=shared)) for _ in range(2)]
    carried: Counter[str] = Counter()
    for source, target in (engines, reversed(engines)) if relayed else ():
        relay = Relay(source, target, carried)
        relay.start()
        opened.callback(relay.close)
    return [engine.url for engine in engines]


def real_pair(opened: ExitStack, folder: Path, *, relayed: bool) -> list[str]:
    """The addresses of two real engines, with their state and perhaps their topics in one Redis."""
    program_or_skip()
    redis, address = redis_server(folder)
    opened.enter_context(redis).wait_for("eady to accept connections")
    engines = [RealMortal(folder / name, redis=address, shared_topics=relayed) for name in ("one", "two")]
    for engine in engines:
        engine.start()
        opened.callback(engine.kill)
    return [engine.url for engine in engines]


def test_what_a_directory_on_another_engine_writes_and_deletes_is_seen_here(
    pair: Callable[..., tuple[House, House]],
) -> None:
    here, there = pair(relayed=True)
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


def test_a_great_many_writes_at_once_are_all_seen_on_the_other_engine(
    pair: Callable[..., tuple[House, House]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.worker.neighbours.NEIGHBOUR_BURST_SECONDS", 2.0)
    here, there = pair(relayed=True)
    for number in range(300):
        here.call("skills::register", id=f"many/{number:03}", skill="# x")
    until(lambda: len(there.skill_rows()) == 300, "all are seen there")


def test_the_state_is_looked_at_now_and_then_though_nobody_told(
    pair: Callable[..., tuple[House, House]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.worker.registrations.LOOK_SECONDS", 0.1)
    here, there = pair(relayed=False)
    here.call("skills::register", id="untold", skill="# x")
    until(lambda: list(there.skill_rows()) == ["untold"], "it is found")
    here.call("skills::unregister", id="untold")
    until(lambda: there.skill_rows() == {}, "its deletion is found")


@on_every_engine
def test_a_forged_word_of_writes_elsewhere_changes_nothing(own_house: House) -> None:
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


def test_an_engine_killed_before_its_flush_is_told_again_and_nobody_hears_of_removals(
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
