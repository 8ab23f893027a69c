"""Channels: what one end gives, the other end gets."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.engine import WAIT, EngineThread, RawClient
from tests.support.raw_socket import BINARY, CLOSE, TEXT, RawSocket, frame
from tests.support.raw_socket import request as raw_request

from iii_directory.engine.peer import SocketLimits

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("no_errors")
KIB = 1024


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineThread]:
    with EngineThread(limits=SocketLimits(close_seconds=0.2, stall_seconds=1.5)) as running:
        yield running


@pytest.fixture
def channel(engine: EngineThread) -> Iterator[dict[str, Any]]:
    """The two ends of a channel; at the end nothing of it is left."""
    with RawClient(engine.url) as client:
        yield client.result("engine::channels::create", {"buffer_size": 4})
    wait_until_no_channel_is_left(engine)


def wait_until_no_channel_is_left(engine: EngineThread) -> None:
    async def left() -> int:
        return len(engine.server._relays._relays)

    deadline = time.monotonic() + WAIT
    while asyncio.run_coroutine_threadsafe(left(), engine.loop).result(WAIT):
        assert time.monotonic() < deadline


def path_of(end: dict[str, str]) -> str:
    return f"/ws/channels/{end['channel_id']}?key={end['access_key']}&dir={end['direction']}"


def opened(engine: EngineThread, end: dict[str, str], *, buffer: int | None = None) -> RawSocket:
    connection = RawSocket(engine.server.port, path_of(end), buffer=buffer)
    assert connection.status == 101
    return connection


MESSAGES = [(TEXT, b"one"), (BINARY, b"\x00\xff"), (TEXT, "é".encode()), (TEXT, b""), (BINARY, b"x" * 70_000)]


@pytest.mark.parametrize("reader_first", [True, False])
def test_messages_arrive_in_order_and_as_they_are(
    engine: EngineThread, channel: dict[str, Any], reader_first: bool
) -> None:
    order = ("reader", "writer") if reader_first else ("writer", "reader")
    ends = {name: opened(engine, channel[name]) for name in order}
    with ends["reader"] as reader, ends["writer"] as writer:
        for opcode, payload in MESSAGES:
            writer.send(payload, opcode)
        assert [reader.receive() for _ in MESSAGES] == MESSAGES
        writer.send(b"", CLOSE)
        assert reader.receive() == (CLOSE, b"")


def test_what_was_given_before_anybody_took_it_is_kept(engine: EngineThread, channel: dict[str, Any]) -> None:
    with opened(engine, channel["writer"]) as writer:
        for opcode, payload in MESSAGES[:3]:
            writer.send(payload, opcode)
        writer.send(b"", CLOSE)
        assert writer.wait_for_end() == [CLOSE]
    with opened(engine, channel["reader"]) as reader:
        assert [reader.receive() for _ in range(3)] == MESSAGES[:3]
        assert reader.receive() == (CLOSE, b"")


def test_a_writer_that_vanishes_ends_the_reader_too(engine: EngineThread, channel: dict[str, Any]) -> None:
    with opened(engine, channel["reader"]) as reader:
        with opened(engine, channel["writer"]) as writer:
            writer.send(b"last")
        assert reader.receive() == (TEXT, b"last")
        assert reader.receive() == (CLOSE, b"")


def test_a_reader_that_leaves_ends_the_writer(engine: EngineThread, channel: dict[str, Any]) -> None:
    with opened(engine, channel["writer"]) as writer:
        with opened(engine, channel["reader"]):
            pass
        assert CLOSE in writer.wait_for_end()
    with RawSocket(engine.server.port, path_of(channel["reader"])) as late:
        assert late.status == 404


def test_a_reader_that_leaves_before_the_writer_came_ends_the_channel(
    engine: EngineThread, channel: dict[str, Any]
) -> None:
    with opened(engine, channel["reader"]):
        pass
    wait_until_no_channel_is_left(engine)
    with RawSocket(engine.server.port, path_of(channel["writer"])) as late:
        assert late.status == 404


@pytest.mark.parametrize("end", ["reader", "writer"])
def test_a_second_taker_of_an_end_is_closed_at_once(
    engine: EngineThread, channel: dict[str, Any], end: str
) -> None:
    with opened(engine, channel["reader"]) as reader, opened(engine, channel["writer"]) as writer:
        with opened(engine, channel[end]) as second:
            assert second.receive() == (CLOSE, b"")
        writer.send(b"still here")
        assert reader.receive() == (TEXT, b"still here")


def test_what_a_reader_sends_is_not_listened_to(engine: EngineThread, channel: dict[str, Any]) -> None:
    with opened(engine, channel["reader"]) as reader, opened(engine, channel["writer"]) as writer:
        reader.send(b'{"type":"ping"}')
        writer.send(b"x")
        assert reader.receive() == (TEXT, b"x")


@pytest.mark.parametrize("change", [{"access_key": "wrong"}, {"channel_id": "wrong"}, {"access_key": "%ff"}])
def test_a_wrong_key_or_id_finds_nothing(
    engine: EngineThread, channel: dict[str, Any], change: dict[str, str]
) -> None:
    with RawSocket(engine.server.port, path_of({**channel["reader"], **change})) as stranger:
        assert stranger.status == 404


def backlog(engine: EngineThread) -> tuple[int, int]:
    """Messages and bytes that wait in the engine between the ends."""

    async def look() -> tuple[int, int]:
        relays = engine.server._relays._relays.values()
        return max(len(r.waiting) for r in relays), max(r.waiting_size for r in relays)

    return asyncio.run_coroutine_threadsafe(look(), engine.loop).result(WAIT)


def test_a_slow_reader_holds_the_writer_back_and_gets_everything(
    engine: EngineThread, channel: dict[str, Any]
) -> None:
    piece, count = b"x" * 256 * KIB, 100
    with (
        opened(engine, channel["reader"], buffer=4096) as reader,
        opened(engine, channel["writer"]) as writer,
    ):
        writer.socket.setblocking(False)
        unsent = bytearray()
        for number in range(count):
            unsent += frame(piece + str(number).encode())
        received, largest = 0, 0
        deadline = time.monotonic() + 3 * WAIT
        while received < count:
            unsent = send_what_fits(writer, unsent)
            largest = max(largest, backlog(engine)[0])
            message = reader.receive()
            assert message == (TEXT, piece + str(received).encode())
            received += 1
            assert time.monotonic() < deadline
        # The channel's four, and what one read of the writer's socket can bring.
        assert largest <= 6


def send_what_fits(writer: RawSocket, unsent: bytearray) -> bytearray:
    try:
        return unsent[writer.socket.send(unsent) :] if unsent else unsent
    except BlockingIOError:
        return unsent


def test_a_large_last_message_reaches_a_slow_reader_whole(
    engine: EngineThread, channel: dict[str, Any]
) -> None:
    last = b"y" * (12 << 20)
    with opened(engine, channel["reader"], buffer=128 * KIB) as reader:
        with opened(engine, channel["writer"]) as writer:
            writer.send(last)
            writer.send(b"", CLOSE)
            writer.wait_for_end()
        for _ in range(9):
            reader.read_some(1 << 20)
            wait_longer_than_a_goodbye(engine)
        assert reader.receive() == (TEXT, last)
        assert reader.receive() == (CLOSE, b"")


def wait_longer_than_a_goodbye(engine: EngineThread) -> None:
    """Until the engine has given up on another client that does not answer its goodbye."""
    with RawClient(engine.url, name="held"), RawSocket(engine.server.port) as rude:
        rude.receive()
        rude.send_message(
            type="invokefunction",
            function_id="engine::workers::register",
            data={"name": "held"},
            action={"type": "void"},
        )
        assert rude.wait_for_end() == [TEXT, CLOSE]


@pytest.mark.parametrize("end", ["reader", "writer"])
def test_a_channel_one_side_never_came_to_ends_the_other(
    engine: EngineThread, channel: dict[str, Any], end: str
) -> None:
    with opened(engine, channel[end]) as alone:
        if end == "writer":
            for _ in range(10):
                alone.send(b"x" * 1000)
        run_timer(engine, ("channel-idle", channel[end]["channel_id"]))
        assert CLOSE in alone.wait_for_end()


def run_timer(engine: EngineThread, key: tuple[str, str]) -> None:
    async def run_out() -> None:
        engine.server._step(None, engine.server._router.timer, key)

    asyncio.run_coroutine_threadsafe(run_out(), engine.loop).result(WAIT)


def test_a_channel_in_use_outlives_its_idle_time(engine: EngineThread, channel: dict[str, Any]) -> None:
    with opened(engine, channel["reader"]) as reader, opened(engine, channel["writer"]) as writer:
        run_timer(engine, ("channel-idle", channel["reader"]["channel_id"]))
        writer.send(b"x")
        assert reader.receive() == (TEXT, b"x")


def test_a_channel_without_a_reader_is_closed(engine: EngineThread, channel: dict[str, Any]) -> None:
    run_timer(engine, ("channel-idle", channel["reader"]["channel_id"]))
    with RawSocket(engine.server.port, path_of(channel["reader"])) as late:
        assert late.status == 404


def test_a_handshake_that_fails_does_not_take_an_end(engine: EngineThread, channel: dict[str, Any]) -> None:
    request = raw_request(engine.server.port, path_of(channel["reader"])).replace(b"Sec-WebSocket-Key", b"X")
    with RawSocket(engine.server.port, path=None) as broken:
        broken.open(request)
        assert broken.status == 400
    with opened(engine, channel["reader"]) as reader, opened(engine, channel["writer"]) as writer:
        writer.send(b"x")
        assert reader.receive() == (TEXT, b"x")
