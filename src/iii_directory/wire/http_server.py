"""HTTP listeners: who may ask, how many connections there may be, and how long a request may take to arrive.

The HTTP library keeps a connection for ever that never finishes its first request, and counts connections
only when one asks for something. Slow libraries are imported when a listener starts, after its port is taken.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from iii_directory.limits import MAX_CLIENT_MCP_SESSIONS, MAX_MCP_CONNECTIONS, MCP_REQUEST_SECONDS
from iii_directory.wire.access import Access, Refused, is_loopback, refused_token
from iii_directory.wire.ownership import can_tell, user_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from starlette.types import ASGIApp, Receive, Scope, Send


log = logging.getLogger("iii_directory.http")
_BACKLOG: Final = 512
_GOODBYE_SECONDS: Final = 2
_BUSY: Final = b"All connections are in use; try again later.\n"
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_BUSY), _BUSY)
)
MCP_PATH: Final = "/mcp"
USER: Final = "iii.user"
"""The key under which the scope of a request has the user who sent it; None where that is not known."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What one listener may cost; tests bring smaller ones."""

    connections: int = MAX_MCP_CONNECTIONS
    request_seconds: float = MCP_REQUEST_SECONDS
    client_sessions: int = MAX_CLIENT_MCP_SESSIONS


class Listener:
    """A port of ours, and the rules for its clients. Beyond loopback every client needs the token."""

    def __init__(
        self,
        host: str,
        port: int,
        token: str | None = None,
        *,
        asks_everybody: bool = True,
        is_public: bool = False,
        path: str = MCP_PATH,
        limits: HttpLimits | None = None,
    ) -> None:
        """Take the port, so that one in use is known before anything is started for it; 0 takes a free one.

        Without ``asks_everybody`` the user who starts it needs no token on loopback, and others do. Beyond
        loopback a listener that ``is_public`` needs no token. ``path`` is where its clients ask.

        Raises:
            ValueError: the address is not loopback and no token is given, or it can be guessed.
            OSError: the address cannot be had.
        """
        if not is_public and (problem := refused_token(host, token)) is not None:
            raise ValueError(problem)
        self.path = path
        self.limits = limits or HttpLimits()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # With the protocol named: asyncio sends small packets at once only on sockets that say they are TCP,
        # and without that every answer waits forty milliseconds for an acknowledgement.
        self.socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind((host, port))
            self.socket.listen(_BACKLOG)
        except OSError:
            self.socket.close()
            raise
        self.port: int = self.socket.getsockname()[1]
        owner = os.getuid() if is_loopback(host) and can_tell() else None
        self.access = Access(host, self.port, token or None, owner, asks_everybody)
        self.url = endpoint_url(host, self.port, path)


def endpoint_url(host: str, port: int, path: str = MCP_PATH) -> str:
    """Return the address at which clients ask."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"


Headers = dict[str, list[str]]
"""All values of each header, by its name in lower case."""


async def refuse(refused: Refused, send: Send, *more: tuple[bytes, bytes]) -> None:
    """Answer with a status and a sentence."""
    body = refused.text.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body)), *more]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class HttpServer:
    """An ASGI application behind a listener; requests that may not be answered do not reach it."""

    def __init__(
        self,
        app: ASGIApp,
        listener: Listener,
        refuse: Callable[[Refused, Scope, Receive, Send], Awaitable[None]] | None = None,
        complete: Callable[[Scope, Headers], None] | None = None,
    ) -> None:
        """``refuse`` answers refused requests; ``complete`` may change the headers that are decided by."""
        self._app = app
        self._listener = listener
        self._refuse = refuse
        self._complete = complete
        self._connections = _Connections(listener)

    def serve(self) -> Coroutine[Any, Any, None]:
        """Return the coroutine that answers requests until `stop`."""
        import uvicorn
        from uvicorn.protocols.http.auto import AutoHTTPProtocol

        self._server: Any = uvicorn.Server(
            uvicorn.Config(
                self._answer,
                interface="asgi3",
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                http=_bounded(AutoHTTPProtocol, self._connections),
                timeout_graceful_shutdown=_GOODBYE_SECONDS,
            )
        )
        # Signals are left to the program whose loop this runs on.
        self._server.capture_signals = nullcontext
        # Not awaited here: the library's coroutine wakes ten times a second, and ours would wake with it.
        serving: Coroutine[Any, Any, None] = self._server.serve(sockets=[self._listener.socket])
        return serving

    def stop(self) -> None:
        self._server.should_exit = True

    def _answer(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Look at the headers of a request before anything of its body is read."""
        access = self._listener.access
        self._connections.began(scope)
        scope[USER] = None
        if access.looks_at_users and scope.get("client") and scope.get("server"):
            scope[USER] = user_of(tuple(scope["client"]), tuple(scope["server"]))
        found: Headers = {}
        for name, value in scope["headers"]:
            found.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        # A browser's cookie is for the page alone: programs bring their token themselves.
        if self._complete is not None and scope["path"] != self._listener.path:
            self._complete(scope, found)
        refused = access.refusal(found, scope[USER])
        # The answers are awaited by the library, not here, which saves a step for every message.
        if refused is None:
            return self._app(scope, receive, send)
        if self._refuse is None:
            return refuse(refused, send)
        return self._refuse(refused, scope, receive, send)


class _Connections:
    """The open connections of a listener. Everything happens on its loop."""

    def __init__(self, listener: Listener) -> None:
        self._where = listener.path or listener.url
        self._seconds = listener.limits.request_seconds
        self._most = listener.limits.connections
        self._timers: dict[object, asyncio.TimerHandle | None] = {}
        """By the other end's address: what ends the connection unless a request comes."""
        self._said_full = False

    def made(self, transport: asyncio.Transport) -> bool:
        """Return whether there is room for one more connection; its first request must come in time."""
        if len(self._timers) >= self._most:
            if not self._said_full:
                text = "there are %d connections to %s, which is all there is room for"
                log.warning(text, self._most, self._where)
            self._said_full = True
            return False
        timer = asyncio.get_running_loop().call_later(self._seconds, transport.abort)
        self._timers[_other_end(transport)] = timer
        return True

    def lost(self, transport: asyncio.Transport) -> None:
        timer = self._timers.pop(_other_end(transport), None)
        if timer is not None:
            timer.cancel()
        # Said again once half of the connections have ended.
        self._said_full = self._said_full and len(self._timers) > self._most // 2

    def began(self, scope: Scope) -> None:
        """Stop the timer of a connection whose request has begun."""
        end = tuple(scope.get("client") or ())
        if (timer := self._timers.get(end)) is not None:
            timer.cancel()
            self._timers[end] = None

    def answered(self, transport: asyncio.Transport) -> None:
        """Start the timer of a connection again for its next request."""
        end = _other_end(transport)
        if end in self._timers and self._timers[end] is None:
            self._timers[end] = asyncio.get_running_loop().call_later(self._seconds, transport.abort)


def _bounded(base: type[asyncio.Protocol], connections: _Connections) -> type[asyncio.Protocol]:
    """Return the protocol of the HTTP library, with bounds on its connections."""

    class Bounded(base):
        _transport: asyncio.Transport | None = None

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            if not isinstance(transport, asyncio.Transport):
                transport.close()
            elif connections.made(transport):
                self._transport = transport
                super().connection_made(transport)
            else:
                transport.write(_FULL)
                transport.close()

        def data_received(self, data: bytes) -> None:
            if self._transport is not None:
                super().data_received(data)

        def connection_lost(self, exc: Exception | None) -> None:
            if self._transport is not None:
                connections.lost(self._transport)
                super().connection_lost(exc)

        def on_response_complete(self) -> None:
            """Called by the library when a request was answered."""
            if self._transport is not None:
                connections.answered(self._transport)
            cast("Any", super()).on_response_complete()

    return Bounded


def _other_end(transport: asyncio.Transport) -> object:
    name: Any = transport.get_extra_info("peername")
    return tuple(name[:2])
