"""A worker's socket to an engine elsewhere."""

from __future__ import annotations

import asyncio
import logging
import os
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus, InvalidURI
from websockets.http11 import Response
from websockets.uri import parse_uri

from iii_directory.access.ownership import is_strangers
from iii_directory.limits import (
    FRAGMENT_BYTES,
    HANDSHAKE_SECONDS,
    KEEP_ALIVE_SECONDS,
    LEAVE_SECONDS,
    MAX_FRAME_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_UNSENT_BYTES,
)
from iii_directory.wire.framing import READ_BYTES
from iii_directory.wire.message_socket import MessageSocket
from iii_directory.wire.outbox import Writers

if TYPE_CHECKING:
    from websockets.http11 import Request

log = logging.getLogger("iii_directory.worker")
# The library's own log formats every frame at debug level.
_wire_log: Final = logging.getLogger("iii_directory.worker.wire")
_wire_log.setLevel(logging.WARNING)
# After so many messages the engine gets what there is, and works on it while the rest is being answered. With
# everything written at the end of a turn, worker and engine wait for one another (``joined.resources-read``).
_WRITTEN_TOGETHER: Final = 8


class UnreachableError(Exception):
    """There is no engine to talk to at an address; the text says why."""


class Owner(Protocol):
    """Whoever uses a socket."""

    def received(self, message: bytes) -> None:
        """A whole message came in."""
        ...

    def lost(self, socket: WireSocket) -> None:
        """The connection of a socket is gone, once for each that was opened."""
        ...


async def open_socket(url: str, owner: Owner, *, token: str | None) -> WireSocket:
    """A socket whose handshake is done.

    Raises:
        UnreachableError: nobody answers there, or it is no engine, or it wants another token.
    """
    try:
        where = parse_uri(url)
    except InvalidURI as error:
        raise UnreachableError(str(error)) from None
    if (token or where.password) and await asyncio.to_thread(is_strangers, url):
        raise UnreachableError("it belongs to another user of this machine; the token was not sent there")
    loop = asyncio.get_running_loop()
    socket = WireSocket(ClientProtocol(where, max_size=MAX_MESSAGE_BYTES, logger=_wire_log), owner, token)
    handed_over = False
    try:
        async with asyncio.timeout(HANDSHAKE_SECONDS):
            await loop.create_connection(lambda: socket, where.host, where.port, ssl=where.secure or None)
            await socket.opened
            handed_over = True
    except TimeoutError:
        raise UnreachableError(f"it did not answer within {HANDSHAKE_SECONDS:g} s") from None
    except OSError as error:
        raise UnreachableError(os.strerror(error.errno) if error.errno else str(error)) from None
    finally:
        # Also whoever is told to stop at the very moment the handshake is done leaves no connection behind.
        if not handed_over:
            socket.abort()
    return socket


class WireSocket(MessageSocket):
    """One connection, from the handshake to the end."""

    def __init__(self, protocol: ClientProtocol, owner: Owner, token: str | None) -> None:
        super().__init__(
            protocol,
            frame_bytes=MAX_MESSAGE_BYTES,
            read_into=memoryview(bytearray(READ_BYTES)),
            writers=Writers(),
            unsent_bytes=MAX_UNSENT_BYTES,
            unsent_event_bytes=MAX_UNSENT_BYTES,
        )
        self._protocol = protocol
        self._owner = owner
        self._token = token
        self._loop = asyncio.get_running_loop()
        self._is_connected = False
        self._flush_is_due = False
        self._said = 0
        self._heard_something = True
        self._was_open = False
        self._timer: asyncio.TimerHandle | None = None
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[None] = self._loop.create_future()

    @property
    def is_open(self) -> bool:
        return self._framing.is_open

    # What its owner calls

    def send(self, text: bytes) -> None:
        """Send a message of JSON; what one pass of the loop says is written together, up to some messages."""
        if not self.is_open:
            return
        if len(text) <= MAX_FRAME_BYTES:
            self._framing.send(text)
        else:
            self._send_in_fragments(text)
        self._said += 1
        if self._said >= _WRITTEN_TOGETHER:
            self.flush()
        else:
            self._flush_soon()

    async def close(self) -> None:
        """Say goodbye and wait a little for the answer."""
        if self.is_open:
            self._protocol.send_close()
            self.flush()
            await asyncio.wait([self.ended], timeout=LEAVE_SECONDS)
        self.abort()

    def abort(self) -> None:
        if self._is_connected:
            super().abort()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._is_connected = True
        request = self._protocol.connect()
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        self._protocol.send_request(request)
        self.flush()

    def eof_received(self) -> bool:
        self._protocol.receive_eof()
        self.flush()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)
        self.ended.set_result(None)
        if self._was_open:
            self._owner.lost(self)
        elif not self.opened.done():
            why = self._protocol.handshake_exc or exc or "it hung up"
            self.opened.set_exception(UnreachableError(f"what listens there is no iii engine: {why}"))

    # What the framing tells

    def message(self, data: bytes, *, is_text: bool) -> None:  # noqa: ARG002 (JSON in either is JSON)
        self._owner.received(data)

    def handshake(self, event: Request | Response) -> None:
        if isinstance(event, Response):
            self._answered(event)

    # Inner workings

    def _answered(self, response: Response) -> None:
        problem = self._protocol.handshake_exc
        if self.opened.done():
            return  # nobody waited that long
        if problem is None:
            self._was_open = True
            self.opened.set_result(None)
            self._timer = self._loop.call_later(KEEP_ALIVE_SECONDS, self._keep_alive)
        elif isinstance(problem, InvalidStatus) and response.status_code == HTTPStatus.UNAUTHORIZED:
            self.opened.set_exception(UnreachableError("it asks for a token: set III_TOKEN"))
        else:
            self.opened.set_exception(UnreachableError(f"what listens there is no iii engine: {problem}"))

    def _taken_in(self) -> None:
        self._heard_something = True
        self.flush()
        # Behind what the messages woke, in the same pass of the loop: their answers are written in it.
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._flush_is_due = False
        self.flush()
        self._acknowledge()

    def _send_in_fragments(self, text: bytes) -> None:
        view = memoryview(text)
        self._protocol.send_text(view[:FRAGMENT_BYTES], fin=False)
        for start in range(FRAGMENT_BYTES, len(text), FRAGMENT_BYTES):
            end = start + FRAGMENT_BYTES
            self._protocol.send_continuation(view[start:end], fin=end >= len(text))

    def flush(self) -> None:
        self._said = 0
        super().flush()

    def _cut_off(self) -> None:
        log.warning("the engine does not read its messages; the connection is closed")
        self.abort()

    def _keep_alive(self) -> None:
        """A connection of which nothing is heard, not even an answer to a ping, is gone."""
        if not self._heard_something:
            log.warning("the engine has not been heard of for a while; the connection is given up")
            self.abort()
            return
        self._heard_something = False
        if self.is_open:
            self._protocol.send_ping(b"")
            self.flush()
        self._timer = self._loop.call_later(KEEP_ALIVE_SECONDS, self._keep_alive)
