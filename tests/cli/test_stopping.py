"""Whatever the engine does, a command that is told to end ends."""

from __future__ import annotations

import json
import signal
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.support.commands import Running, running
from tests.support.engine import WAIT
from websockets.sync.server import ServerConnection, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager
    from pathlib import Path

WELCOME = json.dumps({"type": "workerregistered", "worker_id": "w", "reattach_token": "t"})


class HangingEngine:
    """It takes every connection, and then never says anything more."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._met = threading.Semaphore(0)
        self.ended = threading.Event()

    def meets(self) -> None:
        self._met.release()

    def wait_for_one(self) -> None:
        assert self._met.acquire(timeout=WAIT * 3)


@contextmanager
def welcoming() -> Generator[HangingEngine]:
    """One that says welcome first, as engines do."""
    engine = HangingEngine("")

    def hang(connection: ServerConnection) -> None:
        connection.send(WELCOME)
        connection.recv()
        engine.meets()
        engine.ended.wait(WAIT * 6)

    with serve(hang, "127.0.0.1", 0, compression=None, close_timeout=0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        engine.url = "ws://{}:{}".format(*server.socket.getsockname())
        try:
            yield engine
        finally:
            engine.ended.set()
            server.shutdown()


@contextmanager
def silent() -> Generator[HangingEngine]:
    """One that does not even answer the handshake."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        engine = HangingEngine("ws://{}:{}".format(*server.getsockname()))
        held: list[socket.socket] = []

        def take() -> None:
            while not engine.ended.is_set():
                try:
                    taken = server.accept()[0]
                    held.append(taken)
                    # A look whether something listens says nothing.
                    if taken.recv(1):
                        engine.meets()
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        try:
            yield engine
        finally:
            engine.ended.set()
            server.shutdown(socket.SHUT_RDWR)
            for taken in held:
                taken.close()


GOES_ON = (("serve",), ("mcp", "--http", "--http-port", "0"))
ENDS = (("skills", "list"), ("trigger", "a::b"), ("status",))


@contextmanager
def waiting(engine: HangingEngine, words: tuple[str, ...], cwd: Path) -> Generator[Running]:
    """A command that has met the engine, and waits for its answer."""
    with running(*words, "--url", engine.url, cwd=cwd) as command:
        engine.wait_for_one()
        yield command


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("words", [*GOES_ON, *ENDS], ids=" ".join)
@pytest.mark.parametrize("kind", [welcoming, silent])
def test_a_command_ends_when_it_is_told_to_though_the_engine_never_answers(
    tmp_path: Path,
    kind: Callable[[], AbstractContextManager[HangingEngine]],
    words: tuple[str, ...],
    number: signal.Signals,
) -> None:
    with kind() as engine, waiting(engine, words, tmp_path) as command:
        if words in GOES_ON:
            command.wait_for("Ctrl-C")
        code = command.stop(number)

    assert code == 0 if words in GOES_ON else code in (-number, 128 + number)
    assert "Traceback" not in command.output
