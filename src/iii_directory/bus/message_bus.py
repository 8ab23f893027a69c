"""The worker's side of the conversation with an engine: what it registers, what it calls, what it answers.

How messages travel is up to the bus built on this: as objects inside the engine's process, or over a socket.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from abc import ABC, abstractmethod
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import msgspec
import orjson

from iii_directory import __version__
from iii_directory.bus.calls import Calls, new_id
from iii_directory.bus.fair_queue import FairQueue
from iii_directory.bus.long_lists import LongLists, has_long_list
from iii_directory.bus.seam import Refusal, Subscription, guarded, is_forged, listener, own_namespace
from iii_directory.bus.tasks import Tasks
from iii_directory.errors import DirectoryError
from iii_directory.limits import MAX_MESSAGE_BYTES
from iii_directory.shapes import object_of
from iii_directory.wire import protocol
from iii_directory.wire.failure_log import FailureLog
from iii_directory.wire.json_text import read, takes_long, too_long_sentence, whole
from iii_directory.wire.messages import (
    Action,
    Activation,
    FunctionRegistered,
    InvocationResult,
    InvokeFunction,
    ObserverAck,
    ObserverAdded,
    ObserverRemoved,
    RegisterFunction,
    RegisterTrigger,
    RegisterTriggerType,
    RegistrationRejected,
    TriggerRegistrationResult,
    UnregisterTrigger,
    WorkerRegistered,
)
from iii_directory.wire.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping

    from iii_directory.bus import seam
    from iii_directory.bus.seam import Function, Handler, Payload, TriggerOwner
    from iii_directory.wire.json_text import Json
    from iii_directory.wire.messages import Message, Registration

log = logging.getLogger("iii_directory.worker")
REGISTER_WORKER: Final = "engine::workers::register"


class Trace(NamedTuple):
    """Whose doing a call is, as its caller wrote it; passed on with every call made for it."""

    traceparent: str | None = None
    baggage: str | None = None


class _Listening(NamedTuple):
    """Who takes the events of a function: those that are surely the engine's, and those that may be."""

    heard: Callable[[Payload], None]
    doubted: Callable[[Payload], None]
    hears_workers: bool


_NO_TRACE = Trace()
_trace: ContextVar[Trace] = ContextVar("trace", default=_NO_TRACE)


class MessageBus(ABC):
    """Most of a :class:`~iii_directory.bus.seam.WorkerBus`; all but registering happens on its loop."""

    _marks_come_back: ClassVar[bool]
    """Whether the engine surely hands back what a binding was marked with; those up to 0.21 do not."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, name: str, description: str, namespace: str | None
    ) -> None:
        self.name = name
        self.namespace = own_namespace(namespace)
        self._description = description
        self._loop = loop
        self._handlers: dict[str, Callable[[Any], Awaitable[object]]] = {}
        self._listeners: dict[str, _Listening] = {}
        self._mark = {"listener": new_id()}
        self._owners: dict[str, TriggerOwner] = {}
        self._tasks = Tasks()
        self._calls = Calls(loop, self._tasks)
        self._long_lists = LongLists()
        self._registered: dict[tuple[str, ...], Registration] = {}
        """Everything that the engine was told to know, in its order."""
        self.refused: dict[str, Refusal] = {}
        self._observes = False
        """Whether the engine has observable functions in the place of trigger types."""
        self._on_connected: list[seam.Action] = []
        self._on_refused: list[Callable[[], None]] = []
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._queue: FairQueue[InvokeFunction] = FairQueue(loop, self._released)
        self._failures = FailureLog(log)

    @abstractmethod
    def _send(self, message: Message) -> None:
        """Say something to the engine; on the loop."""

    @abstractmethod
    def _register(self, message: Registration) -> None:
        """Tell the engine what it has to know as long as this worker is there; on the loop."""

    # Registering, from any thread

    def register_function(self, function: Function, handler: Handler) -> None:
        self._handlers[function.id] = guarded(function, handler, self._failures)
        self._register_soon(_registration(function))

    def register_listener(
        self,
        function_id: str,
        heard: Callable[[Payload], None],
        *,
        description: str,
        doubted: Callable[[Payload], None] | None = None,
        hears_workers: bool = False,
    ) -> None:
        self._listeners[function_id] = _Listening(heard, doubted or heard, hears_workers)
        self._register_soon(_registration(listener(function_id, description)))

    def register_trigger_type(
        self, type_id: str, owner: TriggerOwner, *, description: str, event_schema: Payload
    ) -> None:
        self._owners[type_id] = owner
        self._register_soon(
            RegisterTriggerType(id=type_id, description=description, call_request_format=event_schema)
        )

    def bind(self, trigger_type: str, function_id: str, config: Payload) -> None:
        self._register_soon(
            RegisterTrigger(
                id=new_id(),
                trigger_type=trigger_type,
                function_id=function_id,
                config=config,
                metadata=self._mark,
                namespace=self.namespace,
            )
        )

    def on_connected(self, action: seam.Action) -> None:
        self._on_connected.append(action)

    def on_refused(self, action: Callable[[], None]) -> None:
        self._on_refused.append(action)

    def offer_again(self, ids: Iterable[str]) -> None:
        wanted = frozenset(ids)
        for message in self._registered.values():
            if isinstance(message, RegisterFunction | RegisterTriggerType) and message.id in wanted:
                self.refused.pop(message.id, None)
                self._register(message)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # Bus

    async def call(
        self, function_id: str, payload: Mapping[str, Any], *, timeout_ms: int, namespace: str | None = None
    ) -> Any:
        def say(call_id: str) -> None:
            self._send(self._invocation(function_id, payload, call_id, namespace or self.namespace))

        return await self._calls.make(function_id, say, timeout_ms)

    async def tell(self, subscription: Subscription, event: Mapping[str, Any]) -> None:
        namespace = subscription.namespace or DEFAULT_NAMESPACE
        if subscription.observes:
            # Such a call has an id, as the SDK's has; nobody waits for its answer.
            sent = self._invocation(subscription.function_id, event, new_id(), namespace)
            sent.namespace, sent.activation = None, Activation(subscription.id)
        else:
            sent = self._invocation(subscription.function_id, event, None, namespace)
            sent.metadata = subscription.metadata
        self._send(sent)

    # What the engine says

    def caller_gone(self, connection_id: str) -> None:
        """Drop the calls of a connection that is gone, unless they have begun."""
        self._queue.drop(connection_id)

    def delivered(self, message: Message) -> None:
        """Take a message in; whatever it causes happens in a later pass of the loop."""
        match message:
            case InvokeFunction():
                self._asked(message)
            case InvocationResult():
                self._calls.answered(message)
            case WorkerRegistered():
                self._observes = protocol.OBSERVE_FEATURE in message.features
            case RegistrationRejected(code=protocol.FUNCTION_CONFLICT):
                self._turned_down(message)
            case RegistrationRejected():
                what = message.function_id or message.worker_name
                log.warning("the engine refused %s: %s", what, message.code)
            case TriggerRegistrationResult():
                log.warning("the engine refused %s: %s", message.function_id, message.error)
            case _:
                self._about_subscribers(message)

    def _asked(self, message: InvokeFunction) -> None:
        function_id, data = message.function_id, message.data
        if type(data) is msgspec.Raw:
            if takes_long(data, MAX_MESSAGE_BYTES):
                problem = too_long_sentence(f"{function_id} reads what a call carries")
                self._loop.call_soon(self._refuse, message, protocol.LIMIT_EXCEEDED, problem)
                return
            data = read(data)
        else:
            data = whole(data)
        message.data = data
        if function_id in self._listeners:
            # Not at once: an engine in this process is still carrying out what it decided.
            self._loop.call_soon(self._heard, message)
        elif function_id in self._handlers:
            self._queue.add(str(object_of(data).get(protocol.CALLER)), message)
        elif function_id in self._owners:
            # It is there to be observed; to call it does nothing.
            self._loop.call_soon(self._answer, message, None)
        else:
            problem = f"Function '{function_id}' not found"
            self._loop.call_soon(self._refuse, message, protocol.FUNCTION_NOT_FOUND, problem)

    def _about_subscribers(self, message: Message) -> None:
        match message:
            case RegisterTrigger() if message.trigger_type in self._owners:
                self._bound(message)
            case UnregisterTrigger() if message.trigger_type in self._owners:
                self._owners[message.trigger_type].unsubscribed(message.id)
            case ObserverRemoved() if message.function_id in self._owners:
                self._owners[message.function_id].unsubscribed(message.id)
            case ObserverAdded() if message.function_id in self._owners:
                self._observed(message.function_id, message, message.observer)
            case FunctionRegistered() if message.id in self._owners:
                for observer in message.observers:
                    self._observed(message.id, message, observer)
            case _:
                log.debug("a message of type %s is not for us", type(message).__name__)

    # Inner workings

    def _register_soon(self, message: Registration) -> None:
        self._loop.call_soon_threadsafe(self._keep, message)

    def _keep(self, message: Registration) -> None:
        # A binding that somebody ended is made again, a function described anew, in the place of the old one.
        place = _place_of(message)
        self._registered.pop(place, None)
        self._registered[place] = message
        self._register(message)

    def _turned_down(self, message: RegistrationRejected) -> None:
        """Note that the engine did not take a function, and why."""
        self.refused[str(message.function_id)] = Refusal(message.owner_worker_id or "", message.message)
        for action in self._on_refused:
            action()
        if not self._on_refused:
            log.warning("the engine refused %s: %s", message.function_id, message.code)

    def _announcement(self, call_id: str | None, isolation: str | None) -> InvokeFunction:
        """This worker says who it is."""
        said: Payload = {
            "name": self.name,
            "description": self._description,
            "namespace": self.namespace,
            "runtime": "python",
            "version": __version__,
            "os": f"{platform.system()} {platform.release()} ({platform.machine()})",
            "pid": os.getpid(),
            "isolation": isolation,
        }
        if self._observes:
            said["features"] = [protocol.OBSERVE_FEATURE]
        return self._invocation(REGISTER_WORKER, said, call_id, DEFAULT_NAMESPACE)

    def _invocation(
        self, function_id: str, data: Mapping[str, Any], call_id: str | None, namespace: str
    ) -> InvokeFunction:
        trace = _trace.get()
        return InvokeFunction(
            function_id=function_id,
            data=dict(data),
            invocation_id=call_id,
            action=Action("void") if call_id is None else None,
            namespace=namespace,
            traceparent=trace.traceparent,
            baggage=trace.baggage,
        )

    def _released(self, caller: str, message: InvokeFunction) -> None:
        call_id = message.invocation_id or ""
        self._under_way[call_id] = self._loop.create_task(self._invoked(caller, message))

    async def _invoked(self, caller: str, message: InvokeFunction) -> None:
        if message.traceparent is not None or message.baggage is not None:
            _trace.set(Trace(message.traceparent, message.baggage))
        try:
            if not self._queue.has_time(caller, message):
                return
            result = await self._handlers[message.function_id](message.data)
            if has_long_list(result):
                result = await self._long_lists.written(result)
        except DirectoryError as failure:
            self._refuse(message, protocol.INVOCATION_FAILED, str(failure))
        else:
            self._answer(message, result)
        finally:
            del self._under_way[message.invocation_id or ""]

    def _heard(self, message: InvokeFunction) -> None:
        data = message.data
        listening = self._listeners[message.function_id]
        # A worker's call is signed by the engine. Of the engine's own, only events of our bindings come with
        # our mark: data that somebody published can look like any event.
        try:
            if listening.hears_workers or (message.metadata == self._mark and not is_forged(data)):
                listening.heard(object_of(data))
            elif not self._marks_come_back and not is_forged(data):
                listening.doubted(object_of(data))
        finally:
            self._answer(message, None)

    def _answer(self, message: InvokeFunction, result: object) -> None:
        self._send(
            InvocationResult(
                invocation_id=message.invocation_id or "", function_id=message.function_id, result=result
            )
        )

    def _refuse(self, message: InvokeFunction, code: str, problem: str) -> None:
        if message.invocation_id is not None:
            error = {"code": code, "message": problem}
            self._send(
                InvocationResult(
                    invocation_id=message.invocation_id, function_id=message.function_id, error=error
                )
            )

    def _bound(self, message: RegisterTrigger) -> None:
        subscription = Subscription(message.id, message.function_id, message.metadata, message.namespace)
        self._owners[message.trigger_type].subscribed(subscription)
        accepted = TriggerRegistrationResult(
            id=message.id, trigger_type=message.trigger_type, function_id=message.function_id
        )
        self._loop.call_soon(self._send, accepted)

    def _observed(
        self, function_id: str, message: FunctionRegistered | ObserverAdded, observer: Json
    ) -> None:
        subscription = Subscription(observer["id"], observer["target"], None, None, observes=True)
        self._owners[function_id].subscribed(subscription)
        taken_in = ObserverAck(
            id=subscription.id,
            function_id=function_id,
            namespace=message.namespace,
            revision=message.revision,
        )
        self._loop.call_soon(self._send, taken_in)

    def _in_its_words(self, message: Registration) -> Registration:
        """A trigger type as this engine has it."""
        if self._observes and isinstance(message, RegisterTriggerType):
            # Old bindings to it count as observers.
            return RegisterFunction(
                id=message.id,
                description=message.description,
                request_format=message.call_request_format,
                metadata={"internal": True},
                observe={"delivery": "owner", "legacy_trigger_type": message.id},
            )
        return message

    async def _stop_work(self) -> None:
        self._queue.close()
        under_way = list(self._under_way.values())
        for task in under_way:
            task.cancel()
        self._tasks.cancel()
        if under_way:
            await asyncio.wait(under_way)
        await self._tasks.ended()


def _registration(function: Function) -> RegisterFunction:
    return RegisterFunction(
        id=function.id,
        description=function.description,
        request_format=function.request,
        response_format=function.response,
        metadata=function.metadata,
    )


def _place_of(message: Registration) -> tuple[str, ...]:
    """Return the key under which a later registration replaces an earlier one.

    Of a binding not its id: one that is made again has a new one.
    """
    kind = type(message).__name__
    if isinstance(message, RegisterTrigger):
        config = orjson.dumps(message.config, option=orjson.OPT_SORT_KEYS)
        return kind, message.trigger_type, message.function_id, config.decode()
    return kind, message.id
