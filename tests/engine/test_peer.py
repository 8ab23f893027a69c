"""One socket: handshakes, frames, limits, and clients that do not play along."""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import select
import time
import uuid
from typing import TYPE_CHECKING

import pytest
from tests.support.engine import WAIT, EngineThread, RawClient
from tests.support.raw_socket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, RawSocket, frame

from iii_directory.engine.peer import SocketLimits
from iii_directory.limits import MAX_FRAME_BYTES, MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("no_errors")

KIB = 1024
SMALL = SocketLimits(frame_bytes=64 * KIB, message_bytes=256 * KIB, unsent_bytes=512 * KIB)
HASTY = SocketLimits(handshake_seconds=0.2, close_seconds=0.2, stall_seconds=1.5)


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineThread]:
    with EngineThread() as running:
        yield running


@pytest.fixture(scope="module")
def small() -> Iterator[EngineThread]:
    with EngineThread(limits=SMALL) as running:
        yield running


@pytest.fixture(scope="module")
def hasty() -> Iterator[EngineThread]:
    with EngineThread(limits=HASTY) as running:
        yield running


@pytest.fixture
def bystander(engine: EngineThread, small: EngineThread, hasty: EngineThread) -> Iterator[list[RawClient]]:
    """A connection to each engine; all are still served at the end."""
    clients = [RawClient(running.url) for running in (engine, small, hasty)]
    yield clients
    for client in clients:
        with client:
            assert client.result("engine::health::check")


def call_of(size: int) -> bytes:
    """A call of an unknown function, of so many bytes."""
    head = f'{{"type":"invokefunction","invocation_id":"{uuid.uuid4()}","function_id":"no::such","data":"'
    return head.encode() + b"x" * (size - len(head) - 2) + b'"}'


def ping_of(size: int) -> bytes:
    """A message of exactly this many bytes that is answered."""
    empty = len(json.dumps({"type": "ping", "x": ""}))
    return json.dumps({"type": "ping", "x": "x" * (size - empty)}).encode()


def connected(engine: EngineThread, count: int) -> None:
    """Wait until this many connections are left besides the one that asks."""
    with RawClient(engine.url) as client:
        deadline = time.monotonic() + WAIT
        while True:
            left = client.result("engine::health::check")["components"]["workers"]["connected"] - 1
            if left == count:
                return
            assert time.monotonic() < deadline, f"{left} connections are left"


# Handshakes


def test_frames_that_come_along_with_the_request_are_read_after_it(engine: EngineThread) -> None:
    extra = frame(b'{"type":"ping"}') + frame(b"x", PING)
    with RawSocket(engine.server.port, extra=extra) as client:
        assert client.receive_message()["type"] == "workerregistered"
        # The answer to a ping of the transport may come first.
        assert {client.receive(), client.receive()} == {(PONG, b"x"), (TEXT, b'{"type":"pong"}')}


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize("extra", [frame(b"", CLOSE), b"\xff" * 40, frame(b"x", PING), b"\r\n\r\n"])
def test_a_refused_request_is_answered_whatever_comes_along(engine: EngineThread, extra: bytes) -> None:
    with RawSocket(engine.server.port, "/nowhere", extra=extra) as client:
        assert client.status == 404


def test_a_goodbye_that_comes_along_with_the_request_is_answered(engine: EngineThread) -> None:
    with RawSocket(engine.server.port, extra=frame(b"", CLOSE)) as client:
        assert client.status == 101
        assert client.wait_for_end()[-1] == CLOSE


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize(
    "sent", [b"", b"GET", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: web"]
)
def test_a_handshake_that_is_not_finished_in_time_is_closed(hasty: EngineThread, sent: bytes) -> None:
    with RawSocket(hasty.server.port, path=None) as client:
        client.socket.sendall(sent)
        assert client.receive() is None


def test_a_handshake_that_drips_in_is_closed_in_time_too(hasty: EngineThread) -> None:
    with RawSocket(hasty.server.port, path=None) as client:
        deadline = time.monotonic() + WAIT
        client.socket.sendall(b"GET / HTTP/1.1\r\nX: ")
        while not select.select([client.socket], [], [], 0.02)[0]:
            client.socket.sendall(b"x")
            assert time.monotonic() < deadline


def test_a_finished_handshake_has_no_time_limit(hasty: EngineThread) -> None:
    with RawSocket(hasty.server.port) as client:
        assert client.receive_message()["type"] == "workerregistered"
        with RawSocket(hasty.server.port, path=None) as silent:
            assert silent.receive() is None
        client.send(b'{"type":"ping"}')
        assert client.receive_message() == {"type": "pong"}


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n",
        b"POST / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/2\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/1.1\r\nnonsense\r\n\r\n",
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 300 + b"\r\n",
        b"\xff" * 100_000,
    ],
)
def test_a_connection_without_a_valid_handshake_is_closed(hasty: EngineThread, sent: bytes) -> None:
    with RawSocket(hasty.server.port, path=None) as client:
        try:
            client.socket.sendall(sent)
            while client.socket.recv(65536):
                pass
        except OSError:
            return


# Frames


@pytest.mark.usefixtures("bystander")
def test_a_frame_of_16_mib_passes_and_one_byte_more_is_refused(engine: EngineThread) -> None:
    with RawSocket(engine.server.port) as client:
        client.receive()
        client.send(call_of(MAX_FRAME_BYTES))
        assert client.receive_message()["error"]["code"] == "function_not_found"
        client.socket.sendall(frame(ping_of(MAX_FRAME_BYTES + 1))[:14])
        assert client.wait_for_end() == [CLOSE]


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_a_frame_at_the_limit_passes_and_one_byte_more_is_refused(small: EngineThread, opcode: int) -> None:
    with RawSocket(small.server.port) as client:
        client.receive()
        client.send(ping_of(SMALL.frame_bytes), opcode)
        assert client.receive_message() == {"type": "pong"}
        client.send(ping_of(SMALL.frame_bytes + 1), opcode)
        assert client.wait_for_end() == [CLOSE]


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize("pieces", [4, 5, 300])
def test_a_message_in_pieces_passes_up_to_its_limit(small: EngineThread, pieces: int) -> None:
    with RawSocket(small.server.port) as client:
        client.receive()
        send_in_pieces(client, ping_of(SMALL.message_bytes), pieces)
        assert client.receive_message() == {"type": "pong"}
        send_in_pieces(client, ping_of(SMALL.message_bytes + 1), pieces + 1)
        assert client.wait_for_end() == [CLOSE]


@pytest.mark.soak
def test_a_message_of_64_mib_in_pieces_passes(engine: EngineThread) -> None:
    with RawSocket(engine.server.port) as client:
        client.receive()
        send_in_pieces(client, ping_of(MAX_MESSAGE_BYTES), 64)
        assert client.receive_message() == {"type": "pong"}


def send_in_pieces(client: RawSocket, payload: bytes, pieces: int) -> None:
    size = -(-len(payload) // pieces)
    parts = [payload[start : start + size] for start in range(0, len(payload), size)]
    for number, part in enumerate(parts):
        opcode = TEXT if number == 0 else CONTINUATION
        client.send(part, opcode, fin=number == len(parts) - 1)


def test_empty_pieces_cost_nothing(engine: EngineThread) -> None:
    with RawSocket(engine.server.port) as client:
        client.receive()
        client.send(b'{"type":', fin=False)
        client.socket.sendall(frame(b"", CONTINUATION, fin=False) * 20_000)
        client.send(b'"ping"}', CONTINUATION)
        assert client.receive_message() == {"type": "pong"}


def test_a_ping_between_the_pieces_of_a_message_is_answered(engine: EngineThread) -> None:
    with RawSocket(engine.server.port) as client:
        client.receive()
        client.send(b'{"type":', fin=False)
        client.send(b"hi", PING)
        client.send(b'"ping"}', CONTINUATION)
        assert client.receive() == (PONG, b"hi")
        assert client.receive_message() == {"type": "pong"}


@pytest.mark.parametrize("payload", [b"\xff\xfe", b'{"type":"\xff"}', b"", b"\x00"])
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_a_message_that_is_not_text_is_dropped_and_the_connection_kept(
    engine: EngineThread, payload: bytes, opcode: int
) -> None:
    with RawSocket(engine.server.port) as client:
        client.receive()
        client.send(payload, opcode)
        client.send(b'{"type":"ping"}')
        assert client.receive_message() == {"type": "pong"}


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize(
    "sent",
    [
        frame(b"{}", masked=False),
        b"\xf1\x80\x00\x00\x00\x00",
        b"\x83\x80\x00\x00\x00\x00",
        frame(b"x", CONTINUATION),
        frame(b"x" * 126, PING),
        frame(b"x", PING, fin=False),
        b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        frame(b"x", CLOSE),
    ],
)
def test_a_broken_frame_ends_its_own_connection_only(engine: EngineThread, sent: bytes) -> None:
    with RawSocket(engine.server.port) as client:
        client.receive()
        client.socket.sendall(sent)
        assert client.wait_for_end() == [CLOSE]


def test_a_goodbye_is_answered(engine: EngineThread) -> None:
    with RawSocket(engine.server.port) as client:
        client.receive()
        client.send(b"\x03\xe8bye", CLOSE)
        assert client.receive() == (CLOSE, b"\x03\xe8bye")
        assert client.receive() is None


# Clients that do not play along


def test_a_client_that_never_reads_is_cut_off_and_the_others_go_on(
    small: EngineThread, caplog: pytest.LogCaptureFixture
) -> None:
    with RawClient(small.url, name="other") as other, RawSocket(small.server.port, buffer=4 * KIB) as deaf:
        other.call("state::set", {"scope": "s", "key": "big", "value": "x" * 60 * KIB})
        ask = frame(
            json.dumps(
                {
                    "type": "invokefunction",
                    "function_id": "state::get",
                    "data": {"scope": "s", "key": "big"},
                    "invocation_id": "0b8f3c1e-9d7a-4c55-8f10-3f2f6f1d2a3b",
                }
            ).encode()
        )
        deadline = time.monotonic() + WAIT
        while not any("does not read" in record.getMessage() for record in caplog.records):
            try:
                deaf.socket.sendall(ask)
            except OSError:
                break
            assert largest_backlog(small) <= SMALL.unsent_bytes + 64 * KIB
            assert other.result("state::get", {"scope": "s", "key": "big"})
            assert time.monotonic() < deadline
        connected(small, 1)


def largest_backlog(engine: EngineThread) -> int:
    async def look() -> int:
        return max((peer._outbox.unsent_bytes for peer in engine.server._peers), default=0)

    return asyncio.run_coroutine_threadsafe(look(), engine.loop).result(WAIT)


def wait_for_backlog(engine: EngineThread, *, there: bool) -> None:
    deadline = time.monotonic() + WAIT
    while bool(largest_backlog(engine)) is not there:
        assert time.monotonic() < deadline


def test_a_client_that_is_slow_gets_everything(small: EngineThread) -> None:
    with RawSocket(small.server.port, buffer=4 * KIB) as slow:
        slow.receive()
        value = "x" * 50 * KIB
        for number in range(8):
            slow.send_message(
                type="invokefunction",
                function_id="state::set",
                data={"scope": "slow", "key": "k", "value": value},
                invocation_id=f"0b8f3c1e-9d7a-4c55-8f10-{number:012d}",
            )
        answers = [slow.receive_message() for _ in range(8)]

    assert [answer["invocation_id"][-1] for answer in answers] == list("01234567")
    assert answers[-1]["result"]["new_value"] == value


def test_a_goodbye_that_is_not_answered_is_not_waited_for(hasty: EngineThread) -> None:
    with RawClient(hasty.url, name="held"), RawSocket(hasty.server.port) as rude:
        rude.receive()
        rude.send_message(
            type="invokefunction",
            function_id="engine::workers::register",
            data={"name": "held"},
            action={"type": "void"},
        )
        assert rude.receive_message()["code"] == "WORKER_NAMESPACE_CONFLICT"
        assert rude.receive() == (CLOSE, b"")
        deadline = time.monotonic() + WAIT
        # It goes on sending instead.
        while not select.select([rude.socket], [], [], 0.02)[0]:
            rude.send(b'{"type":"ping"}')
            assert time.monotonic() < deadline
        assert rude.receive() is None


def ask_for_a_large_answer_and_a_goodbye(client: RawSocket) -> None:
    client.receive()
    client.send_message(
        type="invokefunction",
        function_id="state::set",
        data={"scope": "s", "key": "k", "value": "x" * (12 << 20)},
        invocation_id="0b8f3c1e-9d7a-4c55-8f10-3f2f6f1d2a3b",
    )
    client.send_message(
        type="invokefunction",
        function_id="engine::workers::register",
        data={"name": "taken"},
        action={"type": "void"},
    )


def wait_for_a_handshake_to_be_given_up(engine: EngineThread) -> None:
    with RawSocket(engine.server.port, path=None) as silent:
        assert silent.receive() is None


def test_what_was_sent_before_a_goodbye_arrives_however_slow_the_reader(hasty: EngineThread) -> None:
    with (
        RawClient(hasty.url, name="taken"),
        RawSocket(hasty.server.port, buffer=128 * KIB) as slow,
    ):
        ask_for_a_large_answer_and_a_goodbye(slow)
        # All in all longer than the engine waits for a client that reads nothing.
        for _ in range(9):
            slow.read_some(1 << 20)
            wait_for_a_handshake_to_be_given_up(hasty)
        assert slow.wait_for_end() == [TEXT, TEXT, CLOSE]


def test_a_client_that_reads_nothing_after_a_goodbye_is_cut_off(hasty: EngineThread) -> None:
    with RawClient(hasty.url, name="taken"), RawSocket(hasty.server.port, buffer=4 * KIB) as deaf:
        ask_for_a_large_answer_and_a_goodbye(deaf)
        wait_for_backlog(hasty, there=True)
        wait_for_backlog(hasty, there=False)
        assert deaf.wait_for_end() == []


def test_a_client_that_vanishes_is_cleaned_up_after(engine: EngineThread) -> None:
    connected(engine, 0)
    with RawSocket(engine.server.port) as client:
        client.receive()
        connected(engine, 1)
    connected(engine, 0)


def test_a_thousand_idle_connections_are_held_and_let_go(engine: EngineThread) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4096:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    idle = [RawSocket(engine.server.port) for _ in range(1_000)]
    try:
        connected(engine, 1_000)
        assert {client.receive_message()["type"] for client in idle} == {"workerregistered"}
        with RawClient(engine.url, name="busy") as busy:
            for number in range(100):
                assert busy.result("state::set", {"scope": "s", "key": "k", "value": number})
        idle[500].send(b'{"type":"ping"}')
        assert idle[500].receive_message() == {"type": "pong"}
    finally:
        for client in idle:
            client.socket.close()
    connected(engine, 0)


def test_websockets_own_ping_is_answered(engine: EngineThread) -> None:
    with RawClient(engine.url) as client:
        assert client.socket.ping().wait(WAIT)


def test_debug_logging_does_not_reach_into_frames(
    engine: EngineThread, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "iii_directory.engine"), RawClient(engine.url) as client:
        client.call("state::set", {"scope": "s", "key": "secret", "value": "hush"})

    assert "hush" not in caplog.text


# Unfinished messages, and more sockets than there is room for


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize("sent", [frame(b"{", fin=False), frame(b"x" * 200)[:100]])
def test_a_message_that_is_never_finished_ends_its_connection(sent: bytes) -> None:
    with (
        EngineThread(limits=SocketLimits(message_seconds=0.2)) as engine,
        RawSocket(engine.server.port) as drip,
        RawClient(engine.url) as other,
    ):
        drip.socket.sendall(sent)
        drip.wait_for_end()
        assert other.result("engine::health::check")
        assert engine.on_loop(lambda: engine.server.unfinished_bytes) == 0


def test_a_message_in_pieces_that_is_finished_in_time_is_read() -> None:
    with (
        EngineThread(limits=SocketLimits(message_seconds=0.3)) as engine,
        RawSocket(engine.server.port) as client,
    ):
        client.receive_message()
        for _ in range(3):
            client.send(b'{"type":', fin=False)
            client.send(b'"ping"}', CONTINUATION)
            assert client.receive_message() == {"type": "pong"}
        assert engine.on_loop(lambda: engine.server.unfinished_bytes) == 0


def test_a_client_whose_every_read_ends_in_the_middle_of_a_message_is_not_cut_off() -> None:
    seconds = 0.05
    with (
        EngineThread(limits=SocketLimits(message_seconds=seconds)) as engine,
        RawSocket(engine.server.port) as client,
    ):
        client.receive_message()
        ping = frame(b'{"type":"ping"}')
        client.socket.sendall(ping[:5])
        enough = time.monotonic() + 6 * seconds
        while time.monotonic() < enough:
            client.socket.sendall(ping[5:] + ping[:5])
            assert client.receive_message() == {"type": "pong"}


def test_unfinished_messages_of_all_sockets_together_have_a_bound() -> None:
    limits = SocketLimits(unfinished_bytes=100 * KIB)
    with EngineThread(limits=limits) as engine, RawClient(engine.url) as other:
        held = [RawSocket(engine.server.port) for _ in range(3)]
        for drip in held[:2]:
            drip.send(b"x" * 40 * KIB, fin=False)
            # Answered, so what came before is read.
            drip.send(b"", PING)
            drip.receive_message()
            assert drip.receive() == (PONG, b"")
        held[2].send(b"x" * 40 * KIB, fin=False)
        held[2].wait_for_end()

        assert other.result("engine::health::check")
        assert engine.on_loop(lambda: engine.server.unfinished_bytes) == 80 * KIB
        for drip in held:
            drip.socket.close()


def test_past_the_last_place_a_socket_is_turned_away_and_the_others_stay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        EngineThread(limits=SocketLimits(connections=3)) as engine,
        RawClient(engine.url) as first,
        RawSocket(engine.server.port),
    ):
        with RawSocket(engine.server.port):
            for _ in range(5):
                with RawSocket(engine.server.port) as late:
                    assert late.status == 503
                    # Head and body come in one segment.
                    assert b"This engine has 3 connections, which is its limit." in late._received
            assert first.result("engine::health::check")
        connected(engine, 2)
    said = [record.getMessage() for record in caplog.records if "room for" in record.getMessage()]
    assert said == ["there are 3 connections, which is all there is room for"]
