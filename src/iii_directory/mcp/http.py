"""``/mcp`` over HTTP: the port, who may ask there, how much they may send, and the SDK's sessions behind it.

The port is taken before anything slow is imported or started for it, so the slow libraries are imported late.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from iii_directory.access.ownership import can_tell, user_of
from iii_directory.access.policy import Access, Refused, is_loopback, refused_token
from iii_directory.limits import (
    MAX_MCP_BODY_BYTES,
    MAX_MCP_CONNECTIONS,
    MAX_MCP_SESSIONS,
    MCP_SESSION_IDLE_SECONDS,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    import uvicorn
    from starlette.types import ASGIApp, Receive, Scope, Send

    from iii_directory.mcp.bridge import BridgeServer

PATH: Final = "/mcp"
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 3117
_BACKLOG: Final = 512
_GOODBYE_SECONDS: Final = 2
_NOT_HERE: Final = Refused(404, f"Nothing is served here; MCP is at {PATH}.\n")
_STOPPING: Final = Refused(503, "The server is stopping.\n")


def endpoint_url(host: str, port: int) -> str:
    """Where clients ask."""
    named = f"[{host}]" if ":" in host else host
    return f"http://{named}:{port}{PATH}"


class Listener:
    """A port of ours, and who may ask there. Beyond loopback a token is needed, by everybody."""

    def __init__(
        self, host: str, port: int, token: str | None = None, *, asks_everybody: bool = True
    ) -> None:
        """Take the port, so that one in use is known before anything is started for it; 0 takes a free one.

        Without ``asks_everybody`` the user who starts it needs no token on loopback, and others do.

        Raises:
            ValueError: the address is not loopback and there is no token, or it can be guessed.
            OSError: the address cannot be had.
        """
        if (problem := refused_token(host, token)) is not None:
            raise ValueError(problem)
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
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

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
        self._http = _http_server(self._answer)
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
        refused = access.refusal(_headers(scope), _user(scope) if access.looks_at_users else None)
        if refused is None and scope["path"] != PATH:
            refused = _NOT_HERE
        elif refused is None and not self._open:
            refused = _STOPPING
        if refused is not None:
            await _refuse(refused, send)
        else:
            await self._sessions.handle_request(scope, receive, send)


def _http_server(app: ASGIApp) -> uvicorn.Server:
    import uvicorn

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
            limit_concurrency=MAX_MCP_CONNECTIONS,
            timeout_graceful_shutdown=_GOODBYE_SECONDS,
        )
    )


def _user(scope: Scope) -> int | None:
    """Whose the connection of a request is."""
    client, server = scope.get("client"), scope.get("server")
    return user_of(tuple(client), tuple(server)) if client and server else None


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
