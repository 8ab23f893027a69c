"""Large answers to many at once, from the engine of ``iii-directory up``.

Asked over a bare socket that does nothing with what it reads, so that writing is what is measured.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from websockets.frames import Frame, Opcode

from benchmarks.harness import Measurement, goal, interleave
from benchmarks.processes import call_frame, process, run_up
from benchmarks.trees import tree

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

DOCUMENTS = 10_000
IN_FLIGHT = 32
ROUNDS = 5
READY_SECONDS = 60.0
LIST = "skills::list"


@goal("up.list-10000", at_least=3.0)
def list_10000() -> Measurement:
    """``skills::list`` of 10,000 documents with 32 in flight, against how answers were written before."""
    root = tree(DOCUMENTS)
    with process(up, root, False) as here, process(up, root, True) as there:
        ours, theirs = Flood(here), Flood(there)
        return interleave(lambda: 1 / ours.seconds(), lambda: 1 / theirs.seconds(), rounds=ROUNDS)


class Flood:
    """One connection that asks for the list many times at once."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self._socket = socket.create_connection((where.hostname or "", where.port or 0))
        self._socket.sendall(
            f"GET / HTTP/1.1\r\nHost: {where.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self._buffer = bytearray(1 << 20)
        self._quiet()
        self._answer_bytes = self._asked(1)

    def seconds(self) -> float:
        start = time.perf_counter()
        self._asked(IN_FLIGHT, self._answer_bytes * IN_FLIGHT)
        return time.perf_counter() - start

    def _asked(self, times: int, expected: int | None = None) -> int:
        """The bytes of the answers; without an expected number, until nothing more comes."""
        frames = (Frame(Opcode.TEXT, call_frame({}, LIST).encode()) for _ in range(times))
        self._socket.sendall(b"".join(frame.serialize(mask=True) for frame in frames))
        if expected is None:
            return self._quiet()
        read = 0
        while read < expected:
            read += self._socket.recv_into(self._buffer)
        return read

    def _quiet(self) -> int:
        """Read until there is nothing more to read for a while."""
        read = 0
        self._socket.settimeout(READY_SECONDS)
        try:
            while True:
                read += self._socket.recv_into(self._buffer)
                self._socket.settimeout(2.0)
        except TimeoutError:
            self._socket.settimeout(READY_SECONDS)
            return read


def up(report: Connection, root: Path, as_it_was: bool) -> None:
    """The engine with the directory inside it, as it is or as it was."""
    if as_it_was:
        write_as_before()
    run_up(report, root)


def write_as_before() -> None:
    """What became of an answer in commit 036f6c6, before large ones were thought of.

    Every answer was encoded anew, rows and all; the library made a frame of it, which is a copy; the frames
    were joined, which is another; and the transport was given all of it, to keep what the socket did not
    take. Everything else is as it is now.
    """
    from iii_directory.bus.message_bus import LongLists
    from iii_directory.wire.framing import Framing
    from iii_directory.wire.message_socket import Outbox

    async def encoded_anew(_self: Any, result: object) -> object:
        return result

    def framed_by_the_library(self: Any, *parts: bytes) -> None:
        self._library.send_text(b"".join(parts))  # there is one part, which this does not copy

    def all_at_once(self: Any, data: list[bytes], _event_bytes: int = 0) -> None:
        self._transport.write(b"".join(data))

    LongLists.written = cast("Any", encoded_anew)
    Framing.send = cast("Any", framed_by_the_library)
    Outbox.write = cast("Any", all_at_once)
