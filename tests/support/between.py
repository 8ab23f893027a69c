"""A proxy between a worker and its engine that holds messages back."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Self

from tests.support.engine import WAIT
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from websockets.sync.client import ClientConnection


class Between:
    """A listener on loopback that passes everything on to an engine but what it is told to swallow.

    A context manager. What it swallows is a message of a type about a function, in either direction.
    """

    def __init__(self, engine_url: str) -> None:
        self._engine_url = engine_url
        self._swallowing: tuple[str, str] | None = None
        self._server = serve(self._pass_on, "127.0.0.1", 0, compression=None, max_size=None)
        self._thread = threading.Thread(target=self._server.serve_forever, name="between", daemon=True)
        self.url = f"ws://127.0.0.1:{self._server.socket.getsockname()[1]}"

    def swallow(self, kind: str, function_id: str) -> None:
        """From now on, keep back these messages."""
        self._swallowing = kind, function_id

    def let_pass(self) -> None:
        self._swallowing = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join(WAIT)

    def _pass_on(self, worker: ServerConnection) -> None:
        with connect(self._engine_url, compression=None, max_size=None, open_timeout=WAIT) as engine:
            back = threading.Thread(target=self._pump, args=(engine, worker.send), daemon=True)
            back.start()
            self._pump(worker, engine.send)
            engine.close()
            back.join(WAIT)

    def _pump(self, source: ServerConnection | ClientConnection, send: Callable[[str | bytes], Any]) -> None:
        try:
            for message in source:
                if not self._is_swallowed(message):
                    send(message)
        except ConnectionClosed:
            return

    def _is_swallowed(self, text: str | bytes) -> bool:
        message = json.loads(text)
        return (message.get("type"), message.get("function_id")) == self._swallowing
