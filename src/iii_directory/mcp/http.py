"""``/mcp`` over HTTP: who may ask, how much they may send, and the SDK's sessions behind it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from iii_directory.access.policy import Refused
from iii_directory.limits import (
    MAX_MCP_BODY_BYTES,
    MAX_MCP_CONNECTIONS,
    MAX_MCP_SESSIONS,
    MCP_SESSION_IDLE_SECONDS,
)
from iii_directory.mcp.listener import PATH

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from iii_directory.mcp.listener import Listener
    from iii_directory.mcp.server import BridgeServer

_GOODBYE_SECONDS: Final = 2
_NOT_HERE: Final = Refused(404, f"Nothing is served here; MCP is at {PATH}.\n")
_STOPPING: Final = Refused(503, "The server is stopping.\n")


class HttpEndpoint:
    """The bridge's server behind one listener; lives on the bridge's loop."""

    def __init__(self, server: BridgeServer, listener: Listener) -> None:
        self._listener = listener
        self._sessions = StreamableHTTPSessionManager(
            server,
            session_idle_timeout=MCP_SESSION_IDLE_SECONDS,
            max_request_body_size=MAX_MCP_BODY_BYTES,
            max_sessions=MAX_MCP_SESSIONS,
        )
        self._stopping = asyncio.Event()
        self._open = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Serve until `stop`."""
        self._http = uvicorn.Server(
            uvicorn.Config(
                self._answer,
                interface="asgi3",
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=MAX_MCP_CONNECTIONS,
                timeout_graceful_shutdown=_GOODBYE_SECONDS,
            )
        )
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
        refused = self._listener.access.refusal(_headers(scope))
        if refused is None and scope["path"] != PATH:
            refused = _NOT_HERE
        elif refused is None and not self._open:
            refused = _STOPPING
        if refused is not None:
            await _refuse(refused, send)
        else:
            await self._sessions.handle_request(scope, receive, send)


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


async def _refuse(refused: Refused, send: Send) -> None:
    body = refused.text.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
