"""A worker joined to an engine elsewhere: what a connection brings about, and what its loss."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.commands import free_port
from tests.support.engine import WAIT, EngineThread, RawClient
from tests.support.reader import until

from iii_directory.bus.seam import CallError, Function
from iii_directory.bus.wire_bus import WireBus, WireSocket, open_socket
from iii_directory.limits import MAX_READ_MARKS, MIB
from iii_directory.wire.codec import decode, encode
from iii_directory.wire.json_text import read
from iii_directory.wire.messages import (
    Action,
    InvocationResult,
    InvokeFunction,
    Reattach,
    RegisterFunction,
    RegisterTrigger,
    RegisterTriggerType,
    TriggerRegistrationResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from iii_directory.bus.seam import Handler, Payload


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., WireBus]]:
    """Buses that are closed at the end, and that try again without much of a pause."""
    monkeypatch.setattr("iii_directory.limits.FIRST_RECONNECT_SECONDS", 0.01)
    monkeypatch.setattr("iii_directory.bus.wire_bus._TAKE_OVER_SECONDS", 0.02)
    made: list[WireBus] = []

    def new(url: str, name: str = "worker", **options: Any) -> WireBus:
        made.append(WireBus(url, name=name, description="", **options))
        return made[-1]

    yield new
    for bus in made:
        bus.close()


def offer(bus: WireBus, function_id: str, handler: Handler) -> None:
    function = Function(id=function_id, description="", request={"type": "object"}, response=None)
    bus.register_function(function, handler)


async def here(_: Payload) -> str:
    return "here"


def answers(client: RawClient, function_id: str, **fields: Any) -> bool:
    return client.call(function_id, {}, **fields).get("result") == "here"


def wait_for(engine: EngineThread, function_id: str) -> None:
    """Wait until a function is there, without calling it."""
    with RawClient(engine.url) as client:
        about = {"function_id": function_id}
        until(lambda: "error" not in client.call("engine::functions::info", about), "the function is there")


def call(bus: WireBus, function_id: str, timeout_ms: int = 10_000) -> Any:
    return bus.run(bus.call(function_id, {}, timeout_ms=timeout_ms))


# Connecting


def test_everything_is_registered_again_on_an_engine_that_came_back(make: Callable[..., WireBus]) -> None:
    port, lost = free_port(), threading.Event()
    bus, heard = make(f"ws://127.0.0.1:{port}"), list[str]()
    offer(bus, "worker::here", here)
    bus.register_listener("worker::hears", lambda event: heard.append(event["key"]), description="")
    bus.bind("state", "worker::hears", {"scope": "s"})
    bus.on_lost.append(lost.set)
    bus.start()
    for round_number in range(3):
        with EngineThread(port=port) as engine, RawClient(engine.url) as client:
            until(lambda client=client: answers(client, "worker::here"), "the function is there")
            key = str(round_number)
            client.result("state::set", {"scope": "s", "key": key, "value": 1})
            until(lambda key=key: key in heard, "the event is heard")
            assert len(heard) == round_number + 1
        assert lost.wait(WAIT)
        lost.clear()


def test_functions_are_offered_only_when_what_waits_for_a_connection_is_done(
    engine: EngineThread, make: Callable[..., WireBus]
) -> None:
    bus, gate, known = make(engine.url), threading.Event(), list[str]()

    async def learn() -> None:
        # Listeners and bindings are there already: nothing that happens now is missed.
        info = await bus.call("engine::functions::info", {"function_id": "worker::hears"}, timeout_ms=5_000)
        known.append(info["registered_triggers"][0]["trigger_type"])
        await asyncio.to_thread(gate.wait, WAIT)

    offer(bus, "worker::here", here)
    bus.register_listener("worker::hears", lambda _: None, description="")
    bus.bind("state", "worker::hears", {"scope": "s"})
    bus.on_connected.append(learn)
    bus.start()
    with RawClient(engine.url) as client:
        until(lambda: known == ["state"], "the worker learns")
        assert client.call("worker::here")["error"]["code"] == "function_not_found"
        gate.set()
        until(lambda: answers(client, "worker::here"), "the function is there")


def test_functions_come_though_what_waits_for_a_connection_hangs(
    engine: EngineThread, make: Callable[..., WireBus], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.limits.CONNECTED_SECONDS", 0.01)
    bus = make(engine.url)

    async def hang() -> None:
        await asyncio.Event().wait()

    offer(bus, "worker::here", here)
    bus.on_connected.append(hang)
    bus.start()
    with RawClient(engine.url) as client:
        until(lambda: answers(client, "worker::here"), "the function is there")


def test_what_is_registered_later_is_there_as_well(
    engine: EngineThread, make: Callable[..., WireBus]
) -> None:
    bus = make(engine.url)
    bus.start()
    assert call(bus, "engine::health::check")
    offer(bus, "worker::here", here)
    with RawClient(engine.url) as client:
        until(lambda: answers(client, "worker::here"), "the function is there")


def test_a_namespace_is_where_its_functions_are(engine: EngineThread, make: Callable[..., WireBus]) -> None:
    bus = make(engine.url, namespace="two")
    offer(bus, "worker::here", here)
    bus.start()
    with RawClient(engine.url) as client:
        until(lambda: answers(client, "worker::here", namespace="two"), "the function is there")
        assert client.call("worker::here")["error"]["code"] == "function_not_found"
    assert call(bus, "worker::here") == "here"


def test_a_second_worker_of_a_name_waits_says_so_once_and_takes_over(
    engine: EngineThread, make: Callable[..., WireBus], caplog: pytest.LogCaptureFixture
) -> None:
    first, second = WireBus(engine.url, name="worker", description=""), make(engine.url)
    tries = threading.Semaphore(0)

    async def connected() -> None:
        tries.release()

    offer(second, "worker::here", here)
    second.on_connected.append(connected)
    first.start()
    assert call(first, "engine::health::check")
    with caplog.at_level(logging.WARNING, "iii_directory.worker"):
        second.start()
        until(lambda: "waiting until it leaves" in caplog.text, "the second says so")
        with pytest.raises(CallError):
            call(second, "engine::health::check", timeout_ms=200)
        assert not tries.acquire(blocking=False)
        first.close()
        with RawClient(engine.url) as client:
            until(lambda: answers(client, "worker::here"), "the second takes over")
    assert tries.acquire(timeout=WAIT)
    assert caplog.text.count("waiting until it leaves") == 1
    assert caplog.text.count("this one takes over") == 1


# Engines that are not there, or not for us


def test_an_engine_that_is_away_is_one_line_in_the_log(
    make: Callable[..., WireBus], caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    bus = make(f"ws://127.0.0.1:{port}")
    bus.start()
    until(lambda: "no iii engine" in caplog.text, "it is said")
    with pytest.raises(CallError) as failure:
        call(bus, "a::b", timeout_ms=200)
    assert failure.value.code == "TIMEOUT"
    with EngineThread(port=port):
        assert call(bus, "engine::health::check")
        assert caplog.text.count("no iii engine at") == 1


@pytest.mark.parametrize(
    ("token", "said"),
    [("a-secret-of-sixteen", ""), ("wrong", "it asks for a token"), (None, "it asks for a token")],
)
def test_an_engine_with_a_token_lets_in_who_has_it(
    make: Callable[..., WireBus], caplog: pytest.LogCaptureFixture, token: str | None, said: str
) -> None:
    with EngineThread(token="a-secret-of-sixteen") as engine:
        bus = make(engine.url, token=token)
        bus.start()
        if said:
            until(lambda: said in caplog.text, "it is said")
        else:
            assert call(bus, "engine::health::check")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"hello\r\n\r\n", b""])
def test_an_address_that_is_not_an_engine_is_called_that(
    make: Callable[..., WireBus], caplog: pytest.LogCaptureFixture, answer: bytes
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        listener.settimeout(WAIT)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        pool.submit(serve)
        make(f"ws://127.0.0.1:{listener.getsockname()[1]}").start()
        until(lambda: "is not an iii engine" in caplog.text, "it is said")
    assert "Traceback" not in caplog.text


def test_an_engine_that_is_not_heard_of_any_more_is_given_up(
    engine: EngineThread,
    make: Callable[..., WireBus],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("iii_directory.limits.KEEP_ALIVE_SECONDS", 0.05)
    bus, held = make(engine.url), threading.Event()
    bus.start()
    assert call(bus, "engine::health::check")
    engine.loop.call_soon_threadsafe(held.wait, WAIT)
    until(lambda: "not been heard of" in caplog.text, "the connection is given up")
    held.set()
    assert call(bus, "engine::health::check")


# Calls


def test_a_call_under_way_when_the_engine_goes_ends_then_and_there(make: Callable[..., WireBus]) -> None:
    asked = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with EngineThread() as engine:
            bus = make(engine.url)

            async def never(_: Payload) -> None:
                asked.set()
                await asyncio.Event().wait()

            offer(bus, "worker::never", never)
            bus.start()
            wait_for(engine, "worker::never")
            calling = pool.submit(call, bus, "worker::never", 60_000)
            assert asked.wait(WAIT)
        with pytest.raises(CallError) as failure:
            calling.result(WAIT)
    assert failure.value.code == "connection_lost"


def test_messages_of_any_size_arrive_both_ways(engine: EngineThread, make: Callable[..., WireBus]) -> None:
    bus = make(engine.url)

    async def length(payload: Payload) -> object:
        return {"length": len(payload["text"]), "text": payload["text"]}

    offer(bus, "worker::length", length)
    bus.start()
    wait_for(engine, "worker::length")
    for size in (0, 1, 40_000, 9 * MIB):
        # Two bytes each, so that fragments end within a character.
        text = "x" + "é" * size
        answer = bus.run(bus.call("worker::length", {"text": text}, timeout_ms=60_000))
        assert (answer["length"], answer["text"] == text) == (len(text), True)


def test_a_call_that_takes_long_to_read_is_answered_unread(
    engine: EngineThread, make: Callable[..., WireBus]
) -> None:
    bus, asked = make(engine.url), list[Any]()

    async def note(payload: Payload) -> object:
        asked.append(payload)
        return len(payload["rows"])

    offer(bus, "worker::note", note)
    bus.start()
    wait_for(engine, "worker::note")
    with RawClient(engine.url) as client:
        refused = client.call("worker::note", {"rows": [[]] * MAX_READ_MARKS})["error"]
        assert client.result("worker::note", {"rows": ["x" * MIB]}) == 1

    assert refused["code"] == "LIMIT_EXCEEDED"
    assert refused["message"].startswith("worker::note reads what a call carries as a whole")
    assert len(asked) == 1


def test_an_answer_too_large_for_a_message_is_an_error_for_the_waiting_caller(
    engine: EngineThread, make: Callable[..., WireBus]
) -> None:
    bus = make(engine.url)

    async def huge(_: Payload) -> object:
        return "x" * (64 * MIB)

    offer(bus, "worker::huge", huge)
    bus.start()
    wait_for(engine, "worker::huge")
    with RawClient(engine.url) as client:
        assert client.call("worker::huge")["error"]["code"] == "payload_too_large"
    with pytest.raises(CallError) as failure:
        bus.run(bus.call("worker::huge", {"text": "x" * (64 * MIB)}, timeout_ms=10_000))
    assert failure.value.code == "payload_too_large"
    assert call(bus, "engine::health::check")


# Words


some_text, some_json = st.text(max_size=5), st.dictionaries(st.text(max_size=3), st.integers() | st.none())
maybe_json, maybe_text = st.none() | some_json, st.none() | some_text
call_ids = st.uuids().map(str)
errors = st.fixed_dictionaries({"code": some_text, "message": some_text})
said = st.one_of(
    st.builds(
        RegisterFunction,
        id=some_text,
        description=maybe_text,
        request_format=maybe_json,
        response_format=maybe_json,
        metadata=maybe_json,
    ),
    st.builds(
        RegisterTriggerType,
        id=some_text,
        description=some_text,
        trigger_request_format=maybe_json,
        call_request_format=maybe_json,
        namespace=maybe_text,
    ),
    st.builds(
        RegisterTrigger,
        id=some_text,
        trigger_type=some_text,
        function_id=some_text,
        config=maybe_json,
        metadata=maybe_json,
        namespace=maybe_text,
        trigger_namespace=maybe_text,
    ),
    st.builds(
        TriggerRegistrationResult,
        id=some_text,
        trigger_type=some_text,
        function_id=some_text,
        error=st.none() | errors,
    ),
    st.builds(
        InvokeFunction,
        function_id=some_text,
        data=maybe_json,
        invocation_id=st.none() | call_ids,
        action=st.sampled_from((None, Action("void"))),
        metadata=maybe_json,
        namespace=maybe_text,
        traceparent=maybe_text,
        baggage=maybe_text,
    ),
    st.builds(InvocationResult, invocation_id=call_ids, function_id=some_text, result=some_json),
    st.builds(Reattach, previous_worker_id=some_text, reattach_token=maybe_text),
)


@given(said)
def test_an_engine_reads_what_a_worker_says(message: Any) -> None:
    heard: Any = decode(b"".join(encode(message)))
    if isinstance(heard, InvokeFunction):
        heard.data = read(heard.data)
    elif isinstance(heard, InvocationResult):
        heard.result = read(heard.result)

    assert heard == message


def test_who_is_told_to_stop_as_the_handshake_is_done_leaves_no_connection_behind(
    engine: EngineThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[WireSocket] = []
    answered = WireSocket.handshake

    async def stopped_at_once() -> None:
        opening = asyncio.ensure_future(
            open_socket(engine.url, received=lambda _: None, lost=lambda _: None, token=None)
        )

        def answered_and_stopped(socket: WireSocket, event: Any) -> None:
            answered(socket, event)
            opened.append(socket)
            opening.cancel()

        monkeypatch.setattr(WireSocket, "handshake", answered_and_stopped)
        await asyncio.wait([opening])
        assert opening.cancelled()
        (left,) = opened
        await asyncio.wait_for(left.ended, WAIT)

    asyncio.run(stopped_at_once())
