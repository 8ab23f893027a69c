"""Calls: from a caller to an executor and back, with exactly one outcome."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.driver import Client, Driver, uuid_of

from iii_directory import limits
from iii_directory.engine.engine_state import Log

STOPPED = {"code": "invocation_stopped", "message": "Invocation stopped"}


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def worker(driver: Driver) -> Client:
    worker = driver.connect("worker")
    worker.register("w::f")
    return worker


@pytest.fixture
def caller(driver: Driver) -> Client:
    return driver.connect("caller")


def active(client: Client, name: str) -> int:
    return client.result("engine::workers::info", {"name": name})["worker"]["active_invocations"]


def test_an_awaited_call_is_answered_once(worker: Client, caller: Client) -> None:
    call_id = caller.start("w::f", {"x": 1})
    asked = worker.take_one()
    worker.answer(asked, result={"y": 2})
    worker.answer(asked, result={"y": 3})

    assert asked == {
        "type": "invokefunction",
        "invocation_id": call_id,
        "function_id": "w::f",
        "data": {"x": 1, "_caller_worker_id": caller.id},
    }
    assert caller.take_one() == {
        "type": "invocationresult",
        "invocation_id": call_id,
        "function_id": "w::f",
        "result": {"y": 2},
    }


def test_an_error_reaches_the_caller_as_it_is(worker: Client, caller: Client) -> None:
    caller.start("w::f", {})
    error = {"code": "invocation_failed", "message": "kaput", "stacktrace": "at"}
    worker.answer(worker.take_one(), error=error, result=1)

    answer = caller.take_one()
    assert answer["error"] == error
    assert "result" not in answer


@pytest.mark.parametrize("outcome", [{}, {"result": None}])
def test_a_null_result_is_an_answer_with_neither_result_nor_error(
    worker: Client, caller: Client, outcome: dict[str, Any]
) -> None:
    call_id = caller.start("w::f", {})
    worker.answer(worker.take_one(), **outcome)

    assert caller.take_one() == {
        "type": "invocationresult",
        "invocation_id": call_id,
        "function_id": "w::f",
    }


@pytest.mark.parametrize("fields", [{"action": {"type": "void"}}, {}, {"invocation_id": None}])
def test_a_void_call_is_carried_out_and_not_answered(
    driver: Driver, worker: Client, caller: Client, fields: dict[str, Any]
) -> None:
    caller.send("invokefunction", function_id="w::f", data={}, **fields)
    asked = worker.take_one()
    worker.answer(asked, result=1)

    assert asked["invocation_id"]
    assert "action" not in asked
    assert caller.take() == []
    assert driver.router.calls.open_calls() == 0


def test_the_id_of_a_void_call_is_ignored(worker: Client, caller: Client) -> None:
    caller.start("w::f", {}, action={"type": "void"})
    worker.answer(worker.take_one(), result=1)
    caller.start("no::such", {}, action={"type": "void"})

    assert caller.take() == []


@pytest.mark.parametrize("data", [None, [1, {"x": 1}], "text", 7, False])
def test_the_caller_is_named_only_in_objects(worker: Client, caller: Client, data: Any) -> None:
    caller.start("w::f", data)

    assert worker.take_one()["data"] == data


def test_a_caller_cannot_pass_for_another(worker: Client, caller: Client) -> None:
    caller.start("w::f", {"_caller_worker_id": "somebody"})

    assert worker.take_one()["data"] == {"_caller_worker_id": caller.id}


def test_a_call_without_data_carries_null(worker: Client, caller: Client) -> None:
    caller.send("invokefunction", function_id="w::f", invocation_id=uuid_of(7))

    assert worker.take_one()["data"] is None


def test_metadata_and_trace_reach_the_executor_and_the_trace_comes_back(
    worker: Client, caller: Client
) -> None:
    trace = {"traceparent": "00-a-b-01", "baggage": "k=v"}
    caller.start("w::f", {}, metadata={"s": 1}, **trace)
    asked = worker.take_one()
    worker.answer(asked, result=1, traceparent="00-c-d-01", baggage="other=1")
    answer = caller.take_one()

    assert (asked["metadata"], asked["traceparent"], asked["baggage"]) == ({"s": 1}, "00-a-b-01", "k=v")
    assert (answer["traceparent"], answer["baggage"]) == ("00-a-b-01", "k=v")


def test_the_namespace_is_never_forwarded(driver: Driver, caller: Client) -> None:
    other = driver.connect("other", namespace="n")
    other.register("o::f")
    caller.start("o::f", {}, namespace="n")

    assert "namespace" not in other.take_one()


def test_an_unknown_function_is_not_found(caller: Client) -> None:
    assert caller.error("no::such") == {
        "code": "function_not_found",
        "message": "Function no::such not found in namespace default.",
    }


def test_a_function_of_other_namespaces_is_not_found_but_named(driver: Driver, caller: Client) -> None:
    for namespace in ("b", "a"):
        driver.connect("w", namespace=namespace).register("x::f")

    assert caller.error("x::f")["message"] == (
        "Function x::f not found in namespace default. It is registered in namespace(s): a, b."
    )
    assert "not found in namespace zz." in caller.error("x::f", namespace="zz")["message"]


def test_the_caller_s_own_namespace_plays_no_part(driver: Driver) -> None:
    one = driver.connect("one", namespace="n")
    one.register("x::f")

    assert one.error("x::f")["code"] == "function_not_found"


@pytest.mark.parametrize("namespace", ["", "  ", "\t"])
def test_a_blank_namespace_is_an_error(caller: Client, namespace: str) -> None:
    assert caller.error("engine::functions::list", namespace=namespace)["code"] == "INVALID_NAMESPACE"


def test_a_void_call_that_fails_leaves_a_line_in_the_log(driver: Driver, caller: Client) -> None:
    caller.send("invokefunction", function_id="no::such", data={}, action={"type": "void"})

    assert any("no::such" in line for line in driver.log)


def test_a_failure_without_a_waiting_caller_is_logged_once_until_many_others_were(
    driver: Driver, caller: Client
) -> None:
    def told(function_id: str) -> list[str]:
        caller.send("invokefunction", function_id=function_id, data={}, action={"type": "void"})
        return [effect.level for effect in driver.effects if isinstance(effect, Log)]

    assert told("no::such") == ["warning"]
    assert told("no::such") == ["debug"]
    assert told("no::other") == ["warning"]

    for number in range(limits.MAX_TOLD_FAILURES):
        told(f"no::such{number}")
    assert told("no::such") == ["warning"]


def test_an_id_used_again_later_is_answered_again(worker: Client, caller: Client) -> None:
    for number in (1, 2):
        caller.send("invokefunction", function_id="w::f", data={}, invocation_id=uuid_of(5))
        worker.answer(worker.take_one(), result=number)

    assert [answer["result"] for answer in caller.take()] == [1, 2]


def test_an_id_used_twice_at_once_gives_both_their_own_answer(
    driver: Driver, worker: Client, caller: Client
) -> None:
    second = driver.connect("second")
    for who in (caller, second):
        who.send("invokefunction", function_id="w::f", data={}, invocation_id=uuid_of(5))
    asked = worker.take()
    assert asked[0]["invocation_id"] != asked[1]["invocation_id"]
    for call in asked:
        worker.answer(call, result=call["data"]["_caller_worker_id"])

    assert caller.take_one()["result"] == caller.id
    assert second.take_one()["result"] == second.id


def test_an_id_in_capitals_is_found_again_and_given_back_as_it_was(worker: Client, caller: Client) -> None:
    wanted = "ABCDEF00-0000-4000-8000-000000000000"
    caller.send("invokefunction", function_id="w::f", data={}, invocation_id=wanted)
    asked = worker.take_one()
    worker.send(
        "invocationresult", invocation_id=asked["invocation_id"].upper(), function_id="w::f", result=1
    )

    assert caller.take_one()["invocation_id"] == wanted


def test_only_the_executor_can_answer(driver: Driver, worker: Client, caller: Client) -> None:
    caller.start("w::f", {})
    asked = worker.take_one()
    driver.connect("stranger").answer(asked, result="forged")
    caller.answer(asked, result="forged")
    assert caller.take() == []

    worker.answer(asked, result="true")
    assert caller.take_one()["result"] == "true"


def test_an_answer_to_nothing_is_dropped(driver: Driver, worker: Client) -> None:
    worker.send("invocationresult", invocation_id=uuid_of(99), function_id="w::f", result=1)

    assert driver.effects == []


def test_an_answer_that_cannot_be_read_fails_the_call(worker: Client, caller: Client) -> None:
    caller.start("w::f", {})
    asked = worker.take_one()
    worker.frame(
        f'{{"type":"invocationresult","invocation_id":"{asked["invocation_id"]}",'
        '"function_id":"w::f","result":NaN}'
    )

    assert caller.take_one()["error"]["code"] == "deserialization_error"


def test_a_call_that_cannot_be_read_is_answered_if_its_id_can(driver: Driver, caller: Client) -> None:
    call_id = uuid_of(5)
    caller.send("invokefunction", function_id="w::f", data={}, invocation_id=call_id, action="void")
    assert caller.take_one() == {
        "type": "invocationresult",
        "invocation_id": call_id,
        "function_id": "w::f",
        "error": {
            "code": "deserialization_error",
            "message": "Invalid message: Expected `object | null`, got `str` - at `$.action`",
        },
    }

    caller.send("invokefunction", function_id="w::f", data={}, invocation_id="no uuid")
    assert caller.take() == []
    assert driver.closed == []


def test_an_executor_that_leaves_stops_what_it_did(driver: Driver, worker: Client, caller: Client) -> None:
    call_id = caller.start("w::f", {}, traceparent="tp")
    worker.leave()

    assert caller.take_one() == {
        "type": "invocationresult",
        "invocation_id": call_id,
        "function_id": "w::f",
        "error": STOPPED,
        "traceparent": "tp",
    }
    assert driver.router.calls.open_calls() == 0


def test_a_caller_that_leaves_is_not_answered_and_the_executor_not_told(
    driver: Driver, worker: Client, caller: Client
) -> None:
    caller.start("w::f", {})
    asked = worker.take_one()
    caller.leave()
    worker.answer(asked, result=1)

    assert worker.take() == []
    assert caller.take() == []
    assert driver.router.calls.open_calls() == 0


def test_a_worker_that_calls_itself_and_leaves_stops_quietly(driver: Driver, worker: Client) -> None:
    worker.start("w::f", {})
    worker.take()
    worker.leave()

    assert worker.take() == []
    assert driver.router.calls.open_calls() == 0


def test_open_calls_are_counted_on_both_sides(driver: Driver, worker: Client, caller: Client) -> None:
    watcher = driver.connect("watcher")
    caller.start("w::f", {})
    caller.start("w::f", {}, action={"type": "void"})
    first, second = worker.take()
    assert (active(watcher, "caller"), active(watcher, "worker")) == (1, 2)

    worker.answer(first, result=1)
    worker.answer(second, result=1)
    assert (active(watcher, "caller"), active(watcher, "worker")) == (0, 0)
    assert active(watcher, "watcher") == 1, "its own question"


@pytest.mark.parametrize("data", [[], "x", 1, False])
def test_a_builtin_takes_objects_only(caller: Client, data: Any) -> None:
    assert caller.error("engine::functions::list", data)["code"] == "deserialization_error"


def test_a_builtin_takes_null_for_an_empty_object(caller: Client) -> None:
    caller.send("invokefunction", function_id="state::list_groups", data=None, invocation_id=uuid_of(3))
    caller.send("invokefunction", function_id="state::list_groups", invocation_id=uuid_of(4))

    assert [answer["result"] for answer in caller.take()] == [{"groups": []}] * 2


def test_a_builtin_called_for_nothing_says_nothing(caller: Client) -> None:
    caller.send("invokefunction", function_id="state::list_groups", data={}, action={"type": "void"})
    caller.send("invokefunction", function_id="engine::register_trigger", data={}, action={"type": "void"})

    assert caller.take() == []


def enqueue(caller: Client, **fields: Any) -> str:
    return caller.start("w::f", {"x": 1}, action={"type": "enqueue", "queue": "jobs"}, **fields)


def test_enqueueing_without_a_queue_worker_is_an_error(caller: Client) -> None:
    enqueue(caller)

    assert caller.take_one()["error"]["code"] == "enqueue_error"


def test_a_queue_worker_takes_the_job_and_the_caller_gets_its_receipt(driver: Driver, caller: Client) -> None:
    queue = driver.connect("queue")
    queue.register("engine::queue::enqueue")
    enqueue(caller, namespace="n", traceparent="tp", baggage="bg")
    asked = queue.take_one()
    receipt = asked["data"]["messageReceiptId"]
    assert asked["data"] == {
        "queue": "jobs",
        "function_id": "w::f",
        "data": {"x": 1},
        "messageReceiptId": receipt,
        "traceparent": "tp",
        "baggage": "bg",
        "namespace": "n",
    }
    queue.answer(asked, result={"whatever": 1})

    answer = caller.take_one()
    assert answer["result"] == {"messageReceiptId": receipt}
    assert answer["function_id"] == "w::f"


def test_the_default_namespace_is_not_named_to_the_queue(driver: Driver, caller: Client) -> None:
    queue = driver.connect("queue")
    queue.register("engine::queue::enqueue")
    enqueue(caller)

    assert "namespace" not in queue.take_one()["data"]


def test_a_queue_worker_that_fails_or_leaves_is_an_enqueue_error(driver: Driver, caller: Client) -> None:
    queue = driver.connect("queue")
    queue.register("engine::queue::enqueue")
    enqueue(caller)
    queue.answer(queue.take_one(), error={"code": "full", "message": "no room"})
    assert caller.take_one()["error"] == {"code": "enqueue_error", "message": "no room"}

    enqueue(caller)
    queue.leave()
    assert caller.take_one()["error"] == {"code": "enqueue_error", "message": "Invocation stopped"}


def test_a_void_job_is_enqueued_too(driver: Driver, caller: Client) -> None:
    queue = driver.connect("queue")
    queue.register("engine::queue::enqueue")
    caller.send("invokefunction", function_id="w::f", data=1, action={"type": "enqueue", "queue": "jobs"})
    queue.answer(queue.take_one(), result=1)

    assert caller.take() == []


def test_answers_keep_the_order_in_which_executors_gave_them(worker: Client, caller: Client) -> None:
    ids = [caller.start("w::f", number) for number in range(20)]
    for asked in reversed(worker.take()):
        worker.answer(asked, result=asked["data"])

    assert [answer["invocation_id"] for answer in caller.take()] == list(reversed(ids))
