"""Engines from 0.25 on, where functions are observed: each subscriber, by either way, hears once."""

from __future__ import annotations

import logging
import warnings
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest
from tests.registered.stage import House, Listener, SdkClient
from tests.support.commands import free_port
from tests.support.engine import EngineThread, RawClient
from tests.support.reader import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TYPES = ("skills::on-change", "directory::skills::on-change")


@pytest.fixture
def engine() -> Iterator[EngineThread]:
    with EngineThread(dialect="0.25") as running:
        yield running


@pytest.fixture(params=["inside", "joined"])
def house(request: pytest.FixtureRequest, engine: EngineThread, tmp_path: Path) -> Iterator[House]:
    running = House(engine.url, tmp_path / "skills", engine if request.param == "inside" else None)
    yield running
    running.close()


def observer(client: SdkClient, source: str, **options: Any) -> tuple[Listener, Any]:
    """A function that observes another one, by the 0.25 SDK; it warns of nothing."""
    listener = Listener(client)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        handle = client.sdk.observe({"function_id": source}, listener.function_id, options)
    until(lambda: source in client.bindings(listener.function_id), f"{source} is observed")
    return listener, handle


@pytest.mark.parametrize("kind", TYPES)
def test_observers_and_bindings_are_told_of_each_event_once(house: House, kind: str) -> None:
    observing, _ = observer(house.client, kind)
    bound = house.listener(kind)
    for number in range(20):
        house.call("skills::register", id=f"demo-{number}", skill="# x")
    expected = [{"op": "register", "id": f"demo-{number}"} for number in range(20)]
    assert observing.take(20) == expected
    assert bound.take(20) == expected
    house.call("skills::unregister", id="demo-0")
    assert observing.next() == bound.next() == {"op": "unregister", "id": "demo-0"}


def test_an_observers_metadata_comes_with_the_event(house: House) -> None:
    observing, _ = observer(house.client, "prompts::on-change", metadata={"mine": True})
    house.call("prompts::register", name="demo", description="d", function_id="a::b")
    assert observing.next() == {"op": "register", "name": "demo"}
    assert observing.metadata == [{"mine": True}]


def test_who_stops_observing_or_leaves_is_told_nothing_more(house: House) -> None:
    stays, _ = observer(house.client, "skills::on-change")
    stops, handle = observer(house.client, "skills::on-change")
    with SdkClient(house.url) as other:
        observer(other, "skills::on-change")
    handle.dispose()
    until(lambda: house.client.bindings(stops.function_id) == [], "it observes no more")
    house.call("skills::register", id="demo", skill="# x")
    assert stays.next() == {"op": "register", "id": "demo"}
    house.client.subscribe("skills::on-change", stops.function_id)
    house.call("skills::register", id="later", skill="# x")
    assert stops.heard_nothing_before({"op": "register", "id": "later"})


def test_who_observes_before_the_directory_is_there_hears_it_all_the_same(
    engine: EngineThread, tmp_path: Path
) -> None:
    with ExitStack() as opened:
        client = opened.enter_context(SdkClient(engine.url))
        listener = Listener(client)
        client.sdk.observe({"function_id": "skills::on-change"}, listener.function_id)
        client.start_subscribing("prompts::on-change", listener.function_id)
        house = House(engine.url, tmp_path / "skills")
        opened.callback(house.close)
        house.call("skills::register", id="demo", skill="# x")
        assert listener.next() == {"op": "register", "id": "demo"}
        house.call("prompts::register", name="demo", description="d", function_id="a::b")
        assert listener.next() == {"op": "register", "name": "demo"}


def test_observers_are_there_again_after_the_engine_came_back(tmp_path: Path) -> None:
    port = free_port()
    with EngineThread(dialect="0.25", port=port) as engine:
        house = House(engine.url, tmp_path / "skills")
        listener, _ = observer(house.client, "skills::on-change")
    with EngineThread(dialect="0.25", port=port), closing(house):
        until(lambda: house.is_back(listener.function_id), "the directory and the observer are back")
        house.call("skills::register", id="demo", skill="# x")
        assert listener.next() == {"op": "register", "id": "demo"}


def test_observers_cannot_be_called_by_others_and_are_in_no_list(house: House) -> None:
    assert house.call("skills::on-change") is None
    listed = house.call("engine::functions::list")["functions"]
    assert not [row for row in listed if row["function_id"].endswith("::on-change")]


def test_on_an_engine_without_the_feature_an_observer_is_not_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with EngineThread() as engine, RawClient(engine.url, name="raw") as client:
        assert "features" not in client.welcome
        with caplog.at_level(logging.WARNING, "iii_directory.engine"):
            client.send(
                type="observe",
                id="o",
                source={"function_id": "skills::on-change"},
                target={"function_id": "raw::heard"},
            )
            asked = {"function_id": "raw::heard"}
            listed = client.result("engine::registered-triggers::list", asked)
        assert listed["registered_triggers"] == []
        assert caplog.text == ""


@pytest.mark.parametrize(
    "message",
    [
        {"type": "observe", "id": "o", "source": 5, "target": {"function_id": "a"}},
        {"type": "observe", "id": "o", "source": {"function_id": "a"}, "target": "b"},
        {"type": "observe", "id": "o"},
        {"type": "registerfunction", "id": "f", "observe": "owner"},
        {"type": "unobserve"},
    ],
)
def test_a_malformed_message_of_the_family_ends_nothing(
    engine: EngineThread, message: dict[str, Any]
) -> None:
    with RawClient(engine.url, name="raw") as client:
        assert client.welcome["features"] == ["observe.v1"]
        client.send(**message)
        assert client.result("engine::workers::list")


def test_only_the_owner_of_a_function_tells_its_observers(engine: EngineThread) -> None:
    with RawClient(engine.url, name="owner") as owner, RawClient(engine.url, name="other") as other:
        other.send(type="registerfunction", id="other::heard")
        owner.send(type="registerfunction", id="o::changed", observe={"legacy_trigger_type": "o::on-change"})
        assert owner.receive_type("functionregistered")["observers"] == []
        other.send(
            type="observe",
            id="watch",
            source={"function_id": "o::changed"},
            target={"function_id": "other::heard"},
            metadata={"k": 1},
        )
        assert other.receive_type("observeresult") == {
            "type": "observeresult",
            "id": "watch",
            "state": "active",
        }
        assert owner.receive_type("observeradded")["observer"]["target"] == "other::heard"
        other.start_call("o::changed", {"n": 0}, activation={"observer_id": "watch"})
        assert owner.receive_type("invokefunction")["data"]["n"] == 0
        owner.start_call("nonsense", {"n": 1}, activation={"observer_id": "watch"})
        told = other.receive_type("invokefunction")
        assert (told["function_id"], told["metadata"], told["data"]["n"]) == ("other::heard", {"k": 1}, 1)
        other.send(type="unobserve", id="watch")
        assert owner.receive_type("observerremoved")["id"] == "watch"
        owner.send(type="unregisterfunction", id="o::changed")
        assert "o::on-change" not in str(owner.result("engine::triggers::list"))
        other.send(
            type="observe",
            id="again",
            source={"function_id": "o::changed"},
            target={"function_id": "other::heard"},
        )
        assert other.receive_type("observeresult")["state"] == "pending"
