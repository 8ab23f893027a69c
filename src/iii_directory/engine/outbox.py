"""What waits to be written to one transport.

Before Python 3.12 asyncio keeps what a socket did not take at once in one array, and moves all of it to the
front with every piece that goes out: with thirty large answers under way that is half of the time. So a
transport is handed a piece only when it has nothing left, and the rest waits here. ``up.list-10000`` and
``joined.list-1000`` of the benchmarks pay for it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

# As much as a socket usually takes at once; smaller ones are put together up to this size.
_PIECE_BYTES: Final = 256 * 1024


class Outbox:
    """Writes to a transport in order. Its protocol calls `go_on` whenever writing may be resumed."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._waiting: deque[bytes | memoryview] = deque()
        self._bytes_waiting = 0
        self._ends = False
        # Told as soon as everything is written, and not only when most of it is.
        transport.set_write_buffer_limits(high=0)

    @property
    def unsent_bytes(self) -> int:
        return self._bytes_waiting + self._transport.get_write_buffer_size()

    def write(self, data: list[bytes]) -> None:
        """Write frames; an empty one is the end, after which nothing follows."""
        self._ends = self._ends or data[-1] == b""
        self._waiting.extend(data)
        self._bytes_waiting += sum(map(len, data))
        self.go_on()

    def go_on(self) -> None:
        """Write as much as the socket takes."""
        transport = self._transport
        if transport.is_closing():
            self._waiting.clear()
            self._bytes_waiting = 0
            return
        while self._waiting and not transport.get_write_buffer_size():
            transport.write(self._next_piece())
        if self._ends and not self._waiting and transport.can_write_eof():
            self._ends = False
            transport.write_eof()

    def _next_piece(self) -> bytes | memoryview:
        first = self._waiting.popleft()
        if len(first) > _PIECE_BYTES:
            whole = memoryview(first)
            self._waiting.appendleft(whole[_PIECE_BYTES:])
            first = whole[:_PIECE_BYTES]
        elif self._waiting:
            together, size = [first], len(first)
            while self._waiting and size + len(self._waiting[0]) <= _PIECE_BYTES:
                together.append(self._waiting.popleft())
                size += len(together[-1])
            first = b"".join(together)
        self._bytes_waiting -= len(first)
        return first
