"""Servers and workers in processes of their own: a benchmark measures sockets, not a shared loop."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import multiprocessing
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.frames import Frame, Opcode

from iii_directory.engine.server import EngineServer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from multiprocessing.connection import Connection

    from iii_directory.engine.sqlite_store import Database

_SPAWN = multiprocessing.get_context("spawn")
READY_SECONDS = 300.0
_SETTLE_SECONDS = 1.0
_IDLE_SHARE = 0.02
_LONGEST_HEADER = 10
_BUFFER = bytearray(1 << 20)


@contextlib.contextmanager
def process(target: Callable[..., None], *arguments: Any, source: Path | None = None) -> Generator[Any]:
    """Run ``target(report, *arguments)`` in a process; gives what it reports first.

    With a ``source`` the process imports the package from there, such as from an :func:`earlier` commit.
    """
    ours, theirs = _SPAWN.Pipe()
    child = _SPAWN.Process(target=target, args=(theirs, *arguments), daemon=True)
    # A spawned process begins with the import path of its parent.
    path = sys.path.copy()
    if source is not None:
        sys.path.insert(0, str(source))
    try:
        child.start()
    finally:
        sys.path[:] = path
    try:
        if not ours.poll(READY_SECONDS):
            raise TimeoutError(f"{target.__name__} did not start")
        yield ours.recv()
    finally:
        child.kill()
        child.join()


@contextlib.contextmanager
def earlier(commit: str) -> Generator[Path]:
    """Unpack the package as of an earlier commit, for one side of a comparison."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "commit.tar"
        command = ("git", "archive", "--output", archive, commit, "src")
        subprocess.run(command, cwd=Path(__file__).parent.parent, check=True)
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        yield Path(folder) / "src"


def echo_server(report: Connection) -> None:
    """A bare websockets server that sends back what it gets."""

    async def echo(socket: ServerConnection) -> None:
        async for message in socket:
            await socket.send(message)

    async def main() -> None:
        async with serve(echo, "127.0.0.1", 0, compression=None) as server:
            report.send(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            await asyncio.Future()

    asyncio.run(main())


def engine(report: Connection) -> None:
    """The embedded engine, in memory."""

    async def main() -> None:
        server = EngineServer(port=0)
        await server.start()
        report.send(server.url)
        await asyncio.Future()

    asyncio.run(main())


def delaying_engine(report: Connection) -> None:
    """An embedded engine whose sockets delay small frames, as the real engine's do."""
    from tests.support.engine import EngineThread

    with EngineThread(nagle=True) as running:
        report.send(running.url)
        threading.Event().wait()


def engine_with_directory(report: Connection) -> None:
    """The engine with an empty directory inside it, on nothing but memory."""
    with tempfile.TemporaryDirectory() as folder:
        run_up(report, Path(folder))


def up_on_disk(report: Connection, data: Path) -> None:
    """``iii-directory up`` with an empty folder and a database."""
    from iii_directory.engine.sqlite_store import Database

    (data / "skills").mkdir()
    run_up(report, data / "skills", Database(data))


def run_up(report: Connection, skills: Path, database: Database | None = None) -> None:
    """The engine with the directory of a folder inside it, as ``iii-directory up`` runs them, for ever."""
    from iii_directory.config import Settings

    module = worker_module()
    # A benchmark shows its lines and nothing else.
    logging.disable()

    async def main() -> None:
        server = EngineServer(port=0, database=database)
        bus = module.bus_inside(server)
        await server.start()
        worker = await asyncio.to_thread(module.DirectoryWorker.run_on, bus, Settings(skills_folder=skills))
        if not await asyncio.to_thread(worker.wait_ready, READY_SECONDS):
            raise TimeoutError("the directory did not start")
        await asyncio.to_thread(settle)
        report.send(server.url)
        await asyncio.Future()

    asyncio.run(main())


def settle() -> None:
    """Wait until what a start leaves for later is done: reading documents for search is not measured."""
    spent = 0.0
    while time.process_time() - spent > _IDLE_SHARE * _SETTLE_SECONDS:
        spent = time.process_time()
        time.sleep(_SETTLE_SECONDS)


def engine_with_echo(report: Connection) -> None:
    """The engine with a worker inside it whose one function, ``bench::echo``, answers with its payload."""
    from iii_directory.bus.seam import Function

    local_bus = module_of("bus.local_bus", "bus.message_bus").LocalBus

    async def echo(payload: dict[str, Any]) -> dict[str, Any]:
        return payload

    async def main() -> None:
        server = EngineServer(port=0)
        bus = local_bus(server, name="bench", description="")
        bus.register_function(Function(id="bench::echo", description="", request={}, response=None), echo)
        await server.start()
        report.send(server.url)
        await asyncio.Future()

    asyncio.run(main())


def module_of(*names: str) -> Any:
    """Import the first module that exists: an earlier commit may have it under another name."""
    for name in names:
        with contextlib.suppress(ImportError):
            return importlib.import_module(f"iii_directory.{name}")
    raise ImportError(f"there is none of {', '.join(names)}")


def worker_module() -> Any:
    """Import the module of ``DirectoryWorker`` and ``bus_inside``."""
    return module_of("worker.directory_worker", "worker.main")


def echo_worker(report: Connection, url: str) -> None:
    """A worker on bare websockets whose one function, ``bench::echo``, answers with its payload."""
    registrations = [{"type": "registerfunction", "id": "bench::echo"}]
    asyncio.run(_bare_worker(report, url, registrations, lambda asked: {"result": asked["data"]}))


def subscribers(report: Connection, url: str, bindings: list[tuple[str, str]]) -> None:
    """A worker on bare websockets with functions bound to trigger types; what they do is in their names."""
    registrations: list[dict[str, Any]] = [
        {"type": "registerfunction", "id": function_id}
        for _, function_id in bindings
        if not function_id.endswith("gone")
    ]
    registrations += [
        {"type": "registertrigger", "id": str(uuid.uuid4()), "trigger_type": kind, "function_id": function_id}
        for kind, function_id in bindings
    ]

    def answer(asked: dict[str, Any]) -> dict[str, Any] | None:
        if asked["function_id"].endswith("never"):
            return None
        thrown = {"code": "invocation_failed", "message": "not interested"}
        return {"error": thrown} if asked["function_id"].endswith("throws") else {"result": None}

    asyncio.run(_bare_worker(report, url, registrations, answer))


async def _bare_worker(
    report: Connection,
    url: str,
    registrations: list[dict[str, Any]],
    answer: Callable[[dict[str, Any]], dict[str, Any] | None],
) -> None:
    async with connect(url, compression=None) as socket:
        await socket.recv()
        for message in (_announcement(), *registrations, {"type": "ping"}):
            await socket.send(json.dumps(message))
        while json.loads(await socket.recv())["type"] != "pong":
            pass
        report.send("ready")
        async for text in socket:
            asked = json.loads(text)
            said = answer(asked)
            if said is not None:
                about = {"invocation_id": asked["invocation_id"], "function_id": asked["function_id"]}
                await socket.send(json.dumps({"type": "invocationresult", **about, **said}))


def _announcement(name: str = "bench") -> dict[str, Any]:
    return {
        "type": "invokefunction",
        "function_id": "engine::workers::register",
        "data": {"name": name, "pid": 1},
        "action": {"type": "void"},
    }


def flood(url: str, frames: list[str], in_flight: int, *, greeted: bool = True) -> float:
    """The seconds it takes to have every frame answered, with so many of them under way.

    Over a bare socket that counts messages and does not read them: what is measured is the other side.
    """
    sent = [Frame(Opcode.TEXT, frame.encode()).serialize(mask=True) for frame in frames]
    with contextlib.closing(Answers(url)) as answers:
        if greeted:
            answers.wait_for(1)
            answers.announce()
        start = time.perf_counter()
        answers.send(sent[:in_flight])
        asked, answered = in_flight, 0
        while answered < len(sent):
            came = answers.wait_for(1)
            answered += came
            answers.send(sent[asked : asked + came])
            asked += came
        return time.perf_counter() - start


class Answers:
    """A socket on an engine, blocking, whose messages are counted by their headers."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self._socket = socket.create_connection((where.hostname or "", where.port or 0), READY_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(
            f"GET / HTTP/1.1\r\nHost: {where.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self._buffer = _BUFFER
        self._rest = b""
        while b"\r\n\r\n" not in self._rest:
            self._rest += self._socket.recv(1)
        self._rest, self._skip = b"", 0
        self.bytes_read = 0

    def announce(self) -> None:
        """Tell the engine a name, as workers do: a registration waits a while for that of its caller."""
        said = json.dumps(_announcement(f"load-{uuid.uuid4()}")).encode()
        self.send([Frame(Opcode.TEXT, said).serialize(mask=True)])

    def send(self, frames: list[bytes]) -> None:
        if frames:
            self._socket.sendall(b"".join(frames))

    def wait_for(self, least: int) -> int:
        """How many messages came, at least so many."""
        came = 0
        while came < least:
            size = self._socket.recv_into(self._buffer)
            if not size:
                raise ConnectionError("the engine hung up")
            self.bytes_read += size
            came += self._counted(memoryview(self._buffer)[:size])
        return came

    def close(self) -> None:
        self._socket.sendall(Frame(Opcode.CLOSE, b"").serialize(mask=True))
        self._socket.close()

    def _counted(self, data: memoryview) -> int:
        """The messages that end in what was read; what is left of one is skipped with the next."""
        came = 0
        while True:
            if self._skip > len(data):
                self._skip -= len(data)
                return came
            came += self._skip > 0
            data, self._skip = data[self._skip :], 0
            head = self._rest + bytes(data[: _LONGEST_HEADER - len(self._rest)])
            length = head[1] if len(head) > 1 else 0
            extended = {126: 2, 127: 8}.get(length, 0)
            if len(head) < 2 + extended:
                self._rest = head
                return came
            size = int.from_bytes(head[2 : 2 + extended], "big") if extended else length
            self._skip, self._rest = 2 + extended + size - len(self._rest), b""


def call_frame(payload: dict[str, Any], function_id: str = "bench::echo", namespace: str = "default") -> str:
    return json.dumps(
        {
            "type": "invokefunction",
            "function_id": function_id,
            "invocation_id": str(uuid.uuid4()),
            "namespace": namespace,
            "data": payload,
        }
    )
