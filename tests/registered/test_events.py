"""The on-change trigger types: which subscriber hears what, and that none delays another."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from tests.registered.stage import House, Listener, SdkClient, unique
from tests.support.commands import free_port
from tests.support.engine import WAIT, EngineThread
from tests.support.reader import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SKILLS = ("skills::on-change", "directory::skills::on-change")
PROMPTS = ("prompts::on-change", "directory::prompts::on-change")
ALL = (*SKILLS, *PROMPTS)


def registered(skill_id: str) -> dict[str, str]:
    return {"op": "register", "id": skill_id}


def unregistered(skill_id: str) -> dict[str, str]:
    return {"op": "unregister", "id": skill_id}


def test_all_four_types_are_there_with_descriptions_and_schemas(house: House) -> None:
    for trigger_type in ALL:
        info = house.call("engine::triggers::info", id=trigger_type)
        assert info["worker_name"] == "iii-directory"
        assert info["description"]
        assert info["request_schema"]["properties"]["op"]


@pytest.mark.parametrize("trigger_type", SKILLS)
def test_every_change_of_a_skill_is_told(house: House, trigger_type: str) -> None:
    listener, skill_id = house.listener(trigger_type), unique("demo")
    house.call("skills::register", id=skill_id, skill="# one")
    assert listener.next() == registered(skill_id)
    house.call("skills::register", id=skill_id, skill="# one")
    assert listener.next() == registered(skill_id)
    house.call("skills::unregister", id=skill_id)
    assert listener.next() == unregistered(skill_id)


@pytest.mark.parametrize("trigger_type", PROMPTS)
def test_every_change_of_a_prompt_is_told(house: House, trigger_type: str) -> None:
    listener, name = house.listener(trigger_type), unique("greet")
    house.call("prompts::register", name=name, description="d", function_id="a::b")
    assert listener.next() == {"op": "register", "name": name}
    house.call("prompts::unregister", name=name)
    assert listener.next() == {"op": "unregister", "name": name}


def test_a_call_that_changes_nothing_sends_no_event(house: House) -> None:
    listener, skill_id = house.listener(*SKILLS[:1]), unique("demo")
    house.call("skills::unregister", id=skill_id)
    house.refusal("skills::register", id=skill_id, skill="")
    house.call("skills::list")
    house.call("prompts::register", name=unique("greet"), description="d", function_id="a::b")
    house.call("skills::register", id=skill_id, skill="# x")
    assert listener.heard_nothing_before(registered(skill_id))


def test_events_keep_the_order_of_the_changes(house: House) -> None:
    listener = house.listener("skills::on-change")
    ids = [unique("ordered") for _ in range(50)]
    for skill_id in ids:
        house.call("skills::register", id=skill_id, skill="# x")
    assert listener.take(50) == [registered(skill_id) for skill_id in ids]


def test_the_twin_fires_whenever_the_plain_one_does(house: House) -> None:
    plain, twin = house.listener(SKILLS[0]), house.listener(SKILLS[1])
    for number in range(3):
        skill_id = unique("demo")
        house.call("skills::register", id=skill_id, skill=f"# {number}")
        assert plain.next() == twin.next() == registered(skill_id)


def test_metadata_of_the_binding_is_passed_on(house: House) -> None:
    listener = house.listener("skills::on-change", metadata={"tenant": "a"})
    house.call("skills::register", id=unique("demo"), skill="# x")
    listener.next()
    assert listener.metadata == [{"tenant": "a"}]


def test_a_subscriber_in_another_namespace_is_told_there(house: House) -> None:
    with SdkClient(house.url, namespace=unique("elsewhere")) as client:
        heard: asyncio.Queue[Any] = asyncio.Queue()

        async def listen(data: dict[str, Any]) -> None:
            heard.put_nowait(data["id"])

        client.sdk.register_function("same::name", listen)
        client.start_subscribing("skills::on-change", "same::name")
        until(lambda: bool(house.client.bindings("same::name")), "the binding is there")
        skill_id = unique("demo")
        house.call("skills::register", id=skill_id, skill="# x")
        first = asyncio.run_coroutine_threadsafe(heard.get(), client.sdk._loop)
        assert first.result(WAIT) == skill_id


def test_a_subscriber_that_unsubscribed_hears_nothing_more(house: House) -> None:
    staying, leaving = house.listener("skills::on-change"), house.listener("skills::on-change")
    house.client.unsubscribe("skills::on-change", leaving.function_id)
    house.call("skills::register", id="after-leaving", skill="# x")
    staying.next()
    house.client.subscribe("skills::on-change", leaving.function_id)
    house.call("skills::register", id="after-return", skill="# x")
    assert leaving.heard_nothing_before(registered("after-return"))


def test_binding_the_same_id_again_replaces_it(house: House) -> None:
    first, second = house.listener(), house.listener()
    binding = {
        "type": "registertrigger",
        "id": unique("b"),
        "trigger_type": "skills::on-change",
        "config": {},
    }
    for function_id in (first.function_id, second.function_id):
        house.client.sdk._send_if_connected({**binding, "function_id": function_id})
        until(lambda function_id=function_id: bool(house.client.bindings(function_id)), "it is bound")
    house.call("skills::register", id="rebound", skill="# x")
    assert second.next() == registered("rebound")
    house.client.subscribe("skills::on-change", first.function_id)
    house.call("skills::register", id="rebound-2", skill="# x")
    assert first.heard_nothing_before(registered("rebound-2"))


def test_it_does_not_matter_who_starts_first(engine: EngineThread, build: Callable[..., House]) -> None:
    with SdkClient(engine.url) as early:
        listener = Listener(early)
        for trigger_type in ALL:
            early.start_subscribing(trigger_type, listener.function_id)
        house = build()
        until(lambda: len(early.bindings(listener.function_id)) == len(ALL), "all four are bound")
        house.call("skills::register", id="late", skill="# x")
        house.call("prompts::register", name="late", description="d", function_id="a::b")
        skill, prompt = registered("late"), {"op": "register", "name": "late"}
        assert listener.take(4) == [skill, skill, prompt, prompt]


def test_subscribers_are_told_again_after_the_directory_was_away(
    engine: EngineThread, build: Callable[..., House]
) -> None:
    with SdkClient(engine.url) as client:
        first = build()
        listener = Listener(client, "skills::on-change")
        first.close()
        second = build()
        until(lambda: bool(client.bindings(listener.function_id)), "the binding was handed on")
        second.call("skills::register", id="again", skill="# x")
        assert listener.next() == registered("again")


async def throws(data: Any) -> None:
    raise ValueError("not interested")


def test_bad_subscribers_hold_up_neither_writers_nor_others(own_house: House) -> None:
    silent, throwing = own_house.another_client(), own_house.another_client()
    for client, handler in ((silent, silent.hold), (throwing, throws)):
        for number in range(5):
            function_id = f"{client.name}::bad-{number}"
            client.offer(function_id, handler)
            client.subscribe("skills::on-change", function_id)
    gone = own_house.another_client()
    gone.subscribe("skills::on-change", "nobody::registered-this")
    listener = own_house.listener("skills::on-change")
    ids = [f"busy/{number}" for number in range(100)]
    for skill_id in ids:
        own_house.call("skills::register", id=skill_id, skill="# x")
    assert listener.take(100) == [registered(skill_id) for skill_id in ids]


def test_a_subscriber_that_left_is_forgotten(own_house: House) -> None:
    kept = [topic.bound for topic in own_house.worker._events._topics["skills"]]
    with SdkClient(own_house.url) as client:
        Listener(client, *SKILLS)
        until(lambda: all(kept), "both types have a subscriber")
    until(lambda: not any(kept), "nobody is left")


def test_after_a_restart_of_the_engine_each_subscriber_is_told_once(tmp_path: Path) -> None:
    port = free_port()
    with EngineThread(port=port) as engine:
        house = House(engine.url, tmp_path)
        listener = house.listener("skills::on-change")
    with EngineThread(port=port), closing(house):
        until(lambda: house.is_back(listener.function_id), "directory and subscriber are back")
        for skill_id in ("one", "two"):
            house.call("skills::register", id=skill_id, skill="# x")
        assert listener.take(2) == [registered("one"), registered("two")]
