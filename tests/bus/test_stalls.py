"""A worker joined to an engine whose sockets delay small frames, as the real engine's do, does not stall."""

from __future__ import annotations

import asyncio
import socket
import statistics
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.engine import WAIT, EngineThread, RawClient
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from iii_directory.bus.seam import Function
from iii_directory.bus.wire_bus import WireBus

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLS = 60
# A stall takes 40 ms, a call on the same engine without delays about one.
MOST_TIMES_AS_LONG = 8


class Joined:
    """A worker whose function makes a call of its own that it has nothing to say about afterwards."""

    def __init__(self, stack: ExitStack, *, nagle: bool) -> None:
        engine = stack.enter_context(EngineThread(nagle=nagle))
        self._client = stack.enter_context(RawClient(engine.url))
        self._background: set[asyncio.Task[Any]] = set()
        self._bus = WireBus(engine.url, name="joined", description="")
        stack.callback(self._bus.close)
        function = Function(id="joined::answer", description="", request={}, response=None)
        self._bus.register_function(function, self._answer)
        self._bus.start()
        self._bus.run(self._bus.call("engine::health::check", {}, timeout_ms=10_000))
        while "error" in self._client.call("joined::answer"):
            pass

    async def _answer(self, _payload: dict[str, Any]) -> None:
        asked = self._bus.call("engine::health::check", {}, timeout_ms=10_000)
        task = asyncio.get_running_loop().create_task(asked)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def seconds(self) -> float:
        began = time.perf_counter()
        self._client.result("joined::answer")
        return time.perf_counter() - began


@pytest.fixture
def both() -> Iterator[tuple[Joined, Joined]]:
    with ExitStack() as stack:
        yield Joined(stack, nagle=True), Joined(stack, nagle=False)


def test_calls_on_an_engine_that_delays_frames_take_about_as_long_as_on_another(
    both: tuple[Joined, Joined],
) -> None:
    delayed, plain = both
    taken = [(delayed.seconds(), plain.seconds()) for _ in range(CALLS)]

    ratio = statistics.median(one for one, _ in taken) / statistics.median(other for _, other in taken)
    assert ratio < MOST_TIMES_AS_LONG


def test_no_ping_is_sent_in_the_moment_of_connecting() -> None:
    """Its pong would hold up what the engine answers next."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(WAIT)
        bus = WireBus(f"ws://127.0.0.1:{listener.getsockname()[1]}", name="joined", description="")
        try:
            bus.start()
            with listener.accept()[0] as engine:
                engine.settimeout(WAIT)
                heard = first_frames(engine)
        finally:
            bus.close()
    assert set(heard) == {Opcode.TEXT}


def first_frames(engine: socket.socket) -> list[Opcode]:
    """Welcome a worker as an engine does; return what it sends up to its first message."""
    protocol, opcodes = ServerProtocol(), list[Opcode]()
    while Opcode.TEXT not in opcodes:
        protocol.receive_data(engine.recv(65536))
        for event in protocol.events_received():
            if isinstance(event, Request):
                protocol.send_response(protocol.accept(event))
                protocol.send_text(b'{"type":"workerregistered","worker_id":"w"}')
            elif isinstance(event, Frame):
                opcodes.append(event.opcode)
        for piece in protocol.data_to_send():
            engine.sendall(piece)
    return opcodes


def test_a_call_that_writes_to_the_state_takes_four_passes_of_the_loop_at_most() -> None:
    """One to read the call and one to run it, one to read the answer and the event, one to reply."""
    with ExitStack() as stack:
        engine = stack.enter_context(EngineThread())
        client = stack.enter_context(RawClient(engine.url))
        bus = WireBus(engine.url, name="joined", description="")
        stack.callback(bus.close)

        async def write(payload: dict[str, Any]) -> None:
            await bus.call("state::set", {"scope": "s", "key": "k", "value": payload["n"]}, timeout_ms=10_000)

        heard: list[object] = []
        bus.register_function(Function(id="joined::write", description="", request={}, response=None), write)
        bus.register_listener("joined::heard", heard.append, description="")
        bus.bind("state", "joined::heard", {"scope": "s"})
        bus.start()
        while "error" in client.call("joined::write", {"n": 0}):
            pass
        before = count_passes(bus)
        for number in range(CALLS):
            client.result("joined::write", {"n": number})
        passes = count_passes(bus) - before

    assert len(heard) >= CALLS
    # Now and then the system hands over in two reads what was written at once.
    assert passes <= 4 * CALLS + CALLS // 4


def count_passes(bus: WireBus) -> int:
    """How often the loop of a bus has looked for something to do since this was first asked."""
    selector: Any = bus._loop._selector  # pyright: ignore[reportAttributeAccessIssue]
    if not hasattr(selector, "passes"):
        selector.passes, select = 0, selector.select

        def counted(timeout: float | None = None) -> Any:
            selector.passes += 1
            return select(timeout)

        selector.select = counted
    return selector.passes
