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

from iii_directory import __version__
from iii_directory.bus.calls import Calls, new_id
from iii_directory.bus.fair_queue import FairQueue
from iii_directory.bus.registering import (
    Listening,
    bound_by,
    not_here,
    observable,
    observed_by,
    place_of,
    registration,
)
from iii_directory.bus.seam import Refusal, guarded, is_forged, listener, own_namespace
from iii_directory.bus.tasks import Tasks, in_turns
from iii_directory.engine import protocol
from iii_directory.engine.messages import (
    InvocationResult,
    InvokeFunction,
    ObserverAck,
    RegisterFunction,
    RegisterTrigger,
    RegisterTriggerType,
    TriggerRegistrationResult,
)
from iii_directory.engine.protocol import DEFAULT_NAMESPACE
from iii_directory.engine.repeats import Repeats
from iii_directory.engine.wire_json import ABSENT
from iii_directory.errors import DirectoryError
from iii_directory.shapes import items_of, object_of, rows_of, text_of
from iii_directory.wire.failure_log import FailureLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping

    from iii_directory.bus.seam import Action, Function, Handler, Payload, Subscription, TriggerOwner
    from iii_directory.engine.messages import Message, Registration
    from iii_directory.engine.wire_json import Json

log = logging.getLogger("iii_directory.worker")
REGISTER_WORKER: Final = "engine::workers::register"


class Trace(NamedTuple):
    """Whose doing a call is, as its caller wrote it; passed on with every call made for it."""

    traceparent: str | None = None
    baggage: str | None = None


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
        self._listeners: dict[str, Listening] = {}
        self._mark = {"listener": new_id()}
        self._owners: dict[str, TriggerOwner] = {}
        self._tasks = Tasks()
        self._calls = Calls(loop, self._tasks)
        self._repeats = Repeats()
        self._registered: dict[tuple[str, ...], Registration] = {}
        """Everything that the engine was told to know, in its order."""
        self.refused: dict[str, Refusal] = {}
        self._observes = False
        """Whether the engine has observable functions in the place of trigger types."""
        self._on_connected: list[Action] = []
        self._on_refused: list[Callable[[], None]] = []
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._queue: FairQueue[Json] = FairQueue(loop, self._released)
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
        self._register_soon(registration(function))

    def register_listener(
        self,
        function_id: str,
        heard: Callable[[Payload], None],
        *,
        description: str,
        doubted: Callable[[Payload], None] | None = None,
        hears_workers: bool = False,
    ) -> None:
        self._listeners[function_id] = Listening(heard, doubted or heard, hears_workers)
        self._register_soon(registration(listener(function_id, description)))

    def register_trigger_type(
        self, type_id: str, owner: TriggerOwner, *, description: str, event_schema: Payload
    ) -> None:
        self._owners[type_id] = owner
        self._register_soon(
            RegisterTriggerType(
                id=type_id,
                description=description,
                trigger_request_format=None,
                call_request_format=event_schema,
            )
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

    def on_connected(self, action: Action) -> None:
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
            sent.namespace, sent.observer_id = None, subscription.id
        else:
            sent = self._invocation(subscription.function_id, event, None, namespace)
            sent.metadata = subscription.metadata
        self._send(sent)

    # What the engine says

    def caller_gone(self, connection_id: str) -> None:
        """Drop the calls of a connection that is gone, unless they have begun."""
        self._queue.drop(connection_id)

    def delivered(self, message: Json) -> None:
        """Take a message in; whatever it causes happens in a later turn of the loop."""
        match message["type"]:
            case protocol.INVOKE_FUNCTION:
                self._asked(message)
            case protocol.INVOCATION_RESULT:
                self._calls.answered(message)
            case protocol.WORKER_REGISTERED:
                self._observes = protocol.OBSERVE_FEATURE in items_of(message.get("features"))
            case protocol.REGISTRATION_REJECTED if message.get("code") == protocol.FUNCTION_CONFLICT:
                self._turned_down(message)
            case protocol.REGISTRATION_REJECTED | protocol.TRIGGER_REGISTRATION_RESULT:
                what = message.get("function_id") or message.get("worker_name")
                log.warning("the engine refused %s: %s", what, message.get("code") or message.get("error"))
            case _:
                self._about_subscribers(message)

    def _asked(self, message: Json) -> None:
        function_id = message["function_id"]
        if function_id in self._listeners:
            # Not at once: an engine in this process is still carrying out what it decided.
            self._loop.call_soon(self._heard, message)
        elif function_id in self._handlers:
            self._queue.add(str(object_of(message.get("data")).get(protocol.CALLER)), message)
        elif function_id in self._owners:
            # It is there to be observed; to call it does nothing.
            done = InvocationResult(message["invocation_id"], function_id, None, None)
            self._loop.call_soon(self._send, done)
        else:
            self._loop.call_soon(self._send, not_here(message))

    def _about_subscribers(self, message: Json) -> None:
        kind = message["type"]
        type_id = message.get("trigger_type") or message.get("function_id") or message.get("id")
        owner = self._owners.get(str(type_id))
        if owner is None:
            log.debug("a message of type %s is not for us", kind)
        elif kind == protocol.REGISTER_TRIGGER:
            self._bound(message)
        elif kind in (protocol.UNREGISTER_TRIGGER, protocol.OBSERVER_REMOVED):
            owner.unsubscribed(message["id"])
        elif kind == protocol.OBSERVER_ADDED:
            self._observed(message["function_id"], message, object_of(message["observer"]))
        elif kind == protocol.FUNCTION_REGISTERED:
            for observer in rows_of(message, "observers"):
                self._observed(message["id"], message, observer)

    # Inner workings

    def _register_soon(self, message: Registration) -> None:
        self._loop.call_soon_threadsafe(self._keep, message)

    def _keep(self, message: Registration) -> None:
        # A binding that somebody ended is made again, a function described anew, in the place of the old one.
        place = place_of(message)
        self._registered.pop(place, None)
        self._registered[place] = message
        self._register(message)

    def _turned_down(self, message: Json) -> None:
        """The engine did not take a function; whoever wants to know asks what was refused, and why."""
        refusal = Refusal(str(message.get("owner_worker_id") or ""), text_of(message.get("message")))
        self.refused[str(message.get("function_id"))] = refusal
        for action in self._on_refused:
            action()
        if not self._on_refused:
            log.warning("the engine refused %s: %s", message.get("function_id"), message.get("code"))

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
            action="void" if call_id is None else None,
            namespace=namespace,
            traceparent=trace.traceparent,
            baggage=trace.baggage,
        )

    def _released(self, caller: str, message: Json) -> None:
        self._under_way[message["invocation_id"]] = self._loop.create_task(self._invoked(caller, message))

    async def _invoked(self, caller: str, message: Json) -> None:
        call_id, function_id = message["invocation_id"], message["function_id"]
        if "traceparent" in message or "baggage" in message:
            _trace.set(Trace(message.get("traceparent"), message.get("baggage")))
        result, error = ABSENT, None
        data = message.get("data")
        try:
            if not self._queue.has_time(caller, message):
                return
            result = await self._handlers[function_id](data)
            if (answer := self._repeats.answer(result)) is not None:
                await in_turns(answer.write_some)
                result = answer.result
        except DirectoryError as failure:
            error = {"code": protocol.INVOCATION_FAILED, "message": str(failure)}
        finally:
            del self._under_way[call_id]
        self._send(InvocationResult(call_id, function_id, result, error))

    def _heard(self, message: Json) -> None:
        function_id, data = message["function_id"], message.get("data")
        listening = self._listeners[function_id]
        # A worker's call is signed by the engine. Of the engine's own, only events of our bindings come with
        # our mark: data that somebody published can look like any event.
        try:
            if listening.hears_workers or (message.get("metadata") == self._mark and not is_forged(data)):
                listening.heard(object_of(data))
            elif not self._marks_come_back and not is_forged(data):
                listening.doubted(object_of(data))
        finally:
            self._send(InvocationResult(message["invocation_id"], function_id, None, None))

    def _bound(self, message: Json) -> None:
        trigger_type, function_id = message["trigger_type"], message["function_id"]
        self._owners[trigger_type].subscribed(bound_by(message))
        accepted = TriggerRegistrationResult(message["id"], trigger_type, function_id, None)
        self._loop.call_soon(self._send, accepted)

    def _observed(self, function_id: str, message: Json, observer: Json) -> None:
        self._owners[function_id].subscribed(observed_by(observer))
        taken_in = ObserverAck(function_id, message.get("namespace"), observer["id"], message["revision"])
        self._loop.call_soon(self._send, taken_in)

    def _in_its_words(self, message: Registration) -> Registration:
        """A trigger type as this engine has it."""
        if self._observes and isinstance(message, RegisterTriggerType):
            return observable(message)
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
