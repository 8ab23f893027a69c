"""Functions, as clients of the published SDKs register, call and serve them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.sdk.process import SdkError
from tests.sdk.sdks import SDKS
from tests.sdk.stage import Stage, unique, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sdk.process import DriverProcess
    from tests.sdk.sdks import Sdk

PLAIN = {"text": "é ☃ 🎉", "n": 2**53, "x": 0.25, "none": None, "deep": [{"a": [[], {}, True]}]}


def without_caller(payload: dict[str, Any]) -> dict[str, Any]:
    """A payload without the field that the engine adds to it."""
    return {key: value for key, value in payload.items() if key != "_caller_worker_id"}


def test_the_engine_lists_the_client_with_its_version(stage: Stage) -> None:
    client = stage.client("described")

    worker = client.until_known()["worker"]

    assert (worker["name"], worker["version"]) == (client.name, stage.sdk.version)
    assert (worker["runtime"], worker["status"]) == (stage.sdk.language, "connected")
    assert worker["pid"]


def test_a_registered_function_is_described_as_it_was_registered(stage: Stage) -> None:
    client = stage.client()
    shape = {"type": "object", "properties": {"a": {"type": "integer"}}}
    outcome = {"type": "object", "properties": {"b": {"enum": ["x", None]}}}

    function = client.register(
        "described",
        "echo",
        description="Says it back",
        metadata={"tags": ["one", "two"]},
        request_format=shape,
        response_format=outcome,
    )

    described = client.until_registered(function)
    assert described["worker_name"] == client.name
    assert described["description"] == "Says it back"
    assert described["metadata"] == {"tags": ["one", "two"]}
    assert (described["request_schema"], described["response_schema"]) == (shape, outcome)


def test_a_function_gets_the_payload_the_metadata_and_who_called(stage: Stage) -> None:
    client = stage.client()
    function = client.register("echo", "echo")

    answer = stage.answer(function, PLAIN, metadata={"trace": 7})

    assert answer == {
        "payload": PLAIN | {"_caller_worker_id": stage.onlooker.worker_id},
        "metadata": {"trace": 7},
    }


def test_a_call_from_one_client_to_another_is_answered(stage: Stage) -> None:
    serving, calling = stage.client("serving"), stage.client("calling")
    function = serving.register("echo", "echo")

    answer = calling.call(function, PLAIN, metadata={"trace": 7})

    assert without_caller(answer["payload"]) == PLAIN
    assert answer["metadata"] == {"trace": 7}


@pytest.mark.parametrize("payload", [[1, "two", None], "text", 0, False])
def test_a_payload_that_is_not_an_object_arrives_unchanged(stage: Stage, payload: Any) -> None:
    client = stage.client()
    function = client.register("echo", "echo")

    assert client.call(function, payload) == {"payload": payload, "metadata": None}


def test_a_function_that_returns_nothing_answers_with_nothing(stage: Stage) -> None:
    client = stage.client()
    function = client.register("nothing", "nothing")

    assert client.call(function) is None


def test_a_function_can_call_another_while_it_is_called(stage: Stage) -> None:
    serving, relaying = stage.client("serving"), stage.client("relaying")
    echo = serving.register("echo", "echo")
    relay = relaying.register("relay", "relay")

    answer = serving.call(relay, {"to": echo, "payload": {"a": 1}})

    assert without_caller(answer["relayed"]["payload"]) == {"a": 1}


def test_many_calls_at_once_each_get_their_own_answer(stage: Stage) -> None:
    client = stage.client()
    function = client.register("echo", "echo")

    started = [client.start_call(function, [number]) for number in range(100)]

    assert [call.result(10)["payload"] for call in started] == [[number] for number in range(100)]


def test_what_a_handler_raises_reaches_the_caller(stage: Stage) -> None:
    client = stage.client()
    function = client.register("fail", "fail")

    with pytest.raises(SdkError, match="the reason why") as raised:
        client.call(function, {"message": "the reason why"})

    assert raised.value.code == "invocation_failed"


def test_an_unregistered_function_is_not_found(stage: Stage) -> None:
    client = stage.client()
    function = f"{unique('nobody')}::has-it"

    with pytest.raises(SdkError, match=function) as raised:
        client.call(function)

    assert raised.value.code == "function_not_found"


def test_what_a_built_in_refuses_reaches_the_caller(stage: Stage) -> None:
    client = stage.client()

    with pytest.raises(SdkError) as raised:
        client.call("engine::functions::info", {"function_id": unique("nobody")})

    assert raised.value.code == "NOT_FOUND"


def test_a_call_to_a_client_that_leaves_is_stopped(stage: Stage) -> None:
    leaving, calling = stage.client("leaving"), stage.client("calling")
    function = leaving.register("hold", "hold")
    call = calling.start_call(function, {})
    leaving.event("called", function=function)

    leaving.close()

    with pytest.raises(SdkError) as raised:
        call.result(10)
    # The engine's word; an SDK that ends its handlers before it goes may say so first.
    assert raised.value.code in ("invocation_stopped", "invocation_failed")


def test_a_caller_that_gives_up_can_call_again(stage: Stage) -> None:
    client = stage.client()
    hold, echo = client.register("hold", "hold"), client.register("echo", "echo")

    with pytest.raises(SdkError) as raised:
        client.call(hold, timeout_ms=100)

    assert raised.value.code == "TIMEOUT"
    assert client.call(echo, [1]) == {"payload": [1], "metadata": None}


def test_a_void_call_is_delivered_and_brings_nothing_back(stage: Stage) -> None:
    serving, calling = stage.client("serving"), stage.client("calling")
    function = serving.register("echo", "echo")

    assert calling.call(function, {"a": 1}, action={"type": "void"}, metadata={"m": 2}) is None

    called = serving.event("called", function=function)
    assert without_caller(called["payload"]) == {"a": 1}
    assert called["metadata"] == {"m": 2}


def test_a_void_call_of_an_unknown_function_does_no_harm(stage: Stage) -> None:
    client = stage.client()
    function = client.register("echo", "echo")

    client.call(unique("nobody"), action={"type": "void"})

    assert client.call(function, [1])


def test_a_call_without_a_payload_is_answered(embedded_stage: Stage) -> None:
    """A deviation: these SDKs leave ``data`` out, and the real engine drops such a call without a word."""
    client = embedded_stage.client()
    function = client.register("echo", "echo")

    assert client.do("call", function=function) == {"payload": None, "metadata": None}


def test_a_call_for_an_unknown_queue_is_refused(embedded_stage: Stage) -> None:
    client = embedded_stage.client()
    function = client.register("echo", "echo")

    with pytest.raises(SdkError) as raised:
        client.call(function, action={"type": "enqueue", "queue": "jobs"})

    assert raised.value.code == "enqueue_error"


def test_an_unregistered_function_is_gone_and_can_be_registered_again(stage: Stage) -> None:
    client = stage.client()
    function = client.register("echo", "echo")

    client.do("unregister", function=function)
    client.settle()
    with pytest.raises(SdkError) as raised:
        client.call(function)
    client.do("register", function=function, behaviour="nothing")
    client.until_registered(function)

    assert raised.value.code == "function_not_found"
    assert client.call(function) is None


def test_functions_leave_with_their_client(stage: Stage) -> None:
    client = stage.client()
    function = client.register("echo", "echo")

    client.close()

    gone = {"function_id": function}
    until(
        lambda: True if stage.answer("engine::functions::info", gone) is None else None,
        f"{function} is gone",
    )


def test_every_sdk_calls_every_other(engine_url: str, drivers: Callable[[Sdk], DriverProcess]) -> None:
    stages = [Stage(drivers(sdk), engine_url) for sdk in SDKS]
    clients = [stage.client() for stage in stages]
    functions = [client.register("echo", "echo") for client in clients]

    answers = [client.call(function, PLAIN) for client in clients for function in functions]

    assert [without_caller(answer["payload"]) for answer in answers] == [PLAIN] * len(SDKS) ** 2
    for stage in stages:
        stage.close()
