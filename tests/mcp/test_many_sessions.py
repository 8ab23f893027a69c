"""Many clients at once, and some that do not read what they asked for."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client
from tests.mcp.stage import MODES, session, wait_for_stream
from tests.support.engine import WAIT

from mcp import Client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.reader import Reader

SESSIONS = 100
CROWD_SECONDS = 90.0
LARGE = "large"
BODY = "# Large\n\n" + "x" * 250_000
UNREAD_REQUESTS = 200
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "deaf", "version": "0"},
}


def test_a_hundred_sessions_are_served_at_once(bridge_url: str, directory: Reader) -> None:
    for number in range(SESSIONS):
        directory.call("skills::register", id=f"crowd/{number}", skill=f"# Number {number}\n")

    assert asyncio.run(_crowd(bridge_url)) == [f"# Number {number}\n" for number in range(SESSIONS)]


async def _crowd(url: str) -> list[str]:
    everybody = asyncio.Barrier(SESSIONS)
    # One pool for all, since a client by itself reads the certificates of the world first.
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with (
        asyncio.timeout(CROWD_SECONDS),
        httpx2.AsyncClient(verify=False, limits=limits, timeout=CROWD_SECONDS) as pool,
    ):
        members = (_member(url, pool, number, everybody) for number in range(SESSIONS))
        return await asyncio.gather(*members)


async def _member(url: str, pool: httpx2.AsyncClient, number: int, everybody: asyncio.Barrier) -> str:
    mode = MODES["2025" if number % 2 else "2026"]
    transport = streamable_http_client(url, http_client=pool)
    async with Client(transport, mode=mode, read_timeout_seconds=CROWD_SECONDS, cache=None) as client:
        # All are open before any goes on, and none closes before all are done.
        await everybody.wait()
        result = await client.read_resource(f"iii://crowd/{number}")
        await client.list_prompts()
        await everybody.wait()
        return getattr(result.contents[0], "text", "")


# Clients that do not read


class DeafClient:
    """A connection that sends requests and reads nothing more once it is told to be deaf."""

    def __init__(self, url: str) -> None:
        self._authority = urlsplit(url).netloc
        host, _, port = self._authority.partition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=WAIT)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

    def send(self, method: str, body: Any = None, **headers: str) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        lines = [
            f"{method} /mcp HTTP/1.1",
            f"Host: {self._authority}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(content)}",
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
        ]
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + content)

    def ask(self, number: int, method: str, **params: Any) -> None:
        """A request of 2026-07-28."""
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": META}}
        names = {"Mcp_Name": params["uri"]} if "uri" in params else {}
        self.send("POST", body, MCP_Protocol_Version="2026-07-28", Mcp_Method=method, **names)

    def head(self) -> str:
        """The head of the next answer."""
        received = b""
        while b"\r\n\r\n" not in received:
            received += self.socket.recv(1)
        return received.decode()


@pytest.fixture
def deaf_clients(bridge_url: str, directory: Reader) -> Iterator[list[DeafClient]]:
    """One that reads none of many large answers, and one of each era that does not read its news."""
    directory.call("skills::register", id=LARGE, skill=BODY)
    with ExitStack() as stack:
        clients = [DeafClient(bridge_url) for _ in range(3)]
        for client in clients:
            stack.callback(client.socket.close)
        reader, modern, legacy = clients
        for number in range(UNREAD_REQUESTS):
            reader.ask(number, "resources/read", uri=f"iii://{LARGE}")
        modern.ask(1, "subscriptions/listen", notifications={"resourcesListChanged": True})
        assert "200" in modern.head()
        legacy.send("GET", MCP_Session_Id=_legacy_session(bridge_url), MCP_Protocol_Version="2025-11-25")
        assert "200" in legacy.head()
        yield clients


def _legacy_session(url: str) -> str:
    """The id of a session of 2025 whose client said that it is ready."""
    client = DeafClient(url)
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "deaf", "version": "0"},
    }
    with client.socket:
        client.send("POST", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        head = dict(line.split(": ", 1) for line in client.head().split("\r\n") if ": " in line)
    session_id = head["mcp-session-id"]
    client = DeafClient(url)
    with client.socket:
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        client.send("POST", ready, MCP_Session_Id=session_id, MCP_Protocol_Version="2025-11-25")
        assert "202" in client.head()
    return session_id


@pytest.mark.usefixtures("deaf_clients")
def test_a_client_that_stops_reading_delays_no_other(bridge_url: str, directory: Reader) -> None:
    with session(bridge_url, "2025") as older, session(bridge_url, "2026") as newer:
        for client in (older, newer):
            wait_for_stream(client, lambda: directory.call("skills::register", id="first", skill="# First\n"))
        for number in range(30):
            directory.call("skills::register", id=f"after/{number}", skill=f"# After {number}\n")
            for client in (older, newer):
                client.told("resources")
                assert client.text(f"iii://after/{number}") == f"# After {number}\n"
