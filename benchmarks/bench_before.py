"""This tree against the commit before the one wire codec, both sides measured in one run.

The earlier commit is unpacked into a temporary directory.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from websockets.frames import Frame, Opcode

from benchmarks.bench_joined import ours, until_answered
from benchmarks.harness import Measurement, goal, interleave
from benchmarks.processes import (
    Answers,
    call_frame,
    delaying_engine,
    earlier,
    echo_worker,
    engine,
    engine_with_echo,
    flood,
    process,
    up_on_disk,
)
from benchmarks.trees import tree

if TYPE_CHECKING:
    from collections.abc import Callable

BEFORE = "06e9513"
MESSAGES = 1000
IN_FLIGHT = 32
ROUNDS = 21
# Long enough that what one side does meanwhile, such as indexing, falls into its own turn.
BURST = 5000
BURST_ROUNDS = 9
DELAYED_ROUNDS = 5
DELAYED_CALLS = 1500
JOINS = 7
KEYS = 5000
PAYLOAD = {"text": "x" * 200}
BODY = f"# A skill\n\nWhat it is for, in a sentence or two.\n\n{'Some words of explanation. ' * 60}\n"
_numbers = itertools.count()


@goal("before.two-hops", at_least=1.15)
def two_hops() -> Measurement:
    """Calls through the engine to a worker and back."""
    return _compared(_engine_and_worker, lambda: call_frame(PAYLOAD))


@goal("before.in-process", at_least=1.3)
def in_process() -> Measurement:
    """Calls of a function inside the engine's process."""
    return _compared(_engine_with_echo, lambda: call_frame(PAYLOAD))


@goal("before.register-in-up", at_least=1.3)
def register_in_up() -> Measurement:
    """``skills::register`` in ``iii-directory up`` with 32 in flight."""
    return _compared(_up, _registration, messages=BURST, rounds=BURST_ROUNDS)


@goal("before.state-set", at_least=1.3)
def state_set() -> Measurement:
    """``state::set`` in ``iii-directory up`` with 32 in flight."""
    return _compared(_up, _write)


@goal("before.delayed-register", at_least=2.5)
def delayed_register() -> Measurement:
    """``skills::register`` one at a time on an engine that delays small frames."""
    root = tree(100)
    with (
        earlier(BEFORE) as source,
        process(delaying_engine) as here,
        process(delaying_engine) as there,
        process(ours, here, root),
        process(ours, there, root, source=source),
    ):
        return interleave(lambda: _one_at_a_time(here), lambda: _one_at_a_time(there), rounds=DELAYED_ROUNDS)


@goal("before.delayed-join", at_most=0.55)
def delayed_join() -> Measurement:
    """From the start of ``serve`` to its first answer, on an engine that delays small frames."""
    with (
        earlier(BEFORE) as source,
        tempfile.TemporaryDirectory() as folder,
        process(delaying_engine) as url,
    ):
        config = Path(folder) / "config.yaml"
        config.write_text(f"skills_folder: {folder}/skills\n", encoding="utf-8")
        start = "import sys; from iii_directory.cli.main import main; main(sys.argv[1:])"
        command = ("-c", start, "serve", "--url", url, "--config", str(config))
        compiled = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        return interleave(
            lambda: until_answered(url, command, compiled),
            lambda: until_answered(url, command, {**compiled, "PYTHONPATH": str(source)}),
            rounds=JOINS,
        )


def _compared(
    served: Callable[[ExitStack, Path | None], str],
    frame: Callable[[], str],
    *,
    messages: int = MESSAGES,
    rounds: int = ROUNDS,
) -> Measurement:
    """The rate of this tree's calls over that of the earlier commit's."""

    def rate(url: str) -> float:
        return messages / flood(url, [frame() for _ in range(messages)], IN_FLIGHT)

    with earlier(BEFORE) as source, ExitStack() as stack:
        here, there = served(stack, None), served(stack, source)
        return interleave(lambda: rate(here), lambda: rate(there), rounds=rounds)


def _engine_and_worker(stack: ExitStack, source: Path | None) -> str:
    url = stack.enter_context(process(engine, source=source))
    stack.enter_context(process(echo_worker, url))
    return url


def _engine_with_echo(stack: ExitStack, source: Path | None) -> str:
    return stack.enter_context(process(engine_with_echo, source=source))


def _up(stack: ExitStack, source: Path | None) -> str:
    data = stack.enter_context(tempfile.TemporaryDirectory())
    return stack.enter_context(process(up_on_disk, Path(data), source=source))


def _registration() -> str:
    number = next(_numbers)
    return call_frame({"id": f"bench/{number % KEYS}", "skill": f"{BODY}\n{number}\n"}, "skills::register")


def _write() -> str:
    key = f"bench/{next(_numbers) % KEYS}"
    return call_frame({"scope": "bare", "key": key, "value": {"id": key, "skill": BODY}}, "state::set")


def _one_at_a_time(url: str) -> float:
    """Registrations in a second, each sent after the answer to the one before."""
    frames = [Frame(Opcode.TEXT, _registration().encode()).serialize(mask=True) for _ in range(DELAYED_CALLS)]
    with closing(Answers(url)) as client:
        client.wait_for(1)
        client.announce()
        began = time.perf_counter()
        for frame in frames:
            client.send([frame])
            client.wait_for(1)
        return len(frames) / (time.perf_counter() - began)
