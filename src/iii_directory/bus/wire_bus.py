"""A worker's connection to an engine elsewhere: messages over a socket, on an event loop of the bus's own.

Connecting takes five steps: the handshake; announcing the worker, and waiting until the engine has accepted
it; the trigger types, listeners and bindings; the actions that wait for a connection; and the functions. So
no function is called before the worker knows what it has to know. After a loss all steps are repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus, InvalidURI
from websockets.http11 import Response
from websockets.uri import parse_uri

from iii_directory import limits
from iii_directory.bus.message_bus import REGISTER_WORKER, MessageBus
from iii_directory.bus.seam import CallError
from iii_directory.text import shown_url
from iii_directory.wire import protocol
from iii_directory.wire.codec import UndecodableError, decode, encode
from iii_directory.wire.message_socket import READ_BYTES, MessageSocket, Writers
from iii_directory.wire.messages import (
    InvocationResult,
    Reattach,
    RegisterFunction,
    RegistrationRejected,
    WorkerRegistered,
)
from iii_directory.wire.ownership import is_strangers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from websockets.http11 import Request

    from iii_directory.wire.messages import Message, Registration


log = logging.getLogger("iii_directory.worker")
# The library's own log formats every frame at debug level.
_wire_log: Final = logging.getLogger("iii_directory.worker.wire")
_wire_log.setLevel(logging.WARNING)
# After so many messages the engine gets what there is, and works on it while the rest is being answered. With
# everything written at the end of a turn, worker and engine wait for one another (``joined.resources-read``).
_WRITTEN_TOGETHER: Final = 8


class UnreachableError(Exception):
    """No engine can be reached at an address; the text says why."""


async def open_socket(
    url: str, *, received: Callable[[bytes], None], lost: Callable[[WireSocket], None], token: str | None
) -> WireSocket:
    """Open a socket and wait until its handshake is done.

    ``received`` is called with every message, and ``lost`` once when the connection is gone.

    Raises:
        UnreachableError: nothing answers there, or it is not an engine, or it wants another token.
    """
    try:
        where = parse_uri(url)
    except InvalidURI as error:
        raise UnreachableError(str(error)) from None
    if (token or where.password) and await asyncio.to_thread(is_strangers, url):
        raise UnreachableError("it belongs to another user of this machine; the token was not sent there")
    loop = asyncio.get_running_loop()
    protocol = ClientProtocol(where, max_size=limits.MAX_MESSAGE_BYTES, logger=_wire_log)
    socket = WireSocket(protocol, received=received, lost=lost, token=token)
    handed_over = False
    try:
        async with asyncio.timeout(limits.HANDSHAKE_SECONDS):
            await loop.create_connection(lambda: socket, where.host, where.port, ssl=where.secure or None)
            await socket.opened
            handed_over = True
    except TimeoutError:
        raise UnreachableError(f"it did not answer within {limits.HANDSHAKE_SECONDS:g} s") from None
    except OSError as error:
        raise UnreachableError(os.strerror(error.errno) if error.errno else str(error)) from None
    finally:
        # Cancelled at the very moment the handshake is done, it leaves no connection behind either.
        if not handed_over:
            socket.abort()
    return socket


class WireSocket(MessageSocket):
    """One connection, from the handshake to the end."""

    def __init__(
        self,
        protocol: ClientProtocol,
        *,
        received: Callable[[bytes], None],
        lost: Callable[[WireSocket], None],
        token: str | None,
    ) -> None:
        super().__init__(
            protocol,
            frame_bytes=limits.MAX_MESSAGE_BYTES,
            read_into=memoryview(bytearray(READ_BYTES)),
            writers=Writers(),
            unsent_bytes=limits.MAX_UNSENT_BYTES,
            unsent_event_bytes=limits.MAX_UNSENT_BYTES,
        )
        self._protocol = protocol
        self._received = received
        self._lost = lost
        self._token = token
        self._loop = asyncio.get_running_loop()
        self._is_connected = False
        self._flush_is_due = False
        self._said = 0
        self._heard_something = True
        self._timer: asyncio.TimerHandle | None = None
        """What keeps the connection alive, once its handshake is done."""
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[None] = self._loop.create_future()

    # What its owner calls

    def send(self, text: bytes) -> None:
        """Send a message of JSON; what one pass of the loop says is written together, up to some messages."""
        if not self.framing.is_open:
            return
        if len(text) <= limits.MAX_FRAME_BYTES:
            self.framing.send(text)
        else:
            self.framing.send_in_fragments(text)
        self._said += 1
        if self._said >= _WRITTEN_TOGETHER:
            self.flush()
        else:
            self._flush_soon()

    async def close(self) -> None:
        """Say goodbye and wait a little for the answer."""
        if self.framing.is_open:
            self._protocol.send_close()
            self.flush()
            await asyncio.wait([self.ended], timeout=limits.LEAVE_SECONDS)
        self.abort()

    def abort(self) -> None:
        if self._is_connected:
            super().abort()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._is_connected = True
        request = self._protocol.connect()
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        self._protocol.send_request(request)
        self.flush()

    def eof_received(self) -> bool:
        self._protocol.receive_eof()
        self.flush()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.ended.set_result(None)
        if self._timer is not None:
            self._timer.cancel()
            self._lost(self)
        elif not self.opened.done():
            why = self._protocol.handshake_exc or exc or "it hung up"
            self.opened.set_exception(UnreachableError(f"what listens there is not an iii engine: {why}"))

    # What the framing tells

    def message(self, data: bytes, *, is_text: bool) -> None:  # noqa: ARG002 (JSON in either is JSON)
        self._received(data)

    def handshake(self, event: Request | Response) -> None:
        problem = self._protocol.handshake_exc
        if not isinstance(event, Response) or self.opened.done():
            return  # when it is done, the wait for it has ended
        if problem is None:
            self.opened.set_result(None)
            self._timer = self._loop.call_later(limits.KEEP_ALIVE_SECONDS, self._keep_alive)
        elif isinstance(problem, InvalidStatus) and event.status_code == HTTPStatus.UNAUTHORIZED:
            self.opened.set_exception(UnreachableError("it asks for a token: set III_TOKEN"))
        else:
            self.opened.set_exception(UnreachableError(f"what listens there is not an iii engine: {problem}"))

    # Inner workings

    def _taken_in(self) -> None:
        self._heard_something = True
        self.flush()
        # Behind what the messages woke, in the same pass of the loop: their answers are written in it.
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._flush_is_due = False
        self.flush()
        self.acknowledge()

    def flush(self) -> None:
        self._said = 0
        super().flush()

    def _cut_off(self) -> None:
        log.warning("the engine does not read its messages; the connection is closed")
        self.abort()

    def _keep_alive(self) -> None:
        """Drop a connection that sends nothing, not even an answer to a ping."""
        if not self._heard_something:
            log.warning("the engine has not been heard of for a while; the connection is given up")
            self.abort()
            return
        self._heard_something = False
        if self.framing.is_open:
            self._protocol.send_ping(b"")
            self.flush()
        self._timer = self._loop.call_later(limits.KEEP_ALIVE_SECONDS, self._keep_alive)


_TAKE_OVER_SECONDS: Final = 2.0
_CLOSE_SECONDS: Final = 5.0
_WELCOME_SECONDS: Final = 1.0


class WireBus(MessageBus):
    """A bus on an engine at an address. It reconnects by itself."""

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
        # The manager of this process may know it by another name, as with the SDK.
        name = os.environ.get("III_WORKER_NAME") or name
        own_loop = loop or asyncio.new_event_loop()
        super().__init__(own_loop, name=name, description=description, namespace=namespace)
        self._address = url
        self._token = token
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

    @property
    def url(self) -> str:
        return shown_url(self._address)

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
            began = self._loop.time()
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    await self._joined.wait()
            except TimeoutError:
                unasked = f"{function_id} was not called: no engine is connected"
                raise CallError(protocol.TIMEOUT, unasked, sent=False) from None
            timeout_ms -= int((self._loop.time() - began) * 1000)
        return await super().call(function_id, payload, timeout_ms=timeout_ms, namespace=namespace)

    # What the socket calls

    def _take_in(self, message: bytes) -> None:
        try:
            said = decode(message)
        except UndecodableError as error:
            log.warning("the engine said something that is not a message: %s", error)
            if error.answered is not None:
                problem = {"code": protocol.DESERIALIZATION_ERROR, "message": f"Invalid message: {error}"}
                failed = InvocationResult(invocation_id=error.answered, function_id="", error=problem)
                self._calls.answered(failed)
            return
        if isinstance(said, WorkerRegistered):
            self._previous = Reattach(previous_worker_id=said.worker_id, reattach_token=said.reattach_token)
            self.delivered(said)
            self._welcomed.set()
        elif isinstance(said, RegistrationRejected) and said.code == protocol.WORKER_CONFLICT:
            if not self._name_taken:
                log.warning(
                    "another worker called %s is connected and owns the functions; waiting until it leaves",
                    self.name,
                )
            self._name_taken = True
            self._calls.fail(protocol.WORKER_CONFLICT, f"another worker called {self.name} is connected")
        elif said is not None:
            self.delivered(said)

    def _disconnected(self, socket: WireSocket) -> None:
        if socket is not self._socket:
            return
        self._socket = None
        self._joined.clear()
        self._offering = False
        self._welcomed.set()
        self.refused.clear()
        self._calls.fail(protocol.CONNECTION_LOST, "the engine went away before it answered")
        for lost in self.on_lost:
            lost()

    # Connecting

    async def _stay_connected(self) -> None:
        pause, said = limits.FIRST_RECONNECT_SECONDS, False
        while True:
            self._welcomed.clear()
            try:
                self._socket = socket = await open_socket(
                    self._address, received=self._take_in, lost=self._disconnected, token=self._token
                )
            except UnreachableError as error:
                if not said:
                    log.warning("no iii engine at %s: %s; waiting until one answers", self.url, error)
                said = True
                # Not all at the same moment, when many wait for one engine.
                await asyncio.sleep(pause * random.uniform(0.7, 1.3))  # noqa: S311 (no secret)
                pause = min(pause * 2, limits.LONGEST_RECONNECT_SECONDS)
                continue
            pause, said = limits.FIRST_RECONNECT_SECONDS, False
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
                limits.HANDSHAKE_SECONDS * 1000,
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
        """Register everything but the functions, run the waiting actions, and then register the functions."""
        for message in self._registered.values():
            if not self._is_function(message):
                super()._register(message)
        self._joined.set()
        actions = asyncio.gather(*(self._tasks.start(action()) for action in self.on_connected))
        # One that hangs must not keep the functions away for ever.
        ways = (actions, socket.ended)
        await asyncio.wait(ways, timeout=limits.CONNECTED_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if socket.ended.done():
            actions.cancel()
            # Its outcome does not matter any more.
            actions.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            return
        self._offering = True
        for message in self._registered.values():
            if self._is_function(message):
                self._send(message)

    def _is_function(self, message: Registration) -> bool:
        return isinstance(message, RegisterFunction) and message.id in self._handlers

    # Inner workings

    def _register(self, message: Registration) -> None:
        if self._offering if self._is_function(message) else self._joined.is_set():
            super()._register(message)

    def _send(self, message: Message) -> None:
        if self._socket is None:
            return  # calls that wait for an answer have failed by now
        try:
            text = b"".join(encode(message))
        except (TypeError, ValueError):
            self._cannot_send(message, protocol.SERIALIZATION_ERROR, "it is not JSON")
            return
        if len(text) > limits.MAX_MESSAGE_BYTES:
            self._cannot_send(message, protocol.PAYLOAD_TOO_LARGE, f"it has {len(text)} bytes")
            return
        self._socket.send(text)

    def _cannot_send(self, message: Message, code: str, why: str) -> None:
        if isinstance(message, InvocationResult):
            log.error("an answer of %s cannot be sent: %s", message.function_id, why)
            error = {"code": code, "message": f"The answer of {message.function_id} cannot be sent: {why}."}
            call_id, function_id = message.invocation_id, message.function_id
            self._send(InvocationResult(invocation_id=call_id, function_id=function_id, error=error))
        else:
            raise CallError(code, f"this cannot be sent to the engine: {why}", sent=False)

    async def _leave(self) -> None:
        await self._stop_work()
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()
        self._calls.fail(protocol.CONNECTION_LOST, "this worker has left the engine")
