"""The command on a terminal: what it draws there, and what a terminal must never be sent."""

from __future__ import annotations

import errno
import os
import pty
import re
import subprocess
from typing import TYPE_CHECKING

from tests.support.commands import COMMAND, START_SECONDS, environment

from iii_directory.text import has_unsafe

if TYPE_CHECKING:
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
