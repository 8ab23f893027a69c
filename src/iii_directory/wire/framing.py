"""Turn whole messages into WebSocket frames and back, for engines and workers alike.

Nearly every frame is a whole message, and those are parsed and written here: the library's parser steps
through generators for each, and its serializer copies every message once more. The handshake, control frames,
fragments and malformed frames go to the library, always in whole frames, so that its parser and this one
never wait for the rest of the same frame.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Final

from websockets.frames import Frame, Opcode
from websockets.protocol import Side, State

from iii_directory.limits import FRAGMENT_BYTES, KIB

try:
    from websockets.speedups import apply_mask
except ImportError:  # websockets was built without a compiler
    from websockets.utils import apply_mask

if TYPE_CHECKING:
    from collections.abc import Callable

    from websockets.http11 import Request, Response
    from websockets.protocol import Protocol as Library

    from iii_directory.wire.json_text import Text


# The first byte of a whole message, the mark in the second byte, and what stands there for a longer length.
_TEXT: Final = 0x80 | Opcode.TEXT
_BINARY: Final = 0x80 | Opcode.BINARY
_MASKED: Final = 0x80
_TWO_BYTES: Final = 126
_EIGHT_BYTES: Final = 127
_MASK_BYTES: Final = 4
_KEY_BYTES: Final = 1024
_SHORT_BYTES: Final = 16 * KIB
_MIDDLE: Final = struct.Struct("!BBH")
_LONG: Final = struct.Struct("!BBQ")


class Framing:
    """Takes in what a socket reads and gives what it is to write, around the library's protocol."""

    def __init__(self, library: Library, *, frame_bytes: int) -> None:
        self._library = library
        self.on_handshake: Callable[[Request | Response], None]
        """Called with the head of the handshake."""
        self.on_message: Callable[..., None]
        """Called with every message and ``is_text``."""
        self.messages = 0
        """How many messages were handed on."""
        self.is_held = False
        """Whether frames are kept and not handed on."""
        self._frame_bytes = frame_bytes
        self._masks = library.side is Side.CLIENT
        self._keys = b""
        self._unfinished = bytearray()
        """What has come of a frame that is not whole, and behind it what came while frames were held."""
        self._wanted = 0
        """How long the unfinished frame is, as far as its header says."""
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
    def has_output(self) -> bool:
        """Return whether something waits to be written."""
        return bool(self._out or self._library.writes)

    @property
    def unfinished_bytes(self) -> int:
        """Return how many bytes are kept of messages that have come in part."""
        return len(self._unfinished) + len(self._fragments) + len(self._library.reader.buffer)

    # What goes out

    def send(self, *parts: Text, is_text: bool = True) -> None:
        """Make a message into a frame; parts are not copied unless the frame is masked.

        Nothing is sent on a connection that is not open.
        """
        if self._library.state is not State.OPEN:
            return
        out, size, masked = self._out, sum(map(len, parts)), 0
        if self._library.writes:
            out += self._library.data_to_send()  # what the library has to say was said before
        mask = b""
        if self._masks:
            if not self._keys:
                # Keys must not be predictable; many are drawn at once, because a draw is a system call.
                self._keys = os.urandom(_KEY_BYTES)
            mask, self._keys, masked = self._keys[:_MASK_BYTES], self._keys[_MASK_BYTES:], _MASKED
            parts = (apply_mask(b"".join(parts), mask),)
        kind = _TEXT if is_text else _BINARY
        if size < _TWO_BYTES:
            out.append(bytes((kind, masked | size)) + mask)
        elif size < 1 << 16:
            out.append(_MIDDLE.pack(kind, masked | _TWO_BYTES, size) + mask)
        else:
            out.append(_LONG.pack(kind, masked | _EIGHT_BYTES, size) + mask)
        if size:  # an empty piece would be the end of the stream
            out += parts

    def send_in_fragments(self, text: bytes) -> None:
        """Send a message that is too long for one frame."""
        view = memoryview(text)
        self._library.send_text(view[:FRAGMENT_BYTES], fin=False)
        for start in range(FRAGMENT_BYTES, len(text), FRAGMENT_BYTES):
            end = start + FRAGMENT_BYTES
            self._library.send_continuation(view[start:end], fin=end >= len(text))

    def to_send(self) -> list[Text]:
        """Return what is to be written, in order; an empty piece is the end."""
        out, self._out = self._out, []
        out += self._library.data_to_send()
        return out

    # What comes in

    def received(self, data: Text) -> None:
        """Take in what was read and hand on what is complete; ``data`` may be reused after this."""
        if self._library.state is State.CONNECTING:
            # The handshake goes to the library line by line: its parser would run ahead into the frames that
            # came along with it.
            lines, start = bytes(data), 0
            while self._library.state is State.CONNECTING and start < len(lines):
                end = lines.find(b"\n", start) + 1 or len(lines)
                if self._library.close_expected():
                    end = len(lines)
                self._hand_over(lines[start:end])
                start = end
            data = data[start:]
        if data:
            # A copy of what is short is quicker to work with.
            self._frames(bytes(data) if len(data) <= _SHORT_BYTES else data)

    def hold(self) -> None:
        """Hand nothing more on, not even what has come already."""
        self.is_held = True
        self._wanted = 0

    def go_on(self) -> None:
        """Hand on what was kept, and what comes."""
        self.is_held = False
        self._frames(b"")

    def _frames(self, data: Text | bytearray) -> None:
        if self._unfinished:
            self._unfinished += data
            if len(self._unfinished) < self._wanted or self.is_held:
                return
            data, self._unfinished = self._unfinished, bytearray()
        start, size = 0, len(data)
        view = memoryview(data)
        while start < size and not self.is_held:
            if self._lent or self._library.state is not State.OPEN:
                taken = min(self._lent, size - start) if self.is_open else size - start
                self._lent -= min(self._lent, taken)
                self._hand_over(bytes(view[start : start + taken]))
            else:
                taken = self._next(view, start, size)
                if not taken and not self._lent:
                    break
            start += taken
        self._unfinished += view[start:]

    def _next(self, data: memoryview, start: int, size: int) -> int:
        """Hand a whole message on and return its length; return 0 to wait for more or lend it."""
        body = start + 2
        if size < body:
            self._wanted = 2
            return 0
        kind, second = data[start], data[start + 1]
        length = second & ~_MASKED
        if length >= _TWO_BYTES:
            extended = body
            body += 2 if length == _TWO_BYTES else 8
            if size < body:
                self._wanted = body - start
                return 0
            length = int.from_bytes(data[extended:body], "big")
        is_masked = second >= _MASKED
        if is_masked:
            body += _MASK_BYTES
        end = body + length
        if (
            (kind != _TEXT and kind != _BINARY)
            or is_masked is self._masks
            or length > self._frame_bytes
            or self._has_fragments
        ):
            # Not a whole message, or something is wrong with it: the library takes such a frame.
            self._lent = end - start
            return 0
        if size < end:
            self._wanted = end - start
            return 0
        self.messages += 1
        payload = data[body:end]
        if is_masked:
            payload = apply_mask(payload, bytes(data[body - _MASK_BYTES : body]))
        self.on_message(bytes(payload), is_text=kind == _TEXT)
        return end - start

    def _hand_over(self, data: bytes) -> None:
        """Let the library read, and collect fragments until their message is whole."""
        self._library.receive_data(data)
        for event in self._library.events_received():
            if not isinstance(event, Frame):
                self.on_handshake(event)
            elif event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                if event.opcode is not Opcode.CONT:
                    self._fragments_are_text = event.opcode is Opcode.TEXT
                self._fragments += event.data
                self._has_fragments = not event.fin
                if event.fin:
                    whole, self._fragments = bytes(self._fragments), bytearray()
                    self.messages += 1
                    self.on_message(whole, is_text=self._fragments_are_text)
