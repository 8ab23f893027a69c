"""``/mcp`` over HTTP: the port, who may ask there, how much they may send, and the SDK's sessions behind it.

The port is taken before anything slow is imported or started for it, so the slow libraries are imported late.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from iii_directory.access.ownership import can_tell, user_of
from iii_directory.access.policy import Access, Refused, is_loopback, refused_token
from iii_directory.limits import (
    MAX_CLIENT_MCP_SESSIONS,
    MAX_MCP_BODY_BYTES,
    MAX_MCP_CONNECTIONS,
    MAX_MCP_SESSIONS,
    MCP_REQUEST_SECONDS,
    MCP_SESSION_IDLE_SECONDS,
)
from iii_directory.mcp.connections import Connections, bounded
from iii_directory.mcp.sessions import Ledger

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable

    import uvicorn
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from iii_directory.mcp.bridge import BridgeServer

log = logging.getLogger("iii_directory.mcp")
PATH: Final = "/mcp"
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 3117
_BACKLOG: Final = 512
_GOODBYE_SECONDS: Final = 2
_NOT_HERE: Final = Refused(404, f"Nothing is served here; MCP is at {PATH}.\n")
_SESSION_HEADER: Final = b"mcp-session-id"
_TOO_MANY_SESSIONS: Final = Refused(
    503, "All the sessions that one client can have are in use; end one of them, and try again.\n"
)
_STOPPING: Final = Refused(503, "The server is stopping.\n")


def endpoint_url(host: str, port: int) -> str:
    """Where clients ask."""
    named = f"[{host}]" if ":" in host else host
    return f"http://{named}:{port}{PATH}"


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What one listener may cost; tests bring smaller ones."""

    connections: int = MAX_MCP_CONNECTIONS
    request_seconds: float = MCP_REQUEST_SECONDS
    client_sessions: int = MAX_CLIENT_MCP_SESSIONS


class Listener:
    """A port of ours, and who may ask there. Beyond loopback a token is needed, by everybody."""

    def __init__(
        self,
        host: str,
        port: int,
        token: str | None = None,
        *,
        asks_everybody: bool = True,
        limits: HttpLimits | None = None,
    ) -> None:
        """Take the port, so that one in use is known before anything is started for it; 0 takes a free one.

        Without ``asks_everybody`` the user who starts it needs no token on loopback, and others do.

        Raises:
            ValueError: the address is not loopback and there is no token, or it can be guessed.
            OSError: the address cannot be had.
        """
        if (problem := refused_token(host, token)) is not None:
            raise ValueError(problem)
        self.limits = limits or HttpLimits()
        self.socket = _listening_socket(host, port)
        self.port: int = self.socket.getsockname()[1]
        owner = os.getuid() if is_loopback(host) and can_tell() else None
        self.access = Access(host, self.port, token or None, owner, asks_everybody)

    @property
    def url(self) -> str:
        return endpoint_url(self.access.host, self.port)


def _listening_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named: asyncio sends small packets at once only on sockets that say they are TCP, and
    # without that every answer waits forty milliseconds for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


class HttpEndpoint:
    """The bridge's server behind one listener; lives on the loop of the bridge's bus."""

    def __init__(self, server: BridgeServer, listener: Listener) -> None:
        limits = listener.limits
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        self._listener = listener
        self._sessions = StreamableHTTPSessionManager(
            server,
            session_idle_timeout=MCP_SESSION_IDLE_SECONDS,
            max_request_body_size=MAX_MCP_BODY_BYTES,
            max_sessions=MAX_MCP_SESSIONS,
        )
        self._ledger = Ledger(limits.client_sessions)
        self._connections = Connections(limits.connections, limits.request_seconds)
        self._stopping = asyncio.Event()
        self._open = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Serve until `stop`."""
        if self._listener.access.everybody_s is not None:
            log.warning("%s", self._listener.access.everybody_s)
        self._http = _http_server(self._answer, self._connections)
        ready = asyncio.Event()
        self._tasks = [
            asyncio.create_task(self._keep_sessions(ready)),
            asyncio.create_task(self._http.serve(sockets=[self._listener.socket])),
        ]
        await ready.wait()

    async def stop(self) -> None:
        """End every session, which ends its streams, and then the listener, which waits for them."""
        self._open = False
        self._stopping.set()
        sessions, http = self._tasks
        await sessions
        self._http.should_exit = True
        await http
        await _end_watchers()

    async def _keep_sessions(self, ready: asyncio.Event) -> None:
        async with self._sessions.run():
            self._open = True
            ready.set()
            await self._stopping.wait()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application: nothing of a request's body is read before its headers have passed."""
        access = self._listener.access
        self._connections.began(scope)
        user = _user(scope) if access.looks_at_users else None
        refused = access.refusal(_headers(scope), user)
        if refused is None and scope["path"] != PATH:
            refused = _NOT_HERE
        elif refused is None and not self._open:
            refused = _STOPPING
        if refused is not None:
            await _refuse(refused, send)
            return
        whole = await self._connections.whole(receive)
        if isinstance(whole, Refused):
            await _refuse(whole, send, (b"connection", b"close"))
        elif (session_id := _header(scope, _SESSION_HEADER)) is not None:
            await self._in_session(session_id, scope, whole, send)
        elif _has_no_sessions(scope):
            await self._sessions.handle_request(scope, whole, send)
        else:
            await self._opening((scope["client"][0], user), scope, whole, send)

    async def _in_session(self, session_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        over = scope["method"] == "DELETE"

        async def noted(message: Message) -> None:
            nonlocal over
            over = over or message.get("status") == 404
            await send(message)

        self._ledger.began(session_id, time.monotonic())
        try:
            await self._sessions.handle_request(scope, receive, noted)
        finally:
            self._ledger.finished(session_id, time.monotonic())
            if over:
                self._ledger.ended(session_id)

    async def _opening(self, client: Hashable, scope: Scope, receive: Receive, send: Send) -> None:
        """A request that asks for a session of its own: what its client has left lying makes room for it."""
        surplus = self._ledger.room_for(client, time.monotonic())
        if surplus is None:
            await _refuse(_TOO_MANY_SESSIONS, send)
            return
        opened: str | None = None

        async def noted(message: Message) -> None:
            nonlocal opened
            for name, value in message.get("headers", ()):
                if name.lower() == _SESSION_HEADER and message.get("status", 500) < 400:
                    opened = value.decode("latin-1")
            await send(message)

        self._ledger.opening(client)
        try:
            for session_id in surplus:
                await self._end(session_id, scope)
            await self._sessions.handle_request(scope, receive, noted)
        finally:
            self._ledger.opened(client, opened, time.monotonic())

    async def _end(self, session_id: str, scope: Scope) -> None:
        """As its own client would."""
        self._ledger.ended(session_id)
        asked = {**scope, "method": "DELETE", "headers": [(_SESSION_HEADER, session_id.encode("latin-1"))]}
        await self._sessions.handle_request(asked, _nothing, _unheard)


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(_message: Message) -> None:
    """Nobody waits for this answer."""


def _has_no_sessions(scope: Scope) -> bool:
    """Whether a request is of a client of 2026, which opens none."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    version = _header(scope, b"mcp-protocol-version")
    return version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS


def _http_server(app: ASGIApp, connections: Connections) -> uvicorn.Server:
    import uvicorn
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class Guest(uvicorn.Server):
        """One that leaves signals to the program whose loop it runs on."""

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    return Guest(
        uvicorn.Config(
            app,
            interface="asgi3",
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            http=bounded(AutoHTTPProtocol, connections),
            timeout_graceful_shutdown=_GOODBYE_SECONDS,
        )
    )


def _user(scope: Scope) -> int | None:
    """Whose the connection of a request is."""
    client, server = scope.get("client"), scope.get("server")
    return user_of(tuple(client), tuple(server)) if client and server else None


def _header(scope: Scope, wanted: bytes) -> str | None:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == wanted), None)


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in scope["headers"]:
        found[name.decode("latin-1")].append(value.decode("latin-1"))
    return found


async def _end_watchers() -> None:
    """The SDK's library for streams leaves a task on every loop it served on, to wait for a signal."""
    watchers = [
        task
        for task in asyncio.all_tasks()
        if getattr(task.get_coro(), "__name__", "") == "_shutdown_watcher"
    ]
    for task in watchers:
        task.cancel()
    await asyncio.gather(*watchers, return_exceptions=True)


async def _refuse(refused: Refused, send: Send, *more: tuple[bytes, bytes]) -> None:
    body = refused.text.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        *more,
    ]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
