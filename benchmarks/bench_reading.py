"""``directory::skills::get`` through the engine, against a bare function of the SDK that answers as much.

The engine, the directory, the bare function and the load each have a process of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import threading
import time
from typing import TYPE_CHECKING, Any

from websockets.asyncio.client import connect
from websockets.sync.client import connect as connect_sync

from benchmarks.harness import Measurement, goal, interleave
from benchmarks.processes import call_frame, engine, process
from benchmarks.trees import path_of, tree

if TYPE_CHECKING:
    from collections.abc import Generator
    from multiprocessing.connection import Connection
    from pathlib import Path

DOCUMENTS = 1000
CALLS = 1000
FLOOD = 4000
IN_FLIGHT = 32
GET = "directory::skills::get"
BARE = "bench::bare"


def directory(report: Connection, url: str, root: Path) -> None:
    """The directory's worker over a folder."""
    from iii_directory.config import Settings
    from iii_directory.worker.main import DirectoryWorker

    worker = DirectoryWorker.started(Settings(skills_folder=root), url)
    report.send(worker.wait_ready(30))
    threading.Event().wait()


def bare_function(report: Connection, url: str, answer: Any) -> None:
    """A worker on the SDK whose one function always gives the same answer."""
    from iii import InitOptions, InvocationError, register_worker

    async def give(data: Any) -> Any:  # noqa: ARG001 (an SDK handler takes its payload)
        return answer

    client = register_worker(url, InitOptions(worker_name="bare", otel={"enabled": False}))
    client.register_function(BARE, give)
    for _ in range(100):
        with contextlib.suppress(InvocationError):
            report.send(client.trigger({"function_id": BARE, "payload": {}}))
            threading.Event().wait()
        time.sleep(0.05)


@contextlib.contextmanager
def stage() -> Generator[str]:
    """An engine with both functions; gives its address."""
    root = tree(DOCUMENTS)
    with process(engine) as url, process(directory, url, root) as ready:
        if not ready:
            raise TimeoutError("the directory is not ready")
        with process(bare_function, url, one_answer(url)):
            yield url


def one_answer(url: str) -> Any:
    """What the directory answers for one document: all of them are as large."""
    with connect_sync(url, compression=None) as peer:
        peer.send(frames(GET, 1)[0])
        while (message := json.loads(peer.recv())).get("type") != "invocationresult":
            pass
    return message["result"]


def frames(function_id: str, count: int) -> list[str]:
    """Calls for one document after another."""
    ids = [path_of(number % DOCUMENTS).removesuffix(".md") for number in range(count)]
    return [call_frame({"id": skill_id}, function_id) for skill_id in ids]


@goal("reading.get-latency", at_most=1.25)
def get_latency() -> Measurement:
    """The median of calls made one at a time."""
    with stage() as url:
        return interleave(lambda: asyncio.run(median(url, GET)), lambda: asyncio.run(median(url, BARE)))


async def median(url: str, function_id: str) -> float:
    seconds: list[float] = []
    async with connect(url, compression=None) as peer:
        await peer.recv()
        for frame in frames(function_id, CALLS):
            start = time.perf_counter()
            await peer.send(frame)
            await peer.recv()
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


@goal("reading.get-throughput", at_least=0.85)
def get_throughput() -> Measurement:
    """Calls a second with 32 in flight."""
    with stage() as url:
        return interleave(lambda: asyncio.run(rate(url, GET)), lambda: asyncio.run(rate(url, BARE)))


async def rate(url: str, function_id: str) -> float:
    calls = frames(function_id, FLOOD)
    async with connect(url, compression=None) as peer:
        await peer.recv()
        start = time.perf_counter()
        for frame in calls[:IN_FLIGHT]:
            await peer.send(frame)
        for frame in calls[IN_FLIGHT:]:
            await peer.recv()
            await peer.send(frame)
        for _ in range(IN_FLIGHT):
            await peer.recv()
        return FLOOD / (time.perf_counter() - start)
