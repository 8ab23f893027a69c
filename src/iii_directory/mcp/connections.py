"""Connections of the HTTP listener: how many there may be, and how long one may stay without a whole request.

The HTTP library holds a connection for ever that never finishes its first request, and counts connections
only when one asks for something.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, cast

from iii_directory.access.policy import Refused
from iii_directory.engine.wire_json import is_long
from iii_directory.limits import (
    MAX_MCP_BODY_BYTES,
    MAX_MCP_CONNECTIONS,
    MAX_READ_MARKS,
    MCP_REQUEST_SECONDS,
)

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope

log = logging.getLogger("iii_directory.mcp")
_NOT_WHOLE: Final = Refused(408, f"A request must be whole within {MCP_REQUEST_SECONDS:g} s.\n")
_TOO_MUCH: Final = Refused(413, f"A request has at most {MAX_READ_MARKS} commas and opening brackets.\n")
_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Connections:
    """All that are open. Everything happens on the listener's loop."""

    def __init__(self, most: int = MAX_MCP_CONNECTIONS, seconds: float = MCP_REQUEST_SECONDS) -> None:
        self.seconds = seconds
        self._most = most
        self._timers: dict[object, asyncio.TimerHandle | None] = {}
        """By the other end's address: what ends the connection unless a request comes."""
        self._said_full = False

    def made(self, transport: asyncio.Transport) -> bool:
        """Whether there is room for one more; it has to ask something in time."""
        if len(self._timers) >= self._most:
            if not self._said_full:
                log.warning("there are %d connections to /mcp, which is all there is room for", self._most)
            self._said_full = True
            return False
        self._wait(_other_end(transport), transport)
        return True

    def lost(self, transport: asyncio.Transport) -> None:
        timer = self._timers.pop(_other_end(transport), None)
        if timer is not None:
            timer.cancel()
        # Said anew once half of them have left.
        self._said_full = self._said_full and len(self._timers) > self._most // 2

    def began(self, scope: Scope) -> None:
        """A request's head is there."""
        end = _client(scope)
        if (timer := self._timers.get(end)) is not None:
            timer.cancel()
            self._timers[end] = None

    def answered(self, transport: asyncio.Transport) -> None:
        """The next request has as long as the first."""
        end = _other_end(transport)
        if end in self._timers and self._timers[end] is None:
            self._wait(end, transport)

    async def whole(self, receive: Receive) -> Receive | Refused:
        """The body of a request once all of it is there; not if that takes long, or would to read it.

        One that is too large is handed on as far as it came, to whoever refuses it.
        """
        kept, size, more = list["Message"](), 0, True
        try:
            async with asyncio.timeout(self.seconds):
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

    def _wait(self, end: object, transport: asyncio.Transport) -> None:
        self._timers[end] = asyncio.get_running_loop().call_later(self.seconds, transport.abort)


def bounded(base: type[asyncio.Protocol], connections: Connections) -> type[asyncio.Protocol]:
    """The HTTP library's protocol, with these bounds."""

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
            """What the library calls when a request was answered."""
            if self._transport is not None:
                connections.answered(self._transport)
            cast("Any", super()).on_response_complete()

    return Bounded


def _other_end(transport: asyncio.Transport) -> object:
    name: Any = transport.get_extra_info("peername")
    return tuple(name[:2])


def _client(scope: Scope) -> object:
    return tuple(scope.get("client") or ())
