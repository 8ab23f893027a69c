"""What one connection may keep: past a bound it is refused in a sentence; others are not affected."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.driver import Client, Driver

from iii_directory import limits
from iii_directory.limits import (
    MAX_CONNECTION_LOG_LINES,
    MAX_REGISTRATION_BYTES,
    MAX_REGISTRATION_DESCRIPTION_CHARS,
    MAX_REGISTRATION_ID_CHARS,
    MAX_TRACE_CHARS,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Bound = Callable[..., None]
ENGINE = "iii_directory.engine"


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def greedy(driver: Driver) -> Client:
    return driver.connect("greedy")


@pytest.fixture
def modest(driver: Driver) -> Client:
    return driver.connect("modest")


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Bound:
    """Make limits small enough to reach, in their table and in the modules that imported them."""

    def set_all(**smaller: int) -> None:
        modules = [module for name, module in sys.modules.items() if name.startswith(f"{ENGINE}.")]
        for name, value in smaller.items():
            monkeypatch.setattr(limits, name, value)
            for module in modules:
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, value)

    return set_all


def functions_of(client: Client, name: str) -> list[str]:
    info = client.result("engine::workers::info", {"name": name})
    return [row["function_id"] for row in info["functions"]]


def test_functions_past_the_bound_are_refused_and_others_go_on(
    driver: Driver, greedy: Client, modest: Client, bound: Bound
) -> None:
    bound(MAX_CONNECTION_FUNCTIONS=3)
    for number in range(5):
        greedy.register(f"greedy::{number}")
    refused = greedy.take()
    modest.register("modest::f")

    assert functions_of(modest, "greedy") == ["greedy::0", "greedy::1", "greedy::2"]
    assert [row["function_id"] for row in refused] == ["greedy::3", "greedy::4"]
    # To an SDK every other code is the end of the worker.
    assert {row["code"] for row in refused} == {"FUNCTION_NAMESPACE_CONFLICT"}
    assert refused[0]["message"] == "a connection provides at most 3 functions"
    assert functions_of(modest, "modest") == ["modest::f"]
    assert driver.log.count("function greedy::3 was refused: a connection provides at most 3 functions") == 1


def test_released_registrations_can_be_made_again(greedy: Client, bound: Bound) -> None:
    bound(MAX_CONNECTION_FUNCTIONS=1, MAX_CONNECTION_BINDINGS=1, MAX_CONNECTION_TRIGGER_TYPES=1)
    for round_ in range(3):
        greedy.register(f"f{round_}")
        greedy.register(f"f{round_}", description="the same, anew")
        greedy.bind("b", "subscribe", "f", config={"topic": "t"})
        greedy.bind("b", "subscribe", "f", config={"topic": "u"})
        greedy.provide(f"t{round_}")
        assert greedy.take() == []
        greedy.send("unregisterfunction", id=f"f{round_}")
        greedy.send("unregistertrigger", id="b")
        greedy.send("unregistertriggertype", id=f"t{round_}")
        greedy.take()


def test_trigger_types_past_the_bound_are_not_there(
    driver: Driver, greedy: Client, modest: Client, bound: Bound
) -> None:
    bound(MAX_CONNECTION_TRIGGER_TYPES=2)
    for number in range(4):
        greedy.provide(f"greedy-{number}")
    modest.provide("modest-0")
    listed = [row["id"] for row in modest.result("engine::triggers::list")["triggers"]]

    assert [name for name in listed if "-" in name] == ["greedy-0", "greedy-1", "modest-0"]
    assert "trigger type greedy-2 was refused: a connection provides at most 2 trigger types" in driver.log


def test_bindings_past_the_bound_are_refused_by_name(greedy: Client, modest: Client, bound: Bound) -> None:
    bound(MAX_CONNECTION_BINDINGS=2)
    for number in range(3):
        greedy.bind(f"b{number}", "subscribe", "f", config={"topic": "t"})
    modest.bind("m", "subscribe", "f", config={"topic": "t"})

    refused = greedy.take_one()
    assert (refused["type"], refused["id"]) == ("triggerregistrationresult", "b2")
    assert refused["error"] == {"code": "LIMIT_EXCEEDED", "message": "a connection has at most 2 bindings"}
    bound_now = modest.result("engine::registered-triggers::list")["registered_triggers"]
    assert [row["id"] for row in bound_now] == ["b0", "b1", "m"]


def test_bindings_that_outlive_their_maker_have_a_bound_of_their_own(
    driver: Driver, greedy: Client, modest: Client, bound: Bound
) -> None:
    bound(MAX_DURABLE_BINDINGS=2)
    wanted = {"trigger_type": "subscribe", "function_id": "f", "config": {"topic": "t"}}
    first = greedy.result("engine::register_trigger", wanted)["id"]
    greedy.result("engine::register_trigger", wanted)
    assert greedy.error("engine::register_trigger", wanted)["code"] == "LIMIT_EXCEEDED"
    greedy.leave()

    assert modest.error("engine::register_trigger", wanted)["code"] == "LIMIT_EXCEEDED"
    modest.result("engine::unregister_trigger", {"id": first})
    assert modest.result("engine::register_trigger", wanted)["id"]


def test_channels_are_bounded_for_each_and_for_all(greedy: Client, modest: Client, bound: Bound) -> None:
    bound(MAX_CONNECTION_CHANNELS=2, MAX_CHANNELS=3)
    create = "engine::channels::create"
    for _ in range(2):
        greedy.result(create)

    assert greedy.error(create)["message"] == "a connection has at most 2 channels open"
    modest.result(create)
    assert modest.error(create)["message"] == "an engine has at most 3 channels open"


def test_a_channel_that_ended_makes_room(driver: Driver, greedy: Client, bound: Bound) -> None:
    bound(MAX_CONNECTION_CHANNELS=1, MAX_CHANNELS=1)
    greedy.result("engine::channels::create")
    driver.run_timer("channel-idle")

    assert greedy.result("engine::channels::create")


def test_a_connection_cannot_take_every_name(greedy: Client, bound: Bound) -> None:
    bound(MAX_CONNECTION_NAMES=2)
    greedy.announce("second")

    assert greedy.announce("third")["error"]["message"] == "a connection has at most 2 names"
    assert greedy.announce("second")["result"] == {"success": True}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": "f" * (MAX_REGISTRATION_ID_CHARS + 1)}, "an id has at most"),
        (
            {"id": "f", "description": "d" * (MAX_REGISTRATION_DESCRIPTION_CHARS + 1)},
            "a description has at most",
        ),
        ({"id": "f", "request_format": {"x": "s" * MAX_REGISTRATION_BYTES}}, "a registration has at most"),
        ({"id": "f", "response_format": ["s" * MAX_REGISTRATION_BYTES]}, "a registration has at most"),
        ({"id": "f", "metadata": "s" * MAX_REGISTRATION_BYTES}, "a registration has at most"),
    ],
)
def test_one_registration_has_a_size(greedy: Client, fields: dict[str, Any], said: str) -> None:
    greedy.send("registerfunction", **fields)

    assert greedy.take_one()["message"].startswith(said)
    assert functions_of(greedy, "greedy") == []


def test_all_registrations_of_a_connection_together_have_a_size(greedy: Client, bound: Bound) -> None:
    bound(MAX_CONNECTION_BYTES=10_000)
    greedy.register("a", metadata="x" * 4_000)
    greedy.provide("t", trigger_request_format="x" * 4_000)
    greedy.bind("b", "subscribe", "a", config={"topic": "x" * 4_000})
    assert greedy.take_one()["error"]["code"] == "LIMIT_EXCEEDED"
    greedy.register("a", metadata="x" * 5_000)
    assert greedy.take() == []
    greedy.register("c", metadata="x" * 4_000)

    assert "hold" in greedy.take_one()["message"]


def test_a_caller_waits_for_so_many_calls_and_the_others_are_served(
    greedy: Client, modest: Client, bound: Bound
) -> None:
    bound(MAX_PENDING_CALLS=3)
    modest.register("modest::slow")
    for _ in range(3):
        greedy.start("modest::slow", {})
    asked = modest.take()
    assert len(asked) == 3
    assert greedy.error("modest::slow")["message"] == "a connection waits for at most 3 calls at once"
    assert modest.result("engine::health::check")

    modest.answer(asked[0], result=1)
    greedy.take()
    greedy.start("modest::slow", {})
    assert len(modest.take()) == 1


def test_a_pending_call_does_not_keep_what_it_sent(driver: Driver, greedy: Client, modest: Client) -> None:
    modest.register("modest::slow")
    greedy.start("modest::slow", {"big": ["x" * 1000]}, baggage="b" * (MAX_TRACE_CHARS + 1), traceparent="t")
    asked = modest.take_one()
    del asked["data"]
    driver.effects = []

    assert "baggage" not in asked
    assert asked["traceparent"] == "t"
    assert not [held for held in gc.get_objects() if type(held) is list and held == ["x" * 1000]]
    modest.answer(asked, result="done")
    assert greedy.take_one()["result"] == "done"


def test_a_worker_that_answers_no_event_still_gets_them_and_costs_no_more(
    driver: Driver, greedy: Client, modest: Client, bound: Bound
) -> None:
    bound(MAX_UNANSWERED_EVENTS=2)
    greedy.register("greedy::heard")
    greedy.bind("b", "subscribe", "greedy::heard", config={"topic": "t"})
    for number in range(5):
        modest.result("publish", {"topic": "t", "data": number})

    assert [message["data"] for message in greedy.take()] == [0, 1, 2, 3, 4]
    assert driver.router.calls.open_calls() == 2


def test_callers_that_leave_and_come_back_leave_no_calls_behind(
    driver: Driver, modest: Client, bound: Bound
) -> None:
    bound(MAX_UNANSWERED_EVENTS=2)
    modest.register("modest::slow")
    for _ in range(5):
        visitor = driver.connect()
        visitor.start("modest::slow", {})
        visitor.leave()

    assert driver.router.calls.open_calls() == 2


def test_mistakes_of_one_connection_write_so_many_lines(
    driver: Driver, greedy: Client, modest: Client
) -> None:
    for number in range(10 * MAX_CONNECTION_LOG_LINES):
        greedy.frame("no json" if number % 2 else '{"type": "registerfunction", "id": " "}')
    assert len(driver.log) == MAX_CONNECTION_LOG_LINES + 1
    assert driver.log[-1].startswith("further mistakes of connection")

    modest.frame("no json")
    assert driver.log[-1].startswith("a frame was not understood")
