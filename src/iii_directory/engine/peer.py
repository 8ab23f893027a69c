"""A client's socket on the engine: handshake, bounds, and whole messages to its role."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

from websockets.http11 import Request
from websockets.server import ServerProtocol

from iii_directory import limits
from iii_directory.wire.access import Refused
from iii_directory.wire.message_socket import MessageSocket

if TYPE_CHECKING:
    from websockets.http11 import Response

    from iii_directory.engine.server import EngineServer

log = logging.getLogger("iii_directory.engine")
# The library's own log tells of every connection and, at debug level, formats every frame.
_wire_log = logging.getLogger("iii_directory.engine.wire")
_wire_log.setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class SocketLimits:
    """What one socket may use; tests bring smaller limits."""

    frame_bytes: int = limits.MAX_FRAME_BYTES
    message_bytes: int = limits.MAX_MESSAGE_BYTES
    unsent_bytes: int = limits.MAX_UNSENT_BYTES
    unsent_event_bytes: int = limits.MAX_UNSENT_EVENT_BYTES
    total_unsent_bytes: int = limits.MAX_TOTAL_UNSENT_BYTES
    """Of all sockets of one listener together."""
    handshake_seconds: float = limits.HANDSHAKE_SECONDS
    close_seconds: float = limits.CLOSE_SECONDS
    stall_seconds: float = limits.STALL_SECONDS
    message_seconds: float = limits.MESSAGE_SECONDS
    unfinished_bytes: int = limits.MAX_UNFINISHED_BYTES
    """Of all sockets of one listener together."""
    connections: int = limits.MAX_ENGINE_CONNECTIONS


class Role:
    """What a socket is used for once its handshake is done. This one listens to nothing."""

    connection_id = ""

    def opened(self, peer: Peer) -> None:
        """Hear that the handshake is done."""

    def received(self, data: bytes, *, is_text: bool) -> None:
        """Take a whole message in. What was sent as text may still not be UTF-8."""

    def lost(self) -> None:
        """Hear that the socket is gone."""

    def writable(self) -> None:
        """Hear that the socket takes more again after it was full."""


class Peer(MessageSocket):
    """A client's socket. It parses frames and hands whole messages to its role, synchronously."""

    def __init__(self, engine: EngineServer) -> None:
        self._engine = engine
        self._limits = bounds = engine.limits
        self._protocol = ServerProtocol(max_size=(bounds.message_bytes, bounds.frame_bytes), logger=_wire_log)
        super().__init__(
            self._protocol,
            frame_bytes=bounds.frame_bytes,
            read_into=engine.read_into,
            writers=engine.writers,
            unsent_bytes=bounds.unsent_bytes,
            unsent_event_bytes=bounds.unsent_event_bytes,
        )
        self._role = Role()
        self._timer: asyncio.TimerHandle | None = None
        self._unfinished = 0
        self._unfinished_timer: asyncio.TimerHandle | None = None
        self._ending = False

    @property
    def address(self) -> str | None:
        name = self._transport.get_extra_info("peername")
        return cast("tuple[str, int]", name)[0] if isinstance(name, tuple) else None

    @property
    def connection_id(self) -> str:
        """Return the id of the worker connection behind the socket; empty for other sockets."""
        return self._role.connection_id

    @property
    def full(self) -> bool:
        """Return whether the socket has enough to write; the role is told when it takes more again."""
        return self._outbox.unsent_bytes > limits.FULL_BYTES

    def leave(self) -> None:
        """Release everything that the connection registered."""
        role, self._role = self._role, Role()
        self.framing.on_message = self.message
        role.lost()

    # What roles call

    def flush(self) -> None:
        super().flush()
        if self._protocol.close_expected() and not self._transport.is_closing() and not self._ending:
            # The goodbye is said: a client that neither answers nor reads is not waited for.
            self._ending = True
            self._stop_timer()
            self._give_up_unless_progress(None)

    def close(self) -> None:
        """Say goodbye without a code, and do not wait for ever for the answer."""
        if self.framing.is_open:
            self._protocol.send_close()
            self.flush()
        else:
            self._transport.close()

    def pause(self) -> None:
        self._transport.pause_reading()

    def resume(self) -> None:
        self._transport.resume_reading()

    def hold(self) -> None:
        """Take nothing more in, so that what comes next finds this done."""
        self.framing.hold()
        self._transport.pause_reading()

    def release(self) -> None:
        """Take in what has come meanwhile, and what comes."""
        self.framing.go_on()
        if not self.framing.is_held:
            self._transport.resume_reading()
        self._taken_in()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self._engine.peer_made(self):
            # Before its request is read: it may never come.
            most = self._limits.connections
            body = f"This engine has {most} connections, which is its limit. Try again later.\n"
            head = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
            kind = f"Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
            self._transport.write(f"{head}{kind}{body}".encode())
            self._transport.close()
            return
        self._timer = asyncio.get_running_loop().call_later(self._limits.handshake_seconds, self.abort)

    def eof_received(self) -> bool:
        if not self.framing.is_open:
            self._protocol.receive_eof()
            self.flush()
        return False  # the transport closes itself

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._set_unfinished(0)
        super().connection_lost(exc)
        self._engine.peer_lost(self)

    # What the framing tells

    def message(self, data: bytes, *, is_text: bool) -> None:
        self._role.received(data, is_text=is_text)

    def handshake(self, event: Request | Response) -> None:
        if not isinstance(event, Request):
            return
        headers: dict[str, list[str]] = {}
        for name, value in event.headers.raw_items():
            headers.setdefault(name.lower(), []).append(value)
        decision = self._engine.decide(event.path, headers, self._transport)
        if isinstance(decision, Refused):
            self._protocol.send_response(self._protocol.reject(HTTPStatus(decision.status), decision.text))
            return
        response = self._protocol.accept(event)
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            self._protocol.send_response(response)
            return
        # Only now, because a channel's end can be taken once.
        role = self._engine.role_for(decision)
        if isinstance(role, Refused):
            self._protocol.send_response(self._protocol.reject(HTTPStatus(role.status), role.text))
            return
        self._protocol.send_response(response)
        self._stop_timer()
        self._role = role
        role.opened(self)

    # Inner workings

    def _cut_off(self) -> None:
        log.warning("a client that does not read its messages was disconnected")
        self._transport.abort()

    def _wrote(self) -> None:
        if not self.full:
            self._role.writable()

    def _taken_in(self) -> None:
        if self._protocol.close_rcvd is not None:
            # Before the close frame is answered: a client that has the answer finds nothing of it left.
            self.leave()
        if self.framing.has_output or not self.framing.is_open:
            self.flush()
        # A message that comes in pieces holds memory until it is whole: not for ever, and not too much.
        self._set_unfinished(self.framing.unfinished_bytes)
        if self._engine.unfinished_bytes > self._limits.unfinished_bytes and self._unfinished:
            log.warning("unfinished messages took too much memory; the newest one's connection was ended")
            self.abort()
        self._engine.flush_after_read(self)

    def _set_unfinished(self, size: int) -> None:
        self._engine.unfinished_bytes += size - self._unfinished
        if size and self._unfinished_timer is None:
            self._watch_message()
        elif not size and self._unfinished_timer is not None:
            self._unfinished_timer.cancel()
            self._unfinished_timer = None
        self._unfinished = size

    def _watch_message(self, messages_before: int | None = None) -> None:
        """End the connection if no other message has begun since, unless it is us who do not read."""
        if self.framing.messages == messages_before and not self.framing.is_held:
            seconds = self._limits.message_seconds
            log.warning("a message was not finished within %g s; its connection was ended", seconds)
            self.abort()
            return
        self._unfinished_timer = asyncio.get_running_loop().call_later(
            self._limits.message_seconds, self._watch_message, self.framing.messages
        )

    def _give_up_unless_progress(self, unsent_before: int | None) -> None:
        unsent = self._outbox.unsent_bytes
        if unsent == unsent_before:
            self.abort()
            return
        seconds = self._limits.stall_seconds if unsent else self._limits.close_seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._give_up_unless_progress, unsent)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
