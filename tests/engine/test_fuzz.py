"""No input breaks the engine: no unhandled exception, and no effect on other connections."""

from __future__ import annotations

import contextlib
import socket
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine import frames
from tests.engine.driver import Driver
from tests.support.engine import EngineThread, RawClient
from tests.support.raw_socket import request

from iii_directory.wire.json_text import encode_value

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_every_builtin_function_is_among_what_is_tried() -> None:
    levels = {f"engine::log::{level}" for level in ("trace", "debug", "warn", "error")}

    assert set(frames.PAYLOADS) | levels == set(Driver().router.calls.builtins)


# The router alone


def fuzz_router(seed: int, count: int) -> None:
    random = Random(seed)
    driver = Driver(environment={"A": "1"})
    clients = [driver.connect(f"c{number}") for number in range(3)]
    for number in range(count):
        client = random.choice(clients)
        if client.id not in driver.router.engine_state.connections:
            clients[clients.index(client)] = client = driver.connect()
        frame = frames.gone_wrong(random)
        try:
            client.frame(frame)
            if random.random() < 0.05:
                driver.run_timer(random.choice(("namespace-grace", "trigger-ack", "functions-event")))
        except Exception as error:
            raise AssertionError(f"seed {seed}, frame {number}: {frame!r}") from error
        client.take()
        if number % 500 == 499:
            driver.connect().call("engine::functions::list", {"include_internal": True})


@pytest.mark.parametrize("seed", range(10))
def test_messages_gone_wrong_are_survived(seed: int) -> None:
    fuzz_router(seed, 2_000)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_ten_million_messages_gone_wrong_are_survived() -> None:
    for seed in range(1_000, 6_000):
        fuzz_router(seed, 2_000)


WORDS = st.sampled_from(
    sorted(
        {word for message in frames.MESSAGES for word in message} | {"scope", "key", "value", "ops", "path"}
    )
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from([frames.ID, "default", "state", "state::delete", "void", "${A}"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(), inner, max_size=5),
    max_leaves=6,
)
KINDS = st.sampled_from(sorted({message["type"] for message in frames.MESSAGES}))
FUNCTIONS = st.sampled_from(sorted(frames.PAYLOADS))


@given(st.lists(st.tuples(KINDS, st.dictionaries(WORDS, VALUES, max_size=6)), max_size=4))
def test_any_fields_in_any_message_are_survived(messages: list[tuple[str, dict[str, Any]]]) -> None:
    driver = Driver()
    client = driver.connect("c")
    for kind, fields in messages:
        client.frame(encode_value({**fields, "type": kind}))


@given(st.lists(st.tuples(FUNCTIONS, VALUES), max_size=6))
def test_any_payload_to_any_builtin_is_answered_once(calls: list[tuple[str, Any]]) -> None:
    driver = Driver()
    for function_id, data in calls:
        client = driver.connect()
        call_id = client.start(function_id, data)
        answers = [m for m in client.take() if m.get("invocation_id") == call_id]

        assert len(answers) == 1
        assert ("error" in answers[0]) + ("result" in answers[0]) <= 1


# Through the socket


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineThread]:
    with EngineThread() as running:
        yield running


def fuzz_frames(engine: EngineThread, seed: int, count: int) -> None:
    """One connection sends rubbish in frames that are frames; it stays open, and so does another."""
    random = Random(seed)
    with RawClient(engine.url, name=f"bystander-{seed}") as bystander:
        fuzzer = RawClient(engine.url)
        for number in range(count):
            frame = frames.gone_wrong(random) if random.random() < 0.8 else frames.noise(random)
            try:
                fuzzer.socket.send(frame)
            except OSError as error:  # pragma: no cover (a failure of the test)
                raise AssertionError(f"seed {seed}, frame {number}: cut off") from error
            if number % 50 == 49:
                assert fuzzer.result("engine::health::check")
                assert bystander.result("engine::health::check")
        with fuzzer:
            assert fuzzer.result("engine::health::check")


@pytest.mark.usefixtures("no_errors")
@pytest.mark.parametrize("seed", range(4))
def test_rubbish_in_frames_leaves_every_connection_open(engine: EngineThread, seed: int) -> None:
    fuzz_frames(engine, seed, 500)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.usefixtures("no_errors")
def test_a_lot_of_rubbish_in_frames_leaves_every_connection_open(engine: EngineThread) -> None:
    for seed in range(100, 600):
        fuzz_frames(engine, seed, 2_000)


def fuzz_bytes(engine: EngineThread, seed: int, count: int) -> None:
    """Raw bytes before, during and after the handshake; the socket that sends them may be closed."""
    random = Random(seed)
    port = engine.server.port
    with RawClient(engine.url, name=f"bystander-{seed}") as bystander:
        for _ in range(count):
            sender = socket.create_connection(("127.0.0.1", port), timeout=10)
            with sender, contextlib.suppress(OSError):
                for piece in _bytes_of_a_stranger(random, port):
                    sender.sendall(piece)
                if random.random() < 0.3:
                    sender.shutdown(socket.SHUT_WR)
        assert bystander.result("engine::health::check")


def _bytes_of_a_stranger(random: Random, port: int) -> Iterator[bytes]:
    chance = random.random()
    if chance < 0.2:
        yield frames.noise(random)
    elif chance < 0.5:
        yield frames.handshake_gone_wrong(random, port) + frames.noise(random)
    else:
        head = request(port, random.choice(("/", "/", "/otel", "/nowhere")))
        rest = b"".join(_frames_of_a_stranger(random) for _ in range(random.randrange(6)))
        whole = head + rest
        # In one piece, or cut anywhere: frames may come along with the request.
        place = random.choice((len(head), len(whole), random.randrange(len(whole))))
        yield whole[:place]
        yield whole[place:]


def _frames_of_a_stranger(random: Random) -> bytes:
    chance = random.random()
    if chance < 0.1:
        return frames.noise(random)
    message = frames.gone_wrong(random) if chance < 0.7 else frames.noise(random)
    return frames.websocket_frame(random, message.encode() if isinstance(message, str) else message)


@pytest.mark.usefixtures("no_errors")
@pytest.mark.parametrize("seed", range(4))
def test_raw_bytes_before_and_after_the_handshake_break_nothing(engine: EngineThread, seed: int) -> None:
    fuzz_bytes(engine, seed, 150)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.usefixtures("no_errors")
def test_a_lot_of_raw_bytes_break_nothing(engine: EngineThread) -> None:
    for seed in range(100, 300):
        fuzz_bytes(engine, seed, 500)
