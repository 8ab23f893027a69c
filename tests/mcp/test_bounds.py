"""What one client of the HTTP endpoint can hold: past a bound it is refused, and others notice nothing."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from tests.cli.test_running import limited
from tests.mcp.stage import HELLO, http_bridge, session, wait_for_stream
from tests.support.commands import free_port, running_program
from tests.support.engine import WAIT, EngineThread, RawClient
from tests.support.reader import until

from iii_directory.limits import MCP_SESSION_IDLE_SECONDS
from iii_directory.mcp.http_endpoint import Ledger
from iii_directory.wire.http_server import HttpLimits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.reader import Reader

SESSIONS = 5
CONNECTIONS = 20


@pytest.fixture(scope="module")
def url(embedded: EngineThread | None, directory: Reader) -> Iterator[str]:
    """A bridge with little room, and little patience."""
    assert directory
    limits = HttpLimits(connections=CONNECTIONS, request_seconds=1.0, client_sessions=SESSIONS)
    if embedded is None:
        pytest.skip("needs no real engine")
    with http_bridge(embedded.url, inside=embedded, limits=limits) as found:
        yield found


def asked(url: str, body: dict[str, Any], **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=WAIT)
    try:
        given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", "/mcp", json.dumps(body), {**given, **named})
        response = connection.getresponse()
        response.read()
        return response
    finally:
        connection.close()


def opened(url: str) -> str:
    """The id of a new session."""
    response = asked(url, HELLO)
    assert response.status == 200
    return str(response.headers["mcp-session-id"])


def is_open(url: str, session_id: str) -> bool:
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    return asked(url, ping, Mcp_Session_Id=session_id, MCP_Protocol_Version="2025-11-25").status == 200


def test_sessions_that_are_opened_and_left_lock_no_client_out(url: str) -> None:
    left = [opened(url) for _ in range(10 * SESSIONS)]

    with session(url, "2025") as client:
        assert "iii://coffee" in client.uris()
    assert [session_id for session_id in left[:-SESSIONS] if is_open(url, session_id)] == []


def test_a_session_in_use_outlives_any_number_that_are_opened_and_left(url: str, directory: Reader) -> None:
    with session(url, "2025") as client:
        assert "iii://coffee" in client.uris()
        wait_for_stream(client, lambda: directory.call("skills::register", id="first", skill="# First\n"))
        for _ in range(3 * SESSIONS):
            opened(url)

        assert "iii://coffee" in client.uris()
        directory.call("skills::register", id="after", skill="# After\n")
        client.told("resources")


def test_a_client_whose_sessions_are_all_in_use_is_told_so(url: str) -> None:
    with contextlib.ExitStack() as streams:
        for _ in range(SESSIONS):
            session_id = opened(url)
            stream = streams.enter_context(contextlib.closing(raw(url)))
            stream.sendall(
                f"GET /mcp HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nAccept: text/event-stream\r\n"
                f"Mcp-Session-Id: {session_id}\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n".encode()
            )
            assert b"200" in stream.recv(4096)
        assert asked(url, HELLO).status == 503
        # One of 2026 needs no session.
        with session(url, "2026") as client:
            assert "iii://coffee" in client.uris()
    until(lambda: asked(url, HELLO).status == 200, "there is room again")


def raw(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=WAIT)


HEAD = "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json\r\n"


@pytest.mark.parametrize("sent", ["", "POST /m", HEAD, HEAD + "Content-Length: 90\r\n\r\n{"])
def test_a_request_that_does_not_end_is_given_up(url: str, sent: str) -> None:
    with contextlib.closing(raw(url)) as slow:
        slow.sendall(sent.replace("{}", urlsplit(url).netloc).encode())
        received = everything(slow)

    assert received == b"" if "Length" not in sent else b" 408 " in received


def test_one_that_does_not_end_after_others_on_its_connection_is_given_up_as_well(url: str) -> None:
    with contextlib.closing(raw(url)) as slow:
        slow.sendall(b"GET /none HTTP/1.1\r\nHost: %s\r\n\r\n" % urlsplit(url).netloc.encode())
        assert b" 404 " in slow.recv(4096)
        slow.sendall(b"POST /m")
        everything(slow)


def everything(connection: socket.socket) -> bytes:
    """What comes until the other side hangs up, which it does."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while more := connection.recv(4096):
            received += more
    return received


def test_connections_beyond_the_last_place_are_turned_away_and_the_others_served(url: str) -> None:
    with session(url, "2026") as client, contextlib.ExitStack() as crowd:
        waiting = [crowd.enter_context(contextlib.closing(raw(url))) for _ in range(2 * CONNECTIONS)]
        # Those that were let in ask nothing, and are given up after a while.
        answers = [everything(one) for one in waiting]

        assert any(b" 503 " in answer for answer in answers)
        assert b"" in answers
        assert "iii://coffee" in client.uris()
    until(lambda: asked(url, HELLO).status == 200, "there is room again")


@pytest.mark.parametrize("limit", ["64", "128"])
def test_with_few_files_it_starts_and_serves_and_turns_the_rest_away(tmp_path: Path, limit: str) -> None:
    port, http_port = free_port(), free_port()
    start = [*limited(f"-n {limit}"), "up", "--port", str(port), "--http-port", str(http_port)]
    with running_program(*start, cwd=tmp_path) as up, contextlib.ExitStack() as crowd:
        up.wait_for("Ctrl-C")
        first = crowd.enter_context(RawClient(f"ws://127.0.0.1:{port}"))
        for _ in range(int(limit)):
            for wanted in (port, http_port):
                crowd.enter_context(socket.create_connection(("127.0.0.1", wanted), timeout=WAIT))

        first.result("skills::register", {"id": "a", "skill": "# A\n"})
        assert first.result("directory::skills::get", {"id": "a"})["body"] == "# A\n"
        up.wait_for("connections, which is all there is room for")
        up.wait_for("connections to /mcp, which is all there is room for")
    assert "Traceback" not in up.output


def test_of_quiet_sessions_the_unused_go_first_and_then_those_longest_quiet() -> None:
    ledger = Ledger(3)
    for number, session_id in enumerate(("used", "unused", "busy")):
        ledger.opening("me")
        ledger.opened("me", session_id, float(number))
    for _ in range(2):
        ledger.used("used", 3.0, begins=True)
        ledger.used("used", 3.0, begins=False)
    ledger.used("busy", 4.0, begins=True)

    assert ledger.room_for("me", 5.0) == ["unused"]
    assert ledger.room_for("somebody else", 5.0) == []
    ledger.ended("unused")
    ledger.opening("me")
    assert ledger.room_for("me", 5.0) == ["used"]
    ledger.used("used", 6.0, begins=True)
    assert ledger.room_for("me", 6.0) is None
    ledger.opened("me", None, 7.0)
    assert ledger.room_for("me", 7.0) == []


def test_sessions_that_went_by_themselves_are_forgotten() -> None:
    ledger = Ledger(1)
    ledger.opening("me")
    ledger.opened("me", "old", 0.0)

    assert ledger.room_for("me", 1.0) == ["old"]
    assert ledger.room_for("me", MCP_SESSION_IDLE_SECONDS + 1) == []
    # Unknown ones have no owner.
    ledger.used("old", 2.0, begins=True)
    ledger.used("old", 2.0, begins=False)
    ledger.ended("old")
