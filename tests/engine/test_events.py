"""Events of the engine's own types: who is told, and that it ends."""

from __future__ import annotations

import pytest
from tests.engine.driver import Client, Driver

from iii_directory.limits import MAX_EVENT_DEPTH, MAX_NESTED_EVENTS


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def sub(driver: Driver) -> Client:
    return driver.connect("sub")


def test_events_that_cause_each_other_come_to_an_end(driver: Driver, sub: Client) -> None:
    sub.bind("b1", "state", "state::delete")

    assert sub.call("state::set", {"scope": "s", "key": "k", "value": 1})["result"]["new_value"] == 1
    assert sub.call("state::get", {"scope": "s", "key": "k"}).get("result") is None
    assert sum("cause each other" in line for line in driver.log) == 1


def test_events_that_cause_many_others_come_to_an_end(driver: Driver, sub: Client) -> None:
    for number in range(30):
        sub.bind(f"b{number}", "state", "state::delete")
    sub.call("state::set", {"scope": "s", "key": "k", "value": 1})
    stopped = sum("cause each other" in line for line in driver.log)

    assert stopped <= 30 * (MAX_NESTED_EVENTS + 1)
    assert MAX_EVENT_DEPTH < MAX_NESTED_EVENTS


def test_a_builtin_function_can_be_bound_and_causes_its_own_events(driver: Driver, sub: Client) -> None:
    sub.register("s::f")
    sub.bind("b1", "subscribe", "state::set", config={"topic": "t"})
    sub.bind("b2", "state", "s::f")
    sub.call("publish", {"topic": "t", "data": {"scope": "s", "key": "k", "value": 1}})

    assert sub.take_one()["data"]["new_value"] == 1
