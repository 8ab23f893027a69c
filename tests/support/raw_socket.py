"""A WebSocket client that does nothing by itself: it reads when told to, and sends any bytes."""

from __future__ import annotations

import json
import socket
import struct
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

WAIT = 10.0
TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG = 0x1, 0x2, 0x0, 0x8, 0x9, 0xA


def frame(payload: bytes, opcode: int = TEXT, *, fin: bool = True, masked: bool = True) -> bytes:
    """One frame as a client sends it; with a mask of zeros the payload stays readable."""
    head, bit = (0x80 if fin else 0) | opcode, 0x80 if masked else 0
    if len(payload) < 126:
        start = struct.pack(">BB", head, bit | len(payload))
    elif len(payload) < 2**16:
        start = struct.pack(">BBH", head, bit | 126, len(payload))
    else:
        start = struct.pack(">BBQ", head, bit | 127, len(payload))
    return start + (bytes(4) if masked else b"") + payload


def request(port: int, path: str = "/") -> bytes:
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


class RawSocket:
    """A socket on an engine's port; a context manager. ``buffer`` is the size of its receive buffer."""

    def __init__(
        self, port: int, path: str | None = "/", *, buffer: int | None = None, extra: bytes = b""
    ) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(WAIT)
        if buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.connect(("127.0.0.1", port))
        self._received = bytearray()
        self.status = 0
        if path is not None:
            self.open(request(port, path) + extra)

    def open(self, sent: bytes) -> None:
        """Send a request and read the head of its answer."""
        try:
            self.socket.sendall(sent)
            self.status = int(self._until(b"\r\n\r\n").split(b" ", 2)[1])
        except BaseException:
            self.socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, payload: bytes, opcode: int = TEXT, *, fin: bool = True) -> None:
        self.socket.sendall(frame(payload, opcode, fin=fin))

    def send_message(self, **message: Any) -> None:
        self.send(json.dumps(message).encode())

    def receive(self) -> tuple[int, bytes] | None:
        """The next frame's opcode and payload, or None at the end of the stream."""
        try:
            head = self._exactly(2)
            length = head[1] & 0x7F
            if length >= 126:
                length = int.from_bytes(self._exactly(2 if length == 126 else 8), "big")
            return head[0] & 0x0F, self._exactly(length)
        except (EOFError, ConnectionResetError):
            return None

    def receive_message(self) -> dict[str, Any]:
        received = self.receive()
        assert received is not None, "the engine ended the connection"
        return json.loads(received[1])

    def wait_for_end(self) -> list[int]:
        """Read until the stream ends; the opcodes of what still came."""
        opcodes: list[int] = []
        while (received := self.receive()) is not None:
            opcodes.append(received[0])
        return opcodes

    def _exactly(self, count: int) -> bytes:
        self.read_some(count - len(self._received))
        return self._taken(count)

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._received:
            self.read_some(1)
        return self._taken(self._received.index(mark) + len(mark))

    def _taken(self, count: int) -> bytes:
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken

    def read_some(self, least: int) -> None:
        """Take at least this many bytes, to be looked at later."""
        while least > 0:
            piece = self.socket.recv(1 << 18)
            if not piece:
                raise EOFError
            self._received += piece
            least -= len(piece)
