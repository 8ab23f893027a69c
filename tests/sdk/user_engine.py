"""The engine and the SDKs as an ordinary user has them, without a token.

Root may connect to anybody's engine, so tests that run as root would show nothing of whom an engine admits.
There the engine and the drivers become an ordinary user; the tests' own bare clients stay root's.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from tests.support.commands import running_program
from tests.wire.test_ownership import NOBODY

if TYPE_CHECKING:
    from types import TracebackType

    from tests.support.commands import Running

ORDINARY_USER = NOBODY if os.getuid() == 0 else None
"""Whom the engine and the SDKs run as, where that is not who runs the tests."""

# What is imported is imported first: the interpreter may lie where an ordinary user may not read.
_PROGRAM = """
import asyncio, encodings.idna, importlib, os, pkgutil, signal, sys
import iii_directory.engine, iii_directory.wire
from iii_directory.engine.server import EngineServer

for package in (iii_directory.engine, iii_directory.wire):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
user, port, token = sys.argv[1:]
if user:
    os.setgid(int(user))
    os.setuid(int(user))


async def serve():
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    server = EngineServer(port=int(port), token=token or None)
    await server.start()
    print("engine at", server.url, flush=True)
    await ended.wait()
    await server.stop()


asyncio.run(serve())
"""


class UserEngine:
    """An engine in a process of its own, on a free port of loopback or a given one; a context manager."""

    def __init__(self, *, port: int = 0, token: str = "") -> None:
        user = "" if ORDINARY_USER is None else str(ORDINARY_USER)
        self._command = (sys.executable, "-c", _PROGRAM, user, str(port), token)
        self._stack = ExitStack()
        self._program: Running
        self.url = ""

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    @property
    def process_id(self) -> int:
        return self._program.process.pid

    def __enter__(self) -> Self:
        self._program = self._stack.enter_context(running_program(*self._command))
        self.url = self._program.wait_for("engine at").split()[-1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            self._program.stop(signal.SIGTERM)
