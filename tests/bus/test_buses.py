"""A worker inside the embedded engine or joined to it: callers, subscribers and the engine meet the same."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.engine import WAIT, RawClient
from tests.support.reader import until

from iii_directory.bus import message_bus, tasks
from iii_directory.bus.message_bus import LocalBus
from iii_directory.bus.seam import CallError, Function, Subscription
from iii_directory.bus.wire_bus import WireBus
from iii_directory.errors import SKILL_NOT_FOUND, DirectoryError
from iii_directory.limits import (
    LARGE_VALUE_BYTES,
    LONG_FRAME_BYTES,
    MAX_CONNECTION_LOG_LINES,
    MAX_CONNECTION_TRACEBACKS,
    MAX_READ_MARKS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.engine import EngineThread

    from iii_directory.bus.seam import Handler, Payload, WorkerBus


class Worker:
    """A bus of either kind on an engine, and a client outside."""

    def __init__(self, engine: EngineThread, client: RawClient, kind: str) -> None:
        self.engine = engine
        self.client = client
        self.kind = kind
        self.closed = False
        name, about = "inside", "A worker of the house."
        if kind == "inside":
            self.bus: WorkerBus = engine.on_loop(
                lambda: LocalBus(engine.server, name=name, description=about)
            )
        else:
            self.bus = WireBus(engine.url, name=name, description=about)

    def start(self) -> None:
        self.bus.start()
        self.settle()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.bus.close()

    def offer(self, function_id: str, handler: Handler, request: Payload | None = None) -> None:
        function = Function(id=function_id, description="", request=request or {}, response=None)
        self.bus.register_function(function, handler)
        self.settle()

    def settle(self) -> None:
        """Wait until the engine has taken in what was registered, and offers it."""
        for _ in range(3):
            self.call("engine::health::check", namespace="default")

    def call(self, function_id: str, payload: dict[str, Any] | None = None, **options: Any) -> Any:
        wanted: dict[str, Any] = {"timeout_ms": 10_000, **options}

        async def called() -> Any:
            return await self.bus.call(function_id, payload or {}, **wanted)

        return self.bus.run(called())

    def worker_row(self) -> dict[str, Any] | None:
        rows = self.client.result("engine::workers::list", {"search": "inside"})["workers"]
        return rows[0] if rows else None


@pytest.fixture(params=["inside", "joined"])
def idle(request: pytest.FixtureRequest, engine: EngineThread) -> Iterator[Worker]:
    """A worker that was not started yet."""
    with RawClient(engine.url, name="outside") as client:
        worker = Worker(engine, client, request.param)
        yield worker
        worker.close()


@pytest.fixture
def inside(idle: Worker) -> Worker:
    idle.start()
    return idle


TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "baggage": "user=alice"}
CHANNEL = {"channel_id": "one", "access_key": "two", "direction": "read"}


async def ignored(_: Payload) -> None:
    return None


def test_a_function_is_called_with_the_payload_and_answers(inside: Worker) -> None:
    async def doubled(payload: Payload) -> dict[str, int]:
        return {"twice": payload["n"] * 2}

    inside.offer("inside::double", doubled)

    assert inside.client.result("inside::double", {"n": 21}) == {"twice": 42}
    assert inside.call("inside::double", {"n": 4}) == {"twice": 8}


def test_a_refusal_is_its_sentence_and_nothing_else(inside: Worker) -> None:
    async def refuses(_: Payload) -> None:
        raise DirectoryError(SKILL_NOT_FOUND, "there is none") from ValueError("/a/path/of/ours")

    inside.offer("inside::refuses", refuses)

    error = inside.client.call("inside::refuses")["error"]
    assert error["code"] == "invocation_failed"
    assert "there is none" in error["message"]
    assert "/a/path/of/ours" not in str(error)


def test_a_mistake_is_an_internal_error_and_in_the_log(
    inside: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(_: Payload) -> None:
        raise ValueError("/a/path/of/ours")

    inside.offer("inside::fails", fails)

    error = inside.client.call("inside::fails")["error"]
    assert "inside::fails failed unexpectedly" in error["message"]
    assert "/a/path/of/ours" not in str(error)
    assert "/a/path/of/ours" in caplog.text


def test_failures_caused_by_one_connection_are_logged_in_full_a_few_times_only(
    inside: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(_: Payload) -> None:
        raise ValueError("a mistake of ours")

    inside.offer("inside::fails", fails)
    caplog.clear()
    for _ in range(300):
        assert "failed unexpectedly" in inside.client.call("inside::fails")["error"]["message"]

    about = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(about) == MAX_CONNECTION_LOG_LINES + 1
    assert sum(record.exc_info is not None for record in about) == MAX_CONNECTION_TRACEBACKS
    # Another connection's failures are logged in full.
    with RawClient(inside.engine.url) as other:
        other.call("inside::fails")
    assert caplog.records[-1].exc_info is not None


def test_calls_that_wait_for_their_turn_are_dropped_when_their_caller_leaves(inside: Worker) -> None:
    if inside.kind == "joined":
        pytest.skip("engines do not tell joined workers who left")
    began = 0

    async def slow(_: Payload) -> None:
        nonlocal began
        began += 1
        time.sleep(0.02)  # noqa: ASYNC251 (it holds the loop, so that the others wait)

    inside.offer("inside::slow", slow)
    with RawClient(inside.engine.url) as leaving:
        for _ in range(200):
            leaving.start_call("inside::slow", {})
        inside.client.result("engine::health::check")
    # Its answer comes after all that still began; the engine has no call of the other left.
    assert inside.client.result("inside::slow") is None
    health = inside.client.result("engine::health::check")

    assert began < 50
    assert health["components"]["calls"]["open"] == 0


@pytest.mark.parametrize("answer", [{1, 2}, {"deep": [object()]}, "\ud800"])
def test_an_answer_that_is_not_json_is_an_error_for_the_caller(inside: Worker, answer: object) -> None:
    async def answers(_: Payload) -> object:
        return answer

    inside.offer("inside::answers", answers)

    assert inside.client.call("inside::answers")["error"]["code"] == "serialization_error"
    assert inside.client.result("engine::health::check")


def test_a_payload_that_is_not_an_object_is_refused_where_the_schema_wants_one(inside: Worker) -> None:
    inside.offer("inside::objects", ignored, {"type": "object"})

    assert "must be an object" in inside.client.call("inside::objects", [1])["error"]["message"]


def test_a_call_of_nothing_says_what_the_engine_says(inside: Worker) -> None:
    with pytest.raises(CallError, match="not found") as failure:
        inside.call("nobody::has")

    assert failure.value.code == "function_not_found"


def test_a_call_that_takes_too_long_is_given_up_and_its_answer_dropped(inside: Worker) -> None:
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


def test_a_worker_outside_is_called_and_its_error_comes_back(inside: Worker) -> None:
    inside.client.send(type="registerfunction", id="outside::broken")
    assert inside.client.result("engine::functions::info", {"function_id": "outside::broken"})
    asking = ThreadPoolExecutor(1).submit(inside.call, "outside::broken", {"a": 1})

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


def test_subscribers_of_a_trigger_type_are_told_with_their_metadata(inside: Worker) -> None:
    owner, client = Owner(), inside.client
    inside.bus.register_trigger_type("inside::changed", owner, description="", event_schema={})
    inside.settle()
    client.send(type="registerfunction", id="outside::heard")
    client.send(
        type="registertrigger",
        id="binding",
        trigger_type="inside::changed",
        function_id="outside::heard",
        config={},
        metadata={"mine": True},
    )
    until(lambda: bool(owner.bound), "the owner knows of the binding")

    (subscription,) = owner.bound.values()
    assert (subscription.function_id, subscription.metadata) == ("outside::heard", {"mine": True})
    telling = inside.bus.tell(Subscription("s", "outside::heard", {"mine": True}, None), {"op": "x"})
    inside.bus.run(telling)
    heard = client.receive_type("invokefunction")
    assert (heard["data"]["op"], heard["metadata"]) == ("x", {"mine": True})

    client.send(type="unregistertrigger", id="binding")
    until(lambda: not owner.bound, "the owner knows that it is gone")


def open_calls(inside: Worker) -> int:
    async def count() -> int:
        return inside.engine.server._router.calls.open_calls()

    return inside.bus.run(count())


@pytest.mark.parametrize("fails", [False, True])
def test_a_listener_hears_events_and_leaves_no_call_open(
    inside: Worker, caplog: pytest.LogCaptureFixture, fails: bool
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

    until(lambda: heard == ["a", "b"], "both are heard")
    until(lambda: open_calls(inside) == 0, "both are answered")
    assert ("could not take it in" in caplog.text) == fails


def test_the_worker_is_listed_with_its_place_until_it_leaves(inside: Worker) -> None:
    inside.offer("inside::there", ignored)
    row = inside.worker_row()
    assert row is not None
    place = {"inside": ("in-process", None), "joined": (None, "127.0.0.1")}[inside.kind]
    assert (row["isolation"], row["ip_address"]) == place
    assert row["function_count"] == 1

    inside.close()

    # An engine elsewhere hears of it a moment later.
    until(lambda: inside.worker_row() is None, "the worker is not listed any more")
    assert inside.client.call("inside::there")["error"]["code"] == "function_not_found"


def test_a_call_under_way_when_the_worker_leaves_is_stopped(inside: Worker) -> None:
    began, never = asyncio.Event(), asyncio.Event()

    async def hangs(_: Payload) -> None:
        began.set()
        await never.wait()

    inside.offer("inside::hangs", hangs)
    inside.client.start_call("inside::hangs", {})
    inside.bus.run(began.wait())
    inside.close()

    assert inside.client.receive_type("invocationresult")["error"]["code"] == "invocation_stopped"


def test_a_function_that_another_worker_has_is_said_to_be_refused(
    inside: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    inside.client.send(type="registerfunction", id="outside::taken")
    assert inside.client.result("engine::functions::info", {"function_id": "outside::taken"})

    inside.offer("outside::taken", ignored)

    assert "refused outside::taken" in caplog.text


def test_a_worker_of_the_same_name_outside_is_refused(inside: Worker) -> None:
    with RawClient(inside.engine.url) as second:
        second.send(
            type="invokefunction", function_id="engine::workers::register", data={"name": "inside", "pid": 1}
        )
        refusal = second.receive_type("registrationrejected")

    assert refusal["code"] == "WORKER_NAMESPACE_CONFLICT"
    assert inside.worker_row() is not None


def test_a_second_worker_of_the_same_name_inside_is_said_to_be_refused(
    inside: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    Worker(inside.engine, inside.client, "inside")

    assert "refused inside: WORKER_NAMESPACE_CONFLICT" in caplog.text
    assert inside.worker_row() is not None


def test_what_waits_for_a_connection_runs_at_the_start(idle: Worker) -> None:
    met: list[str] = []

    async def connected() -> None:
        met.append("connected")

    idle.bus.on_connected.append(connected)
    idle.start()

    assert met == ["connected"]


def test_background_work_that_fails_is_in_the_log(idle: Worker, caplog: pytest.LogCaptureFixture) -> None:
    async def connected() -> None:
        raise ValueError("could not start")

    idle.bus.on_connected.append(connected)
    idle.start()

    assert "could not start" in caplog.text


def test_whose_doing_a_call_is_goes_along_with_the_calls_made_for_it(inside: Worker) -> None:
    async def asks(_: Payload) -> object:
        return await inside.bus.call("outside::asked", {}, timeout_ms=10_000)

    inside.offer("inside::asks", asks)
    inside.client.send(type="registerfunction", id="outside::asked")
    assert inside.client.result("engine::functions::info", {"function_id": "outside::asked"})

    inside.client.start_call("inside::asks", {}, **TRACE)

    asked = inside.client.receive_type("invokefunction")
    assert {name: asked.get(name) for name in TRACE} == TRACE


def test_a_channel_in_a_payload_and_in_an_answer_is_passed_on_as_it_is(inside: Worker) -> None:
    async def gives_back(payload: Payload) -> object:
        return {"again": payload["channel"]}

    inside.offer("inside::again", gives_back)

    assert inside.client.result("inside::again", {"channel": CHANNEL}) == {"again": CHANNEL}


# What is long


def stored(worker: Worker, values: list[Any]) -> list[Any]:
    for number, value in enumerate(values):
        worker.client.call("state::set", {"scope": "long", "key": str(number), "value": value})
    return values


def test_large_values_of_a_list_are_read_like_small_ones(inside: Worker) -> None:
    values = stored(inside, [{"n": 1}, {"text": "x" * LARGE_VALUE_BYTES}, 2, ["y" * LARGE_VALUE_BYTES]])

    assert inside.call("state::list", {"scope": "long"}, namespace="default") == values


def test_others_have_the_loop_while_a_long_list_is_read(
    inside: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_TURN_SECONDS", 0.0)
    turns, read_in, original = [0], list[int](), message_bus.read
    values = stored(inside, [[number, "x" * LARGE_VALUE_BYTES] for number in range(20)])

    def next_turn() -> None:
        turns[0] += 1
        if len(read_in) < len(values):
            asyncio.get_running_loop().call_soon(next_turn)

    def counted(value: object) -> object:
        if not read_in:
            asyncio.get_running_loop().call_soon(next_turn)
        read_in.append(turns[0])
        return original(value)

    monkeypatch.setattr(message_bus, "read", counted)

    assert inside.call("state::list", {"scope": "long"}, namespace="default") == values
    assert len(set(read_in)) == len(values)


def test_a_value_that_takes_long_to_read_is_null_in_a_list_and_delays_no_other_call(inside: Worker) -> None:
    stored(inside, [{"n": 1}, [[]] * (MAX_READ_MARKS + 1), {"n": 2}])

    assert inside.call("state::list", {"scope": "long"}, namespace="default") == [{"n": 1}, None, {"n": 2}]


@pytest.mark.parametrize("blanks", [0, 2 * LONG_FRAME_BYTES])
def test_a_long_answer_is_read_however_little_is_in_it(inside: Worker, blanks: int) -> None:
    with RawClient(inside.engine.url, name="author") as author:
        author.send(type="registerfunction", id="author::list")
        author.result("engine::functions::list")

        async def called() -> Any:
            return await inside.bus.call("author::list", {}, timeout_ms=10_000, namespace="default")

        future = asyncio.run_coroutine_threadsafe(
            called(),
            inside.engine.loop if inside.kind == "inside" else inside.bus._loop,  # pyright: ignore[reportAttributeAccessIssue]
        )
        asked = author.receive_type("invokefunction")
        about = f'"invocation_id":"{asked["invocation_id"]}","function_id":"author::list"'
        author.socket.send(
            f'{{"type":"invocationresult",{about},"result":[1,{" " * blanks}{{"two":null}},null]}}'
        )

        assert future.result(WAIT) == [1, {"two": None}, None]
