"""Call the directory over the bus that is current, for all MCP sessions, and make errors of failed calls.

Everything runs on the event loop of the buses, so a call costs no change of threads. While no bus is
connected, requests wait a little; a read under way when a connection is lost is made again. A failed call
becomes a `BridgeError`: a code of the protocol and one sentence.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal

from iii_directory import errors, limits
from iii_directory.bus.seam import CallError, own_namespace
from iii_directory.errors import DirectoryError
from iii_directory.text import cut, visible
from iii_directory.wire import protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.bus.seam import Payload, WorkerBus
    from iii_directory.mcp.default_tools import ClientView

Blame = Literal["not_found", "request", "server"]
"""Whose fault it is: something asked for is not there, the request is wrong, or the other side failed."""

INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
"""What 2025 calls a missing resource; 2026-07-28 retired the code in favour of INVALID_PARAMS."""

POLL_SECONDS: Final = 0.1
"""How often something is looked at again that is not there yet."""
log = logging.getLogger("iii_directory.mcp")
_RETRIES: Final = 2
# The engine lost the answer, or it or the worker left meanwhile; a read is worth another try after any of it.
_WORTH_A_RETRY: Final = (protocol.TIMEOUT, protocol.INVOCATION_STOPPED, protocol.CONNECTION_LOST)
_DIRECTORY: Final = ("skills::", "prompts::", "skill::", "directory::")
# By the class of an error of the directory, else by the error's code; never by the words of another worker.
_BLAMES: Final[dict[str, Blame]] = {
    "not_found": "not_found",
    "invalid_input": "request",
    "forbidden": "request",
    # The engine's own functions have codes of their own.
    protocol.NOT_FOUND: "not_found",
    protocol.INVALID_ARGUMENTS: "request",
    "FORBIDDEN": "request",
}


class BridgeError(Exception):
    """A failed call; ``str()`` is a sentence, which `told` renders for clients that know tools."""

    def __init__(self, failure: DirectoryError | str, blame: Blame | None = None) -> None:
        super().__init__(cut(visible(str(failure)), limits.MAX_MCP_ERROR_CHARS))
        self._known = failure if isinstance(failure, DirectoryError) else None
        self.next_steps = self._known.next_steps if self._known else ()
        kind = self._known.kind.name if self._known else ""
        self.blame: Blame = blame or _BLAMES.get(kind, "server")

    def told(self, view: ClientView) -> str:
        """Return the sentence with next steps that a client of MCP can take."""
        if self._known is None:
            return str(self)
        return cut(visible(view.told(self._known)), limits.MAX_MCP_ERROR_CHARS)

    def for_people(self) -> str:
        """Return the sentence without the next steps that call a function: people have views instead."""
        known = self._known
        if known is None:
            return str(self)
        steps, meant = [step for step in known.next_steps if not step.function], known.did_you_mean
        # An error that is made anew is bounded anew.
        return str(
            BridgeError(DirectoryError(known.kind, known.problem, did_you_mean=meant, next_steps=steps))
        )

    def code(self, *, about_resource: bool, modern: bool) -> int:
        """Return the protocol's code; a missing resource had its own code before 2026-07-28."""
        if self.blame == "server":
            return INTERNAL_ERROR
        if self.blame == "not_found" and about_resource and not modern:
            return RESOURCE_NOT_FOUND
        return INVALID_PARAMS


def remote_failure(function_id: str, error: CallError) -> BridgeError:
    """Make the error for the client from the failure of a call on the engine.

    An error of the directory comes with its next steps as data. Other workers may send anything, stack traces
    included, so only one cleaned, bounded line is passed on; so is an error of the directory behind an engine
    that drops the data.
    """
    if error.code == protocol.FUNCTION_NOT_FOUND:
        start = errors.Step("start iii-directory on that engine with: iii-directory serve")
        steps = (start,) if function_id.startswith(_DIRECTORY) else None
        problem = f"function '{function_id}' not found on the engine"
        return BridgeError(DirectoryError(errors.ENGINE_NOT_FOUND, problem, next_steps=steps))
    if error.code in (protocol.CONNECTION_LOST, protocol.INVOCATION_STOPPED):
        problem = f"the engine or its worker went away while '{function_id}' ran; whether it ran is not known"
        return BridgeError(DirectoryError(errors.ENGINE_FAILED, problem))
    if error.code == protocol.TIMEOUT:
        return BridgeError(DirectoryError(errors.ENGINE_FAILED, f"'{function_id}' did not answer in time"))
    if (known := errors.error_of(error.data)) is not None:
        return BridgeError(known)
    line = visible(str(error)) or f"'{function_id}' failed without saying why"
    kind = errors.KIND_OF_CODE.get(line.partition(" ")[0])
    return BridgeError(line, _BLAMES.get(error.code if kind is None else kind.name, "server"))


def unreachable(url: str | None) -> BridgeError:
    """Make the error for a missing engine; without an address the directory of the folder is not ready."""
    problem, steps = "the directory of this folder has not started yet", None
    if url is not None:
        problem = f"no iii engine answers at {url}"
        steps = (errors.Step("start one with: iii-directory up"), errors.RETRY)
    return BridgeError(DirectoryError(errors.ENGINE_FAILED, problem, next_steps=steps))


class Upstream:
    """Calls functions of the directory and hears of its changes, over one bus at a time."""

    def __init__(self, *, wait_seconds: float | None = None) -> None:
        self._wait_seconds = wait_seconds
        """How long a request waits for a bus; None means `MCP_ENGINE_SECONDS`."""
        self._bus: WorkerBus | None = None
        self.secret: str | None = None
        """The secret with which the directory tells paths; None where the clients may not have them."""
        self._connected: set[WorkerBus] = set()
        self._ready = asyncio.Event()
        self._ready_at = 0.0
        self._missed_something = False
        self.on_back: Callable[[], None] | None = None
        """What to run when a bus is ready after events or requests may have been lost."""
        self._listeners: list[tuple[str, tuple[str, ...], Callable[[Payload], None]]] = []
        self._under_way: Counter[WorkerBus] = Counter()
        self.namespace = own_namespace(None)
        """The namespace of the functions that are called."""
        self.missing: set[str] = set()
        """Functions that a client was told are missing, until a listener hears of their arrival."""

    def listen(self, purpose: str, trigger_types: tuple[str, ...], heard: Callable[[Payload], None]) -> None:
        """Hear the events of trigger types on every bus that is attached later."""
        self._listeners.append((purpose, trigger_types, heard))

    def attach(self, bus: WorkerBus) -> None:
        """Register the listeners on a bus, follow its connection and start it."""
        for purpose, trigger_types, heard in self._listeners:
            function_id = f"{bus.name}::{purpose}"
            bus.register_listener(
                function_id,
                # During a change of buses both tell of the same folder.
                lambda event, heard=heard: heard(event) if bus is self._bus else None,
                description=f"Tells the MCP clients of {bus.name} what changed.",
                hears_workers=True,
            )
            for trigger_type in trigger_types:
                bus.bind(trigger_type, function_id, {})

        async def connected() -> None:
            self._connected.add(bus)
            self._settle()

        def lost() -> None:
            if bus in self._connected and bus is self._bus:
                log.warning("the engine at %s went away; waiting for it", bus.url)
                self._missed_something = True
            self._connected.discard(bus)
            self._settle()

        bus.on_connected.append(connected)
        bus.on_lost.append(lost)
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

    async def release(self, bus: WorkerBus, seconds: float = 0.0) -> None:
        """Forget a bus that is about to be closed, after its calls under way, for at most ``seconds``."""
        until = asyncio.get_running_loop().time() + seconds
        while self._under_way[bus] and asyncio.get_running_loop().time() < until:  # noqa: ASYNC110 (bounded)
            await asyncio.sleep(POLL_SECONDS)
        self._connected.discard(bus)
        self._under_way.pop(bus, None)

    async def call(self, function_id: str, payload: Mapping[str, Any], *, repeatable: bool) -> Any:
        """Call a function; one that is ``repeatable`` changes nothing and is called again after a loss.

        Raises:
            BridgeError: what to tell the client.
        """
        seconds = limits.MCP_READ_SECONDS if repeatable else limits.MCP_WORK_SECONDS
        # Not without end: an answer that is too large for the connection takes it down every time.
        retries = _RETRIES if repeatable else 0
        # A directory that leaves takes its functions away before its connection or its engine tells so.
        wait = limits.MCP_ENGINE_SECONDS if function_id.startswith(_DIRECTORY) else 0.0
        clock = asyncio.get_running_loop().time
        until = clock() + wait
        while True:
            bus = await self._current()
            self._under_way[bus] += 1
            try:
                return await bus.call(function_id, payload, timeout_ms=int(seconds * 1000))
            except CallError as error:
                settled_at = max(self._ready_at + limits.MCP_SETTLE_SECONDS, until)
                if error.code == protocol.FUNCTION_NOT_FOUND and clock() < settled_at:
                    # The worker of the function may not have come back to the engine yet.
                    await asyncio.sleep(POLL_SECONDS)
                elif error.code in _WORTH_A_RETRY and retries:
                    retries -= 1
                else:
                    if error.code == protocol.FUNCTION_NOT_FOUND:
                        self.missing.add(function_id)
                    raise remote_failure(function_id, error) from None
            finally:
                if bus in self._under_way:
                    self._under_way[bus] -= 1

    async def _current(self) -> WorkerBus:
        """Return the bus once it is connected."""
        # The bus may be lost again between the event and this task's turn, so the loop looks again.
        while self._bus is None or not self._ready.is_set():
            try:
                async with asyncio.timeout(self._wait_seconds or limits.MCP_ENGINE_SECONDS):
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
        if self._missed_something and self.on_back is not None:
            self._missed_something = False
            self.on_back()
