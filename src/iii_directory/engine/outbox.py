"""What waits to be written to one transport, and who of those with much to write goes on.

Before Python 3.12 asyncio keeps what a socket did not take at once in one array, and moves all of it to the
front with every piece that goes out: with thirty large answers under way that is half of the time. So a
transport is handed a piece only when it has nothing left, and the rest waits here. ``up.list-10000`` and
``joined.list-1000`` of the benchmarks pay for it.

Whoever reads as fast as is written to it would keep the loop from everybody else. So only a first piece is
written at once, and the rest in turns that the outboxes of one listener share (goal ``beside.listing``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from iii_directory.limits import KIB, WRITTEN_PER_TURN_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from iii_directory.engine.wire_json import Text

# As much as a socket usually takes at once; smaller ones are put together up to this size.
PIECE_BYTES: Final = 256 * KIB


class Writers:
    """Lets outboxes write a piece each, one after the other, and only so much in one turn of the loop."""

    def __init__(self) -> None:
        self._waiting: deque[Outbox] = deque()
        self._is_due = False

    def take(self, outbox: Outbox) -> None:
        """Let an outbox write a piece when it is its turn."""
        self._waiting.append(outbox)
        self._go_on_soon()

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
    """Writes to a transport in order. Its protocol calls `go_on` whenever writing may be resumed."""

    def __init__(
        self, transport: asyncio.Transport, writers: Writers, *, most: int, wrote: Callable[[], None]
    ) -> None:
        """``most`` bytes may be unsent; ``wrote`` is told when there is less left to write than there was."""
        self._transport = transport
        self._writers = writers
        self._most = most
        self._wrote = wrote
        self._waiting: deque[Text] = deque()
        self._bytes_waiting = 0
        self._has_turn = False
        self._ends = False
        # Told as soon as everything is written, and not only when most of it is.
        transport.set_write_buffer_limits(high=0)

    @property
    def unsent_bytes(self) -> int:
        return self._bytes_waiting + self._transport.get_write_buffer_size()

    @property
    def overflows(self) -> bool:
        """Whether more is unsent than may be, although the socket was given all that it takes."""
        return self.unsent_bytes > self._most

    def write(self, data: Sequence[Text]) -> None:
        """Write frames; an empty one is the end, after which nothing follows."""
        size = sum(map(len, data))
        if not self.unsent_bytes and size <= PIECE_BYTES and data[-1]:
            # Mostly it is little, and nothing waits.
            self._transport.write(data[0] if len(data) == 1 else b"".join(data))
            return
        self._ends = self._ends or data[-1] == b""
        self._waiting.extend(data)
        self._bytes_waiting += size
        if not self._has_turn:
            self._write()
        while self.overflows and self._takes_more:
            self._write()

    def go_on(self) -> None:
        """The transport has written what it was given: the next piece goes out when it is its turn."""
        self._take_turn()
        self._wrote()

    def write_piece(self) -> int:
        """It is this one's turn: how many bytes were written."""
        self._has_turn = False
        before = self._bytes_waiting
        self._write()
        self._wrote()
        return before - self._bytes_waiting

    def _write(self) -> None:
        """Write a piece, and the rest in turns as long as the socket takes it."""
        transport = self._transport
        if transport.is_closing():
            self._waiting.clear()
            self._bytes_waiting = 0
            return
        if self._takes_more:
            transport.write(self._next_piece())
        if self._ends and not self._waiting and transport.can_write_eof():
            self._ends = False
            with suppress(OSError):  # whoever it was said goodbye and went; the transport finds out by itself
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
