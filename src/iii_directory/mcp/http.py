"""``/mcp`` over HTTP: how much a client may send, how many sessions it may have, and the SDK behind it."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from iii_directory.access.http_server import MCP_PATH, USER, HttpServer, refuse
from iii_directory.access.policy import Refused
from iii_directory.limits import (
    MAX_MCP_BODY_BYTES,
    MAX_MCP_SESSIONS,
    MAX_READ_MARKS,
    MCP_REQUEST_SECONDS,
    MCP_SESSION_IDLE_SECONDS,
)
from iii_directory.mcp.discovery import is_discovery
from iii_directory.mcp.sessions import Ledger
from iii_directory.wire.json_text import is_long

if TYPE_CHECKING:
    from collections.abc import Hashable

    from starlette.types import Message, Receive, Scope, Send

    from iii_directory.access.http_server import Listener
    from iii_directory.mcp.bridge import BridgeServer
    from iii_directory.mcp.discovery import Discovery
    from iii_directory.page.site import Page

log = logging.getLogger("iii_directory.mcp")
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 3117
_SESSION_HEADER: Final = b"mcp-session-id"
_TOO_MANY_SESSIONS: Final = Refused(
    503, "All the sessions that one client can have are in use; end one of them, and try again.\n"
)
_NOT_WHOLE: Final = Refused(408, f"A request must be whole within {MCP_REQUEST_SECONDS:g} s.\n")
_TOO_MUCH: Final = Refused(413, f"A request has at most {MAX_READ_MARKS} commas and opening brackets.\n")
_STOPPING: Final = Refused(503, "The server is stopping.\n")


class HttpEndpoint:
    """The bridge's server behind one listener; lives on the loop of the bridge's bus."""

    def __init__(self, server: BridgeServer, listener: Listener, page: Page, discovery: Discovery) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        self._listener = listener
        self._page = page
        self._discovery = discovery
        self._sessions = StreamableHTTPSessionManager(
            server,
            session_idle_timeout=MCP_SESSION_IDLE_SECONDS,
            max_request_body_size=MAX_MCP_BODY_BYTES,
            max_sessions=MAX_MCP_SESSIONS,
        )
        self._ledger = Ledger(listener.limits.client_sessions)
        self._http = HttpServer(self._answer, listener, self._refuse, page.complete)
        self._stopping = asyncio.Event()
        self._open = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Serve until `stop`."""
        if self._listener.access.everybody_s is not None:
            log.warning("%s", self._listener.access.everybody_s)
        ready = asyncio.Event()
        self._tasks = [
            asyncio.create_task(self._keep_sessions(ready)),
            asyncio.create_task(self._http.serve()),
        ]
        await ready.wait()

    async def stop(self) -> None:
        """End every session, which ends its streams, and then the listener, which waits for them."""
        self._open = False
        self._page.close()
        self._stopping.set()
        sessions, http = self._tasks
        await sessions
        self._http.stop()
        await http

    async def _keep_sessions(self, ready: asyncio.Event) -> None:
        async with self._sessions.run():
            self._open = True
            ready.set()
            await self._stopping.wait()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application: nothing of a request's body is read before its headers have passed."""
        # The parser leaves blanks behind a value, and the SDK compares values as they are.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        if not self._open:
            await refuse(_STOPPING, send)
            return
        whole = await _whole(receive, self._listener.limits.request_seconds)
        if isinstance(whole, Refused):
            await refuse(whole, send, (b"connection", b"close"))
        elif is_discovery(scope["path"]):
            await self._discovery(scope, whole, send)
        elif scope["path"] != MCP_PATH:
            await self._page(scope, whole, send)
        elif (session_id := _header(scope, _SESSION_HEADER)) is not None:
            await self._in_session(session_id, scope, whole, send)
        elif _has_no_sessions(scope):
            await self._sessions.handle_request(scope, whole, send)
        else:
            await self._opening((scope["client"][0], scope[USER]), scope, whole, send)

    async def _refuse(self, refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == MCP_PATH:
            await refuse(refused, send)
        else:
            await self._page.refuse(refused, scope, receive, send)

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
            await refuse(_TOO_MANY_SESSIONS, send)
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


async def _whole(receive: Receive, seconds: float) -> Receive | Refused:
    """Wait for the whole body of a request; refuse one that takes long to arrive or would to parse.

    A body that is too large is handed on as far as it came, to the SDK, which refuses it.
    """
    kept, size, more = list["Message"](), 0, True
    try:
        async with asyncio.timeout(seconds):
            while more and size <= MAX_MCP_BODY_BYTES:
                message = await receive()
                kept.append(message)
                size += len(message.get("body", b""))
                more = message.get("more_body", False)
    except TimeoutError:
        return _NOT_WHOLE
    if is_long(*(message.get("body", b"") for message in kept), most=2 * MAX_MCP_BODY_BYTES):
        return _TOO_MUCH

    async def replay() -> Message:
        return kept.pop(0) if kept else await receive()

    return replay


def _has_no_sessions(scope: Scope) -> bool:
    """Whether a request is of a client of 2026, which opens none."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    version = _header(scope, b"mcp-protocol-version")
    return version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS


def _header(scope: Scope, wanted: bytes) -> str | None:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == wanted), None)
