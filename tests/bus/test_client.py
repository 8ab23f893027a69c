"""One call from outside: what comes back, and what is said when no engine is there."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.support.commands import free_port
from tests.support.engine import WAIT, EngineThread
from websockets.sync.server import serve

from iii_directory.bus.client import EngineUnreachableError, RemoteError, call_function, probe

if TYPE_CHECKING:
    from collections.abc import Generator

    from websockets.sync.server import ServerConnection


@contextmanager
def somebody_saying(*frames: str | bytes) -> Generator[str]:
    """The address of a server that says something of its own and waits."""

    def talk(connection: ServerConnection) -> None:
        for frame in frames:
            connection.send(frame)
        for _ in connection:
            pass

    with serve(talk, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join(WAIT)


def test_a_call_brings_a_result_or_the_error_of_the_other_side() -> None:
    with EngineThread() as engine:
        assert probe(engine.url)
        assert call_function(engine.url, "engine::health::check", {})["status"] == "healthy"
        with pytest.raises(RemoteError) as failed:
            call_function(engine.url, "no::such", {}, namespace="blue")

    assert failed.value.body["code"] == "function_not_found"
    assert "blue" in str(failed.value)


def test_a_port_without_a_listener_has_no_engine() -> None:
    with EngineThread() as engine:
        url = engine.url

    assert not probe(url)
    with pytest.raises(EngineUnreachableError, match="no iii engine answers"):
        call_function(url, "f", {})


@pytest.mark.parametrize("frame", ["hello", "[1]", "7", "null", b"\xff\xfe"])
def test_a_server_of_another_protocol_is_not_an_engine(frame: str | bytes) -> None:
    with somebody_saying(frame) as url:
        with pytest.raises(EngineUnreachableError, match="is not an iii engine"):
            probe(url)
        with pytest.raises(EngineUnreachableError, match="is not an iii engine"):
            call_function(url, "f", {})


def test_other_messages_are_passed_over_until_the_time_is_up() -> None:
    with somebody_saying('{"type":"invocationresult","invocation_id":"another"}', "{}") as url:
        assert not probe(url)
        with pytest.raises(EngineUnreachableError, match="did not answer within"):
            call_function(url, "f", {}, timeout=0.3)


def test_a_token_that_is_missing_is_asked_for() -> None:
    with EngineThread(token="a-secret-of-sixteen") as engine:
        with pytest.raises(EngineUnreachableError, match="III_TOKEN"):
            probe(engine.url)
        with pytest.raises(EngineUnreachableError, match="III_TOKEN"):
            call_function(engine.url, "f", {})
        assert probe(engine.url, token="a-secret-of-sixteen")


def test_a_password_in_the_address_is_not_repeated() -> None:
    url = f"ws://someone:hunter2@127.0.0.1:{free_port()}"
    with pytest.raises(EngineUnreachableError) as failed:
        call_function(url, "a::b", {}, timeout=2)

    assert "hunter2" not in str(failed.value)
    assert "someone" not in str(failed.value)
    assert "ws://127.0.0.1:" in str(failed.value)
