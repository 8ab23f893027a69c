"""The worker's side of the conversation with an engine: what it registers, what it calls, what it answers.

How messages travel is up to the bus built on this: as objects inside the engine's process
(:class:`LocalBus`), or over a socket. Long lists are written as JSON in several passes of the loop, and the
texts of those answered last are kept: a snapshot's rows are the same list until something changes, so a
caller that asks for the same list gets its text at once (goals ``up.list-10000`` and ``beside.listing``).
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from abc import ABC, abstractmethod
from collections import OrderedDict
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

import msgspec
import orjson

from iii_directory import __version__
from iii_directory.bus.seam import CallError, Refusal, Subscription, guarded, is_forged, own_namespace
from iii_directory.bus.tasks import FairQueue, Tasks, each_in_turns
from iii_directory.errors import DirectoryError
from iii_directory.limits import KEPT_LISTS, LARGE_VALUE_BYTES, MAX_MESSAGE_BYTES
from iii_directory.shapes import is_list, is_object, items_of, object_of
from iii_directory.wire import messages as m
from iii_directory.wire import protocol
from iii_directory.wire.json_text import (
    ABSENT,
    Written,
    encode_value,
    items_of_list,
    read,
    takes_long,
    too_long_sentence,
    whole,
)
from iii_directory.wire.message_socket import FailureLog
from iii_directory.wire.protocol import DEFAULT_NAMESPACE, DESERIALIZATION_ERROR, TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping

    from iii_directory.bus import seam
    from iii_directory.bus.seam import Function, Handler, Payload, TriggerOwner
    from iii_directory.engine.server import EngineServer
    from iii_directory.wire.json_text import Json


def new_id() -> str:
    """Return a random UUID of version 4 as text, in a third of the time that the library's object takes."""
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


class OutgoingCalls:
    """The calls under way, by their ids. They belong to one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tasks: Tasks) -> None:
        self._loop = loop
        self._tasks = tasks
        self._waiting: dict[str, asyncio.Future[Any]] = {}

    def make(self, function_id: str, say: Callable[[str], None], timeout_ms: float) -> asyncio.Future[Any]:
        """Send a call by the id that ``say`` is given, and return its answer to await.

        Awaiting raises `CallError` if the call is answered by an error, or not in time, or can no longer be.
        """
        call_id = new_id()
        answer = self._waiting[call_id] = self._loop.create_future()
        try:
            say(call_id)
        except CallError as error:
            answer.set_exception(error)
        # The functions of an engine in this process have answered by now.
        if answer.done():
            del self._waiting[call_id]
            return answer
        deadline = self._loop.call_later(timeout_ms / 1000, _too_late, answer, function_id, timeout_ms)

        def over(_: object) -> None:
            deadline.cancel()
            del self._waiting[call_id]

        answer.add_done_callback(over)
        return answer

    def answered(self, message: m.InvocationResult) -> None:
        """Settle the call that an engine answers; the answer to one that timed out is dropped."""
        result = message.result
        if type(result) is msgspec.Raw and len(result) > LARGE_VALUE_BYTES:
            result = items_of_list(result) or result
        # A list that holds so much text is read in several passes of the loop.
        texts = [item for item in result if type(item) is msgspec.Raw] if is_list(result) else ()
        if sum(map(len, texts)) > LARGE_VALUE_BYTES:
            self._tasks.start(self._read_in_turns(message, items_of(result)))
        else:
            self._settle(message, result)

    def fail(self, code: str, problem: str) -> None:
        """Fail the calls under way, which cannot be answered any more."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(CallError(code, problem))

    async def _read_in_turns(self, message: m.InvocationResult, items: list[Any]) -> None:
        """Read the values of a long list; one that takes too long to read by itself is null."""
        values: list[object] = []
        await each_in_turns(items, lambda item: values.append(None if takes_long(item) else read(item)))
        self._settle(message, values)

    def _settle(self, message: m.InvocationResult, result: object) -> None:
        answer = self._waiting.get(message.invocation_id)
        if answer is None or answer.done():
            return
        error = message.error
        if error is not None:
            failure = CallError(str(error.get("code")), str(error.get("message")), data=error.get("data"))
            answer.set_exception(failure)
            return
        try:
            answer.set_result(None if result is ABSENT else whole(result))
        except ValueError as problem:
            answer.set_exception(CallError(DESERIALIZATION_ERROR, f"the answer cannot be read: {problem}"))


def _too_late(answer: asyncio.Future[Any], function_id: str, timeout_ms: float) -> None:
    if not answer.done():
        answer.set_exception(CallError(TIMEOUT, f"{function_id} did not answer within {timeout_ms:.0f} ms"))


# Shorter lists are written faster than they are looked up.
_LONG_ROWS: Final = 100
# Rows written at a time, which takes a fifth of a millisecond.
_SLICE_ROWS: Final = 250


class LongLists:
    """The long lists that were answered last, with their texts."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[list[object], asyncio.Future[bytes]]] = OrderedDict()

    async def written(self, result: object) -> object:
        """Return a result in which long lists, itself or its fields, have their texts with them."""
        if is_object(result):
            long = {key: value for key, value in result.items() if _is_long(value)}
            if not long:  # nearly every result
                return result
            return {**result, **{key: await self._text(rows) for key, rows in long.items()}}
        return await self._text(result) if _is_long(result) else result

    async def _text(self, rows: list[object]) -> object:
        known = self._known.pop(id(rows), None)
        if known is None or known[0] is not rows:
            # The id is another list's by now.
            known = rows, asyncio.ensure_future(_encoded(rows))
        self._known[id(rows)] = known
        if len(self._known) > KEPT_LISTS:
            self._known.popitem(last=False)
        try:
            return Written(rows, await asyncio.shield(known[1]))
        except (TypeError, ValueError):
            return rows  # it is not JSON, which its sender finds out


def _is_long(value: object) -> TypeGuard[list[object]]:
    return is_list(value) and len(value) >= _LONG_ROWS


async def _encoded(rows: list[object]) -> bytes:
    slices: list[bytes] = []
    for start in range(0, len(rows), _SLICE_ROWS):
        slices.append(encode_value(rows[start : start + _SLICE_ROWS])[1:-1])
        await asyncio.sleep(0)
    return b"".join((b"[", b",".join(slices), b"]"))


log = logging.getLogger("iii_directory.worker")
REGISTER_WORKER: Final = "engine::workers::register"


class _Listening(NamedTuple):
    """The handler of a function's events; ``hears_workers`` if events of workers are wanted as well."""

    heard: Callable[[Payload], None]
    hears_workers: bool


current_trace: ContextVar[tuple[str | None, str | None]] = ContextVar("trace", default=(None, None))
"""The traceparent and baggage of the call that is being answered, passed on with every call made for it."""


class MessageBus(ABC):
    """What a worker needs of an engine. Registering may be done from any thread, the rest on the loop."""

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
        self._calls = OutgoingCalls(loop, self._tasks)
        self._long_lists = LongLists()
        self._registered: dict[tuple[str, ...], m.Registration] = {}
        """Everything that the engine was told to know, in its order."""
        self.refused: dict[str, Refusal] = {}
        """The functions that the engine did not take, by their ids; for the loop alone."""
        self._observes = False
        """Whether the engine has observable functions in the place of trigger types."""
        self.on_connected: list[seam.Action] = []
        """Run on the loop at the start if connected, and after every connect."""
        self.on_refused: list[Callable[[], None]] = []
        """Run on the loop when a function is refused."""
        self.on_lost: list[Callable[[], None]] = []
        """Run on the loop when the connection is gone, perhaps again for one loss; never inside an engine."""
        self._queue: FairQueue[m.InvokeFunction] = FairQueue(loop, self._invoked)
        self._failures = FailureLog(log)

    @abstractmethod
    def _send(self, message: m.Message) -> None:
        """Say something to the engine; on the loop."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Return the engine's address, without its credentials."""

    @abstractmethod
    def start(self) -> None:
        """Watch the connection; call after everything is registered."""

    @abstractmethod
    def close(self) -> None:
        """Leave the engine; not to be called on the bus's loop."""

    # Registering, from any thread

    def register_function(self, function: Function, handler: Handler) -> None:
        self._handlers[function.id] = guarded(function, handler, self._failures)
        registered = m.RegisterFunction(
            id=function.id,
            description=function.description,
            request_format=function.request,
            response_format=function.response,
            metadata=function.metadata,
        )
        self._register_soon(registered)

    def register_listener(
        self,
        function_id: str,
        heard: Callable[[Payload], None],
        *,
        description: str,
        hears_workers: bool = False,
    ) -> None:
        """Register a function that takes events, which must be quick and not fail, and answers nothing.

        What a worker sends there in the engine's name is not heard, unless events of workers are wanted.
        """
        self._listeners[function_id] = _Listening(heard, hears_workers)
        takes, internal = {"type": "object"}, {"internal": True}
        self._register_soon(
            m.RegisterFunction(
                id=function_id, description=description, request_format=takes, metadata=internal
            )
        )

    def register_trigger_type(
        self, type_id: str, owner: TriggerOwner, *, description: str, event_schema: Payload
    ) -> None:
        """Register something to subscribe to: a trigger type, or an observable function that stands for one.

        The owner is told of subscribers of both kinds alike.
        """
        self._owners[type_id] = owner
        kind = m.RegisterTriggerType(id=type_id, description=description, call_request_format=event_schema)
        self._register_soon(kind)

    def bind(self, trigger_type: str, function_id: str, config: Payload) -> None:
        """Bind one of our functions to a trigger type; repeated after every reconnect."""
        binding = m.RegisterTrigger(
            id=new_id(),
            trigger_type=trigger_type,
            function_id=function_id,
            config=config,
            metadata=self._mark,
            namespace=self.namespace,
        )
        self._register_soon(binding)

    def offer_again(self, ids: Iterable[str]) -> None:
        """Register functions and trigger types once more, by their ids; on the bus's loop.

        What the engine refuses again is among the refused by the time that it answers a later call.
        """
        wanted = frozenset(ids)
        for message in self._registered.values():
            if isinstance(message, m.RegisterFunction | m.RegisterTriggerType) and message.id in wanted:
                self.refused.pop(message.id, None)
                self._register(message)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the bus's loop from another thread and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # Bus

    def call(
        self, function_id: str, payload: Mapping[str, Any], *, timeout_ms: int, namespace: str | None = None
    ) -> Awaitable[Any]:
        def say(call_id: str) -> None:
            self._send(self._invocation(function_id, payload, call_id, namespace or self.namespace))

        return self._calls.make(function_id, say, timeout_ms)

    async def tell(self, subscription: Subscription, event: Mapping[str, Any]) -> None:
        # What an observer is told has an id, as the SDK's has; its answer is dropped.
        call_id = new_id() if subscription.observes else None
        namespace = subscription.namespace or DEFAULT_NAMESPACE
        sent = self._invocation(subscription.function_id, event, call_id, namespace)
        if subscription.observes:
            sent.namespace, sent.activation = None, m.Activation(subscription.id)
        else:
            sent.metadata = subscription.metadata
        self._send(sent)

    # What the engine says

    def delivered(self, message: m.Message, _is_event: bool = False) -> None:  # noqa: FBT001, FBT002 (a Link's)
        """Take a message in; what it causes happens in a later pass of the loop."""
        if type(message) is m.InvokeFunction:
            self._asked(message)
            return
        if type(message) is m.InvocationResult:
            self._calls.answered(message)
            return
        match message:
            case m.WorkerRegistered():
                self._observes = protocol.OBSERVE_FEATURE in message.features
            case m.RegistrationRejected(code=protocol.FUNCTION_CONFLICT):
                refusal = Refusal(message.owner_worker_id or "", message.message)
                self.refused[str(message.function_id)] = refusal
                for action in self.on_refused:
                    action()
                if not self.on_refused:
                    log.warning("the engine refused %s: %s", message.function_id, message.code)
            case m.RegistrationRejected():
                what = message.function_id or message.worker_name
                log.warning("the engine refused %s: %s", what, message.code)
            case m.TriggerRegistrationResult():
                log.warning("the engine refused %s: %s", message.function_id, message.error)
            case _:
                self._about_subscribers(message)

    def _asked(self, message: m.InvokeFunction) -> None:
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
            self._loop.call_soon(self._reply, message, None)
        else:
            problem = f"Function '{function_id}' not found"
            self._loop.call_soon(self._refuse, message, protocol.FUNCTION_NOT_FOUND, problem)

    def _about_subscribers(self, message: m.Message) -> None:
        match message:
            case m.RegisterTrigger() if message.trigger_type in self._owners:
                self._owners[message.trigger_type].subscribed(
                    Subscription(message.id, message.function_id, message.metadata, message.namespace)
                )
                accepted = m.TriggerRegistrationResult(
                    id=message.id, trigger_type=message.trigger_type, function_id=message.function_id
                )
                self._loop.call_soon(self._send, accepted)
            case m.UnregisterTrigger() if message.trigger_type in self._owners:
                self._owners[message.trigger_type].unsubscribed(message.id)
            case m.ObserverRemoved() if message.function_id in self._owners:
                self._owners[message.function_id].unsubscribed(message.id)
            case m.ObserverAdded() if message.function_id in self._owners:
                self._observed(message.function_id, message, message.observer)
            case m.FunctionRegistered() if message.id in self._owners:
                for observer in message.observers:
                    self._observed(message.id, message, observer)
            case _:
                log.debug("a message of type %s is not for us", type(message).__name__)

    # Inner workings

    def _register_soon(self, message: m.Registration) -> None:
        self._loop.call_soon_threadsafe(self._keep, message)

    def _keep(self, message: m.Registration) -> None:
        # A binding that was ended is made again, a function described anew, in the place of the old one.
        place: tuple[str, ...] = (type(message).__name__, message.id)
        if isinstance(message, m.RegisterTrigger):
            # Not its id: a binding that is made again has a new one.
            config = orjson.dumps(message.config, option=orjson.OPT_SORT_KEYS).decode()
            place = place[0], message.trigger_type, message.function_id, config
        self._registered.pop(place, None)
        self._registered[place] = message
        self._register(message)

    def _register(self, message: m.Registration) -> None:
        """Tell the engine what it has to know as long as this worker is there; on the loop."""
        if self._observes and isinstance(message, m.RegisterTriggerType):
            # An observable function stands for it there. Old bindings to it count as observers.
            message = m.RegisterFunction(
                id=message.id,
                description=message.description,
                request_format=message.call_request_format,
                metadata={"internal": True},
                observe={"delivery": "owner", "legacy_trigger_type": message.id},
            )
        self._send(message)

    def _announcement(self, call_id: str | None, isolation: str | None) -> m.InvokeFunction:
        """Make the message by which this worker announces itself."""
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
    ) -> m.InvokeFunction:
        traceparent, baggage = current_trace.get()
        return m.InvokeFunction(
            function_id=function_id,
            data=dict(data),
            invocation_id=call_id,
            action=m.Action("void") if call_id is None else None,
            namespace=namespace,
            traceparent=traceparent,
            baggage=baggage,
        )

    async def _invoked(self, message: m.InvokeFunction) -> None:
        # Always set: the call before may have left its own trace behind.
        current_trace.set((message.traceparent, message.baggage))
        try:
            result = await self._handlers[message.function_id](message.data)
            result = await self._long_lists.written(result)
        except DirectoryError as failure:
            self._refuse(message, protocol.INVOCATION_FAILED, str(failure), failure.data())
        else:
            self._reply(message, result)

    def _heard(self, message: m.InvokeFunction) -> None:
        data = message.data
        listening = self._listeners[message.function_id]
        # A worker's call is signed by the engine. Of the engine's own, only events of our bindings come with
        # our mark: published data can look like any event.
        try:
            if listening.hears_workers or (message.metadata == self._mark and not is_forged(data)):
                listening.heard(object_of(data))
        finally:
            self._reply(message, None)

    def _refuse(self, message: m.InvokeFunction, code: str, problem: str, data: Json | None = None) -> None:
        error: Json = {"code": code, "message": problem}
        if data is not None:
            # Other engines drop fields that they do not know; the sentence alone is enough then.
            error["data"] = data
        self._reply(message, ABSENT, error)

    def _reply(self, message: m.InvokeFunction, result: object, error: Json | None = None) -> None:
        if message.invocation_id is not None:
            answer = m.InvocationResult(
                invocation_id=message.invocation_id,
                function_id=message.function_id,
                error=error,
                result=result,
            )
            self._send(answer)

    def _observed(
        self, function_id: str, message: m.FunctionRegistered | m.ObserverAdded, observer: Json
    ) -> None:
        subscription = Subscription(observer["id"], observer["target"], None, None, observes=True)
        self._owners[function_id].subscribed(subscription)
        taken_in = m.ObserverAck(
            id=subscription.id,
            function_id=function_id,
            namespace=message.namespace,
            revision=message.revision,
        )
        self._loop.call_soon(self._send, taken_in)

    async def _stop_work(self) -> None:
        self._tasks.cancel()
        await self._queue.close()
        await self._tasks.ended()


class LocalBus(MessageBus):
    """A bus on an engine of this process.

    Make it on the engine's event loop before the engine listens, so that no other worker has its name.
    """

    def __init__(
        self, engine: EngineServer, *, name: str, description: str, namespace: str | None = None
    ) -> None:
        super().__init__(asyncio.get_running_loop(), name=name, description=description, namespace=namespace)
        self._engine = engine
        self._id = engine.opened_inside(self.delivered, self._queue.drop)
        self._send(self._announcement(None, "in-process"))

    @property
    def url(self) -> str:
        return self._engine.url

    def start(self) -> None:
        for action in self.on_connected:
            self._loop.call_soon_threadsafe(lambda act=action: self._tasks.start(act()))

    def close(self) -> None:
        self.run(self._leave())

    # Inner workings, on the engine's loop

    def _send(self, message: m.Message) -> None:
        self._engine.received_message(self._id, message)

    async def _leave(self) -> None:
        self._engine.lost(self._id)
        self._engine.flush()
        await self._stop_work()
