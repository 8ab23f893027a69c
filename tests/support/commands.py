"""The command as a person runs it: a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.engine import WAIT

if TYPE_CHECKING:
    from collections.abc import Generator

COMMAND = str(Path(sys.executable).with_name("iii-directory"))
START_SECONDS = 30.0


def environment(**changes: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("III_")}
    return {**kept, **changes}


def run(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run to the end and give what it printed."""
    return subprocess.run(
        [COMMAND, *arguments],
        cwd=cwd,
        env=environment(**env),
        capture_output=True,
        text=True,
        check=False,
        timeout=START_SECONDS,
        stdin=subprocess.DEVNULL,
    )


class Running:
    """A command that goes on until it is stopped; what it prints is collected."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._more = threading.Condition()
        self._ended = False
        self._collector = threading.Thread(target=self._collect, daemon=True)
        self._collector.start()

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, text: str, seconds: float = START_SECONDS) -> str:
        """The first line that has the text."""
        deadline = time.monotonic() + seconds
        with self._more:
            while True:
                for line in self.lines:
                    if text in line:
                        return line
                left = deadline - time.monotonic()
                if self._ended or left <= 0 or not self._more.wait(left):
                    raise AssertionError(f"{text!r} was not printed:\n{self.output}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and give the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(WAIT)
        self._collector.join(WAIT)
        return code

    def kill(self) -> None:
        """End it whatever it does, and what is left of it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT)
        self._collector.join(WAIT)

    def _collect(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        with stream:
            for line in stream:
                with self._more:
                    self.lines.append(line.rstrip("\n"))
                    self._more.notify_all()
        with self._more:
            self._ended = True
            self._more.notify_all()


def running(
    *arguments: str, cwd: Path | None = None, **env: str
) -> contextlib.AbstractContextManager[Running]:
    """A command of ours in the background; killed at the end if it still runs."""
    return running_program(COMMAND, *arguments, cwd=cwd, **env)


@contextlib.contextmanager
def running_program(*command: str, cwd: Path | None = None, **env: str) -> Generator[Running]:
    """Any program in the background; killed at the end if it still runs."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    started = Running(process)
    try:
        yield started
    finally:
        started.kill()


def with_usual_port(port: int, *arguments: str) -> tuple[str, ...]:
    """Our command as a program, with another port as the usual one: others may have that on this machine."""
    program = (
        "import sys, iii_directory.config as config\n"
        f"config.DEFAULT_URL = 'ws://127.0.0.1:{port}'\n"
        "from iii_directory.cli.main import main\n"
        "main(sys.argv[1:])\n"
    )
    return (sys.executable, "-c", program, *arguments)


def with_ctrl_c_at_import(module: str, *arguments: str) -> tuple[str, ...]:
    """Our command as a program in which Ctrl-C is pressed when it imports a module."""
    program = (
        "import builtins, importlib.util, os, signal, sys\n"
        "real = builtins.__import__\n"
        "def imported(name, *rest, **named):\n"
        f"    if name == {module!r}:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(name, *rest, **named)\n"
        "builtins.__import__ = imported\n"
        "def import_module(name, package=None):\n"
        "    name = importlib.util.resolve_name(name, package)\n"
        "    return imported(name) and sys.modules[name]\n"
        "importlib.import_module = import_module\n"
        "from iii_directory.cli.main import main\n"
        "main(sys.argv[1:])\n"
    )
    return (sys.executable, "-c", program, *arguments)


def free_port() -> int:
    """Return a port of loopback that belongs to this test; a process that names it may listen on it.

    It stays bound without listening until this process ends, so the system does not give it to processes that
    ask for any free port: not before the test has started its engine there, nor while that engine is away.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    port = held.getsockname()[1]
    held.detach()
    return port
