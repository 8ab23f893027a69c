"""Registries for tests: a real one over a folder, and one that misbehaves on purpose."""

from __future__ import annotations

import json
import socket
import threading
from typing import TYPE_CHECKING, Any, Self

import yaml

from iii_directory.registry_server.release import Published, publish

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType


def publish_worker(
    tmp_path: Path,
    registry: Path,
    name: str,
    version: str,
    files: dict[str, str],
    *,
    tag: str | None = None,
    **document: Any,
) -> Published:
    """Write a worker's folder (``skills/…``, ``prompts/…``, ``README.md``) and publish it."""
    source = tmp_path / "published" / f"{name}-{version}" / name
    for path, text in {"worker.yaml": yaml.safe_dump({"name": name, **document}), **files}.items():
        target = source / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return publish(source, registry, version, tag)


class RawServer:
    """A server on loopback that leaves each request to a function of the test; a context manager."""

    def __init__(self, respond: Callable[[str, socket.socket], None]) -> None:
        self._respond = respond
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.stopping = threading.Event()
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            connection.close()
        for thread in self._threads:
            thread.join(10)

    def _start(self, target: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            head = b""
            while b"\r\n\r\n" not in head:
                received = connection.recv(65536)
                if not received:
                    return
                head += received
            path = head.split(b" ")[1].decode()
            self.asked.append(path)
            self._respond(path, connection)
        except OSError:
            return
        finally:
            connection.close()


def answer(
    body: bytes | dict[str, Any], status: str = "200 OK", length: int | None = None, **headers: str
) -> bytes:
    """A whole HTTP response; ``length`` may lie."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(content) if length is None else length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode() + content
