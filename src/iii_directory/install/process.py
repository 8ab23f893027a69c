"""Run programs and blocking functions with bounds: on time, output and disk, and on how many at once."""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Final, ParamSpec, TypeVar

from iii_directory import limits
from iii_directory.errors import DirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from iii_directory.errors import ErrorKind

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_TICK: Final = 0.1
_PIECE: Final = 65536


class ProcessStoppedError(Exception):
    """The program was ended before it was done: it took too long, said too much or filled the disk."""


class TooMuchOutputError(ProcessStoppedError):
    """It said more than was asked for."""


@dataclass(frozen=True, slots=True)
class Finished:
    code: int
    output: bytes
    errors: bytes


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: str,
    deadline: float,
    max_output: int,
    max_errors: int,
    sent: bytes = b"",
    watch: Callable[[], str | None] = lambda: None,
) -> Finished:
    """Run to the end, or kill the whole process group at a monotonic deadline or when ``watch`` objects.

    Output past ``max_output`` ends the program too; errors past ``max_errors`` are not kept. ``sent`` is the
    program's standard input, in a file, so that neither side ever waits for the other.
    """
    with tempfile.TemporaryFile() as given:
        given.write(sent)
        given.seek(0)
        process = subprocess.Popen(
            command,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
    assert process.stdout and process.stderr  # noqa: S101, PT018 - they are pipes
    try:
        output, errors = _collect(process.stdout, process.stderr, deadline, max_output, max_errors, watch)
        return Finished(process.wait(max(0.0, deadline - time.monotonic())), output, errors)
    except subprocess.TimeoutExpired:
        raise ProcessStoppedError("it took too long") from None
    finally:
        # Kill what is left of the group, helpers of the program included.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stderr.close()


def _collect(
    output: IO[bytes],
    errors: IO[bytes],
    deadline: float,
    max_output: int,
    max_errors: int,
    watch: Callable[[], str | None],
) -> tuple[bytes, bytes]:
    kept: dict[IO[bytes], bytearray] = {output: bytearray(), errors: bytearray()}
    with selectors.DefaultSelector() as selector:
        for stream in kept:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            objection = "it took too long" if left <= 0 else watch()
            if objection is not None:
                raise ProcessStoppedError(objection)
            for key, _ in selector.select(min(left, _TICK)):
                piece = os.read(key.fd, _PIECE)
                if not piece:
                    selector.unregister(key.fileobj)
                kept[output if key.fd == output.fileno() else errors] += piece
            if len(kept[output]) > max_output:
                raise TooMuchOutputError("it said too much")
            del kept[errors][max_errors:]
    return bytes(kept[output]), bytes(kept[errors])


def folder_size(folder: str) -> int:
    """Sum the bytes of all files below a folder, which may change meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


class Threads:
    """A few threads for blocking work of one kind; calls wait for a free one.

    Git may wait a minute for a host that does not answer. In the event loop's own pool, a few such downloads
    would delay every reader that has files to look at.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._pool = ThreadPoolExecutor(limits.PARALLEL_DOWNLOADS, thread_name_prefix=f"iii-directory-{name}")
        self._under_way = 0

    async def run(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run the work; once it has begun it goes on to its end, also when the caller is cancelled."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args, **kwargs))

    @contextmanager
    def room(self, most: int, kind: ErrorKind) -> Generator[None]:
        """Count one operation that is under way; raise an error of ``kind`` when there are too many."""
        if self._under_way >= most:
            problem = f"{self._under_way} {self._name}s are under way already; nothing was changed"
            raise DirectoryError(kind, problem)
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    def close(self) -> None:
        """Drop work that has not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)
