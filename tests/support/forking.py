"""Commands that start at once: forks of one process that has imported the whole program.

A command takes a second to import what it needs, and nothing in a test of many processes depends on that. The
process that a test starts is a small one that hands its pipes, arguments, folder and environment to the fork,
passes signals on, and ends with it; when it is killed, so is the fork.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.commands import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_SERVER = """
import json, os, signal, socket, sys, threading
from importlib import import_module
import iii_directory.config as config
config.DEFAULT_URL = sys.argv[2]
for name in (
    "cli.main", "cli.mcp_commands", "cli.up", "cli.engine_commands", "bus.wire_bus", "engine.server",
    "mcp.bridge", "page.page_routes", "worker.directory_worker", "worker.services",
):
    import_module(f"iii_directory.{name}")
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen(16)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
while True:
    asked = listening.accept()[0]
    if os.fork() == 0:
        break
    asked.close()
listening.close()
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
said, handles, _, _ = socket.recv_fds(asked, 1 << 20, 3)
while not said.endswith(b"\\n"):
    said += asked.recv(1 << 20)
arguments, folder, variables = json.loads(said)
for number, handle in enumerate(handles):
    os.dup2(handle, number)
    os.close(handle)
os.chdir(folder)
os.environ.clear()
os.environ.update(variables)
def obey():
    while number := asked.recv(1):
        os.kill(os.getpid(), number[0])
    os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=obey, daemon=True).start()
sys.argv[1:] = arguments
from iii_directory.cli.main import main
main(arguments)
"""
_CLIENT = """
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: server.send(bytes((number,))))
asked = json.dumps((sys.argv[2:], os.getcwd(), dict(os.environ))).encode() + b"\\n"
server.sendall(asked[socket.send_fds(server, (asked,), (0, 1, 2)):])
os.close(0)
os.close(1)
server.recv(1)
"""


@contextmanager
def forked_commands(usual_port: int) -> Generator[Callable[..., tuple[str, ...]]]:
    """Give the program of a command, with another port as the usual one."""
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "s")
        server = subprocess.Popen(
            [sys.executable, "-c", _SERVER, place, f"ws://127.0.0.1:{usual_port}"],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        with server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            try:
                yield lambda *arguments: (sys.executable, "-I", "-S", "-c", _CLIENT, place, *arguments)
            finally:
                server.kill()
