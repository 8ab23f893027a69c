"""Clients that do not read: what they cost has bounds, ends with their connection, and hurts no other."""

from __future__ import annotations

import gc
import logging
import time
import tracemalloc
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.support.engine import WAIT, EngineThread, RawClient
from tests.support.raw_socket import RawSocket
from tests.support.reader import until

from iii_directory.engine.peer import SocketLimits
from iii_directory.limits import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUE = "x" * 20 * KIB
# The system keeps some megabytes of a connection that is not read; only what comes after them is ours.
MANY_WRITES = 3_000


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Without the garbage collector, only what is let go of is freed."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def deaf_subscriber(stack: ExitStack, engine: EngineThread, number: int) -> RawSocket:
    """A client bound to the events of the state that reads nothing after its registration."""
    deaf = stack.enter_context(RawSocket(engine.server.port, buffer=4 * KIB))
    deaf.send_message(
        type="invokefunction",
        function_id="engine::workers::register",
        data={"name": f"deaf-{number}", "pid": 1},
    )
    deaf.send_message(type="registerfunction", id=f"deaf::{number}")
    deaf.send_message(
        type="registertrigger",
        id=f"deaf-{number}",
        trigger_type="state",
        function_id=f"deaf::{number}",
        config={},
    )
    deaf.send_message(type="ping")
    while deaf.receive_message()["type"] != "pong":
        pass
    return deaf


def cut_off(caplog: pytest.LogCaptureFixture) -> int:
    return sum("does not read" in record.getMessage() for record in caplog.records)


def unsent(engine: EngineThread) -> int:
    return engine.on_loop(lambda: engine.server.writers.unsent_bytes)


def write_until(writer: RawClient, caplog: pytest.LogCaptureFixture, count: int) -> None:
    """Write values until so many clients were cut off."""
    for number in range(MANY_WRITES):
        writer.call("state::set", {"scope": "s", "key": str(number % 4), "value": VALUE})
        if cut_off(caplog) >= count:
            return
    pytest.fail(f"{cut_off(caplog)} clients were cut off")


@pytest.mark.usefixtures("no_collector")
def test_what_a_client_did_not_read_is_released_when_its_connection_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = SocketLimits(unsent_event_bytes=4 * MIB)
    with EngineThread(limits=limits) as engine, RawClient(engine.url) as writer, ExitStack() as stack:
        writer.call("state::set", {"scope": "s", "key": "0", "value": VALUE})
        tracemalloc.start()
        try:
            deaf = [deaf_subscriber(stack, engine, number) for number in range(3)]
            write_until(writer, caplog, len(deaf))
            assert tracemalloc.get_traced_memory()[1] > 6 * MIB
            # A lost connection is released in a later pass of the engine's loop.
            until(lambda: tracemalloc.get_traced_memory()[0] < 2 * MIB, "its memory is released")
        finally:
            tracemalloc.stop()


def test_events_that_are_not_read_have_a_bound_and_other_subscribers_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = SocketLimits(unsent_event_bytes=1 * MIB, unsent_bytes=1024 * MIB)
    with EngineThread(limits=limits) as engine, RawClient(engine.url) as writer, ExitStack() as stack:
        deaf_subscriber(stack, engine, 0)
        write_until(writer, caplog, 1)
        assert unsent(engine) == 0
        assert writer.result("engine::health::check")["components"]["workers"]["connected"] == 1


def test_an_answer_larger_than_the_bound_on_events_reaches_a_slow_reader() -> None:
    limits = SocketLimits(unsent_event_bytes=64 * KIB)
    with EngineThread(limits=limits) as engine, RawClient(engine.url) as writer:
        large = "x" * 12 * MIB
        writer.call("state::set", {"scope": "s", "key": "large", "value": large})
        with RawSocket(engine.server.port, buffer=4 * KIB) as slow:
            slow.receive()
            slow.send_message(
                type="invokefunction",
                function_id="state::get",
                data={"scope": "s", "key": "large"},
                invocation_id="0b8f3c1e-9d7a-4c55-8f10-3f2f6f1d2a3b",
            )
            deadline = time.monotonic() + WAIT
            while not unsent(engine):
                assert time.monotonic() < deadline
            assert slow.receive_message()["result"] == large


def test_past_the_total_of_all_connections_the_largest_is_cut_off_and_the_others_are_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = SocketLimits(total_unsent_bytes=4 * MIB)
    caplog.set_level(logging.WARNING)
    with EngineThread(limits=limits) as engine, RawClient(engine.url) as writer, ExitStack() as stack:
        for number in range(4):
            deaf_subscriber(stack, engine, number)
        write_until(writer, caplog, 1)
        assert unsent(engine) <= limits.total_unsent_bytes
        assert writer.result("engine::health::check")["components"]["workers"]["connected"] == 4
        write_until(writer, caplog, 4)
        assert unsent(engine) == 0
