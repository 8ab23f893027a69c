"""Servers and workers in processes of their own: a benchmark measures sockets, not a shared loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import multiprocessing
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from iii_directory.engine.server import EngineServer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from multiprocessing.connection import Connection

_SPAWN = multiprocessing.get_context("spawn")
READY_SECONDS = 30.0


@contextlib.contextmanager
def process(target: Callable[..., None], *arguments: Any) -> Generator[Any]:
    """Run ``target(report, *arguments)`` in a process; gives what it reports first."""
    ours, theirs = _SPAWN.Pipe()
    child = _SPAWN.Process(target=target, args=(theirs, *arguments), daemon=True)
    child.start()
    try:
        if not ours.poll(READY_SECONDS):
            raise TimeoutError(f"{target.__name__} did not start")
        yield ours.recv()
    finally:
        child.kill()
        child.join()


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


def engine_with_directory(report: Connection) -> None:
    """The engine with the directory inside it, as ``iii-directory up`` runs them, on nothing but memory."""
    from iii_directory.config import Settings
    from iii_directory.worker.main import DirectoryWorker, bus_inside

    # A benchmark shows its lines and nothing else.
    logging.disable()

    async def main(folder: str) -> None:
        server = EngineServer(port=0)
        bus = bus_inside(server)
        await server.start()
        settings = Settings(skills_folder=Path(folder))
        worker = await asyncio.to_thread(DirectoryWorker.started_on, bus, settings)
        if not await asyncio.to_thread(worker.wait_ready, READY_SECONDS):
            raise TimeoutError("the directory did not start")
        report.send(server.url)
        await asyncio.Future()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))


def engine_with_echo(report: Connection) -> None:
    """The engine with a worker inside it whose one function, ``bench::echo``, answers with its payload."""
    from iii_directory.bus.local_bus import LocalBus
    from iii_directory.bus.seam import Function

    async def echo(payload: dict[str, Any]) -> dict[str, Any]:
        return payload

    async def main() -> None:
        server = EngineServer(port=0)
        bus = LocalBus(server, name="bench", description="")
        bus.register_function(Function(id="bench::echo", description="", request={}, response=None), echo)
        await server.start()
        report.send(server.url)
        await asyncio.Future()

    asyncio.run(main())


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


def _announcement() -> dict[str, Any]:
    return {
        "type": "invokefunction",
        "function_id": "engine::workers::register",
        "data": {"name": "bench", "pid": 1},
        "action": {"type": "void"},
    }


async def flood(url: str, frames: list[str], in_flight: int, *, greeted: bool = True) -> float:
    """The seconds it takes to have every frame answered, with so many of them under way."""
    async with connect(url, compression=None, max_size=None) as peer:
        if greeted:
            await peer.recv()
        start = time.perf_counter()
        for frame in frames[:in_flight]:
            await peer.send(frame)
        for frame in frames[in_flight:]:
            await peer.recv()
            await peer.send(frame)
        for _ in range(in_flight):
            await peer.recv()
        return time.perf_counter() - start


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
