"""A worker inside the embedded engine: callers, subscribers and the engine meet what a socket gives."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.engine import WAIT, RawClient

from iii_directory.bus.local_bus import LocalBus
from iii_directory.bus.seam import CallError, Function
from iii_directory.errors import SKILL_NOT_FOUND, DirectoryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.engine import EngineThread

    from iii_directory.bus.seam import Handler, Payload, Subscription


class Inside:
    """A bus on the engine's loop, and a client outside."""

    def __init__(self, engine: EngineThread, client: RawClient) -> None:
        self.engine = engine
        self.client = client

        async def make() -> LocalBus:
            return LocalBus(engine.server, name="inside", description="A worker of the house.")

        self.bus: LocalBus = asyncio.run_coroutine_threadsafe(make(), engine.loop).result(WAIT)

    def offer(self, function_id: str, handler: Handler, request: Payload | None = None) -> None:
        function = Function(id=function_id, description="", request=request or {}, response=None)
        self.bus.register_function(function, handler)
        self.settle()

    def settle(self) -> None:
        """Wait until the engine has taken in what was registered."""

        async def nothing() -> None:
            pass

        self.bus.run(nothing())

    def call(self, function_id: str, payload: dict[str, Any] | None = None, **options: Any) -> Any:
        wanted: dict[str, Any] = {"timeout_ms": 10_000, **options}
        return self.bus.run(self.bus.call(function_id, payload or {}, **wanted))

    def worker_row(self) -> dict[str, Any] | None:
        rows = self.client.result("engine::workers::list", {"search": "inside"})["workers"]
        return rows[0] if rows else None


@pytest.fixture
def inside(engine: EngineThread) -> Iterator[Inside]:
    with RawClient(engine.url, name="outside") as client:
        yield Inside(engine, client)


async def ignored(_: Payload) -> None:
    return None


def test_a_function_is_called_with_the_payload_and_answers(inside: Inside) -> None:
    async def doubled(payload: Payload) -> dict[str, int]:
        return {"twice": payload["n"] * 2}

    inside.offer("inside::double", doubled)

    assert inside.client.result("inside::double", {"n": 21}) == {"twice": 42}
    assert inside.call("inside::double", {"n": 4}) == {"twice": 8}


def test_a_refusal_is_its_sentence_and_nothing_else(inside: Inside) -> None:
    async def refuses(_: Payload) -> None:
        raise DirectoryError(SKILL_NOT_FOUND, "there is none") from ValueError("/a/path/of/ours")

    inside.offer("inside::refuses", refuses)

    error = inside.client.call("inside::refuses")["error"]
    assert error["code"] == "invocation_failed"
    assert "there is none" in error["message"]
    assert "/a/path/of/ours" not in str(error)


def test_a_mistake_is_an_internal_error_and_in_the_log(
    inside: Inside, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(_: Payload) -> None:
        raise ValueError("/a/path/of/ours")

    inside.offer("inside::fails", fails)

    error = inside.client.call("inside::fails")["error"]
    assert "inside::fails failed unexpectedly" in error["message"]
    assert "/a/path/of/ours" not in str(error)
    assert "/a/path/of/ours" in caplog.text


@pytest.mark.parametrize("answer", [{1, 2}, {"deep": [object()]}, "\ud800"])
def test_an_answer_that_is_no_json_is_an_error_for_the_caller(inside: Inside, answer: object) -> None:
    async def answers(_: Payload) -> object:
        return answer

    inside.offer("inside::answers", answers)

    assert inside.client.call("inside::answers")["error"]["code"] == "serialization_error"
    assert inside.client.result("engine::health::check")


def test_a_payload_that_is_no_object_is_refused_where_the_schema_wants_one(inside: Inside) -> None:
    inside.offer("inside::objects", ignored, {"type": "object"})

    assert "must be an object" in inside.client.call("inside::objects", [1])["error"]["message"]


def test_a_call_of_nothing_says_what_the_engine_says(inside: Inside) -> None:
    with pytest.raises(CallError, match="not found") as failure:
        inside.call("nobody::has")

    assert failure.value.code == "function_not_found"


def test_a_call_that_takes_too_long_is_given_up_and_its_answer_dropped(inside: Inside) -> None:
    inside.client.send(type="registerfunction", id="outside::slow")
    assert inside.client.result("engine::functions::info", {"function_id": "outside::slow"})

    with pytest.raises(CallError) as failure:
        inside.call("outside::slow", timeout_ms=1)
    assert failure.value.code == "TIMEOUT"

    asked = inside.client.receive_type("invokefunction")
    inside.client.send(
        type="invocationresult", invocation_id=asked["invocation_id"], function_id="outside::slow", result=1
    )
    assert inside.call("engine::health::check")


def test_a_worker_outside_is_called_and_its_error_comes_back(inside: Inside) -> None:
    inside.client.send(type="registerfunction", id="outside::broken")
    assert inside.client.result("engine::functions::info", {"function_id": "outside::broken"})
    asking = asyncio.run_coroutine_threadsafe(
        inside.bus.call("outside::broken", {"a": 1}, timeout_ms=10_000), inside.engine.loop
    )

    asked = inside.client.receive_type("invokefunction")
    assert asked["data"]["a"] == 1
    inside.client.send(
        type="invocationresult",
        invocation_id=asked["invocation_id"],
        function_id="outside::broken",
        error={"code": "mine", "message": "not today"},
    )
    with pytest.raises(CallError, match="not today") as failure:
        asking.result(WAIT)
    assert failure.value.code == "mine"


class Owner:
    """Keeps the subscriptions of a trigger type."""

    def __init__(self) -> None:
        self.bound: dict[str, Subscription] = {}

    def subscribed(self, subscription: Subscription) -> None:
        self.bound[subscription.id] = subscription

    def unsubscribed(self, subscription_id: str) -> None:
        del self.bound[subscription_id]


def test_subscribers_of_a_trigger_type_are_told_with_their_metadata(inside: Inside) -> None:
    owner, client = Owner(), inside.client
    inside.bus.register_trigger_type("inside::changed", owner, description="", event_schema={})
    client.send(type="registerfunction", id="outside::heard")
    client.send(
        type="registertrigger",
        id="binding",
        trigger_type="inside::changed",
        function_id="outside::heard",
        config={},
        metadata={"mine": True},
    )
    assert client.result("engine::functions::info", {"function_id": "outside::heard"})

    (subscription,) = owner.bound.values()
    assert (subscription.function_id, subscription.metadata) == ("outside::heard", {"mine": True})
    telling = inside.bus.tell("outside::heard", {"op": "x"}, metadata={"mine": True}, namespace=None)
    inside.bus.run(telling)
    heard = client.receive_type("invokefunction")
    assert (heard["data"]["op"], heard["metadata"]) == ("x", {"mine": True})

    client.send(type="unregistertrigger", id="binding")
    assert client.result("engine::health::check")
    assert owner.bound == {}


def open_calls(inside: Inside) -> int:
    async def count() -> int:
        return inside.engine.server._router.calls.open_calls()

    return inside.bus.run(count())


@pytest.mark.parametrize("fails", [False, True])
def test_a_listener_hears_events_and_leaves_no_call_open(
    inside: Inside, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    heard: list[str] = []

    def listen(event: Payload) -> None:
        heard.append(event["key"])
        if fails:
            raise ValueError("could not take it in")

    inside.bus.register_listener("inside::listens", listen, description="")
    inside.bus.bind("state", "inside::listens", {"scope": "s"})
    inside.settle()
    for key in ("a", "b"):
        inside.client.result("state::set", {"scope": "s", "key": key, "value": 1})

    assert inside.client.result("engine::health::check")
    assert heard == ["a", "b"]
    assert open_calls(inside) == 0
    assert ("could not take it in" in caplog.text) == fails


def test_the_worker_is_listed_as_one_in_the_process_until_it_leaves(inside: Inside) -> None:
    inside.offer("inside::there", ignored)
    row = inside.worker_row()
    assert row is not None
    assert (row["isolation"], row["ip_address"], row["function_count"]) == ("in-process", None, 1)

    inside.bus.close()

    assert inside.worker_row() is None
    assert inside.client.call("inside::there")["error"]["code"] == "function_not_found"


def test_a_call_under_way_when_the_worker_leaves_is_stopped(inside: Inside) -> None:
    began, never = asyncio.Event(), asyncio.Event()

    async def hangs(_: Payload) -> None:
        began.set()
        await never.wait()

    inside.offer("inside::hangs", hangs)
    inside.client.start_call("inside::hangs", {})
    inside.bus.run(began.wait())
    inside.bus.close()

    assert inside.client.receive_type("invocationresult")["error"]["code"] == "invocation_stopped"


def test_a_function_that_another_worker_has_is_said_to_be_refused(
    inside: Inside, caplog: pytest.LogCaptureFixture
) -> None:
    inside.client.send(type="registerfunction", id="outside::taken")
    assert inside.client.result("engine::functions::info", {"function_id": "outside::taken"})

    inside.offer("outside::taken", ignored)

    assert "refused outside::taken" in caplog.text


def test_a_worker_of_the_same_name_outside_is_refused(inside: Inside) -> None:
    with RawClient(inside.engine.url) as second:
        second.send(
            type="invokefunction", function_id="engine::workers::register", data={"name": "inside", "pid": 1}
        )
        refusal = second.receive_type("registrationrejected")

    assert refusal["code"] == "WORKER_NAMESPACE_CONFLICT"
    assert inside.worker_row() is not None


def test_a_second_worker_of_the_same_name_inside_is_said_to_be_refused(
    inside: Inside, caplog: pytest.LogCaptureFixture
) -> None:
    Inside(inside.engine, inside.client)

    assert "refused inside: WORKER_NAMESPACE_CONFLICT" in caplog.text
    assert inside.worker_row() is not None


def test_what_waits_for_a_connection_runs_at_the_start(inside: Inside) -> None:
    met: list[str] = []

    async def connected() -> None:
        met.append("connected")

    inside.bus.on_connected(connected)
    inside.bus.start()
    inside.settle()
    inside.settle()

    assert met == ["connected"]


def test_background_work_that_fails_is_in_the_log(inside: Inside, caplog: pytest.LogCaptureFixture) -> None:
    async def connected() -> None:
        raise ValueError("could not start")

    inside.bus.on_connected(connected)
    inside.bus.start()
    inside.settle()
    inside.settle()

    assert "could not start" in caplog.text
