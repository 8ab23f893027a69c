"""One end of a WebSocket, an engine's or a worker's: websockets' sans-I/O protocol on an asyncio transport.

A message is handed on in the pass of the loop that read it, without a task and a queue for each. With the
library's own connections the same router took 1.4 times as long for a call of two hops.
"""

from __future__ import annotations

import asyncio
import socket
from abc import abstractmethod
from typing import TYPE_CHECKING, Final, cast

from iii_directory.limits import KIB
from iii_directory.wire.framing import Framing
from iii_directory.wire.outbox import Outbox

if TYPE_CHECKING:
    from websockets.http11 import Request, Response
    from websockets.protocol import Protocol as Library

    from iii_directory.wire.outbox import Writers

READ_BYTES: Final = 256 * KIB
"""How much is read at once, into one buffer for all reads of a loop: a new buffer for each read takes as long
as a quarter of the work on a short message (goal ``joined.resources-read``)."""
_QUICKACK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)


class MessageSocket(asyncio.BufferedProtocol):
    """Reads whole messages and writes frames. What they mean is up to the class built on this."""

    def __init__(
        self,
        library: Library,
        *,
        frame_bytes: int,
        read_into: memoryview,
        writers: Writers,
        unsent_bytes: int,
        unsent_event_bytes: int,
    ) -> None:
        """``read_into`` may be shared by all sockets of a loop, which are read one after the other."""
        self.framing = Framing(library, self, frame_bytes=frame_bytes)
        self.event_bytes = 0
        """How many of the bytes that are queued belong to events."""
        self._read_into = read_into
        self._writers = writers
        self._bounds = unsent_bytes, unsent_event_bytes
        self.owes_acknowledgement = False
        self._transport: asyncio.Transport
        self._outbox: Outbox
        self._socket: socket.socket

    # What the classes built on this define

    @abstractmethod
    def message(self, data: bytes, *, is_text: bool) -> None:
        """Take a whole message in. What was sent as text may still not be UTF-8."""

    @abstractmethod
    def handshake(self, event: Request | Response) -> None:
        """Take the head of the handshake in."""

    @abstractmethod
    def _taken_in(self) -> None:
        """Do what is due after everything that was read has been taken in."""

    @abstractmethod
    def _cut_off(self) -> None:
        """End a connection whose other end does not read."""

    def _wrote(self) -> None:
        """Hear that there is less left to write than there was."""

    # What they call

    def flush(self) -> None:
        """Write what is queued."""
        data, event_bytes = self.framing.to_send(), self.event_bytes
        if data and not self._transport.is_closing():
            self.owes_acknowledgement = False
            self.event_bytes = 0
            self._outbox.write(data, event_bytes)

    def acknowledge(self) -> None:
        """Acknowledge what was read, unless something was written since, which does it along the way.

        Linux delays an acknowledgement by up to 40 ms in the hope of an answer to send along, and a peer
        without TCP_NODELAY sends nothing more until then. The option holds for one read.
        """
        if self.owes_acknowledgement and _QUICKACK is not None and not self._transport.is_closing():
            self.owes_acknowledgement = False
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)

    def abort(self) -> None:
        self._transport.abort()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._socket = transport.get_extra_info("socket")
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        most, most_events = self._bounds
        self._outbox = Outbox(
            self._transport,
            self._writers,
            most=most,
            most_events=most_events,
            wrote=self._wrote,
            cut_off=self._cut_off,
        )

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 (it is as large as it should be)
        return self._read_into

    def buffer_updated(self, nbytes: int) -> None:
        self.owes_acknowledgement = True
        try:
            self.framing.received(self._read_into[:nbytes])
        finally:
            self._taken_in()

    def pause_writing(self) -> None:
        self._outbox.paused()

    def resume_writing(self) -> None:
        self._outbox.go_on()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (the cause makes no difference)
        # Without this, what is unsent would wait for the garbage collector: socket and transport are a cycle.
        self.framing.to_send()
        self._outbox.discard()
