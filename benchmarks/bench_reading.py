"""``directory::skills::get`` through the engine, against a bare echo on the same SDK.

The echo is sent what the directory would answer, and sends it back. The engine, the directory, the echo and
the load each have a process of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from websockets.asyncio.client import connect
from websockets.sync.client import connect as connect_sync

from benchmarks.harness import Measurement, goal, interleave, measure
from benchmarks.processes import call_frame, engine, flood, process
from benchmarks.trees import path_of, tree

if TYPE_CHECKING:
    from collections.abc import Generator
    from multiprocessing.connection import Connection

DOCUMENTS = 1000
# Many short rounds: on a busy machine each meets the same weather on both sides.
CALLS = 200
FLOOD = 1000
ROUNDS = 31
IN_FLIGHT = 32
GET = "directory::skills::get"
ECHO = "bench::echo"
# A listing by namespace: of so many documents, one namespace.
MANY = 10_000
LIST = "directory::skills::list"
SAME = "bench::same"


def directory(report: Connection, url: str, root: Path, usage: bool = True, data: Path | None = None) -> None:
    """The directory's worker over a folder."""
    from iii_directory.config import Settings
    from iii_directory.worker.directory_worker import DirectoryWorker

    worker = DirectoryWorker.join(Settings(skills_folder=root, usage=usage), url, data=data)
    report.send(worker.wait_ready(30))
    threading.Event().wait()


def echo(report: Connection, url: str) -> None:
    """A worker on the SDK whose one function answers with its payload."""
    from iii import InitOptions, InvocationError, register_worker

    kept: list[Any] = []

    async def give_back(data: Any) -> Any:
        return data

    async def give_the_same(data: Any) -> Any:
        if data:
            kept[:] = [data]
        return kept[0]

    client = register_worker(url, InitOptions(worker_name="echo", otel={"enabled": False}))
    client.register_function(ECHO, give_back)
    client.register_function(SAME, give_the_same)
    for _ in range(100):
        with contextlib.suppress(InvocationError):
            report.send(client.trigger({"function_id": ECHO, "payload": {}}))
            threading.Event().wait()
        time.sleep(0.05)


@contextlib.contextmanager
def stage(documents: int = DOCUMENTS) -> Generator[tuple[str, Any]]:
    """An engine with both functions; gives its address, and an answer of the directory."""
    root = tree(documents)
    with process(engine) as url, process(directory, url, root) as ready, process(echo, url):
        if not ready:
            raise TimeoutError("the directory is not ready")
        yield url, answer_to(url, reads(1)[0])


def answer_to(url: str, call: str) -> Any:
    """What one call answers; those for single documents are all as large."""
    with connect_sync(url, compression=None) as peer:
        peer.send(call)
        while (message := json.loads(peer.recv())).get("type") != "invocationresult":
            pass
    return message["result"]


def reads(count: int) -> list[str]:
    """Calls for one document after another."""
    ids = [path_of(number % DOCUMENTS).removesuffix(".md") for number in range(count)]
    return [call_frame({"id": skill_id}, GET) for skill_id in ids]


def echoes(count: int, answer: Any) -> list[str]:
    return [call_frame(answer, ECHO) for _ in range(count)]


@goal("reading.get-latency", at_most=1.25)
def get_latency() -> Measurement:
    """The median of calls made one at a time."""
    with stage() as (url, answer):
        return interleave(
            lambda: asyncio.run(median(url, reads(CALLS))),
            lambda: asyncio.run(median(url, echoes(CALLS, answer))),
            rounds=ROUNDS,
        )


@measure("reading.list-of-one-namespace")
def list_of_one_namespace() -> Measurement:
    """20 rows among 10,000, against a bare function that answers the same bytes."""
    with stage(MANY) as (url, _):
        listing = call_frame({"prefix": path_of(MANY // 2).partition("/")[0] + "/"}, LIST)
        answer_to(url, call_frame(answer_to(url, listing), SAME))
        return interleave(
            lambda: asyncio.run(median(url, [listing] * CALLS)),
            lambda: asyncio.run(median(url, [call_frame({}, SAME)] * CALLS)),
            rounds=ROUNDS,
        )


@measure("reading.counting-usage")
def counting_usage() -> Measurement:
    """Processor time of a directory that counts and writes what is read, against one that does not."""
    root = tree(DOCUMENTS)
    with (
        tempfile.TemporaryDirectory() as data,
        process(engine) as counting,
        process(engine) as plain,
        process(directory, counting, root, True, Path(data)),
        process(directory, plain, root, False, None),
    ):
        # The children in the order in which they were started: two engines, then both directories.
        *_, of_counting, of_plain = sorted(child.pid or 0 for child in multiprocessing.active_children())
        return interleave(
            lambda: processor_seconds(of_counting, counting),
            lambda: processor_seconds(of_plain, plain),
            rounds=ROUNDS,
        )


def processor_seconds(pid: int, url: str) -> float:
    """The processor time that a directory takes for some calls; a busy machine does not change it."""
    before = _on_processor(pid)
    for _ in range(4):
        flood(url, reads(FLOOD), IN_FLIGHT)
    return _on_processor(pid) - before


def _on_processor(pid: int) -> float:
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


async def median(url: str, calls: list[str]) -> float:
    seconds: list[float] = []
    async with connect(url, compression=None) as peer:
        await peer.recv()
        for call in calls:
            start = time.perf_counter()
            await peer.send(call)
            await peer.recv()
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


@measure("reading.get-throughput")
def get_throughput() -> Measurement:
    """Calls a second with 32 in flight."""
    with stage() as (url, answer):
        return interleave(
            lambda: rate(url, reads(FLOOD)),
            lambda: rate(url, echoes(FLOOD, answer)),
            rounds=ROUNDS,
        )


def rate(url: str, calls: list[str]) -> float:
    return len(calls) / flood(url, calls, IN_FLIGHT)
