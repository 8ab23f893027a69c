"""A light client beside a heavy one, on the engine of ``iii-directory up``: no call holds the loop for long.

The light client asks for one skill after another and notes how long each answer takes. In every round it does
so alone and then beside the heavy one. What counts is the slowest hundredth beside, as a share of what is
allowed: twice as long as alone, or ten milliseconds if that is more.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from websockets.frames import Frame, Opcode

from benchmarks.harness import Measurement, goal, measure, repeat
from benchmarks.processes import Answers, call_frame, process, run_up
from benchmarks.trees import path_of, tree
from iii_directory.limits import MAX_FETCH_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

DOCUMENTS = 10_000
LARGE = 100
LARGE_BYTES = 256 * 1024
# From just above what is decoded at once to just below what one frame may have.
VALUES_BYTES = (4_000_000, 8_000_000, 16_000_000)
CALLS = 400
ROUNDS = 3
CLIENTS = 5_000
ALLOWED_SECONDS = 0.010


@measure("beside.registering")
def registering() -> Measurement:
    """Register skills of 256 KiB, one after the other."""
    return _beside(register_large)


@goal("beside.listing", at_most=1.0)
def listing() -> Measurement:
    """List 10,000 documents, eight times at once."""
    return _beside(list_everything)


@goal("beside.fetching", at_most=1.0)
def fetching() -> Measurement:
    """Fetch a hundred documents of 256 KiB in one call, too many, and then as many as fit."""
    return _beside(fetch_large)


@goal("beside.values", at_most=1.0)
def values() -> Measurement:
    """Another client writes and reads values of 4, 8 and 16 MB in the state."""
    return _beside(set_and_get)


@measure("beside.messages")
def messages() -> Measurement:
    """Send what takes long to read: a long text, a junk field, a message that is invalid JSON at its end."""
    return _beside(send_long)


@measure("beside.missing")
def missing() -> Measurement:
    """Ask for missing documents, which is answered with close names."""
    return _beside(miss)


@measure("beside.clients-5000", unit="err")
def clients() -> Measurement:
    """Clients that ask for a skill at the same time and are not answered with it."""
    with tempfile.TemporaryDirectory() as data, process(up, _folder(), data) as url:
        return repeat(lambda: _unanswered(url), rounds=1)


def _beside(heavy: Callable[[Connection, str], None]) -> Measurement:
    notes: list[str] = []
    shares: list[float] = []
    with tempfile.TemporaryDirectory() as data, process(up, _folder(), data) as url:
        _slowest(url)
        for _ in range(ROUNDS):
            alone = _slowest(url)
            with process(heavy, url):
                beside = _slowest(url)
            shares.append(beside / max(2 * alone, ALLOWED_SECONDS))
            notes.append(f"p99 alone {alone * 1e3:.1f} ms, beside {beside * 1e3:.1f} ms")
    return Measurement(tuple(shares), tuple(notes))


def _slowest(url: str) -> float:
    """The seconds of which a hundredth of the answers needs more."""
    taken: list[float] = []
    with contextlib.closing(Answers(url)) as light:
        light.wait_for(1)
        for number in range(CALLS):
            frame = _frame({"id": path_of(number).removesuffix(".md")}, "directory::skills::get")
            start = time.perf_counter()
            light.send([frame])
            light.wait_for(1)
            taken.append(time.perf_counter() - start)
    return sorted(taken)[-CALLS // 100]


def _unanswered(url: str) -> float:
    """How many of so many clients do not get what they ask for."""
    from iii_directory.cli.processes import raised_file_limit

    raised_file_limit()
    asked = _frame({"id": path_of(0).removesuffix(".md")}, "directory::skills::get")
    failed = 0
    with contextlib.ExitStack() as stack:
        all_of_them = [stack.enter_context(contextlib.closing(Answers(url))) for _ in range(CLIENTS)]
        for client in all_of_them:
            client.send([asked])
        for client in all_of_them:
            # The welcome and the answer, which is an error if it is short.
            failed += client.wait_for(2) != 2 or client.bytes_read < 1_000
    return failed


def _folder() -> Path:
    """The documents: 10,000 small ones and a hundred large ones."""
    root = tree(DOCUMENTS)
    large = root / "large"
    if not large.exists():
        large.mkdir()
        for number in range(LARGE):
            (large / f"part-{number}.md").write_text(f"# Part {number}\n\n{'x' * (LARGE_BYTES - 100)}\n")
    return root


def _frame(payload: dict[str, Any], function_id: str) -> bytes:
    return Frame(Opcode.TEXT, call_frame(payload, function_id).encode()).serialize(mask=True)


# In processes of their own


def up(report: Connection, root: Path, data: str) -> None:
    """The engine with the directory inside it, on a database, as ``iii-directory up`` has them."""
    from iii_directory.cli.processes import raised_file_limit
    from iii_directory.engine.sqlite_store import Database

    raised_file_limit()
    run_up(report, root, Database(Path(data)))


def register_large(report: Connection, url: str) -> None:
    body = f"# Large\n\n{'x' * (LARGE_BYTES - 200)}\n"
    frames = [_frame({"id": f"heavy/{n}", "skill": body}, "skills::register") for n in range(8)]
    _for_ever(report, url, frames, in_flight=1)


def list_everything(report: Connection, url: str) -> None:
    _for_ever(report, url, [_frame({}, "skills::list")], in_flight=8)


def fetch_large(report: Connection, url: str) -> None:
    uris = [f"iii://large/part-{number}" for number in range(LARGE)]
    fitting = uris[: MAX_FETCH_BYTES // LARGE_BYTES - 1]
    frames = [_frame({"uris": some}, "skill::fetch") for some in (uris, fitting)]
    _for_ever(report, url, frames, in_flight=1)


def set_and_get(report: Connection, url: str) -> None:
    place = {"scope": "heavy", "key": "value"}
    frames: list[bytes] = []
    for size in VALUES_BYTES:
        frames += [_frame({**place, "value": _rows(size)}, "state::set"), _frame(place, "state::get")]
    _for_ever(report, url, frames, in_flight=1)


def send_long(report: Connection, url: str) -> None:
    place = {"scope": "heavy", "key": "text"}
    frames: list[bytes] = []
    for size in VALUES_BYTES:
        broken = call_frame({**place, "rows": _rows(size)}, "state::set")[:-2] + "]}}"
        frames += [
            _frame({**place, "value": "x" * size}, "state::set"),
            _frame({**place, "junk": _rows(size)}, "state::get"),
            _frame({"id": "a/" * (size // 4)}, "directory::skills::get"),
            Frame(Opcode.TEXT, broken.encode()).serialize(mask=True),
        ]
    _for_ever(report, url, frames, in_flight=1)


def _rows(size: int) -> list[dict[str, Any]]:
    """Return rows that take about so many bytes as JSON."""
    return [{"number": number, "text": "x" * 80} for number in range(size // 110)]


def miss(report: Connection, url: str) -> None:
    names = [f"worker-{number}/stp-{number * 20}" for number in range(50)]
    _for_ever(report, url, [_frame({"id": name}, "directory::skills::get") for name in names], in_flight=8)


def _for_ever(report: Connection, url: str, frames: list[bytes], *, in_flight: int) -> None:
    """Send frames over and over, with so many of them under way."""
    heavy = Answers(url)
    heavy.wait_for(1)
    turns = _over_and_over(frames)
    heavy.send([next(turns) for _ in range(in_flight)])
    heavy.wait_for(1)
    report.send("busy")
    came = 1
    while True:
        heavy.send([next(turns) for _ in range(came)])
        came = heavy.wait_for(1)


def _over_and_over(frames: list[bytes]) -> Iterator[bytes]:
    while True:
        yield from frames
