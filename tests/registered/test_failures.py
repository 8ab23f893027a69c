"""When iii-state fails or is not there: callers are told, readers are served, and nothing is lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.registered.stage import House, SdkClient, on_every_engine
from tests.support.between import Between
from tests.support.engine import WAIT, EngineThread
from tests.support.reader import until

from iii_directory.engine.sqlite_store import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PROMPT = {"description": "d", "function_id": "a::b"}
RECORD = {"id": "early", "skill": "# early", "registered_at": "2026-01-01T00:00:00Z"}


def on_loop(engine: EngineThread, action: Callable[[], Any]) -> Any:
    """Do something where the engine runs."""

    async def run() -> Any:
        return action()

    return asyncio.run_coroutine_threadsafe(run(), engine.loop).result(WAIT)


class Durable:
    """A directory on an engine whose disk can be made read-only."""

    def __init__(self, root: Path) -> None:
        self.database = Database(root / "data")
        self.engine = EngineThread(database=self.database)
        self.engine.__enter__()
        self.house = House(self.engine.url, root / "skills")

    def refuse_writes(self, mode: str) -> None:
        on_loop(self.engine, lambda: self.database._connection.execute(f"PRAGMA query_only = {mode}"))

    def close(self) -> None:
        self.house.close()
        self.engine.__exit__(None, None, None)


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[Durable]:
    made = Durable(tmp_path)
    yield made
    made.close()


def test_a_write_the_state_refuses_is_an_error_and_changes_nothing(durable: Durable) -> None:
    house = durable.house
    house.call("skills::register", id="demo", skill="# kept")
    house.call("prompts::register", name="demo", **PROMPT)
    listener = house.listener("skills::on-change", "prompts::on-change")
    durable.refuse_writes("ON")
    for function_id, fields in (
        ("skills::register", {"id": "demo", "skill": "# other"}),
        ("skills::register", {"id": "new", "skill": "# new"}),
        ("skills::unregister", {"id": "demo"}),
        ("prompts::register", {"name": "demo", "description": "other", "function_id": "a::b"}),
        ("prompts::unregister", {"name": "demo"}),
    ):
        assert house.refusal(function_id, fields).startswith("D410 engine_error: ")
    assert house.call("directory::skills::get", id="demo")["body"] == "# kept"
    assert list(house.skill_rows()) == ["demo"]
    assert house.prompt_rows()["demo"]["description"] == "d"
    durable.refuse_writes("OFF")
    house.call("skills::register", id="demo", skill="# other")
    assert house.call("directory::skills::get", id="demo")["body"] == "# other"
    assert listener.heard_nothing_before({"op": "register", "id": "demo"})


class Stateless:
    """An engine that can be without ``state::*`` for a while."""

    def __init__(self, engine: EngineThread) -> None:
        self._engine = engine
        self._functions = engine.server._router.engine_state.functions
        self._taken: dict[Any, Any] = {}

    def take_away(self) -> None:
        def take() -> None:
            keys = [key for key in self._functions if "state::list" in key]
            self._taken = {key: self._functions.pop(key) for key in keys}

        on_loop(self._engine, take)
        assert self._taken

    def put_back(self) -> None:
        on_loop(self._engine, lambda: self._functions.update(self._taken))


def test_without_the_state_the_folder_is_served_and_the_rest_comes_later(
    engine: EngineThread, build: Callable[..., House]
) -> None:
    with SdkClient(engine.url) as client:
        client.call("state::set", scope="skills", key="early", value=RECORD)
    state = Stateless(engine)
    state.take_away()
    house = build()
    assert house.skill_rows() == {}
    assert house.call("directory::skills::get", id="iii-directory")["id"] == "iii-directory"
    (finding,) = house.call("directory::diagnostics")["findings"]
    assert (finding["kind"], finding["subject"]) == ("unavailable", "iii-state")
    state.put_back()
    until(lambda: list(house.skill_rows()) == ["early"], "what is registered is shown")
    until(lambda: house.call("directory::diagnostics")["findings"] == [], "the finding is gone")


def test_a_registration_before_the_first_load_is_not_lost_by_it(
    engine: EngineThread, build: Callable[..., House]
) -> None:
    state = Stateless(engine)
    state.take_away()
    house = build()
    house.call("skills::register", id="demo", skill="# x")
    assert list(house.skill_rows()) == ["demo"]
    state.put_back()
    until(lambda: house.call("directory::diagnostics")["findings"] == [], "the state was listed")
    assert list(house.skill_rows()) == ["demo"]


# Writes that are not answered in time


@pytest.fixture
def between(engine_url: str) -> Iterator[Between]:
    with Between(engine_url) as opened:
        yield opened


@pytest.fixture
def far_house(engine_url: str, between: Between, tmp_path: Path) -> Iterator[House]:
    """A directory whose messages the test can hold back, beside a caller whose messages pass."""
    house = House(engine_url, tmp_path / "skills", worker_url=between.url, state_timeout_ms=1000)
    yield house
    between.let_pass()
    house.close()


@on_every_engine
@pytest.mark.parametrize(("lost", "done"), [("invocationresult", True), ("invokefunction", False)])
def test_a_write_without_an_answer_is_said_to_be_in_doubt_and_the_truth_is_found_out(
    far_house: House, between: Between, *, lost: str, done: bool
) -> None:
    far_house.call("skills::register", id="before", skill="# x")
    listener = far_house.listener("skills::on-change")
    between.swallow(lost, "state::set")
    sentence = far_house.refusal("skills::register", id="doubtful", skill="# x")
    assert sentence.startswith("D412 outcome_unknown: iii-state did not say whether it was done")
    assert "nothing was changed" not in sentence
    between.let_pass()
    far_house.call("skills::register", id="later", skill="# x")
    expected = ["before", *(["doubtful"] if done else []), "later"]
    until(lambda: list(far_house.skill_rows()) == expected, "the truth is shown")
    assert sorted(row["id"] for row in far_house.state()) == expected
    told = [event["id"] for event in listener.take(2 if done else 1)]
    assert sorted(told) == expected[1:]


@on_every_engine
def test_a_deletion_without_an_answer_is_said_to_be_in_doubt_and_the_truth_is_found_out(
    far_house: House, between: Between
) -> None:
    far_house.call("skills::register", id="doubtful", skill="# x")
    between.swallow("invocationresult", "state::delete")
    sentence = far_house.refusal("skills::unregister", id="doubtful")
    assert sentence.startswith("D412 outcome_unknown: ")
    until(lambda: far_house.skill_rows() == {}, "the truth is shown")
