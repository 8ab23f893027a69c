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

from iii_directory.limits import KIB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from websockets.http11 import Request, Response
    from websockets.protocol import Protocol as Library

    from iii_directory.wire.json_text import Text

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
_KEYS_AT_ONCE: Final = 256
_SHORT_BYTES: Final = 16 * KIB
READ_BYTES: Final = 256 * KIB
"""What is read at once, into one place for all reads of a loop: to have another place for each takes as long
as a quarter of what becomes of a short message (goal ``joined.resources-read``)."""
_MIDDLE: Final = struct.Struct("!BBH")
_LONG: Final = struct.Struct("!BBQ")


class Framing:
    """Takes in what a socket reads and gives what it is to write, around the library's protocol."""

    def __init__(self, library: Library, listener: Listener, *, frame_bytes: int) -> None:
        self._library = library
        self._listener = listener
        self._frame_bytes = frame_bytes
        self._masks = library.side is Side.CLIENT
        self._keys = _masking_keys()
        self._unfinished = bytearray()
        """What has come of a frame that is not whole, and behind it what came while frames were held."""
        self.is_held = False
        """Whether frames are kept and nobody is told of them."""
        self._wanted = 0
        """How long the unfinished frame is, as far as that is known."""
        self._lent = 0
        """How much of the frame that the library reads has not come yet."""
        self._fragments = bytearray()
        self._has_fragments = False
        self._fragments_are_text = True
        self._out: list[Text] = []

    @property
    def is_open(self) -> bool:
        return self._library.state is State.OPEN

    @property
    def unfinished_bytes(self) -> int:
        """What is kept of messages that have come in part."""
        return len(self._unfinished) + len(self._fragments) + len(self._library.reader.buffer)

    # What goes out

    def send(self, *parts: Text, is_text: bool = True) -> None:
        """Make a message into a frame, without a copy of the parts it is given in unless it is masked.

        Nothing is sent on a connection that is not open.
        """
        if self._library.state is not State.OPEN:
            return
        out = self._out
        out += self._library.data_to_send()  # what it has to say was said before
        head = _TEXT if is_text else _BINARY
        size = sum(map(len, parts))
        if self._masks:
            mask = next(self._keys)
            out.append(_header(head, size, _MASKED) + mask)
            parts = (apply_mask(b"".join(parts), mask),)
        else:
            out.append(_header(head, size, 0))
        out += filter(None, parts)  # an empty piece would be the end

    def to_send(self) -> list[Text]:
        """What is to be written, in order; an empty piece is the end."""
        out, self._out = self._out, []
        out += self._library.data_to_send()
        return out

    # What comes in

    def received(self, data: Text) -> None:
        """Take in what was read; the listener is told of everything that is complete.

        Where it was read into is free again after this.
        """
        if self._library.state is State.CONNECTING:
            data = self._shake_hands(bytes(data))
        if data:
            # A copy of what is short is quicker to work with.
            self._frames(bytes(data) if len(data) <= _SHORT_BYTES else data)

    def _shake_hands(self, data: bytes) -> bytes:
        """What is left once the handshake is done.

        Line by line, because the library's parser would run ahead into the frames that came along with it.
        """
        start = 0
        while self._library.state is State.CONNECTING and start < len(data):
            end = data.find(b"\n", start) + 1 or len(data)
            if self._library.close_expected():
                end = len(data)
            self._hand_over(data[start:end])
            start = end
        return data[start:]

    def hold(self) -> None:
        """Tell of nothing more, not even of what has come already."""
        self.is_held = True
        self._wanted = 0

    def go_on(self) -> None:
        """Tell of what was kept, and of what comes."""
        self.is_held = False
        self._frames(b"")

    def _frames(self, data: Text | bytearray) -> None:
        if self._unfinished:
            self._unfinished += data
            if len(self._unfinished) < self._wanted or self.is_held:
                return
            data, self._unfinished = self._unfinished, bytearray()
        start = 0
        while start < len(data):
            taken = 0 if self.is_held else self._next(data, start)
            if not taken:
                self._unfinished += memoryview(data)[start:]
                return
            start += taken

    def _next(self, data: Text | bytearray, start: int) -> int:
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

    def _is_message(self, data: Text | bytearray, start: int, length: int) -> bool:
        """Whether a frame is a whole message, and nothing is wrong with it."""
        is_masked = data[start + 1] >= _MASKED
        return (
            data[start] in (_TEXT, _BINARY)
            and is_masked is not self._masks
            and length <= self._frame_bytes
            and not self._has_fragments
        )

    def _message(self, data: Text | bytearray, start: int, end: int, *, is_text: bool) -> None:
        payload = memoryview(data)[start:end]
        # One side masks, and the other does not.
        mask = None if self._masks else bytes(data[start - _MASK_BYTES : start])
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


def _masking_keys() -> Iterator[bytes]:
    """Keys that nobody can predict; many are drawn at once, because each draw is a call of the system."""
    while True:
        drawn = os.urandom(_KEYS_AT_ONCE * _MASK_BYTES)
        for start in range(0, len(drawn), _MASK_BYTES):
            yield drawn[start : start + _MASK_BYTES]


def _header(kind: int, length: int, masked: int) -> bytes:
    if length < _TWO_BYTES:
        return bytes((kind, masked | length))
    if length < 1 << 16:
        return _MIDDLE.pack(kind, masked | _TWO_BYTES, length)
    return _LONG.pack(kind, masked | _EIGHT_BYTES, length)


def _measured(data: Text | bytearray, start: int) -> tuple[int, int]:
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
