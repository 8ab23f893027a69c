"""The directory joined to an engine over a socket: its own bus against the published SDK's.

The engines, the directories and the load each have a process of their own; the directories serve the same
folder, each on an engine of its own.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from websockets.frames import Frame, Opcode
from websockets.sync.client import connect

from benchmarks.harness import Measurement, goal, interleave, measure, repeat
from benchmarks.processes import Answers, call_frame, engine, flood, process, settle, worker_module
from benchmarks.trees import path_of, tree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection

    from iii_directory.worker.directory_worker import DirectoryWorker

DOCUMENTS = 1000
IN_FLIGHT = 32
# Which of the processes share a core is luck, and changes from one round to the next.
ROUNDS = 31
STARTS = 5
READY_SECONDS = 30.0
BODY = f"# A skill\n\nWhat it is for, in a sentence or two.\n\n{'Some words of explanation. ' * 60}\n"
_numbers = itertools.count()


@goal("joined.list-1000", at_least=4.0)
def list_1000() -> Measurement:
    """``skills::list`` of 1,000 documents: how many are answered in the time of one through the SDK."""
    return _compared(lambda: [call_frame({}, "skills::list") for _ in range(4 * IN_FLIGHT)])


@goal("joined.resources-read", at_least=2.0)
def resources_read() -> Measurement:
    """``skills::resources-read`` with 32 in flight."""
    uris = [f"iii://{path_of(number).removesuffix('.md')}" for number in range(DOCUMENTS)]
    return _compared(lambda: [call_frame({"uri": uri}, "skills::resources-read") for uri in 2 * uris])


@goal("joined.register", at_least=2.0)
def register() -> Measurement:
    """``skills::register`` with 32 in flight."""
    return _compared(lambda: [_registration(next(_numbers)) for _ in range(10 * IN_FLIGHT)])


@goal("joined.start", at_most=0.4)
def start() -> Measurement:
    """From the start of ``iii-directory serve`` to its first answer, against one that imports the SDK.

    Both with their modules compiled, as an installed package has them, and started as its command is.
    """
    by_us = "import sys; from iii_directory.cli.main import main; main(sys.argv[1:])"
    by_sdk = "import sys; from benchmarks.bench_joined import serve_by_sdk as serve; serve(sys.argv[1:])"
    with tempfile.TemporaryDirectory() as folder, process(engine) as url:
        config = Path(folder) / "config.yaml"
        config.write_text(f"skills_folder: {folder}/skills\n", encoding="utf-8")
        options = ("serve", "--url", url, "--config", str(config))
        compiled = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        return interleave(
            lambda: until_answered(url, ("-c", by_us, *options), compiled),
            lambda: until_answered(url, ("-c", by_sdk, *options), compiled),
            rounds=STARTS,
        )


@measure("joined.delayed-calls")
def delayed_calls() -> Measurement:
    """Calls one at a time on an engine that delays small frames: the rate against that without quick ACKs."""
    from tests.bus.test_stalls import Joined

    from iii_directory.wire import message_socket

    quick = message_socket._QUICKACK

    with ExitStack() as stack:
        joined = Joined(stack, nagle=True)

        def rate(option: int | None) -> float:
            message_socket._QUICKACK = option  # pyright: ignore[reportConstantRedefinition]
            return 1 / statistics.median(joined.seconds() for _ in range(40))

        return interleave(lambda: rate(quick), lambda: rate(None), rounds=5)


@goal("joined.delayed-register", at_most=5, unit="ms")
def delayed_register() -> Measurement:
    """The slowest hundredth of ``skills::register`` one at a time, on an engine that delays small frames."""
    from tests.support.engine import EngineThread

    with EngineThread(nagle=True) as engine, process(ours, engine.url, tree(DOCUMENTS)):

        def slowest() -> float:
            taken: list[float] = []
            with closing(Answers(engine.url)) as client:
                client.wait_for(1)
                client.announce()
                for _ in range(300):
                    text = _registration(next(_numbers)).encode()
                    began = time.perf_counter()
                    client.send([Frame(Opcode.TEXT, text).serialize(mask=True)])
                    client.wait_for(1)
                    taken.append(time.perf_counter() - began)
            return sorted(taken)[-len(taken) // 100] * 1e3

        return repeat(slowest, rounds=5)


def _compared(frames: Callable[[], list[str]]) -> Measurement:
    """The rate of calls of ours over that of the SDK's."""
    root = tree(DOCUMENTS)
    with (
        process(engine) as here,
        process(ours, here, root),
        process(engine) as there,
        process(by_the_sdk, there, root),
    ):

        def rate(url: str) -> float:
            sent = frames()
            return len(sent) / flood(url, sent, IN_FLIGHT)

        return interleave(lambda: rate(here), lambda: rate(there), rounds=ROUNDS)


def _registration(number: int) -> str:
    return call_frame({"id": f"bench/{number}", "skill": BODY}, "skills::register")


def until_answered(url: str, command: Sequence[str], environment: dict[str, str]) -> float:
    """The seconds from the start of a program to the first answer of its directory."""
    began = time.perf_counter()
    program = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    try:
        with connect(url, compression=None) as peer:
            peer.recv()
            while time.perf_counter() - began < READY_SECONDS:
                peer.send(call_frame({}, "directory::skills::list"))
                if '"error"' not in str(peer.recv())[:200]:
                    return time.perf_counter() - began
                time.sleep(0.002)
    finally:
        program.kill()
        program.wait()
    raise TimeoutError("the directory did not start")


# In processes of their own


def ours(report: Connection, url: str, root: Path) -> None:
    """The directory on its own bus."""
    from iii_directory.config import Settings

    worker = worker_module().DirectoryWorker.join(Settings(skills_folder=root), url)
    _ready(report, worker)
    threading.Event().wait()


def _ready(report: Connection, worker: DirectoryWorker) -> None:
    is_ready = worker.wait_ready(READY_SECONDS)
    settle()
    report.send(is_ready)


def by_the_sdk(report: Connection, url: str, root: Path) -> None:
    """The directory on the SDK."""
    from benchmarks.sdk_bus import SdkBus
    from iii_directory.config import Settings
    from iii_directory.worker.directory_worker import DirectoryWorker

    bus = SdkBus(url, name="bench-directory", description="")
    worker = DirectoryWorker.run_on(cast("Any", bus), Settings(skills_folder=root))
    _ready(report, worker)
    threading.Event().wait()


def serve_by_sdk(arguments: list[str]) -> None:
    """``iii-directory serve``, on the SDK."""
    from benchmarks.sdk_bus import SdkBus
    from iii_directory.cli.main import main

    # In its place from the start, so that the other one is not imported at all.
    sys.modules["iii_directory.bus.wire_bus"] = cast("Any", SimpleNamespace(WireBus=SdkBus))
    main(arguments)
