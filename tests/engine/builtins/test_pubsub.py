"""Topics."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.driver import Client, Driver


@pytest.fixture
def driver() -> Driver:
    return Driver()


def subscriber(driver: Driver, name: str, topic: Any = "t", **fields: Any) -> Client:
    client = driver.connect(name)
    client.register(f"{name}::hear")
    client.bind(f"{name}-1", "subscribe", f"{name}::hear", config={"topic": topic}, **fields)
    return client


@pytest.mark.parametrize("data", [{"a": 1}, [1], "x", None, False])
def test_a_message_reaches_every_subscriber_of_its_topic_as_it_is(driver: Driver, data: Any) -> None:
    one, two, other = (
        subscriber(driver, "one"),
        subscriber(driver, "two", metadata={"m": 1}),
        subscriber(driver, "other", topic="T"),
    )
    answer = driver.connect("p").call("publish", {"topic": "t", "data": data})

    assert "result" not in answer
    assert "error" not in answer
    for client in (one, two):
        heard = client.take_one()
        assert heard["data"] == data
        assert "metadata" not in heard
    assert other.take() == []


def test_a_message_without_data_is_null(driver: Driver) -> None:
    one = subscriber(driver, "one")
    driver.connect("p").call("publish", {"topic": "t"})

    assert one.take_one()["data"] is None


def test_a_subscriber_that_unsubscribes_does_not_affect_the_others(driver: Driver) -> None:
    one, two = subscriber(driver, "one"), subscriber(driver, "two")
    three = subscriber(driver, "three")
    one.send("unregistertrigger", id="one-1", trigger_type="subscribe")
    three.leave()
    driver.connect("p").call("publish", {"topic": "t", "data": 1})

    assert one.take() == []
    assert two.take_one()["data"] == 1


def test_a_condition_is_not_asked(driver: Driver) -> None:
    one = driver.connect("one")
    one.register("one::hear")
    one.bind("1", "subscribe", "one::hear", config={"topic": "t", "condition_function_id": "no::such"})
    driver.connect("p").call("publish", {"topic": "t", "data": 1})

    assert one.take_one()["data"] == 1


def test_a_topic_is_needed(driver: Driver) -> None:
    client = driver.connect("p")

    assert client.error("publish", {"topic": "", "data": 1})["code"] == "topic_not_set"
    assert client.error("publish", {"data": 1})["code"] == "deserialization_error"
    assert client.error("publish", {"topic": 7, "data": 1})["code"] == "deserialization_error"


def test_a_subscriber_without_a_topic_hears_nothing(driver: Driver) -> None:
    one = driver.connect("one")
    one.register("one::hear")
    one.bind("1", "subscribe", "one::hear", config=None)
    driver.connect("p").call("publish", {"topic": "t", "data": 1})

    assert one.take() == []


def test_messages_keep_their_order(driver: Driver) -> None:
    one = subscriber(driver, "one")
    publisher = driver.connect("p")
    for number in range(50):
        publisher.call("publish", {"topic": "t", "data": number})

    assert [heard["data"] for heard in one.take()] == list(range(50))
