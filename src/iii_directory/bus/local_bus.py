"""The embedded engine in this very process: the same messages as on a socket, but nothing is encoded.

Everything runs on the engine's event loop. What a handler answers must not be changed afterwards: the engine
may still hold it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import uuid
from typing import TYPE_CHECKING, Any, cast

from iii_directory import __version__
from iii_directory.bus.seam import (
    CallError,
    Subscription,
    guarded,
    is_forged,
    listener,
    own_namespace,
)
from iii_directory.bus.tasks import Tasks
from iii_directory.engine import protocol
from iii_directory.engine.messages import (
    InvocationResult,
    InvokeFunction,
    RegisterFunction,
    RegisterTrigger,
    RegisterTriggerType,
    TriggerRegistrationResult,
)
from iii_directory.engine.protocol import DEFAULT_NAMESPACE
from iii_directory.engine.wire_json import ABSENT
from iii_directory.errors import DirectoryError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from iii_directory.bus.seam import Action, Function, Handler, Payload, TriggerOwner
    from iii_directory.engine.messages import Message
    from iii_directory.engine.server import EngineServer
    from iii_directory.engine.wire_json import Json

log = logging.getLogger("iii_directory.worker")


class LocalBus:
    """A :class:`~iii_directory.bus.seam.WorkerBus` on an engine of this process.

    Make it on the engine's event loop before the engine listens: then nobody has the worker's name.
    """

    def __init__(
        self, engine: EngineServer, *, name: str, description: str, namespace: str | None = None
    ) -> None:
        self.name = name
        self.namespace = own_namespace(namespace)
        self._loop = asyncio.get_running_loop()
        self._engine = engine
        self._handlers: dict[str, Callable[[Any], Awaitable[object]]] = {}
        self._listeners: dict[str, Callable[[Payload], None]] = {}
        self._owners: dict[str, TriggerOwner] = {}
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._on_connected: list[Action] = []
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._tasks = Tasks()
        self._mark = {"listener": str(uuid.uuid4())}
        self._id = engine.opened(_Link(self))
        self._announce(description)

    @property
    def url(self) -> str:
        return self._engine.url

    # Registering, from any thread

    def register_function(self, function: Function, handler: Handler) -> None:
        self._handlers[function.id] = guarded(function, handler)
        self._send_soon(_registration(function))

    def register_listener(
        self, function_id: str, heard: Callable[[Payload], None], *, description: str
    ) -> None:
        self._listeners[function_id] = heard
        self._send_soon(_registration(listener(function_id, description)))

    def register_trigger_type(
        self, type_id: str, owner: TriggerOwner, *, description: str, event_schema: Payload
    ) -> None:
        self._owners[type_id] = owner
        self._send_soon(
            RegisterTriggerType(
                id=type_id,
                description=description,
                trigger_request_format=None,
                call_request_format=event_schema,
            )
        )

    def bind(self, trigger_type: str, function_id: str, config: Payload) -> None:
        binding_id = str(uuid.uuid4())
        self._send_soon(
            RegisterTrigger(
                id=binding_id,
                trigger_type=trigger_type,
                function_id=function_id,
                config=config,
                metadata=self._mark,
                namespace=self.namespace,
            )
        )

    def on_connected(self, action: Action) -> None:
        self._on_connected.append(action)

    def on_lost(self, action: Callable[[], None]) -> None:
        """The engine goes when this process goes: there is no loss to tell of."""

    # Life

    def start(self) -> None:
        for action in self._on_connected:
            self._loop.call_soon_threadsafe(lambda act=action: self._tasks.start(act()))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self.run(self._leave())

    # Bus

    async def call(
        self, function_id: str, payload: Mapping[str, Any], *, timeout_ms: int, namespace: str | None = None
    ) -> Any:
        call_id = str(uuid.uuid4())
        answer = self._answers[call_id] = self._loop.create_future()
        try:
            self._send(_invocation(function_id, dict(payload), call_id, namespace or self.namespace))
            # What the engine itself provides has answered by now, and nobody has to wait.
            if not answer.done():
                async with asyncio.timeout(timeout_ms / 1000):
                    await answer
            return answer.result()
        except TimeoutError:
            raise CallError(
                protocol.TIMEOUT, f"{function_id} did not answer within {timeout_ms} ms"
            ) from None
        finally:
            del self._answers[call_id]

    async def tell(
        self, function_id: str, payload: Mapping[str, Any], *, metadata: Any, namespace: str | None
    ) -> None:
        sent = _invocation(function_id, dict(payload), None, namespace or DEFAULT_NAMESPACE)
        sent.metadata = metadata
        self._send(sent)

    # What the engine says, through the link

    def delivered(self, message: Json) -> None:
        match message["type"]:
            case protocol.INVOKE_FUNCTION if message["function_id"] in self._listeners:
                # Not at once: the engine is still carrying out what it decided.
                self._loop.call_soon(self._heard, message)
            case protocol.INVOKE_FUNCTION:
                task = self._loop.create_task(self._invoked(message))
                self._under_way[message["invocation_id"]] = task
            case protocol.INVOCATION_RESULT:
                self._answered(message)
            case protocol.REGISTER_TRIGGER:
                self._bound(message)
            case protocol.UNREGISTER_TRIGGER:
                self._owners[message["trigger_type"]].unsubscribed(message["id"])
            case protocol.REGISTRATION_REJECTED | protocol.TRIGGER_REGISTRATION_RESULT:
                what = message.get("function_id") or message.get("worker_name")
                log.warning("the engine refused %s: %s", what, message.get("code") or message.get("error"))
            case _:
                log.debug("a message of type %s is not for us", message["type"])

    # Inner workings, on the engine's loop

    def _announce(self, description: str) -> None:
        said = {
            "name": self.name,
            "description": description,
            "namespace": self.namespace,
            "runtime": "python",
            "version": __version__,
            "os": f"{platform.system()} {platform.release()} ({platform.machine()})",
            "pid": os.getpid(),
            "isolation": "in-process",
        }
        self._send(_invocation("engine::workers::register", said, None, DEFAULT_NAMESPACE))

    def _send(self, message: Message) -> None:
        self._engine.received_message(self._id, message)

    def _send_soon(self, message: Message) -> None:
        self._loop.call_soon_threadsafe(self._send, message)

    async def _invoked(self, message: Json) -> None:
        call_id, function_id = message["invocation_id"], message["function_id"]
        result, error = ABSENT, None
        try:
            result = await self._handlers[function_id](message.get("data"))
        except DirectoryError as failure:
            error = {"code": protocol.INVOCATION_FAILED, "message": str(failure)}
        finally:
            del self._under_way[call_id]
        self._send(InvocationResult(call_id, function_id, result, error))

    def _heard(self, message: Json) -> None:
        function_id, data = message["function_id"], message.get("data")
        try:
            # Only events of our own bindings come with the mark: published data can look like any event.
            if message.get("metadata") == self._mark and not is_forged(data):
                self._listeners[function_id](cast("Payload", data) if isinstance(data, dict) else {})
        finally:
            self._send(InvocationResult(message["invocation_id"], function_id, None, None))

    def _answered(self, message: Json) -> None:
        answer = self._answers.get(message["invocation_id"])
        if answer is None or answer.done():
            return  # it was waited for long enough
        error = message.get("error")
        if error is None:
            answer.set_result(message.get("result"))
        else:
            answer.set_exception(CallError(str(error.get("code")), str(error.get("message"))))

    def _bound(self, message: Json) -> None:
        subscription = Subscription(
            message["id"], message["function_id"], message.get("metadata"), message.get("namespace")
        )
        self._owners[message["trigger_type"]].subscribed(subscription)
        accepted = TriggerRegistrationResult(
            message["id"], message["trigger_type"], message["function_id"], None
        )
        self._loop.call_soon(self._send, accepted)

    async def _leave(self) -> None:
        self._engine.lost(self._id)
        self._engine.flush()
        for task in self._under_way.values():
            task.cancel()
        self._tasks.cancel()


class _Link:
    """The engine's way to the bus."""

    def __init__(self, bus: LocalBus) -> None:
        self.deliver = bus.delivered

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        log.error("the engine has closed the connection of a worker in its own process")

    abort = close


def _registration(function: Function) -> RegisterFunction:
    return RegisterFunction(
        id=function.id,
        description=function.description,
        request_format=function.request,
        response_format=function.response,
        metadata=function.metadata,
    )


def _invocation(function_id: str, data: Payload, call_id: str | None, namespace: str) -> InvokeFunction:
    action = "void" if call_id is None else None
    return InvokeFunction(
        function_id=function_id, data=data, invocation_id=call_id, action=action, namespace=namespace
    )
