"""Many clients on the engine of ``iii-directory up``: some do not read, some are in a hurry, some leave."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from websockets.frames import Frame, Opcode

from benchmarks.bench_engine import listener, resident_kib
from benchmarks.harness import Measurement, measure
from benchmarks.processes import READY_SECONDS, Answers, call_frame, process, run_up
from iii_directory.engine.sqlite_store import Database

if TYPE_CHECKING:
    from collections.abc import Generator
    from multiprocessing.connection import Connection

NOT_READING = 10
MEMORY_ROUNDS = 3
VALUE = "y" * 20_000
WRITES = 3_000
EAGER = 2_000
LEAVING = 4_000
SECONDS = 6.0


@measure("clients.not-reading")
def not_reading() -> Measurement:
    """Memory of the engine after ten clients that never read were cut off, against before; three rounds."""
    with _running() as url:
        pid = listener(urlsplit(url).port or 0)
        with contextlib.closing(Answers(url)) as writer:
            writer.wait_for(1)
            _write(writer, WRITES)
            before, notes = resident_kib(pid), list[str]()
            for number in range(MEMORY_ROUNDS):
                deaf = [_deaf(url, f"{number}-{n}") for n in range(NOT_READING)]
                _write(writer, WRITES)
                for one in deaf:
                    one.close()
                _write(writer, 10)
                notes.append(f"round {number + 1}: {before >> 10} -> {resident_kib(pid) >> 10} MiB")
            return Measurement((resident_kib(pid) / before,), tuple(notes))


@measure("clients.least-served")
def least_served() -> Measurement:
    """Calls of the client served least against the median, of 2,000 clients with one call each in flight."""
    counts, latencies = _eager_clients()
    note = (
        f"{len(latencies)} calls, {counts[0]} to {counts[-1]} a client, median {statistics.median(counts):g}"
    )
    return Measurement((counts[0] / statistics.median(counts),), (note,))


@measure("clients.slowest-answers")
def slowest_answers() -> Measurement:
    """The 99th percentile of the answers' times against the median, of the same 2,000 clients."""
    _, latencies = _eager_clients()
    latencies.sort()
    half, most = latencies[len(latencies) // 2], latencies[len(latencies) * 99 // 100]
    return Measurement((most / half,), (f"p50 {half * 1e3:.0f} ms, p99 {most * 1e3:.0f} ms",))


@measure("clients.leaving", unit="s")
def leaving() -> Measurement:
    """Seconds until a new client has its first answer, after 4,000 busy ones left at once."""
    with _running() as url:
        return Measurement((asyncio.run(_after_they_left(url)),))


@contextlib.contextmanager
def _running() -> Generator[str]:
    with tempfile.TemporaryDirectory() as folder, process(directory, folder) as url:
        yield url


def _eager_clients() -> tuple[list[int], list[float]]:
    """How many calls each of many clients had answered, in order, and how long each call took."""
    with _running() as url:
        return asyncio.run(_eager(url))


async def _eager(url: str) -> tuple[list[int], list[float]]:
    clients = await _connected(url, EAGER)
    await asyncio.sleep(1.0)  # until every one of them has joined in
    for client in clients:
        client.taken.clear()
    await asyncio.sleep(SECONDS)
    for client in clients:
        client.stop()
    taken = [client.taken for client in clients]
    return sorted(map(len, taken)), [seconds for times in taken for seconds in times]


async def _after_they_left(url: str) -> float:
    clients = await _connected(url, LEAVING)
    await asyncio.sleep(3.0)
    for client in clients:
        client.stop()
    began = time.perf_counter()

    def ask() -> None:
        with contextlib.closing(Answers(url)) as new:
            new.send([_asked()])
            new.wait_for(2)

    await asyncio.to_thread(ask)
    return time.perf_counter() - began


async def _connected(url: str, count: int) -> list[Eager]:
    from iii_directory.cli.processes import raised_file_limit

    raised_file_limit()
    loop, where = asyncio.get_running_loop(), urlsplit(url)
    host, port = where.hostname or "", where.port or 0
    made = [await loop.create_connection(lambda: Eager(url), host, port) for _ in range(count)]
    return [client for _, client in made]


class Eager(asyncio.Protocol):
    """A client that asks for a skill as soon as it has the answer to its last question."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.taken: list[float] = []
        self._rest = b""
        self._asked_at = 0.0
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.write(_request(self._url))

    def data_received(self, data: bytes) -> None:
        self._rest += data
        if self._rest.startswith(b"HTTP"):
            if b"\r\n\r\n" not in self._rest:
                return
            self._rest = self._rest.split(b"\r\n\r\n", 1)[1]
        while (end := _frame_end(self._rest)) is not None:
            self._rest = self._rest[end:]
            if self._asked_at:
                self.taken.append(time.perf_counter() - self._asked_at)
            self._asked_at = time.perf_counter()
            self._transport.write(_asked())

    def stop(self) -> None:
        self._transport.abort()


def _frame_end(data: bytes) -> int | None:
    """Where the first frame ends, as servers write them; None if it is not whole."""
    if len(data) < 4:
        return None
    extended = {126: 2, 127: 8}.get(data[1], 0)
    length = int.from_bytes(data[2 : 2 + extended], "big") if extended else data[1]
    end = 2 + extended + length
    return end if len(data) >= end else None


def _asked() -> bytes:
    return _frame(call_frame({"id": "one"}, "directory::skills::get"))


def _frame(text: str) -> bytes:
    return Frame(Opcode.TEXT, text.encode()).serialize(mask=True)


def _write(writer: Answers, times: int) -> None:
    for number in range(times):
        value = {"scope": "s", "key": str(number % 4), "value": VALUE}
        writer.send([_frame(call_frame(value, "state::set"))])
        writer.wait_for(1)


def _deaf(url: str, name: str) -> socket.socket:
    """A client bound to the events of the state that reads nothing."""
    where = urlsplit(url)
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.settimeout(READY_SECONDS)
    deaf.connect((where.hostname, where.port))
    deaf.sendall(_request(url))
    if b"101" not in deaf.recv(16):
        raise ConnectionError("the handshake was refused")
    registrations = (
        call_frame({"name": name, "pid": os.getpid()}, "engine::workers::register"),
        f'{{"type":"registerfunction","id":"deaf::{name}"}}',
        f'{{"type":"registertrigger","id":"{name}","trigger_type":"state","function_id":"deaf::{name}","config":{{}}}}',
    )
    deaf.sendall(b"".join(map(_frame, registrations)))
    return deaf


def _request(url: str) -> bytes:
    return (
        f"GET / HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()


# In a process of its own


def directory(report: Connection, folder: str) -> None:
    """The engine with the directory of one skill inside it, as ``iii-directory up`` has them."""
    from iii_directory.cli.processes import raised_file_limit

    raised_file_limit()
    skill = Path(folder) / "skills" / "one" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("# One\n\nA skill.\n")
    run_up(report, Path(folder) / "skills", Database(Path(folder) / "data"))
