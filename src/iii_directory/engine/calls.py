"""Route invocations from a caller to an executor and back, and fire events of built-in trigger types. Pure.

Every call has exactly one outcome. Every subscriber of an event is called separately, so a slow or missing
subscriber does not delay the others.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec

from iii_directory import limits
from iii_directory.engine.engine_state import EngineFault, Send, bad_input, limit_exceeded, too_long
from iii_directory.shapes import is_object, object_of
from iii_directory.wire import protocol
from iii_directory.wire.codec import with_field
from iii_directory.wire.json_text import ABSENT, read, takes_long, whole
from iii_directory.wire.messages import InvocationResult, InvokeFunction
from iii_directory.wire.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.engine_state import Binding, Connection, EngineState, RegisteredFunction
    from iii_directory.engine.triggers import Triggers
    from iii_directory.wire.json_text import Json

    Outcome = Callable[[object, Json | None], None]
    """Takes the result of a call, or its error body."""

T = TypeVar("T")
QUEUE_PROVIDER: Final = "engine::queue::enqueue"
_CALLER: Final = protocol.CALLER.encode()


class OpenCall(msgspec.Struct):
    """A call that is not answered yet, and who is to be answered; a struct is made in a third of the time."""

    function_id: str
    caller: Connection | None = None
    """The connection that asked; None for calls of the engine itself."""
    asked_id: str | None = None
    """The id that the caller gave the call; None if no connection waits for an answer."""
    traceparent: str | None = None
    baggage: str | None = None
    outcome: Outcome | None = None
    """For calls of the engine itself: what takes the answer."""


class BuiltinRequest(msgspec.Struct):
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
    """The type of :data:`DEFERRED`: the built-in will call ``BuiltinRequest.answer`` itself."""


DEFERRED: Final = DeferredAnswer()


class CallTable:
    """The open calls of an engine and the way each of them goes."""

    def __init__(self, engine_state: EngineState) -> None:
        self._engine_state = engine_state
        self._open: dict[str, dict[str, OpenCall]] = {}
        """By executor and call id."""
        self._asked: dict[str, set[tuple[str, str]]] = {}
        """By caller: the executors and ids of the open calls it asked for."""
        self.builtins: dict[str, Callable[[BuiltinRequest], object]] = {}
        self.unread_fields: dict[str, UnreadFields] = {}
        """How built-in functions that only keep the values of some fields are given a large payload."""
        self._logged: set[str] = set()

    def invoke(self, caller: Connection, message: InvokeFunction) -> None:
        """Route the call that a worker asked for."""
        call = OpenCall(message.function_id, caller, None, message.traceparent, message.baggage)
        action = message.action
        if message.invocation_id is not None and (action is None or action.type != "void"):
            call.asked_id = message.invocation_id
            caller.active_invocations += 1
            caller.held.pending_calls += 1
        try:
            if caller.held.pending_calls > (most := limits.MAX_PENDING_CALLS):
                raise limit_exceeded(f"a connection waits for at most {most} calls at once")
            namespace = DEFAULT_NAMESPACE if message.namespace is None else message.namespace
            if not namespace.strip():
                raise EngineFault(protocol.INVALID_NAMESPACE, "namespace must not be blank")
            if action is not None and action.type == "enqueue":
                self._enqueue(call, message, namespace)
            else:
                self._dispatch(call, message, namespace)
        except EngineFault as fault:
            self._fail(call, fault)

    def call(
        self,
        function_id: str,
        data: object,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        metadata: object = None,
        outcome: Outcome | None = None,
    ) -> None:
        """Route a call of the engine itself: an event, a condition, a queue provider."""
        call = OpenCall(function_id, outcome=outcome)
        message = InvokeFunction(function_id=function_id, data=data, metadata=metadata)
        try:
            self._dispatch(call, message, namespace)
        except EngineFault as fault:
            self._fail(call, fault)

    def resolve(self, executor: str, message: InvocationResult) -> None:
        """Pass the answer of an executor on. Late, unknown and foreign ids are dropped."""
        calls = self._open.get(executor)
        call = calls.get(message.invocation_id) if calls else None
        if call is None:
            return
        self._close(executor, message.invocation_id, call)
        if call.asked_id is None:
            self.settle(call, message.result, message.error)
        else:
            # The executor's message goes on to the caller, in the caller's own words.
            message.invocation_id, message.function_id = call.asked_id, call.function_id
            message.traceparent, message.baggage = call.traceparent, call.baggage
            self._reply(call, message)

    def settle(self, call: OpenCall, result: object, error: Json | None) -> None:
        """Give a call its outcome."""
        if call.asked_id is not None:
            answer = InvocationResult(
                invocation_id=call.asked_id,
                function_id=call.function_id,
                error=error,
                traceparent=call.traceparent,
                baggage=call.baggage,
                result=result,
            )
            self._reply(call, answer)
        elif call.outcome is not None:
            call.outcome(result, error)

    def stop(self, connection_id: str) -> None:
        """Fail what a connection that is gone executed, and forget what it asked for."""
        stopped = self._open.pop(connection_id, {})
        for call_id, call in stopped.items():
            self._forget_caller(connection_id, call_id, call)
        for executor, call_id in self._asked.pop(connection_id, ()):
            # The executor is not told, and its late answer is dropped. A worker inside drops what it has not
            # begun, and answers nothing.
            call = self._open[executor][call_id]
            self._close(executor, call_id, call)
            if not self._engine_state.connections[executor].inside:
                self._record(executor, call_id, OpenCall(call.function_id))
        body = EngineFault(protocol.INVOCATION_STOPPED, "Invocation stopped").body()
        for call in stopped.values():
            self.settle(call, ABSENT, body)

    def open_calls(self) -> int:
        return sum(map(len, self._open.values()))

    def _dispatch(self, call: OpenCall, message: InvokeFunction, namespace: str) -> None:
        """Hand a call to the executor of its function; the message is changed into what the executor gets."""
        engine_state = self._engine_state
        function = engine_state.functions.get((namespace, message.function_id))
        if function is None:
            text = f"Function {message.function_id} not found in namespace {namespace}."
            if elsewhere := engine_state.namespaces_with(message.function_id):
                text += f" It is registered in namespace(s): {', '.join(elsewhere)}."
            raise EngineFault(protocol.FUNCTION_NOT_FOUND, text)
        executor = function.owner
        if executor is None:
            self._run_builtin(call, function, message.data)
            return
        call_id = message.invocation_id.lower() if message.invocation_id else engine_state.new_id()
        while call_id in self._open.get(executor, ()):
            call_id = engine_state.new_id()
        if engine_state.connections[executor].inside and takes_long(message.data):
            raise too_long(f"{function.id} reads what a call carries")
        if call.caller is not None:
            message.data = _signed(function.id, message.data, call.caller.id)
        # Recorded before it is sent: an answer that comes at once must find its call.
        self._record(executor, call_id, call)
        message.invocation_id = call_id
        message.action = message.namespace = message.activation = None
        engine_state.outbox.append(Send(executor, message, call.asked_id is None))

    def _record(self, executor_id: str, call_id: str, call: OpenCall) -> None:
        executor = self._engine_state.connections[executor_id]
        if call.asked_id is None:
            if executor.held.unanswered_events >= (most := limits.MAX_UNANSWERED_EVENTS):
                if call.outcome is not None:
                    raise limit_exceeded(f"a worker may leave {most} events unanswered")
                # It is sent all the same, but its answer is not waited for.
                return
            executor.held.unanswered_events += 1
        calls = self._open.get(executor_id)
        if calls is None:
            calls = self._open[executor_id] = {}
        calls[call_id] = call
        if call.caller is not None:
            self._asked.setdefault(call.caller.id, set()).add((executor_id, call_id))
        executor.active_invocations += 1

    def _close(self, executor_id: str, call_id: str, call: OpenCall) -> None:
        del self._open[executor_id][call_id]
        self._forget_caller(executor_id, call_id, call)
        executor = self._engine_state.connections[executor_id]
        executor.active_invocations -= 1
        executor.held.unanswered_events -= call.asked_id is None

    def _forget_caller(self, executor: str, call_id: str, call: OpenCall) -> None:
        asked = self._asked.get(call.caller.id) if call.caller is not None else None
        if asked is not None:
            asked.discard((executor, call_id))

    def _reply(self, call: OpenCall, message: InvocationResult) -> None:
        """Send an answer to the connection that waits for it."""
        caller = call.caller
        if caller is None:
            return
        caller.active_invocations -= 1
        caller.held.pending_calls -= 1
        result = message.result
        if caller.inside and type(result) is msgspec.Raw and takes_long(result, limits.MAX_READ_ANSWER_BYTES):
            message.error = too_long("the answer is read", limits.MAX_READ_ANSWER_BYTES).body()
        if message.error is not None:
            message.result = ABSENT
        if caller.id in self._engine_state.connections:
            self._engine_state.outbox.append(Send(caller.id, message))

    def _run_builtin(self, call: OpenCall, function: RegisteredFunction, data: object) -> None:
        kept, fields = self.unread_fields.get(function.id), None
        if kept and type(data) is msgspec.Raw and len(data) > limits.LARGE_VALUE_BYTES:
            # The large values that it only keeps stay unread.
            fields = kept.reader(data)
            if fields is None:
                raise bad_input(function.id, "expected an object")
            data = {key: field for key, field in fields.items() if key not in kept.names}
        if takes_long(data):
            raise too_long(f"{function.id} reads what a call carries")
        payload: object = {} if data is None else whole(data)
        if not is_object(payload):
            raise bad_input(function.id, "expected an object")
        if fields is not None:
            payload = {**fields, **payload}
        caller = call.caller.id if call.caller is not None else None
        request = BuiltinRequest(caller, function.id, payload, partial(self.settle, call))
        result = self.builtins[function.id](request)
        if result is not DEFERRED:
            self.settle(call, result, None)

    def _enqueue(self, call: OpenCall, message: InvokeFunction, namespace: str) -> None:
        if (DEFAULT_NAMESPACE, QUEUE_PROVIDER) not in self._engine_state.functions:
            raise EngineFault(protocol.ENQUEUE_ERROR, "No queue worker is connected.")
        receipt = self._engine_state.new_id()
        job: Json = {
            "queue": message.action.queue if message.action is not None else None,
            "function_id": message.function_id,
            "data": message.data,
            "messageReceiptId": receipt,
            "traceparent": message.traceparent,
            "baggage": message.baggage,
        }
        if namespace != DEFAULT_NAMESPACE:
            job["namespace"] = namespace

        def queued(_result: object, error: Json | None) -> None:
            if error is not None:
                fault = EngineFault(protocol.ENQUEUE_ERROR, str(error.get("message")))
                self.settle(call, ABSENT, fault.body())
            else:
                self.settle(call, {"messageReceiptId": receipt}, None)

        self.call(QUEUE_PROVIDER, job, outcome=queued)

    def _fail(self, call: OpenCall, fault: EngineFault) -> None:
        if call.asked_id is not None or call.outcome is not None:
            self.settle(call, ABSENT, fault.body())
            return
        # A subscriber that is gone fails with every event: one warning is enough until others come.
        failure = f"call of {call.function_id} failed, and no caller waits for it: {fault}"
        self._engine_state.log("debug" if failure in self._logged else "warning", failure)
        if len(self._logged) >= limits.MAX_TOLD_FAILURES:
            self._logged.clear()
        self._logged.add(failure)


def _signed(function_id: str, data: object, caller: str) -> object:
    """Write the caller's id into what a worker sends with a call, where that is an object."""
    if type(data) is msgspec.Raw:
        text = bytes(data)
        if not text.startswith(b"{"):
            return data
        signed = with_field(text, _CALLER, caller)
        if signed is not None:
            return msgspec.Raw(signed)
        if takes_long(data):
            raise too_long(f"{function_id} reads what a call carries")
        data = read(data)
    return {**data, protocol.CALLER: caller} if is_object(data) else data


class Cause:
    """Something that happened, and how many events came of events that came of it."""

    events = 0


class BuiltinEvents:
    """Fires the built-in trigger types."""

    def __init__(self, engine_state: EngineState, calls: CallTable, triggers: Triggers) -> None:
        self._engine_state = engine_state
        self._calls = calls
        self._triggers = triggers
        self._depth = 0
        self._cause = Cause()

    def fire(
        self,
        trigger_type: str,
        event: object,
        matches: Callable[[Json], bool] | None = None,
        *,
        has_conditions: bool = False,
        has_metadata: bool = True,
    ) -> None:
        """Call every subscriber of a built-in type whose config matches.

        With ``has_conditions`` a condition function that a binding names is asked first. Without
        ``has_metadata`` the metadata of a binding is not delivered.
        """
        # A built-in function that an event called causes events of its own, and these may call it again.
        if self._depth:
            self._cause.events += 1
        else:
            self._cause = Cause()
        if self._depth > limits.MAX_EVENT_DEPTH or self._cause.events > limits.MAX_NESTED_EVENTS:
            self._engine_state.log("warning", f"events of {trigger_type} cause each other and were stopped")
            return
        provider = (DEFAULT_NAMESPACE, trigger_type)
        bound = [b for b in self._triggers.live(trigger_type) if b.provider == provider]
        # A config that is null or another value counts as empty.
        chosen = [b for b in bound if matches is None or matches(object_of(b.config))]
        self._depth += 1
        try:
            for binding in chosen:
                condition = object_of(binding.config).get("condition_function_id") if has_conditions else None
                if isinstance(condition, str):
                    self._ask_and_deliver(condition, binding, event)
                else:
                    home, metadata = binding.namespace, binding.metadata if has_metadata else None
                    self._calls.call(binding.function_id, event, namespace=home, metadata=metadata)
        finally:
            self._depth -= 1

    def continued(self, action: Callable[[T], None]) -> Callable[[T], None]:
        """Return an action that may run later and whose events count as caused by what happens now."""
        depth, cause = self._depth, self._cause

        def later(given: T) -> None:
            before = self._depth, self._cause
            self._depth, self._cause = depth, cause
            try:
                action(given)
            finally:
                self._depth, self._cause = before

        return later

    def _ask_and_deliver(self, condition: str, binding: Binding, event: object) -> None:
        def answered(result: object, error: Json | None) -> None:
            # Only an explicit false or a failure holds the event back; and by now it may be unbound.
            refused = result is False or (type(result) is msgspec.Raw and bytes(result) == b"false")
            if error is None and not refused and self._triggers.bindings.get(binding.id) is binding:
                home, metadata = binding.namespace, binding.metadata
                self._calls.call(binding.function_id, event, namespace=home, metadata=metadata)

        self._calls.call(condition, event, namespace=binding.namespace, outcome=answered)
