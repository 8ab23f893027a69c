"""Registered skills: reads leave the state alone; and what a registration costs beside the bare write."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iii import InitOptions, InvocationError
from iii.iii import III

from benchmarks.bench_search_start import until_complete
from benchmarks.harness import Measurement, goal, interleave, measure, repeat, timed
from benchmarks.processes import (
    call_frame,
    engine,
    engine_with_directory,
    flood,
    process,
    run_up,
    subscribers,
    up_on_disk,
)
from benchmarks.trees import make_tree, path_of
from iii_directory.config import Settings
from iii_directory.engine.server import EngineServer
from iii_directory.worker.directory_worker import DirectoryWorker

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

SKILLS = 10_000
READS = 20
CALLS = 600
READS_AFTER = 2000
IN_FLIGHT = 32
BODY = f"# A skill\n\nWhat it is for, in a sentence or two.\n\n{'Some words of explanation. ' * 60}\n"
READY_SECONDS = 60.0
GOOD = ("bench::one", "bench::two", "bench::three")
BAD = ("bench::never", "bench::throws", "bench::gone")
_numbers = itertools.count()


@measure("registered.state-calls-per-read", unit="/rd")
def state_calls_per_read() -> Measurement:
    """Calls of ``state::*`` while lists, the index and bodies are read from among ten thousand."""
    counter: Any = multiprocessing.get_context("spawn").Value("i", 0)
    with process(counting_engine, counter) as url, process(directory, url):
        client = sdk_client(url)
        run(client, [registration(number) for number in range(SKILLS)])
        before, notes = counter.value, list[str]()
        for function_id, payload in READ_CALLS:
            start = time.perf_counter()
            for _ in range(READS):
                client.trigger({"function_id": function_id, "payload": payload, "timeout_ms": 60_000})
            milliseconds = (time.perf_counter() - start) / READS * 1000
            notes.append(f"{function_id} {payload or ''}: {milliseconds:.1f} ms a call")
        client.shutdown()
    # The state was written, so the counter counts.
    if before < SKILLS:
        raise RuntimeError(f"only {before} calls of the state were counted")
    return Measurement(((counter.value - before) / (READS * len(READ_CALLS)),), tuple(notes))


@measure("registered.register")
def register() -> Measurement:
    """``skills::register`` against a client's own ``state::set``, on the engine of ``iii-directory up``."""
    with process(engine_with_directory) as url:
        client = sdk_client(url)
        measured = against(client, direct_write, rounds=15)
        client.shutdown()
    with process(engine) as url, process(directory, url), process(bare_worker, url):
        client = sdk_client(url)
        direct, relayed = against(client, direct_write, rounds=3), against(client, bare_write, rounds=5)
        client.shutdown()
    note = (
        f"{direct.median:.2f} where the directory is a process of its own; "
        f"{relayed.median:.2f} of a worker there that only passes the write on"
    )
    return Measurement(measured.values, (note,))


@goal("registered.read-after-burst", at_most=1.1)
def read_after_burst() -> Measurement:
    """Reads one at a time right after 10,000 registrations, against reads once everything is indexed."""
    with tempfile.TemporaryDirectory() as data, process(up_on_disk, Path(data)) as url:

        def seconds() -> float:
            frames = [read_frame(number) for number in range(READS_AFTER)]
            return flood(url, frames, 1) / READS_AFTER

        ratios: list[float] = []
        for _ in range(3):
            flood(url, [registration_frame(number) for number in range(SKILLS)], IN_FLIGHT)
            after = seconds()
            until_complete(url)
            ratios.append(after / seconds())
    return Measurement(tuple(ratios))


def against(client: Any, call: Callable[[int], tuple[str, dict[str, Any]]], *, rounds: int) -> Measurement:
    """How many registrations are made in the time of one other call."""
    return interleave(lambda: rate(client, registration), lambda: rate(client, call), rounds=rounds)


@measure("registered.other-instance", unit="ms")
def other_instance() -> Measurement:
    """From the call that registers through one directory to the read of it through another."""
    with process(engine) as url, process(directory, url), process(directory, url, "two"):
        client = sdk_client(url)
        measured = repeat(lambda: milliseconds_until_seen(client), rounds=50)
        client.shutdown()
    return measured


@goal("registered.external-edit", at_most=1000, unit="ms")
def external_edit() -> Measurement:
    """From an edit of one of 10,000 documents on disk to the event that a subscriber hears."""
    with tempfile.TemporaryDirectory() as folder:
        make_tree(Path(folder), SKILLS)
        with process(run_up, Path(folder)) as url:
            client, told = sdk_client(url), threading.Event()

            async def heard(event: dict[str, Any]) -> None:
                if event["op"] == "external":
                    told.set()

            client.register_function("bench::heard", heard)
            bind(client, "directory::skills::on-change", "bench::heard")
            measured = repeat(lambda: milliseconds_until_told(Path(folder), told, 1), rounds=15)
            many = repeat(lambda: milliseconds_until_told(Path(folder), told, 1000), rounds=3)
            client.shutdown()
    return Measurement(measured.values, (f"{many.median:.0f} ms from the first of 1,000 edits at once",))


def milliseconds_until_told(folder: Path, told: threading.Event, edits: int) -> float:
    # Those of the last time have been told of: what follows an event in a moment would be another one.
    time.sleep(1.0)
    told.clear()
    start = time.perf_counter()
    for number in range(edits):
        (folder / path_of(number)).write_text(f"# Edited {next(_numbers)}\n", encoding="utf-8")
    if not told.wait(READY_SECONDS):
        raise TimeoutError("nobody was told of the edit")
    return (time.perf_counter() - start) * 1000


@measure("registered.bad-subscribers")
def bad_subscribers() -> Measurement:
    """A registration with subscribers that never answer, throw, or are gone, against one without any."""
    with ExitStack() as opened:
        bad, good, none = (writes_with(opened, functions) for functions in (BAD, GOOD, ()))
        measured = interleave(bad, none, rounds=9)
        among = interleave(bad, good, rounds=5)
    return Measurement(measured.values, (f"{among.median:.2f} times as long as with three good ones",))


def writes_with(opened: ExitStack, functions: tuple[str, ...]) -> Callable[[], float]:
    """Registrations one after the other on an engine and a directory of their own, with these subscribers."""
    url = opened.enter_context(process(engine_with_directory))
    bindings = [("skills::on-change", function_id) for function_id in functions]
    opened.enter_context(process(subscribers, url, bindings))
    client = sdk_client(url)
    opened.callback(client.shutdown)
    return timed(lambda: run(client, [registration(next(_numbers))]), times=100)


def milliseconds_until_seen(client: Any) -> float:
    function_id, payload = registration(next(_numbers))
    read = {"function_id": "directory::skills::get", "payload": {"id": payload["id"]}, "namespace": "two"}
    start = time.perf_counter()
    client.trigger({"function_id": function_id, "payload": payload})
    while True:
        try:
            client.trigger(read)
        except InvocationError:
            continue
        return (time.perf_counter() - start) * 1000


READ_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("skills::list", {}),
    ("directory::skills::list", {"search": "skill-77"}),
    ("skills::resources-list", {}),
    ("skills::resources-read", {"uri": "iii://skills"}),
    ("skill::fetch", {"uri": "iii://bench/skill-7"}),
    ("directory::skills::get", {"id": "bench/skill-7"}),
)


def registration_frame(number: int) -> str:
    function_id, payload = registration(number)
    return call_frame({**payload, "skill": f"{BODY}\n{next(_numbers)}\n"}, function_id)


def read_frame(number: int) -> str:
    return call_frame({"id": f"bench/skill-{number}"}, "directory::skills::get")


def registration(number: int) -> tuple[str, dict[str, Any]]:
    return "skills::register", {"id": f"bench/skill-{number}", "skill": BODY}


def bare_write(number: int) -> tuple[str, dict[str, Any]]:
    return "bench::set", {"id": f"bench/skill-{number}", "skill": BODY}


def direct_write(number: int) -> tuple[str, dict[str, Any]]:
    key = f"bench/skill-{number}"
    return "state::set", {"scope": "bare", "key": key, "value": record(key, BODY)}


def record(key: str, body: str) -> dict[str, str]:
    return {"id": key, "skill": body, "registered_at": "2026-01-01T00:00:00.000000Z"}


def rate(client: Any, call: Callable[[int], tuple[str, dict[str, Any]]]) -> float:
    """Calls a second, several in flight, each for a key of its own."""
    calls = [call(next(_numbers)) for _ in range(CALLS)]
    start = time.perf_counter()
    run(client, calls)
    return CALLS / (time.perf_counter() - start)


def run(client: Any, calls: list[tuple[str, dict[str, Any]]]) -> None:
    asyncio.run_coroutine_threadsafe(_run(client, calls), client._loop).result()


async def _run(client: Any, calls: list[tuple[str, dict[str, Any]]]) -> None:
    waiting = iter(calls)

    async def one_after_the_other() -> None:
        for function_id, payload in waiting:
            request = {"function_id": function_id, "payload": payload, "timeout_ms": 60_000}
            await client.trigger_async(request)

    await asyncio.gather(*(one_after_the_other() for _ in range(IN_FLIGHT)))


def sdk_client(url: str, name: str = "bench-client") -> Any:
    client: Any = III(url, InitOptions(worker_name=name, otel={"enabled": False}))
    client._wait_until_connected()
    return client


# Processes


def counting_engine(report: Connection, counter: Any) -> None:
    """The embedded engine, in memory, which counts the calls of ``state::*``."""

    async def main() -> None:
        server = EngineServer(port=0)
        builtins = server._router.calls.builtins
        for function_id in [known for known in builtins if known.startswith("state::")]:
            builtins[function_id] = counted(builtins[function_id], counter)
        await server.start()
        report.send(server.url)
        await asyncio.Future()

    asyncio.run(main())


def counted(function: Callable[[Any], Any], counter: Any) -> Callable[[Any], Any]:
    def call(request: Any) -> Any:
        counter.value += 1
        return function(request)

    return call


def directory(report: Connection, url: str, namespace: str | None = None) -> None:
    """The directory's worker over an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        worker = DirectoryWorker.join(Settings(skills_folder=Path(folder)), url, namespace=namespace)
        if not worker.wait_ready(READY_SECONDS):
            raise TimeoutError("the directory did not start")
        report.send("ready")
        threading.Event().wait()


def bind(client: Any, trigger_type: str, function_id: str, **config: str) -> None:
    """Bind, and wait until the engine has it."""
    client.register_trigger({"type": trigger_type, "function_id": function_id, "config": config})
    asked = {"function_id": "engine::registered-triggers::list", "payload": {"function_id": function_id}}
    while not client.trigger(asked)["registered_triggers"]:
        time.sleep(0.01)


def bare_worker(report: Connection, url: str) -> None:
    """A worker that does nothing but write to the state, and hears of it as every keeper of a copy must."""
    client = sdk_client(url, "bare")

    async def write(data: Any) -> dict[str, Any]:
        value = record(data["id"], data["skill"])
        payload = {"scope": "followed", "key": data["id"], "value": value}
        await client.trigger_async({"function_id": "state::set", "payload": payload, "timeout_ms": 60_000})
        return {"id": data["id"], "registered_at": value["registered_at"]}

    async def heard(_: Any) -> None:
        return None

    client.register_function("bench::set", write)
    client.register_function("bench::heard", heard)
    bind(client, "state", "bench::heard", scope="followed")
    report.send("ready")
    threading.Event().wait()
