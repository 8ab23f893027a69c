"""The command on a terminal: what it draws there, and what a terminal must never be sent."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from typing import TYPE_CHECKING

from tests.support.commands import COMMAND, START_SECONDS, environment
from tests.support.engine import WAIT

from iii_directory.text import has_unsafe

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

# Colours and weights are the only sequences we draw with.
STYLE = re.compile(r"\x1b\[[0-9;]*m")


def on_a_terminal(
    *arguments: str, cwd: Path, lines: int = 1000, columns: int = 100, code: int = 0, **env: str
) -> str:
    """Run to the end with its output on a terminal of that size, and give what arrived there."""
    ours, theirs = pty.openpty()
    size = {"LINES": str(lines), "COLUMNS": str(columns), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [COMMAND, *arguments],
        cwd=cwd,
        env=environment(**{**size, **env}),
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    with os.fdopen(ours, "rb") as screen:
        drawn = _everything(screen.fileno())
    assert process.wait(START_SECONDS) == code, process.communicate()[1]
    if process.stderr is not None:
        process.stderr.close()
    return drawn.decode("utf-8").replace("\r\n", "\n")


class Terminal:
    """A command in the foreground of a terminal: with a size, a keyboard and Ctrl-C; see `at_a_terminal`."""

    def __init__(self, process: subprocess.Popen[bytes], ours: int) -> None:
        self.process = process
        self._ours = ours
        self._drawn = b""

    @property
    def screen(self) -> str:
        """Everything that was drawn until now, as one reads it."""
        return words(self._drawn.decode("utf-8", "replace").replace("\r\n", "\n"))

    @property
    def raw(self) -> bytes:
        return self._drawn

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def wait_for(self, text: str, seconds: float = START_SECONDS) -> str:
        """What was drawn, as soon as the text is among it."""
        deadline = time.monotonic() + seconds
        while text not in self.screen:
            if not self._read(deadline):
                raise AssertionError(f"{text!r} was not drawn:\n{self.screen}")
        return self.screen

    def end(self, seconds: float = WAIT) -> int:
        """Wait for the end, and give the exit code."""
        deadline = time.monotonic() + seconds
        while self._read(deadline):
            pass
        return self.process.wait(max(0.1, deadline - time.monotonic()))

    def _read(self, deadline: float) -> bool:
        """Take in what is drawn next; False when nothing more comes."""
        if not select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return False
        try:
            piece = os.read(self._ours, 65536)
        except OSError:
            return False
        self._drawn += piece
        return bool(piece)


@contextlib.contextmanager
def at_a_terminal(
    *arguments: str, cwd: Path, lines: int = 24, columns: int = 80, **env: str
) -> Generator[Terminal]:
    """A command with a terminal of its own, where it may wait for keys; killed at the end if it runs."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    inherited = environment(**{"TERM": "xterm-256color", **env})
    for name in ("LINES", "COLUMNS", "LESS", "PAGER", "NO_COLOR"):
        if name not in env:
            inherited.pop(name, None)
    process = subprocess.Popen(
        [COMMAND, *arguments],
        cwd=cwd,
        env=inherited,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        # Ctrl-C and a pager's keys need a terminal that is the session's own.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(WAIT)
        os.close(ours)


def _everything(descriptor: int) -> bytes:
    pieces: list[bytes] = []
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError as error:
            if error.errno == errno.EIO:  # how Linux says that the other end is closed
                break
            raise
        if not piece:
            break
        pieces.append(piece)
    return b"".join(pieces)


def is_harmless(drawn: str) -> bool:
    """Whether a terminal does nothing with this but show it."""
    return not has_unsafe(STYLE.sub("", drawn).replace("\n", ""))


def words(drawn: str) -> str:
    """What one reads, without colours and widths."""
    return "\n".join(line.rstrip() for line in STYLE.sub("", drawn).split("\n"))
