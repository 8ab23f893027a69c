"""The command line, killed at a file operation of an install: ``OPERATION NUMBER ARGUMENT…``.

It dies before the first operation of that name, and with a number n before the n-th operation after it.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from tests.support.installs import WatchedFiles

from iii_directory.cli.main import main
from iii_directory.install import skills_folder


def die_at(operation: str, later: int) -> WatchedFiles:
    seen: list[int] = []

    def act(number: int, name: str, arguments: tuple[Any, ...]) -> None:
        if name == operation and not seen:
            seen.append(number)
        if seen and number == seen[0] + later:
            os.kill(os.getpid(), signal.SIGKILL)

    return WatchedFiles(act)


if __name__ == "__main__":
    _, operation, later, *arguments = sys.argv
    files = die_at(operation, int(later))
    skills_folder.FileOps = lambda: files  # pyright: ignore[reportAttributeAccessIssue]
    main(arguments)
