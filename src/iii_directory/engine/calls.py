"""Invocations: from a caller to an executor and back, exactly one outcome each. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from iii_directory.engine.allowances import check_pending, limit_exceeded, too_long
from iii_directory.engine.engine_state import EngineFault, EngineState, Function, bad_input
from iii_directory.limits import (
    LARGE_VALUE_BYTES,
    MAX_READ_ANSWER_BYTES,
    MAX_TOLD_FAILURES,
    MAX_UNANSWERED_EVENTS,
)
from iii_directory.shapes import is_object
from iii_directory.wire import protocol
from iii_directory.wire.codec import with_field
from iii_directory.wire.json_text import ABSENT, Json, read, takes_long, whole
from iii_directory.wire.messages import InvocationResult, InvokeFunction
from iii_directory.wire.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.engine_state import Connection

    Outcome = Callable[[object, Json | None], None]
    """What an internal caller does with a result, or with an error body."""

QUEUE_PROVIDER: Final = "engine::queue::enqueue"
_CALLER: Final = protocol.CALLER.encode()


@dataclass(slots=True)
class Call:
    """A call an executor has not answered yet. ``outcome`` is None when nobody waits for it."""

    executor: str
    caller: str | None
    outcome: Outcome | None

    @property
    def is_event(self) -> bool:
        """Whether no connection is counted for it as a caller that waits."""
        return self.caller is None or self.outcome is None


@dataclass(slots=True)
class Request:
    """A call of a built-in function: who asked, for what, and how to answer later."""

    caller: str | None
    function_id: str
    payload: Json
    answer: Outcome


class UnreadFields(NamedTuple):
    """The fields of a built-in function that stay unread, and what splits a payload into its fields."""

    names: tuple[str, ...]
    reader: Callable[[msgspec.Raw], dict[str, object] | None]


class DeferredAnswer:
    """The type of :data:`DEFERRED`: the built-in will call ``Request.answer`` itself."""


DEFERRED: Final = DeferredAnswer()


class Calls:
    """The table of open calls and the way each of them goes."""

    def __init__(self, engine_state: EngineState) -> None:
        self._engine_state = engine_state
        self._open: dict[str, dict[str, Call]] = {}
        """By executor and call id."""
        self._asked: dict[str, set[tuple[str, str]]] = {}
        """By caller: the executors and ids of the open calls it asked for."""
        self.builtins: dict[str, Callable[[Request], object]] = {}
        self.unread_fields: dict[str, UnreadFields] = {}
        """How built-in functions that only keep what is in some fields are given a large payload."""
        self._told: set[str] = set()

    def invoke(self, caller: str, message: InvokeFunction) -> None:
        """A worker asked for a call."""
        outcome: Outcome | None = None
        connection = self._engine_state.connections[caller]
        action = message.action.type if message.action is not None else None
        if message.invocation_id is not None and action != "void":
            outcome = self._reply_to(connection, message)
        try:
            check_pending(connection)
            namespace = _namespace_of(message.namespace)
            if message.action is not None and action == "enqueue":
                self._enqueue(message, message.action.queue, namespace, outcome)
                return
            self._dispatch(caller, message, namespace, outcome)
        except EngineFault as fault:
            self._fail(outcome, message.function_id, fault)

    def call(
        self,
        function_id: str,
        data: object,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        metadata: object = None,
        outcome: Outcome | None = None,
    ) -> None:
        """The engine itself asks for a call: an event, a condition, a queue provider."""
        message = InvokeFunction(function_id=function_id, data=data, metadata=metadata, namespace=namespace)
        try:
            self._dispatch(None, message, namespace, outcome)
        except EngineFault as fault:
            self._fail(outcome, function_id, fault)

    def resolve(self, executor: str, message: InvocationResult) -> None:
        """An executor answered. Late, unknown and foreign ids are dropped."""
        call = self._open.get(executor, {}).get(message.invocation_id)
        if call is None:
            return
        self._close(message.invocation_id, call)
        if call.outcome is not None:
            call.outcome(message.result, message.error)

    def stop(self, connection_id: str) -> None:
        """A connection is gone: what it executed fails, what it asked for is forgotten."""
        stopped = self._open.pop(connection_id, {})
        for call_id, call in stopped.items():
            self._forget_caller(call_id, call)
        for executor, call_id in self._asked.pop(connection_id, ()):
            # The executor is not told, and its late answer is dropped. A worker inside drops what it has not
            # begun, and answers nothing.
            call = self._open[executor][call_id]
            self._close(call_id, call)
            if not self._engine_state.connections[executor].inside:
                self._record(call_id, Call(executor, None, outcome=None))
        body = EngineFault(protocol.INVOCATION_STOPPED, "Invocation stopped").body()
        for call in stopped.values():
            if call.outcome is not None:
                call.outcome(ABSENT, body)

    def open_calls(self) -> int:
        return sum(map(len, self._open.values()))

    def _dispatch(
        self,
        caller: str | None,
        message: InvokeFunction,
        namespace: str,
        outcome: Outcome | None,
    ) -> None:
        data = message.data
        function = self._engine_state.function(namespace, message.function_id)
        if function is None:
            raise self._not_found(namespace, message.function_id)
        if function.owner is None:
            self._run_builtin(caller, function, data, outcome)
            return
        call_id = message.invocation_id.lower() if message.invocation_id else self._engine_state.new_id()
        while call_id in self._open.get(function.owner, ()):
            call_id = self._engine_state.new_id()
        if self._engine_state.connections[function.owner].inside:
            _check_quick(function.id, data)
        if caller is not None:
            data = _signed(function.id, data, caller)
        # Recorded before it is sent: an answer that comes at once must find its call.
        self._record(call_id, Call(function.owner, caller, outcome))
        is_event = caller is None or outcome is None
        self._engine_state.send(
            function.owner,
            InvokeFunction(
                function_id=message.function_id,
                invocation_id=call_id,
                metadata=message.metadata,
                traceparent=message.traceparent,
                baggage=message.baggage,
                data=data,
            ),
            is_event=is_event,
        )

    def _record(self, call_id: str, call: Call) -> None:
        executor = self._engine_state.connections[call.executor]
        if call.is_event:
            if executor.held.unanswered_events >= MAX_UNANSWERED_EVENTS:
                if call.outcome is not None:
                    raise limit_exceeded(f"a worker may leave {MAX_UNANSWERED_EVENTS} events unanswered")
                # It is sent all the same; only that it runs is not counted any more.
                return
            executor.held.unanswered_events += 1
        self._open.setdefault(call.executor, {})[call_id] = call
        if call.caller is not None:
            self._asked.setdefault(call.caller, set()).add((call.executor, call_id))
        executor.active_invocations += 1

    def _close(self, call_id: str, call: Call) -> None:
        del self._open[call.executor][call_id]
        self._forget_caller(call_id, call)
        executor = self._engine_state.connections[call.executor]
        executor.active_invocations -= 1
        executor.held.unanswered_events -= call.is_event

    def _forget_caller(self, call_id: str, call: Call) -> None:
        asked = self._asked.get(call.caller or "")
        if asked is not None:
            asked.discard((call.executor, call_id))

    def _run_builtin(
        self, caller: str | None, function: Function, data: object, outcome: Outcome | None
    ) -> None:
        payload = self._payload_of(function, {} if data is None else data)
        if not is_object(payload):
            raise bad_input(function.id, "expected an object")
        answer: Outcome = outcome or _nobody_waits
        request = Request(caller, function.id, payload, answer)
        result = self.builtins[function.id](request)
        if result is not DEFERRED:
            answer(result, None)

    def _payload_of(self, function: Function, data: object) -> object:
        """What a built-in function is given; the large values that it only keeps stay unread."""
        kept = self.unread_fields.get(function.id)
        if not kept or type(data) is not msgspec.Raw or len(data) <= LARGE_VALUE_BYTES:
            _check_quick(function.id, data)
            return whole(data)
        fields = kept.reader(data)
        if fields is None:
            return None
        read_now = {key: field for key, field in fields.items() if key not in kept.names}
        _check_quick(function.id, read_now)
        return fields | {key: read(field) for key, field in read_now.items()}

    def _enqueue(
        self, message: InvokeFunction, queue: str | None, namespace: str, outcome: Outcome | None
    ) -> None:
        if self._engine_state.function(DEFAULT_NAMESPACE, QUEUE_PROVIDER) is None:
            raise EngineFault(protocol.ENQUEUE_ERROR, "No queue worker is connected.")
        receipt = self._engine_state.new_id()
        job: Json = {
            "queue": queue,
            "function_id": message.function_id,
            "data": message.data,
            "messageReceiptId": receipt,
            "traceparent": message.traceparent,
            "baggage": message.baggage,
        }
        if namespace != DEFAULT_NAMESPACE:
            job["namespace"] = namespace

        def queued(_result: object, error: Json | None) -> None:
            if outcome is None:
                return
            if error is not None:
                outcome(ABSENT, EngineFault(protocol.ENQUEUE_ERROR, str(error.get("message"))).body())
            else:
                outcome({"messageReceiptId": receipt}, None)

        self.call(QUEUE_PROVIDER, job, outcome=queued)

    def _reply_to(self, caller: Connection, asked: InvokeFunction) -> Outcome:
        caller.active_invocations += 1
        caller.held.pending_calls += 1
        # Not the message itself: while the call goes on, what it carried is not needed.
        call_id, function_id = asked.invocation_id or "", asked.function_id
        traceparent, baggage = asked.traceparent, asked.baggage

        def reply(result: object, error: Json | None) -> None:
            caller.active_invocations -= 1
            caller.held.pending_calls -= 1
            is_text = type(result) is msgspec.Raw
            if caller.inside and is_text and takes_long(result, MAX_READ_ANSWER_BYTES):
                result, error = ABSENT, too_long("the answer is read", MAX_READ_ANSWER_BYTES).body()
            answer = InvocationResult(
                invocation_id=call_id,
                function_id=function_id,
                error=error,
                traceparent=traceparent,
                baggage=baggage,
                result=result if error is None else ABSENT,
            )
            self._engine_state.send(caller.id, answer)

        return reply

    def _fail(self, outcome: Outcome | None, function_id: str, fault: EngineFault) -> None:
        if outcome is None:
            self._tell(f"call of {function_id} failed, nobody waits: {fault}")
        else:
            outcome(ABSENT, fault.body())

    def _tell(self, failure: str) -> None:
        """A subscriber that is gone fails with every event: one warning is enough until others come."""
        known = failure in self._told
        self._engine_state.log("debug" if known else "warning", failure)
        if not known:
            if len(self._told) >= MAX_TOLD_FAILURES:
                self._told.clear()
            self._told.add(failure)

    def _not_found(self, namespace: str, function_id: str) -> EngineFault:
        text = f"Function {function_id} not found in namespace {namespace}."
        elsewhere = self._engine_state.namespaces_with(function_id)
        if elsewhere:
            text += f" It is registered in namespace(s): {', '.join(elsewhere)}."
        return EngineFault(protocol.FUNCTION_NOT_FOUND, text)


def _check_quick(function_id: str, data: object) -> None:
    """Refuse what would keep everybody else waiting while it is read."""
    if takes_long(data):
        raise too_long(f"{function_id} reads what a call carries")


def _signed(function_id: str, data: object, caller: str) -> object:
    """What a worker sends with a call, with its own name in it where that is an object."""
    if type(data) is msgspec.Raw:
        text = bytes(data)
        if not text.startswith(b"{"):
            return data
        signed = with_field(text, _CALLER, caller)
        if signed is not None:
            return msgspec.Raw(signed)
        _check_quick(function_id, data)
        data = read(data)
    return {**data, protocol.CALLER: caller} if is_object(data) else data


def _namespace_of(requested: str | None) -> str:
    if requested is None:
        return DEFAULT_NAMESPACE
    if not requested.strip():
        raise EngineFault(protocol.INVALID_NAMESPACE, "namespace must not be blank")
    return requested


def _nobody_waits(_result: object, _error: Json | None) -> None:
    pass
