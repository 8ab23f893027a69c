"""An engine elsewhere: the protocol itself over a socket, on an event loop and a thread of the bus's own.

A connection comes about in five steps: the handshake; saying who this is, and waiting until the engine has
taken it in; the trigger types, listeners and bindings; the actions that wait for a connection; and the
functions. So nobody calls a function of a worker that does not know yet what it has to know. After a loss all
of it is done anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import threading
from typing import TYPE_CHECKING, Any, Final

from iii_directory.bus.message_bus import REGISTER_WORKER, MessageBus
from iii_directory.bus.seam import CallError
from iii_directory.bus.wire_socket import UnreachableError, open_socket
from iii_directory.limits import (
    CONNECTED_SECONDS,
    FIRST_RECONNECT_SECONDS,
    HANDSHAKE_SECONDS,
    LONGEST_RECONNECT_SECONDS,
    MAX_MESSAGE_BYTES,
)
from iii_directory.text import shown_url
from iii_directory.wire import protocol
from iii_directory.wire.codec import UndecodableError, decode, encode
from iii_directory.wire.messages import (
    InvocationResult,
    Reattach,
    RegisterFunction,
    RegistrationRejected,
    WorkerRegistered,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.bus.wire_socket import WireSocket
    from iii_directory.wire.messages import Message, Registration

log = logging.getLogger("iii_directory.worker")
_TAKE_OVER_SECONDS: Final = 2.0
_CLOSE_SECONDS: Final = 5.0
_WELCOME_SECONDS: Final = 1.0


class WireBus(MessageBus):
    """A :class:`~iii_directory.bus.seam.WorkerBus` on an engine at an address. It reconnects by itself."""

    _marks_come_back = False

    def __init__(
        self,
        url: str,
        *,
        name: str,
        description: str,
        namespace: str | None = None,
        token: str | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Run on ``loop``, which goes on after `close`; without one, on a loop and a thread of its own."""
        # Whoever manages this process may know it by a name of its own, as with the SDK.
        name = os.environ.get("III_WORKER_NAME") or name
        own_loop = loop or asyncio.new_event_loop()
        super().__init__(own_loop, name=name, description=description, namespace=namespace)
        self.url = shown_url(url)
        self._address = url
        self._token = token
        self._on_lost: list[Callable[[], None]] = []
        self._socket: WireSocket | None = None
        self._joined = asyncio.Event()
        self._welcomed = asyncio.Event()
        self._offering = False
        self._name_taken = False
        self._previous: Reattach | None = None
        self._thread: threading.Thread | None = None
        if loop is None:
            self._thread = threading.Thread(target=own_loop.run_forever, name=f"bus of {name}", daemon=True)
            self._thread.start()

    def on_lost(self, action: Callable[[], None]) -> None:
        self._on_lost.append(action)

    def start(self) -> None:
        self._loop.call_soon_threadsafe(lambda: self._tasks.start(self._stay_connected()))

    def close(self) -> None:
        self.run(self._leave())
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CLOSE_SECONDS)
            self._loop.close()

    async def call(
        self, function_id: str, payload: Mapping[str, Any], *, timeout_ms: int, namespace: str | None = None
    ) -> Any:
        if not self._joined.is_set():
            timeout_ms -= await self._wait_for_engine(function_id, timeout_ms)
        return await super().call(function_id, payload, timeout_ms=timeout_ms, namespace=namespace)

    # What the socket calls

    def received(self, message: bytes) -> None:
        try:
            said = decode(message)
        except UndecodableError as error:
            log.warning("the engine said something that is not a message: %s", error)
            if error.answered is not None:
                problem = {"code": protocol.DESERIALIZATION_ERROR, "message": f"Invalid message: {error}"}
                self._calls.answered(
                    InvocationResult(invocation_id=error.answered, function_id="", error=problem)
                )
            return
        if said is not None:
            self._take(said)

    def lost(self, socket: WireSocket) -> None:
        if socket is self._socket:
            self._socket = None
            self._disconnected()

    # Connecting

    async def _stay_connected(self) -> None:
        pause, said = FIRST_RECONNECT_SECONDS, False
        while True:
            self._welcomed.clear()
            try:
                self._socket = socket = await open_socket(self._address, self, token=self._token)
            except UnreachableError as error:
                if not said:
                    log.warning("no iii engine at %s: %s; waiting until one answers", self.url, error)
                said = True
                # Not all at the same moment, when many wait for one engine.
                await asyncio.sleep(pause * random.uniform(0.7, 1.3))  # noqa: S311 (no secret)
                pause = min(pause * 2, LONGEST_RECONNECT_SECONDS)
                continue
            pause, said = FIRST_RECONNECT_SECONDS, False
            if await self._introduced():
                await self._offer(socket)
                await asyncio.shield(socket.ended)
                log.warning("the iii engine at %s has gone; waiting until it is back", self.url)
                said = True
            else:
                await socket.close()
            if self._name_taken:
                await asyncio.sleep(_TAKE_OVER_SECONDS)

    async def _introduced(self) -> bool:
        """Say who this is; False when the engine does not want it, because another one has the name."""
        if self._previous is not None:
            self._send(self._previous)
        # The engine speaks first, and says what it can; one that does not is taken for an old one.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WELCOME_SECONDS):
                await self._welcomed.wait()
        if self._socket is None:
            return False
        isolation = os.environ.get("III_ISOLATION") or None
        try:
            await self._calls.make(
                REGISTER_WORKER,
                lambda call_id: self._send(self._announcement(call_id, isolation)),
                HANDSHAKE_SECONDS * 1000,
            )
        except CallError as error:
            if error.code in (protocol.WORKER_CONFLICT, protocol.CONNECTION_LOST):
                return False
            log.debug("the engine did not take in who this is: %s", error)
        if self._name_taken:
            self._name_taken = False
            log.warning("the other worker called %s has left; this one takes over", self.name)
        return True

    async def _offer(self, socket: WireSocket) -> None:
        """Everything but the functions, what waits for a connection, and then the functions."""
        for message in self._registered.values():
            if not self._is_function(message):
                self._send(self._in_its_words(message))
        self._joined.set()
        actions = asyncio.gather(*(self._tasks.start(action()) for action in self._on_connected))
        # One that hangs must not keep the functions away for ever.
        ways = (actions, socket.ended)
        await asyncio.wait(ways, timeout=CONNECTED_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if socket.ended.done():
            actions.cancel()
            # Whatever it comes to now is nobody's concern any more.
            actions.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            return
        self._offering = True
        for message in self._registered.values():
            if self._is_function(message):
                self._send(message)

    def _is_function(self, message: Registration) -> bool:
        return isinstance(message, RegisterFunction) and message.id in self._handlers

    def _disconnected(self) -> None:
        self._joined.clear()
        self._offering = False
        self._welcomed.set()
        self.refused.clear()
        self._calls.fail(protocol.CONNECTION_LOST, "the engine went away before it answered")
        for lost in self._on_lost:
            lost()

    # Inner workings

    def _take(self, said: Message) -> None:
        if isinstance(said, WorkerRegistered):
            self._previous = Reattach(previous_worker_id=said.worker_id, reattach_token=said.reattach_token)
            self.delivered(said)
            self._welcomed.set()
        elif isinstance(said, RegistrationRejected) and said.code == protocol.WORKER_CONFLICT:
            self._turned_away()
        else:
            self.delivered(said)

    def _turned_away(self) -> None:
        if not self._name_taken:
            log.warning(
                "another worker called %s is connected and owns the functions; waiting until it leaves",
                self.name,
            )
        self._name_taken = True
        self._calls.fail(protocol.WORKER_CONFLICT, f"another worker called {self.name} is connected")

    def _register(self, message: Registration) -> None:
        if self._offering if self._is_function(message) else self._joined.is_set():
            self._send(self._in_its_words(message))

    def _send(self, message: Message) -> None:
        if self._socket is None:
            return  # whoever waits for an answer has been told that the connection is gone
        try:
            text = b"".join(encode(message))
        except (TypeError, ValueError):
            self._cannot_send(message, protocol.SERIALIZATION_ERROR, "it is not JSON")
            return
        if len(text) > MAX_MESSAGE_BYTES:
            self._cannot_send(message, protocol.PAYLOAD_TOO_LARGE, f"it has {len(text)} bytes")
            return
        self._socket.send(text)

    def _cannot_send(self, message: Message, code: str, why: str) -> None:
        if isinstance(message, InvocationResult):
            log.error("an answer of %s cannot be sent: %s", message.function_id, why)
            error = {"code": code, "message": f"The answer of {message.function_id} cannot be sent: {why}."}
            self._send(
                InvocationResult(
                    invocation_id=message.invocation_id, function_id=message.function_id, error=error
                )
            )
        else:
            raise CallError(code, f"this cannot be sent to the engine: {why}", sent=False)

    async def _wait_for_engine(self, function_id: str, timeout_ms: int) -> int:
        """The milliseconds it took until there was a connection."""
        began = self._loop.time()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._joined.wait()
        except TimeoutError:
            unasked = f"{function_id} was not called: there is no engine"
            raise CallError(protocol.TIMEOUT, unasked, sent=False) from None
        return int((self._loop.time() - began) * 1000)

    async def _leave(self) -> None:
        await self._stop_work()
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()
        self._calls.fail(protocol.CONNECTION_LOST, "this worker has left the engine")
