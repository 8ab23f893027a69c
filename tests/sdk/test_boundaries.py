"""Namespaces, conflicts, tokens, channels and large messages."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.sdk.process import SdkError
from tests.sdk.sdks import MIB, SDKS, Sdk
from tests.sdk.stage import Stage, unique, until
from tests.sdk.user_engine import UserEngine

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sdk.process import DriverProcess

SPLIT_ABOVE = 16 * MIB


def only(fits: Callable[[Sdk], bool]) -> pytest.MarkDecorator:
    """Run a check for the SDKs that have what it checks."""
    chosen = [sdk for sdk in SDKS if fits(sdk)]
    return pytest.mark.parametrize("driver", chosen, ids=lambda sdk: sdk.name, indirect=True)


@only(lambda sdk: sdk.namespaced)
def test_clients_of_one_namespace_reach_each_other_and_others_have_to_name_it(stage: Stage) -> None:
    blue = unique("blue")
    serving, calling = stage.client("serving", namespace=blue), stage.client("calling", namespace=blue)
    outside = stage.client("outside")
    function = serving.register("echo", "echo")

    with pytest.raises(SdkError, match=blue) as raised:
        outside.call(function, [1])

    assert raised.value.code == "function_not_found"
    assert calling.call(function, [2])["payload"] == [2]
    assert outside.call(function, [3], namespace=blue)["payload"] == [3]


@only(lambda sdk: sdk.namespaced)
def test_a_binding_in_a_namespace_fires_the_function_of_that_namespace(stage: Stage) -> None:
    blue = unique("blue")
    owner, subscriber = stage.client("owner"), stage.client("subscriber", namespace=blue)
    trigger_type = owner.own("on-change")
    function = subscriber.register("changed", "echo")

    subscriber.bind(trigger_type, function, config={})
    bound = owner.event("bound", type=trigger_type)
    owner.do("fire", type=trigger_type, payload={"n": 1})

    assert bound["namespace"] == blue
    assert subscriber.event("called", function=function)["payload"]["n"] == 1


def test_a_worker_name_that_is_taken_is_refused_and_its_holder_stays(stage: Stage) -> None:
    holder = stage.client("holder")
    function = holder.register("echo", "echo")

    refusal = _refusal_of(stage, holder.name)

    assert refusal == ("WORKER_NAMESPACE_CONFLICT" if stage.sdk.namespaced else "reconnecting")
    assert holder.call(function, [1])["payload"] == [1]


def _refusal_of(stage: Stage, name: str) -> str:
    """How a second client of a name learns that it is taken: by a code, or by the closed door."""
    try:
        stage.driver.ask("connect", "second", url=stage.url, name=name)
    except SdkError as error:
        return error.code
    turned_away = "failed" if stage.sdk.namespaced else "reconnecting"
    until(
        lambda: True if stage.driver.ask("state", "second") == turned_away else None,
        f"the second client of a name is {turned_away}",
    )
    try:
        return turned_away if turned_away != "failed" else stage.driver.ask("call", "second", function="f")
    except SdkError as error:
        return error.code
    finally:
        stage.driver.ask("close", "second")


def test_a_function_that_is_taken_stays_with_its_owner(stage: Stage) -> None:
    owner, second = stage.client("owner"), stage.client("second")
    function = owner.register("echo", "echo")

    second.do("register", function=function, behaviour="nothing")
    second.settle()

    assert second.call(function, [1]) == {"payload": [1], "metadata": None}
    assert second.call(second.register("own", "echo"), [2])["payload"] == [2]
    if stage.sdk.namespaced:
        stage.driver.log("FUNCTION_NAMESPACE_CONFLICT", function)


def test_a_client_that_brings_the_token_joins_a_guarded_engine_and_streams(driver: DriverProcess) -> None:
    token = {"Authorization": "Bearer open sesame, please"}
    with UserEngine(token="open sesame, please") as guarded:
        name = unique("guest")
        driver.ask("connect", name, name=name, url=guarded.url, headers=token)

        def look() -> dict[str, Any] | None:
            listed = driver.ask("call", name, function="engine::workers::list", payload={"search": name})
            return next(iter(listed["workers"]), None)

        assert until(look, "the guest is listed")["name"] == name
        driver.ask("register", name, function="guest::read", behaviour="read")
        assert driver.ask("stream_to", name, function="guest::read", size=1000) == _streamed(1000)
        driver.ask("close", name)


def _streamed(size: int) -> dict[str, Any]:
    content = bytes(index % 251 for index in range(size))
    return {"texts": ["a text"], "size": size, "sha256": hashlib.sha256(content).hexdigest()}


@pytest.mark.parametrize("size", [1, 300_000])
def test_a_channel_carries_texts_and_bytes_to_a_function(stage: Stage, size: int) -> None:
    sender, receiver = stage.client("sender"), stage.client("receiver")

    received = sender.do("stream_to", function=receiver.register("read", "read"), size=size)

    assert received == _streamed(size)


@pytest.mark.parametrize("size", [1, 300_000])
def test_a_channel_carries_texts_and_bytes_from_a_function(stage: Stage, size: int) -> None:
    receiver, sender = stage.client("receiver"), stage.client("sender")

    received = receiver.do("stream_from", function=sender.register("write", "write"), size=size)

    assert received == _streamed(size)


def test_a_large_result_reaches_the_caller(stage: Stage) -> None:
    size = stage.sdk.sends
    client = stage.client()

    answer = stage.answer(client.register("pad", "pad"), {"size": size})

    assert answer is not None
    assert len(answer["pad"]) == size


def test_a_large_payload_reaches_the_function(stage: Stage) -> None:
    size = stage.sdk.receives
    client = stage.client()
    function = client.register("measure", "measure")

    assert _large_call(stage, function, size) == {"size": size}
    assert _large_call(stage, function, 1) == {"size": 1}


def _large_call(stage: Stage, function: str, size: int) -> Any:
    """A call from outside; what is above the limit of a frame goes in several."""
    call_id = "00000000-0000-4000-8000-000000000001"
    message = json.dumps(
        {
            "type": "invokefunction",
            "function_id": function,
            "data": {"pad": "x" * size},
            "invocation_id": call_id,
        }
    )
    stage.onlooker.socket.send(message[start : start + MIB] for start in range(0, len(message), MIB))
    return stage.onlooker.receive_type("invocationresult")["result"]


def test_a_large_call_is_answered(stage: Stage) -> None:
    size = min(stage.sdk.sends, stage.sdk.receives)
    calling, serving = stage.client("calling"), stage.client("serving")

    answer = calling.do("call", function=serving.register("measure", "measure"), pad=size)

    assert answer == {"size": size}
