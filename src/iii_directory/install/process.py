"""Running one program with everything about it bounded: time, output, disk, and what it can see."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
        return Finished(_wait(process, deadline), output, errors)
    finally:
        _end(process)


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


def _wait(process: subprocess.Popen[bytes], deadline: float) -> int:
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise ProcessStoppedError("it took too long") from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the group, helpers of the program included, and close the pipes."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def folder_size(folder: str) -> int:
    """The bytes of all files below a folder that may change while it is looked at."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total
