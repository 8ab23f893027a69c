"""What waits to be written to one transport, and who of those with much to write goes on.

Before Python 3.12 asyncio keeps what a socket did not take at once in one array, and moves all of it to the
front with every piece that goes out: with thirty large answers under way that is half of the time. So a
transport is handed a piece only when it has nothing left, and the rest waits here. ``up.list-10000`` and
``joined.list-1000`` of the benchmarks pay for it.

A client that reads as fast as is written to it would keep the loop from all others. So only a first piece is
written at once, and the rest in turns that the outboxes of one listener share (goal ``beside.listing``).
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from iii_directory.limits import KIB, MAX_TOTAL_UNSENT_BYTES, MIB, WRITTEN_PER_TURN_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from iii_directory.wire.json_text import Text

# As much as a socket usually takes at once; smaller ones are put together up to this size.
PIECE_BYTES: Final = 256 * KIB

# Memory that is released piece by piece stays with the process, between what is still used, unless the
# allocator is told to give it back. That takes some milliseconds, so it is not done for little.
_TRIMMED_BYTES: Final = 4 * MIB
_TRIM_SECONDS: Final = 0.1


class Writers:
    """Shares the event loop among the outboxes of one listener, and bounds what they hold together."""

    def __init__(self, most: int = MAX_TOTAL_UNSENT_BYTES) -> None:
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
        self._go_on_soon()

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

    def _go_on_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        left = WRITTEN_PER_TURN_BYTES
        try:
            while self._waiting and left > 0:
                left -= self._waiting.popleft().write_piece()
        finally:
            self._is_due = False
            if self._waiting:
                self._go_on_soon()


class Outbox:
    """Writes to a transport in order. Its protocol calls `go_on` and `paused` as the transport tells it."""

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
        self._count()

    def paused(self) -> None:
        """Count what the transport could not write at once."""
        self._count()

    def go_on(self) -> None:
        """Write the next piece when it is its turn: the transport has written what it was given."""
        self._take_turn()
        self._count()
        self._wrote()

    def write_piece(self) -> int:
        """Write one piece; return how many bytes that were."""
        self._has_turn = False
        before = self._bytes_waiting
        self._write()
        self._count()
        self._wrote()
        return before - self._bytes_waiting

    def shrink(self) -> None:
        """Write what the socket takes; give up if it takes nothing."""
        before = self.unsent_bytes
        while self._takes_more and not self._transport.is_closing():
            self._write()
        if self.unsent_bytes == before:
            self._give_up()
        self._count()

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

    def _count(self) -> None:
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
