"""Whatever the engine does, a command that is told to end ends."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.support.commands import Running, running
from tests.support.engine import WAIT
from websockets.http11 import Request
from websockets.server import ServerProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
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
def hanging(answer: Callable[[socket.socket], None]) -> Generator[HangingEngine]:
    """One whose every connection is answered so, and never read from again."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        engine = HangingEngine("ws://{}:{}".format(*server.getsockname()))
        held: list[socket.socket] = []

        def meet(taken: socket.socket) -> None:
            with contextlib.suppress(OSError):
                answer(taken)
                engine.meets()

        def take() -> None:
            with contextlib.suppress(OSError):
                while not engine.ended.is_set():
                    held.append(server.accept()[0])
                    threading.Thread(target=meet, args=held[-1:], daemon=True).start()

        threading.Thread(target=take, daemon=True).start()
        try:
            yield engine
        finally:
            engine.ended.set()
            server.shutdown(socket.SHUT_RDWR)
            for taken in held:
                taken.close()


def welcoming(taken: socket.socket) -> None:
    """Shake hands and say welcome, as engines do, and listen until the first message."""
    protocol = ServerProtocol()
    while data := taken.recv(65536):
        protocol.receive_data(data)
        for event in protocol.events_received():
            if not isinstance(event, Request):
                return
            protocol.send_response(protocol.accept(event))
            protocol.send_text(WELCOME.encode())
        for answer in protocol.data_to_send():
            taken.sendall(answer)
    raise ConnectionResetError


def silent(taken: socket.socket) -> None:
    """Not even answer the handshake."""
    # A look whether something listens says nothing.
    if not taken.recv(1):
        raise ConnectionResetError


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
@pytest.mark.parametrize("answer", [welcoming, silent])
def test_a_command_ends_when_it_is_told_to_though_the_engine_never_answers(
    tmp_path: Path,
    answer: Callable[[socket.socket], None],
    words: tuple[str, ...],
    number: signal.Signals,
) -> None:
    with hanging(answer) as engine, waiting(engine, words, tmp_path) as command:
        if words in GOES_ON:
            command.wait_for("Ctrl-C")
        code = command.stop(number)

    assert code == 0 if words in GOES_ON else code in (-number, 128 + number)
    assert "Traceback" not in command.output
