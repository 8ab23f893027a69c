"""The frames of one WebSocket: whole messages are taken and made here, everything else is the library's.

Nearly every frame is a whole message. The library's parser steps through generators for each, and its
serializer copies every message once more; together they took half of what a call costs the engine (goal
``engine.two-hops``). The handshake, control frames, fragments and whatever is wrong go to the library, always
in whole frames, so that its parser and this one never wait for the rest of the same frame.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Final

from websockets.frames import Frame, Opcode
from websockets.protocol import Side, State

try:
    from websockets.speedups import apply_mask
except ImportError:  # it was built without a compiler
    from websockets.utils import apply_mask

if TYPE_CHECKING:
    from typing import Protocol

    from websockets.http11 import Request, Response
    from websockets.protocol import Protocol as Library

    class Listener(Protocol):
        """Whoever is told what comes in."""

        def handshake(self, event: Request | Response) -> None: ...

        def message(self, data: bytes, *, is_text: bool) -> None: ...


# The first byte of a whole message, the mark in the second, and what stands there for a length that follows.
_TEXT: Final = 0x80 | Opcode.TEXT
_BINARY: Final = 0x80 | Opcode.BINARY
_MASKED: Final = 0x80
_TWO_BYTES: Final = 126
_EIGHT_BYTES: Final = 127
_SHORTEST: Final = 2
_MASK_BYTES: Final = 4
_MIDDLE: Final = struct.Struct("!BBH")
_LONG: Final = struct.Struct("!BBQ")


class Framing:
    """Takes in what a socket reads and gives what it is to write, around the library's protocol."""

    def __init__(self, library: Library, listener: Listener, *, frame_bytes: int) -> None:
        self._library = library
        self._listener = listener
        self._frame_bytes = frame_bytes
        self._masks = library.side is Side.CLIENT
        self._unfinished = bytearray()
        self._wanted = 0
        """How long the unfinished frame is, as far as that is known."""
        self._lent = 0
        """How much of the frame that the library reads has not come yet."""
        self._fragments = bytearray()
        self._has_fragments = False
        self._fragments_are_text = True
        self._out: list[bytes] = []

    @property
    def is_open(self) -> bool:
        return self._library.state is State.OPEN

    @property
    def unfinished_bytes(self) -> int:
        """What is kept of messages that have come in part."""
        return len(self._unfinished) + len(self._fragments) + len(self._library.reader.buffer)

    # What goes out

    def send(self, data: bytes, *, is_text: bool = True) -> None:
        """Make a message into a frame; nothing is sent on a connection that is not open."""
        if self._library.state is not State.OPEN:
            return
        out = self._out
        out += self._library.data_to_send()  # what it has to say was said before
        head = _TEXT if is_text else _BINARY
        if self._masks:
            mask = os.urandom(_MASK_BYTES)
            out.append(_header(head, len(data), _MASKED) + mask)
            data = apply_mask(data, mask)
        else:
            out.append(_header(head, len(data), 0))
        if data:  # an empty piece would be the end
            out.append(data)

    def to_send(self) -> list[bytes]:
        """What is to be written, in order; an empty piece is the end."""
        out, self._out = self._out, []
        out += self._library.data_to_send()
        return out

    # What comes in

    def received(self, data: bytes) -> None:
        """Take in what was read; the listener is told of everything that is complete."""
        start = 0
        # Line by line until the handshake is done: the library's parser would run ahead into the frames that
        # came along with it.
        while self._library.state is State.CONNECTING and start < len(data):
            end = data.find(b"\n", start) + 1 or len(data)
            if self._library.close_expected():
                end = len(data)
            self._hand_over(data[start:end])
            start = end
        if start < len(data):
            self._frames(data[start:] if start else data)

    def _frames(self, data: bytes | bytearray) -> None:
        if self._unfinished:
            self._unfinished += data
            if len(self._unfinished) < self._wanted:
                return
            data, self._unfinished = self._unfinished, bytearray()
        start = 0
        while start < len(data):
            taken = self._next(data, start)
            if not taken:
                self._unfinished += memoryview(data)[start:]
                return
            start += taken

    def _next(self, data: bytes | bytearray, start: int) -> int:
        """Take a frame, or what there is of one that is the library's: how long it is, 0 to wait for more."""
        available = len(data) - start
        if self._lent or not self.is_open:
            part = min(self._lent, available) if self.is_open else available
            self._lent -= part
            self._hand_over(bytes(data[start : start + part]))
            return part
        header, length = _measured(data, start)
        size = header + length
        if header and not self._is_message(data, start, length):
            self._lent = size
            return self._next(data, start)
        if not header or available < size:
            self._wanted = size or available + 1
            return 0
        self._message(data, start + header, start + size, is_text=data[start] == _TEXT)
        return size

    def _is_message(self, data: bytes | bytearray, start: int, length: int) -> bool:
        """Whether a frame is a whole message, and nothing is wrong with it."""
        is_masked = data[start + 1] >= _MASKED
        return (
            data[start] in (_TEXT, _BINARY)
            and is_masked is not self._masks
            and length <= self._frame_bytes
            and not self._has_fragments
        )

    def _message(self, data: bytes | bytearray, start: int, end: int, *, is_text: bool) -> None:
        payload = memoryview(data)[start:end]
        # One side masks, and the other does not.
        mask = None if self._masks else data[start - _MASK_BYTES : start]
        self._listener.message(bytes(payload) if mask is None else apply_mask(payload, mask), is_text=is_text)

    def _hand_over(self, data: bytes) -> None:
        self._library.receive_data(data)
        for event in self._library.events_received():
            if isinstance(event, Frame):
                self._fragment(event)
            else:
                self._listener.handshake(event)

    def _fragment(self, frame: Frame) -> None:
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return
        if frame.opcode is not Opcode.CONT:
            self._fragments_are_text = frame.opcode is Opcode.TEXT
        self._fragments += frame.data
        self._has_fragments = not frame.fin
        if frame.fin:
            whole, self._fragments = bytes(self._fragments), bytearray()
            self._listener.message(whole, is_text=self._fragments_are_text)


def _header(kind: int, length: int, masked: int) -> bytes:
    if length < _TWO_BYTES:
        return bytes((kind, masked | length))
    if length < 1 << 16:
        return _MIDDLE.pack(kind, masked | _TWO_BYTES, length)
    return _LONG.pack(kind, masked | _EIGHT_BYTES, length)


def _measured(data: bytes | bytearray, start: int) -> tuple[int, int]:
    """How long the header of a frame and what follows it are; zero for both when the header is not whole."""
    if len(data) - start < _SHORTEST:
        return 0, 0
    second = data[start + 1]
    length, header = second & ~_MASKED, _SHORTEST + (_MASK_BYTES if second >= _MASKED else 0)
    extended = 0
    if length >= _TWO_BYTES:
        extended = 2 if length == _TWO_BYTES else 8
        if len(data) - start < _SHORTEST + extended:
            return 0, 0
        length = int.from_bytes(data[start + _SHORTEST : start + _SHORTEST + extended], "big")
    return header + extended, length
