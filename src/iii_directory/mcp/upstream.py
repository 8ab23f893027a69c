"""The way to the directory that every MCP session shares: the bus that is current.

All of it runs on one event loop, which is also that of its buses, so a call costs no change of threads. While
no bus is connected, requests wait a little; a read under way when a connection is lost is made again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.bus.seam import CallError, own_namespace
from iii_directory.limits import (
    MCP_ENGINE_SECONDS,
    MCP_READ_SECONDS,
    MCP_SETTLE_SECONDS,
    MCP_WORK_SECONDS,
)
from iii_directory.mcp.failures import remote_failure, unreachable
from iii_directory.wire.protocol import CONNECTION_LOST, FUNCTION_NOT_FOUND, INVOCATION_STOPPED, TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.bus.seam import Payload, WorkerBus

log = logging.getLogger("iii_directory.mcp")
_POLL_SECONDS: Final = 0.1
_RETRIES: Final = 2
# The engine lost the answer, or it or the worker left meanwhile; a read is worth another try after any of it.
_WORTH_A_RETRY: Final = (TIMEOUT, INVOCATION_STOPPED, CONNECTION_LOST)


class _Listener(NamedTuple):
    purpose: str
    trigger_types: tuple[str, ...]
    heard: Callable[[Payload], None]


class Upstream:
    """Calls functions of the directory and hears of its changes, over one bus at a time."""

    def __init__(self, *, wait_seconds: float | None = None) -> None:
        self._wait_seconds = wait_seconds
        """How long a request waits for a bus; None means `MCP_ENGINE_SECONDS`."""
        self._bus: WorkerBus | None = None
        self.secret: str | None = None
        self._connected: set[WorkerBus] = set()
        self._ready = asyncio.Event()
        self._ready_at = 0.0
        self._missed_something = False
        self._on_back: Callable[[], None] | None = None
        self._listeners: list[_Listener] = []
        self._under_way: Counter[WorkerBus] = Counter()
        self.namespace = own_namespace(None)
        """The namespace of the functions that are called."""
        self.missing: set[str] = set()
        """Functions that a client was told are missing, until a listener hears of their arrival."""

    def listen(self, purpose: str, trigger_types: tuple[str, ...], heard: Callable[[Payload], None]) -> None:
        """Hear the events of trigger types on every bus to come."""
        self._listeners.append(_Listener(purpose, trigger_types, heard))

    def on_back(self, action: Callable[[], None]) -> None:
        """Run something when a bus is ready after events or requests may have been lost."""
        self._on_back = action

    def attach(self, bus: WorkerBus) -> None:
        """Register the listeners on a bus, follow its connection and start it."""
        for listener in self._listeners:
            self._register(bus, listener)

        async def connected() -> None:
            self._connected.add(bus)
            self._settle()

        bus.on_connected(connected)
        bus.on_lost(lambda: self._lost(bus))
        bus.start()

    def use(self, bus: WorkerBus | None, *, secret: str | None = None) -> None:
        """Send the calls from now on over this bus; None holds them back.

        With the directory's ``secret`` clients of the same user are told paths.
        """
        self.secret = secret
        if bus is not None and self._bus is not bus:
            self._missed_something = self._missed_something or self._ready_at > 0
        self._bus = bus
        self._settle()

    def detach(self, bus: WorkerBus) -> None:
        """Forget a bus that is about to be closed."""
        self._connected.discard(bus)
        self._under_way.pop(bus, None)

    async def idle(self, bus: WorkerBus, seconds: float) -> None:
        """Wait until no call of this bus is under way, for at most ``seconds``."""
        until = asyncio.get_running_loop().time() + seconds
        while self._under_way[bus] and asyncio.get_running_loop().time() < until:  # noqa: ASYNC110 (bounded)
            await asyncio.sleep(_POLL_SECONDS)

    async def call(self, function_id: str, payload: Mapping[str, Any], *, repeatable: bool) -> Any:
        """Call a function; one that is ``repeatable`` changes nothing and is called again after a loss.

        Raises:
            BridgeError: what to tell the client.
        """
        seconds = MCP_READ_SECONDS if repeatable else MCP_WORK_SECONDS
        # Not without end: an answer that is too large for the connection takes it down every time.
        retries = _RETRIES if repeatable else 0
        while True:
            bus = await self._current()
            self._under_way[bus] += 1
            try:
                return await bus.call(function_id, payload, timeout_ms=int(seconds * 1000))
            except CallError as error:
                if error.code == FUNCTION_NOT_FOUND and self._is_settling():
                    await asyncio.sleep(_POLL_SECONDS)
                elif error.code in _WORTH_A_RETRY and retries:
                    retries -= 1
                else:
                    if error.code == FUNCTION_NOT_FOUND:
                        self.missing.add(function_id)
                    raise remote_failure(function_id, error.code, str(error)) from None
            finally:
                if bus in self._under_way:
                    self._under_way[bus] -= 1

    def _register(self, bus: WorkerBus, listener: _Listener) -> None:
        function_id = f"{bus.name}::{listener.purpose}"

        def heard(event: Payload) -> None:
            # During a change of buses both tell of the same folder.
            if bus is self._bus:
                listener.heard(event)

        bus.register_listener(
            function_id,
            heard,
            description=f"Tells the MCP clients of {bus.name} what changed.",
            hears_workers=True,
        )
        for trigger_type in listener.trigger_types:
            bus.bind(trigger_type, function_id, {})

    async def _current(self) -> WorkerBus:
        while self._bus is None or not self._ready.is_set():
            try:
                async with asyncio.timeout(self._wait_seconds or MCP_ENGINE_SECONDS):
                    await self._ready.wait()
            except TimeoutError:
                self._missed_something = True
                raise unreachable(self._bus.url if self._bus else None) from None
        return self._bus

    def _settle(self) -> None:
        if self._bus is None or self._bus not in self._connected:
            self._ready.clear()
            return
        self._ready_at = asyncio.get_running_loop().time()
        self._ready.set()
        if self._missed_something and self._on_back is not None:
            self._missed_something = False
            self._on_back()

    def _is_settling(self) -> bool:
        return asyncio.get_running_loop().time() - self._ready_at < MCP_SETTLE_SECONDS

    def _lost(self, bus: WorkerBus) -> None:
        if bus in self._connected and bus is self._bus:
            log.warning("the engine at %s went away; waiting for it", bus.url)
            self._missed_something = True
        self._connected.discard(bus)
        self._settle()
