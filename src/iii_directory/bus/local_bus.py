"""The embedded engine in this very process: the same messages as on a socket, but nothing is encoded.

Everything runs on the engine's event loop. What a handler answers must not be changed afterwards: the engine
may still hold it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from iii_directory.bus.message_bus import MessageBus

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.server import EngineServer
    from iii_directory.wire.messages import Message, Registration

log = logging.getLogger("iii_directory.worker")


class LocalBus(MessageBus):
    """A :class:`~iii_directory.bus.seam.WorkerBus` on an engine of this process.

    Make it on the engine's event loop before the engine listens: then nobody has the worker's name.
    """

    _marks_come_back = True

    def __init__(
        self, engine: EngineServer, *, name: str, description: str, namespace: str | None = None
    ) -> None:
        super().__init__(asyncio.get_running_loop(), name=name, description=description, namespace=namespace)
        self._engine = engine
        self._id = engine.opened_inside(_Guest(self))
        self._send(self._announcement(None, "in-process"))

    @property
    def url(self) -> str:
        return self._engine.url

    def on_lost(self, action: Callable[[], None]) -> None:
        """The engine goes when this process goes: there is no loss to tell of."""

    def start(self) -> None:
        for action in self._on_connected:
            self._loop.call_soon_threadsafe(lambda act=action: self._tasks.start(act()))

    def close(self) -> None:
        self.run(self._leave())

    # Inner workings, on the engine's loop

    def _send(self, message: Message) -> None:
        self._engine.received_message(self._id, message)

    def _register(self, message: Registration) -> None:
        self._send(self._in_its_words(message))

    async def _leave(self) -> None:
        self._engine.lost(self._id)
        self._engine.flush()
        await self._stop_work()


class _Guest:
    """The engine's way to the bus."""

    def __init__(self, bus: LocalBus) -> None:
        self._delivered = bus.delivered
        self.caller_gone = bus.caller_gone

    def deliver(self, message: Message, *, is_event: bool) -> None:  # noqa: ARG002 (it is not kept)
        self._delivered(message)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        log.error("the engine has closed the connection of a worker in its own process")

    abort = close
