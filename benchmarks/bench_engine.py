"""The embedded engine: round trips, idle connections, and how fast the command says hello."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.harness import Measurement, goal, interleave, measure, repeat
from benchmarks.processes import (
    call_frame,
    echo_server,
    echo_worker,
    engine,
    engine_with_echo,
    flood,
    process,
)

MESSAGES = 2000
IN_FLIGHT = 32
PAYLOAD = {"text": "x" * 200}
IDLE = 1000


@measure("engine.two-hops")
def two_hops() -> Measurement:
    """Calls through the engine to a worker and back, against a bare echo of the same messages."""
    with process(echo_server) as bare, process(engine) as url, process(echo_worker, url):
        return _against_echo(url, bare)


@measure("engine.in-process")
def in_process() -> Measurement:
    """Calls of a function inside the engine's process, against a bare echo of the same messages."""
    with process(echo_server) as bare, process(engine_with_echo) as url:
        return _against_echo(url, bare)


def _against_echo(url: str, bare: str) -> Measurement:
    # Many short rounds: which of the processes share a core is luck, and changes from one to the next.
    return interleave(
        lambda: 1 / _seconds(url, greeted=True), lambda: 1 / _seconds(bare, greeted=False), rounds=25
    )


def _seconds(url: str, *, greeted: bool) -> float:
    frames = [call_frame(PAYLOAD) for _ in range(MESSAGES)]
    return flood(url, frames, IN_FLIGHT, greeted=greeted)


@measure("engine.idle-connection", unit="KiB")
def idle_connection() -> Measurement:
    """Memory of the engine's process per connection that says nothing."""
    return repeat(_idle_kib, rounds=3)


def _idle_kib() -> float:
    with process(engine) as url, contextlib.ExitStack() as open_sockets:
        parts = urlsplit(url)
        pid = listener(parts.port or 0)
        before = resident_kib(pid)
        for _ in range(IDLE):
            open_sockets.enter_context(_handshaken(parts.port or 0))
        return (resident_kib(pid) - before) / IDLE


def _handshaken(port: int) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", port))
    peer.sendall(
        f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    if b"101" not in peer.recv(4096):
        raise ConnectionError("the handshake was refused")
    return peer


def listener(port: int) -> int:
    from iii_directory.cli.processes import port_owner

    owner = port_owner(port)
    if owner is None:
        raise RuntimeError("this benchmark needs /proc")
    return int(owner.rsplit("pid ", 1)[1].rstrip(")"))


def resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


@goal("cli.help", at_most=4.0)
def cli_help() -> Measurement:
    """``iii-directory --help`` against ``python -c pass``."""
    command = str(Path(sys.executable).with_name("iii-directory"))
    return interleave(
        lambda: _run([command, "--help"]), lambda: _run([sys.executable, "-c", "pass"]), rounds=15
    )


def _run(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start
