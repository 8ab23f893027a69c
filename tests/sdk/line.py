"""A line to the engine that can be cut so that only the client notices, as when a network goes away."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from types import TracebackType

CHUNK = 65536


class Line:
    """A listener whose connections are carried on to an engine; a context manager."""

    def __init__(self, engine_url: str) -> None:
        self._engine = urlsplit(engine_url).netloc
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._netloc = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.url = f"ws://{self._netloc}"
        self._near: list[socket.socket] = []
        self._far: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self.cut()
        _end(self._far)
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def cut(self) -> None:
        """End every connection for the client; for the engine they seem to go on."""
        _end(self._near)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                host, _, port = self._engine.rpartition(":")
                far = socket.create_connection((host, int(port)))
                # The engine answers to its own address only.
                hello = near.recv(CHUNK).replace(self._netloc.encode(), self._engine.encode(), 1)
                far.sendall(hello)
                self._near.append(near)
                self._far.append(far)
                self._carry(near, far, ends=False)
                self._carry(far, near, ends=True)

    def _carry(self, source: socket.socket, target: socket.socket, *, ends: bool) -> None:
        def carry() -> None:
            with contextlib.suppress(OSError):
                while chunk := source.recv(CHUNK):
                    target.sendall(chunk)
                if ends:
                    target.shutdown(socket.SHUT_WR)

        self._threads.append(threading.Thread(target=carry, daemon=True))
        self._threads[-1].start()


def _end(sockets: list[socket.socket]) -> None:
    while sockets:
        ended = sockets.pop()
        with contextlib.suppress(OSError):
            ended.shutdown(socket.SHUT_RDWR)
        ended.close()
