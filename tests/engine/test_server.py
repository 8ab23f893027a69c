"""The engine as a client sees it: started, stopped, and not stopped by mistakes."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.commands import free_port
from tests.support.engine import WAIT, EngineThread, RawClient
from tests.support.raw_socket import RawSocket
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from iii_directory.engine.server import EngineServer, FullTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.calls import BuiltinRequest


def test_a_call_reaches_its_function_and_the_answer_its_caller(engine: EngineThread) -> None:
    with RawClient(engine.url, name="executor") as executor, RawClient(engine.url, name="caller") as caller:
        executor.send(type="registerfunction", id="a::echo")
        assert executor.result("engine::functions::info", {"function_id": "a::echo"})
        call_id = caller.start_call("a::echo", {"x": 1})
        asked = executor.receive()
        assert asked["data"] == {"x": 1, "_caller_worker_id": caller.worker_id}
        executor.send(
            type="invocationresult",
            invocation_id=asked["invocation_id"],
            function_id="a::echo",
            result={"y": 2},
        )

        assert caller.receive() == {
            "type": "invocationresult",
            "invocation_id": call_id,
            "function_id": "a::echo",
            "result": {"y": 2},
        }


def test_ids_are_random_uuids(engine: EngineThread) -> None:
    with RawClient(engine.url) as one, RawClient(engine.url) as two:
        ids = {client.welcome[key] for client in (one, two) for key in ("worker_id", "reattach_token")}

    assert len(ids) == 4
    assert all(value[14] == "4" and len(value) == 36 for value in ids)
    assert "features" not in one.welcome


def test_many_calls_at_once_are_each_answered(engine: EngineThread) -> None:
    with RawClient(engine.url, name="worker") as worker, RawClient(engine.url, name="caller") as caller:
        worker.send(type="registerfunction", id="w::f")
        assert worker.result("engine::functions::info", {"function_id": "w::f"})
        wanted = {caller.start_call("w::f", number): number for number in range(200)}
        for _ in wanted:
            asked = worker.receive()
            worker.send(
                type="invocationresult",
                invocation_id=asked["invocation_id"],
                function_id="w::f",
                result=asked["data"],
            )
        answers = [caller.receive() for _ in wanted]

    assert {answer["invocation_id"]: answer["result"] for answer in answers} == wanted


def test_a_stopped_engine_drops_its_sockets_without_a_goodbye_and_can_be_started_again() -> None:
    port = free_port()
    with EngineThread(port=port) as first:
        client = RawClient(first.url)
    with client, pytest.raises(ConnectionClosedError) as closed:
        client.receive()
    assert closed.value.rcvd is None

    with EngineThread(port=port) as second, RawClient(second.url) as client:
        assert client.result("engine::health::check")


def test_an_engine_can_be_stopped_before_it_was_started() -> None:
    async def stop() -> None:
        await EngineServer(port=0).stop()

    asyncio.run(stop())


def test_a_port_in_use_is_an_error(engine: EngineThread) -> None:
    with pytest.raises(OSError, match="address already in use"), EngineThread(port=engine.server.port):
        pass


def test_an_engine_can_listen_on_ipv6() -> None:
    async def try_it() -> dict[str, Any]:
        server = EngineServer(host="::1", port=0)
        await server.start()
        try:
            return await asyncio.to_thread(_welcome, server.url)
        finally:
            await server.stop()

    assert asyncio.run(try_it())["type"] == "workerregistered"


def _welcome(url: str) -> dict[str, Any]:
    with RawClient(url) as client:
        return client.welcome


def test_a_worker_s_address_is_known(engine: EngineThread) -> None:
    with RawClient(engine.url, name="w") as client:
        worker = client.result("engine::workers::info", {"name": "w"})["worker"]

    assert worker["ip_address"] == "127.0.0.1"
    assert worker["connected_at_ms"] > 1_600_000_000_000


def test_telemetry_is_accepted_and_dropped_without_becoming_a_worker(engine: EngineThread) -> None:
    with RawClient(engine.url) as client, connect(f"{engine.url}/otel", open_timeout=WAIT) as otel:
        otel.send(b"OTLP{}")
        otel.send('{"type":"ping"}')
        assert otel.ping().wait(WAIT)
        health = client.result("engine::health::check")

    assert health["components"]["workers"]["connected"] == 1


def test_functions_that_come_are_told_shortly_after(engine: EngineThread) -> None:
    with RawClient(engine.url, name="w") as watcher, RawClient(engine.url, name="x") as other:
        watcher.send(type="registerfunction", id="w::seen")
        watcher.send(
            type="registertrigger",
            id="t",
            trigger_type="engine::functions-available",
            function_id="w::seen",
            config={},
        )
        assert watcher.receive_type("invokefunction")
        other.send(type="registerfunction", id="x::f")
        told = watcher.receive_type("invokefunction")["data"]["functions"]

    assert "x::f" in [row["function_id"] for row in told]


def test_a_worker_that_reattaches_evicts_itself_abruptly(engine: EngineThread) -> None:
    old = RawClient(engine.url, name="w")
    with RawClient(engine.url) as new:
        new.send(
            type="reattach",
            previous_worker_id=old.worker_id,
            reattach_token=old.welcome["reattach_token"],
        )
        new.announce("w")
        with old, pytest.raises(ConnectionClosedError) as closed:
            old.receive()
        assert closed.value.rcvd is None


def test_a_second_worker_of_a_name_is_told_and_said_goodbye_to(engine: EngineThread) -> None:
    with RawClient(engine.url, name="w") as first, RawSocket(engine.server.port) as second:
        second.receive()
        second.send_message(
            type="invokefunction",
            function_id="engine::workers::register",
            data={"name": "w"},
            invocation_id="0b8f3c1e-9d7a-4c55-8f10-3f2f6f1d2a3b",
        )
        assert second.receive_message() == {
            "type": "registrationrejected",
            "code": "WORKER_NAMESPACE_CONFLICT",
            "namespace": "default",
            "worker_name": "w",
            "owner_worker_id": first.worker_id,
        }
        assert second.receive() == (8, b"")


def test_a_slow_loop_reader_does_not_mix_up_connections(engine: EngineThread) -> None:
    clients = [RawClient(engine.url, name=f"c{number}") for number in range(20)]
    for number, client in enumerate(clients):
        client.start_call("state::set", {"scope": "s", "key": str(number), "value": number})
    for number, client in enumerate(clients):
        with client:
            assert client.receive()["result"]["new_value"] == number


# Mistakes of our own


@pytest.fixture
def sabotage(engine: EngineThread) -> Callable[[Callable[[BuiltinRequest], object]], None]:
    """Put a broken function in the place of the health check."""

    def replace(broken: Callable[[BuiltinRequest], object]) -> None:
        engine.server._router.calls.builtins["engine::health::check"] = broken

    return replace


def test_an_internal_error_costs_one_message_and_no_connection(
    engine: EngineThread,
    sabotage: Callable[[Callable[[BuiltinRequest], object]], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_request: BuiltinRequest) -> object:
        raise KeyError("a mistake")

    sabotage(broken)
    with RawClient(engine.url) as client, RawClient(engine.url) as other:
        client.start_call("engine::health::check", {})
        assert client.result("state::list_groups") == {"groups": []}
        assert other.result("state::list_groups") == {"groups": []}

    assert [r.message for r in caplog.records if r.levelno >= logging.ERROR] == [
        "the engine could not handle a message"
    ]


def test_a_message_that_cannot_be_sent_costs_that_message_only(
    engine: EngineThread,
    sabotage: Callable[[Callable[[BuiltinRequest], object]], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with RawClient(engine.url, name="w") as watcher, RawClient(engine.url) as client:
        watcher.send(type="registerfunction", id="w::seen")
        assert watcher.result("engine::functions::info", {"function_id": "w::seen"})

        def broken(_request: BuiltinRequest) -> object:
            engine.server._router.calls.call("w::seen", {"no JSON"})
            engine.server._router.calls.call("w::seen", "after")
            return {"status": "answered"}

        sabotage(broken)
        assert client.result("engine::health::check") == {"status": "answered"}
        assert watcher.receive_type("invokefunction")["data"] == "after"

    assert "could not carry out" in caplog.text


def test_an_engine_listens_with_a_backlog(engine: EngineThread) -> None:
    waiting = [socket.create_connection(("127.0.0.1", engine.server.port), timeout=WAIT) for _ in range(100)]
    with RawClient(engine.url) as client:
        assert client.result("engine::health::check")
    for connection in waiting:
        connection.close()


def test_having_no_files_left_is_said_once_and_other_troubles_as_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def trouble() -> None:
        loop, last_resort = asyncio.get_running_loop(), FullTable()
        for number in (errno.EMFILE, errno.ENFILE, errno.EMFILE):
            last_resort(loop, {"message": "accept", "exception": OSError(number, "too many")})
        last_resort(loop, {"message": "something else", "exception": OSError(errno.EIO, "broken")})

    with caplog.at_level(logging.ERROR):
        asyncio.run(trouble())

    said = [record.getMessage() for record in caplog.records]
    assert [line for line in said if "files" in line] == [said[0]]
    assert len(said) == 2
    assert said[1].startswith("something else")
