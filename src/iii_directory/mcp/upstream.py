"""The one way to the engine that every MCP session shares: a bus, over a socket or inside its process.

Everything of the bridge runs on the bus's event loop, so a call costs no change of threads. While the engine
is away, requests wait for it a little; a read under way when it goes is made again when it is back.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from iii_directory.bus.seam import CallError
from iii_directory.engine.protocol import CONNECTION_LOST, FUNCTION_NOT_FOUND, INVOCATION_STOPPED, TIMEOUT
from iii_directory.limits import (
    MCP_ENGINE_SECONDS,
    MCP_READ_SECONDS,
    MCP_SETTLE_SECONDS,
    MCP_WORK_SECONDS,
)
from iii_directory.mcp.failures import remote_failure, unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from iii_directory.bus.seam import Payload, WorkerBus

log = logging.getLogger("iii_directory.mcp")
_LATE_POLL_SECONDS: Final = 0.1
_RETRIES: Final = 2
# The engine lost the answer, or it or the worker went meanwhile; any of it is worth another try of a read.
_WORTH_A_RETRY: Final = (TIMEOUT, INVOCATION_STOPPED, CONNECTION_LOST)


class Upstream:
    """A worker without functions for others: it calls, and hears of changes."""

    def __init__(self, bus: WorkerBus) -> None:
        self._bus = bus
        self.url = bus.url
        self.namespace = bus.namespace
        self._connected = asyncio.Event()
        self._connected_at = 0.0
        self._missed_something = False
        self.missing: set[str] = set()
        """Functions that a client was told are not there; whoever tells it that they came takes them out."""

    # From any thread

    def listen(self, purpose: str, trigger_types: tuple[str, ...], heard: Callable[[Payload], None]) -> None:
        """Hear the events of trigger types, now or whenever somebody offers them; call before `start`."""
        function_id = f"{self._bus.name}::{purpose}"
        self._bus.register_listener(
            function_id,
            heard,
            description=f"Tells the MCP clients of {self._bus.name} what changed.",
            hears_workers=True,
        )
        for trigger_type in trigger_types:
            self._bus.bind(trigger_type, function_id, {})

    def start(self, on_back: Callable[[], None]) -> None:
        """Follow the connection; ``on_back`` runs when it is there after events or requests were lost."""

        async def connected() -> None:
            log.info("connected to the engine at %s", self.url)
            self._connected_at = asyncio.get_running_loop().time()
            self._connected.set()
            if self._missed_something:
                self._missed_something = False
                on_back()

        self._bus.on_connected(connected)
        self._bus.on_lost(self._lost)
        self._bus.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the bus's loop from another thread and wait for it."""
        return self._bus.run(work)

    def close(self) -> None:
        self._bus.close()

    # On the bus's loop

    async def call(self, function_id: str, payload: Mapping[str, Any], *, repeatable: bool) -> Any:
        """The answer of a function; a ``repeatable`` one changes nothing and is called again if need be.

        Raises:
            BridgeError: what to tell the client.
        """
        seconds = MCP_READ_SECONDS if repeatable else MCP_WORK_SECONDS
        # Not without end: an answer that is too large for the connection takes it down every time.
        retries = _RETRIES if repeatable else 0
        while True:
            await self._await_engine()
            try:
                return await self._bus.call(function_id, payload, timeout_ms=int(seconds * 1000))
            except CallError as error:
                if error.code == FUNCTION_NOT_FOUND and self._is_settling():
                    await asyncio.sleep(_LATE_POLL_SECONDS)
                elif error.code in _WORTH_A_RETRY and retries:
                    retries -= 1
                else:
                    self._note_missing(function_id, error.code)
                    raise remote_failure(function_id, error.code, str(error)) from None

    # Inner workings

    async def _await_engine(self) -> None:
        if self._connected.is_set():
            return
        try:
            async with asyncio.timeout(MCP_ENGINE_SECONDS):
                await self._connected.wait()
        except TimeoutError:
            self._missed_something = True
            raise unreachable(self.url) from None

    def _note_missing(self, function_id: str, code: str) -> None:
        if code == FUNCTION_NOT_FOUND:
            self.missing.add(function_id)

    def _is_settling(self) -> bool:
        return asyncio.get_running_loop().time() - self._connected_at < MCP_SETTLE_SECONDS

    def _lost(self) -> None:
        if self._connected.is_set():
            log.warning("the engine at %s went away; waiting for it", self.url)
            self._missed_something = True
        self._connected.clear()
