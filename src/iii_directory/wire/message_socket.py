"""One end of a WebSocket, an engine's or a worker's: websockets' sans-I/O protocol on an asyncio transport.

A message is handed on in the pass of the loop that read it, without a task and a queue for each. With the
library's own connections the same router took 1.4 times as long for a call of two hops.

Before Python 3.12 asyncio keeps what a socket did not take at once in one array, and moves all of it to the
front with every piece that goes out: with thirty large answers under way that is half of the time. So a
transport is handed a piece only when it has nothing left, and the rest waits in an `Outbox` (goals
``up.list-10000`` and ``joined.list-1000``). A client that reads as fast as is written to it would keep the
loop from all others: only a first piece is written at once, and the rest in turns that the outboxes of one
listener share (goal ``beside.listing``).
"""

from __future__ import annotations

import asyncio
import math
import socket
import sys
from abc import abstractmethod
from collections import OrderedDict, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from iii_directory import limits
from iii_directory.limits import KIB, MIB
from iii_directory.wire.framing import Framing

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Sequence

    from websockets.http11 import Request, Response
    from websockets.protocol import Protocol as Library

    from iii_directory.wire.json_text import Text

READ_BYTES: Final = 256 * KIB
"""How much is read at once, into one buffer for all reads of a loop: a new buffer for each read takes as long
as a quarter of the work on a short message (goal ``joined.resources-read``)."""
_QUICKACK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)
# As much as a socket usually takes at once; smaller ones are put together up to this size.
PIECE_BYTES: Final = 256 * KIB
# Memory that is released piece by piece stays with the process, between what is still used, unless the
# allocator is told to give it back. That takes some milliseconds, so it is not done for little.
_TRIMMED_BYTES: Final = 4 * MIB
_TRIM_SECONDS: Final = 0.1


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
        self.framing = Framing(library, frame_bytes=frame_bytes)
        self.framing.on_handshake, self.framing.on_message = self.handshake, self.message
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
        self._outbox.count()

    def resume_writing(self) -> None:
        self._outbox.go_on()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (the cause makes no difference)
        # Without this, what is unsent would wait for the garbage collector: socket and transport are a cycle.
        self.framing.to_send()
        self._outbox.discard()


class Writers:
    """Shares the event loop among the outboxes of one listener, and bounds what they hold together."""

    def __init__(self, most: int = limits.MAX_TOTAL_UNSENT_BYTES) -> None:
        """Past ``most`` unsent bytes in all outboxes, those that hold the most are cut off."""
        self._most = most
        self._waiting: deque[Outbox] = deque()
        self._is_due = False
        self._unsent: dict[Outbox, int] = {}
        self.unsent_bytes = 0
        """What all outboxes hold, as they last said."""
        self._released: float = 0

    def take(self, outbox: Outbox) -> None:
        """Let an outbox write a piece when it is its turn."""
        self._waiting.append(outbox)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def count(self, outbox: Outbox, size: int) -> None:
        """Note how much an outbox holds; cut off the largest ones while all hold too much together."""
        self.unsent_bytes += size - self._unsent.pop(outbox, 0)
        if size:
            self._unsent[outbox] = size
        while self.unsent_bytes > self._most:
            max(self._unsent, key=self._unsent.__getitem__).shrink()

    def released(self, size: int) -> None:
        """Give memory back to the system soon after much was released, once for many connections."""

        def trim() -> None:
            import ctypes  # a start does not wait for it

            self._released = 0
            with suppress(AttributeError):  # only glibc has it, and only glibc needs it
                ctypes.CDLL(None).malloc_trim(0)

        self._released += size
        if self._released >= _TRIMMED_BYTES:
            self._released = -math.inf
            asyncio.get_running_loop().call_later(_TRIM_SECONDS, trim)

    def _go_on(self) -> None:
        left = limits.WRITTEN_PER_TURN_BYTES
        try:
            while self._waiting and left > 0:
                left -= self._waiting.popleft().write_piece()
        finally:
            self._is_due = bool(self._waiting)
            if self._is_due:
                asyncio.get_running_loop().call_soon(self._go_on)


class Outbox:
    """Writes to a transport in order. `go_on` is to be called when the transport has written everything."""

    def __init__(
        self,
        transport: asyncio.Transport,
        writers: Writers,
        *,
        most: int,
        most_events: int,
        wrote: Callable[[], None],
        cut_off: Callable[[], None],
    ) -> None:
        """Call ``wrote`` when there is less left to write than there was, and ``cut_off`` past a bound.

        ``most`` is the bound on all unsent bytes, ``most_events`` that on the bytes of events among them.
        """
        self._transport = transport
        self._writers = writers
        self._most = most
        self._most_events = most_events
        self._wrote = wrote
        self._cut_off = cut_off
        self._waiting: deque[Text] = deque()
        self._bytes_waiting = 0
        self._bytes_taken = 0
        """Everything that ever waited here: tells where in the stream an event ends."""
        self._events: deque[tuple[int, int]] = deque()
        """Where events that wait end, and their sizes."""
        self._event_bytes = 0
        self._has_turn = False
        self._ends = False
        # The transport tells as soon as everything is written, and not only when most of it is.
        transport.set_write_buffer_limits(high=0)

    @property
    def unsent_bytes(self) -> int:
        return self._bytes_waiting + self._transport.get_write_buffer_size()

    def write(self, data: Sequence[Text], event_bytes: int = 0) -> None:
        """Write frames, of which so many bytes are events; an empty frame is the end of the stream."""
        size = sum(map(len, data))
        if not self.unsent_bytes and size <= PIECE_BYTES and data[-1]:
            # Mostly it is little, and nothing waits.
            self._transport.write(data[0] if len(data) == 1 else b"".join(data))
            return
        self._ends = self._ends or data[-1] == b""
        self._waiting.extend(data)
        self._bytes_waiting += size
        self._bytes_taken += size
        if event_bytes:
            self._events.append((self._bytes_taken, event_bytes))
            self._event_bytes += event_bytes
        if not self._has_turn:
            self._write()
        # A client that reads must not be cut off for what only waits for its turn here.
        while self._overflows() and self._takes_more:
            self._write()
        if self._overflows():
            self._give_up()
        self.count()

    def go_on(self) -> None:
        """Write the next piece when it is its turn: the transport has written what it was given."""
        self._take_turn()
        self.count()
        self._wrote()

    def write_piece(self) -> int:
        """Write one piece; return how many bytes that were."""
        self._has_turn = False
        before = self._bytes_waiting
        self._write()
        self.count()
        self._wrote()
        return before - self._bytes_waiting

    def shrink(self) -> None:
        """Write what the socket takes; give up if it takes nothing."""
        before = self.unsent_bytes
        while self._takes_more and not self._transport.is_closing():
            self._write()
        if self.unsent_bytes == before:
            self._give_up()
        self.count()

    def discard(self) -> None:
        """Let go of everything that waits: the connection is lost."""
        if self._bytes_waiting:
            self._writers.released(self._bytes_waiting)
        self._waiting.clear()
        self._events.clear()
        self._bytes_waiting = self._event_bytes = 0
        self._writers.count(self, 0)

    def _give_up(self) -> None:
        self._cut_off()
        self.discard()

    def count(self) -> None:
        """Tell the writers how much is unsent; its protocol calls this when the transport is full."""
        # The transport keeps its buffer until it tells that the connection is lost, which is soon.
        self._writers.count(self, 0 if self._transport.is_closing() else self.unsent_bytes)

    def _overflows(self) -> bool:
        """Whether more is unsent than may be."""
        written = self._bytes_taken - self._bytes_waiting
        while self._events and self._events[0][0] <= written:
            self._event_bytes -= self._events.popleft()[1]
        return self.unsent_bytes > self._most or self._event_bytes > self._most_events

    def _write(self) -> None:
        """Write a piece, and the rest in turns as long as the socket takes it."""
        transport = self._transport
        if transport.is_closing():
            self.discard()
            return
        if self._takes_more:
            transport.write(self._next_piece())
        if self._ends and not self._waiting and transport.can_write_eof():
            self._ends = False
            with suppress(OSError):  # the client has gone; the transport finds out by itself
                transport.write_eof()
        self._take_turn()

    @property
    def _takes_more(self) -> bool:
        return bool(self._waiting) and not self._transport.get_write_buffer_size()

    def _take_turn(self) -> None:
        if self._takes_more and not self._has_turn:
            self._has_turn = True
            self._writers.take(self)

    def _next_piece(self) -> Text:
        first = self._waiting.popleft()
        if len(first) > PIECE_BYTES:
            whole = memoryview(first)
            self._waiting.appendleft(whole[PIECE_BYTES:])
            first = whole[:PIECE_BYTES]
        elif self._waiting:
            together, size = [first], len(first)
            while self._waiting and size + len(self._waiting[0]) <= PIECE_BYTES:
                together.append(self._waiting.popleft())
                size += len(together[-1])
            first = together[0] if len(together) == 1 else b"".join(together)
        self._bytes_waiting -= len(first)
        return first


class FailureLog:
    """Logs unexpected failures by the connection that caused them, so that no client can fill the log."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._counts: OrderedDict[str, int] = OrderedDict()

    def failed(self, what: str, connection_id: str | None) -> None:
        """Log the exception that is being handled: in full, then as one line, then not at all."""
        cause = connection_id or ""
        count = self._counts.pop(cause, 0) + 1
        self._counts[cause] = count
        if len(self._counts) > limits.MAX_COUNTED_CALLERS:
            self._counts.popitem(last=False)
        if count <= limits.MAX_CONNECTION_TRACEBACKS:
            self._log.exception("%s", what)
        elif count <= limits.MAX_CONNECTION_LOG_LINES:
            self._log.error("%s again (%s)", what, type(sys.exception()).__name__)
        elif count == limits.MAX_CONNECTION_LOG_LINES + 1:
            self._log.error("further failures caused by connection %s are not logged", cause or "unknown")
