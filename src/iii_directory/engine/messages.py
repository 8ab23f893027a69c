"""What workers say to the engine, one type for each kind of message, and what the engine says to them. Pure.

What comes in is checked once and then typed. Types of which every call makes an object have slots, the others
are tuples: their classes are made in a quarter of the time, which every start waits for. What goes out is a
plain dict, made by a function of this module and by nothing else: the encoder takes dicts alone, and to make
a typed message first would put one more object on the way of every call (goals ``engine.two-hops`` and
``engine.in-process``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from iii_directory.engine import protocol
from iii_directory.engine.wire_json import ABSENT, Json

if TYPE_CHECKING:
    from iii_directory.engine.bindings import Binding


class RegisterFunction(NamedTuple):
    id: str
    description: str | None
    request_format: object
    response_format: object
    metadata: object = None
    http_invoked: bool = False
    observe: Json | None = None
    """Of an observable function: how it delivers, and the trigger type it stands for."""


class UnregisterFunction(NamedTuple):
    id: str


class RegisterTriggerType(NamedTuple):
    id: str
    description: str
    trigger_request_format: object
    call_request_format: object
    namespace: str | None = None
    observed: str | None = None
    """The observable function whose observers are the bindings of this type."""


class UnregisterTriggerType(NamedTuple):
    id: str
    namespace: str | None


class RegisterTrigger(NamedTuple):
    id: str
    trigger_type: str
    function_id: str
    config: object
    metadata: object = None
    namespace: str | None = None
    trigger_namespace: str | None = None
    observes: bool = False
    """Whether it was said as an observer of a function, and is to be answered as one."""


class UnregisterTrigger(NamedTuple):
    id: str


class TriggerRegistrationResult(NamedTuple):
    id: str
    trigger_type: str
    function_id: str
    error: Json | None


@dataclass(slots=True, kw_only=True)
class InvokeFunction:
    function_id: str
    data: object
    invocation_id: str | None = None
    action: str | None = None
    queue: str | None = None
    metadata: object = None
    namespace: str | None = None
    traceparent: str | None = None
    baggage: str | None = None
    observer_id: str | None = None
    """The observer that is told of something; the engine knows its function, namespace and metadata."""


@dataclass(slots=True)
class InvocationResult:
    """An executor's answer. The id is in lower case: an executor may write a UUID its own way."""

    invocation_id: str
    function_id: str
    result: object
    error: Json | None


class Reattach(NamedTuple):
    previous_worker_id: str
    reattach_token: str | None


class ObserverAck(NamedTuple):
    """The owner of an observable function has taken an observer in."""

    function_id: str
    namespace: str | None
    id: str
    revision: int


@dataclass(slots=True)
class Ping:
    pass


class Ignored(NamedTuple):
    """A message this engine has no use for: pongs, telemetry, service records, newer families."""

    type: str


Registration = (
    RegisterFunction
    | UnregisterFunction
    | RegisterTriggerType
    | UnregisterTriggerType
    | RegisterTrigger
    | UnregisterTrigger
)
Message = (
    Registration
    | TriggerRegistrationResult
    | InvokeFunction
    | InvocationResult
    | Reattach
    | ObserverAck
    | Ping
    | Ignored
)


def worker_registered(worker_id: str, reattach_token: str, *, observes: bool = False) -> Json:
    sent: Json = {
        "type": protocol.WORKER_REGISTERED,
        "worker_id": worker_id,
        "reattach_token": reattach_token,
    }
    return {**sent, "features": [protocol.OBSERVE_FEATURE]} if observes else sent


def pong() -> Json:
    return {"type": protocol.PONG}


def invocation(asked: InvokeFunction, call_id: str, data: object) -> Json:
    """A call as its executor is asked for it."""
    sent: Json = {
        "type": protocol.INVOKE_FUNCTION,
        "invocation_id": call_id,
        "function_id": asked.function_id,
        "data": data,
    }
    if asked.metadata is not None:
        sent["metadata"] = asked.metadata
    return _traced(sent, asked)


def invocation_result(asked: InvokeFunction, result: object, error: Json | None) -> Json:
    """The outcome of a call as its caller is told."""
    sent: Json = {
        "type": protocol.INVOCATION_RESULT,
        "invocation_id": asked.invocation_id,
        "function_id": asked.function_id,
    }
    if error is not None:
        sent["error"] = error
    elif result is not ABSENT:
        sent["result"] = result
    return _traced(sent, asked)


def invocation_error(call_id: object, function_id: object, error: Json) -> Json:
    """The failure of a call of which nothing but its id is known."""
    return {
        "type": protocol.INVOCATION_RESULT,
        "invocation_id": call_id,
        "function_id": function_id,
        "error": error,
    }


def function_rejected(namespace: str, function_id: str, owner: str, message: str | None = None) -> Json:
    """Somebody else has the function, or it is past a limit; ``owner`` is empty for the engine's own.

    To SDKs this is the one code that costs the function and not the whole worker, so a limit uses it too.
    """
    rejected: Json = {
        "type": protocol.REGISTRATION_REJECTED,
        "code": protocol.FUNCTION_CONFLICT,
        "namespace": namespace,
        "function_id": function_id,
        "owner_worker_id": owner,
    }
    return rejected if message is None else {**rejected, "message": message}


def name_rejected(namespace: str, name: str, owner: str) -> Json:
    """Somebody else has the name."""
    return {
        "type": protocol.REGISTRATION_REJECTED,
        "code": protocol.WORKER_CONFLICT,
        "namespace": namespace,
        "worker_name": name,
        "owner_worker_id": owner,
    }


def binding_made(binding: Binding, type_namespace: str) -> Json:
    """A binding as the owner of its trigger type is told of it."""
    sent: Json = {
        "type": protocol.REGISTER_TRIGGER,
        "id": binding.id,
        "trigger_type": binding.trigger_type,
        "function_id": binding.function_id,
        "config": binding.config,
    }
    if binding.metadata is not None:
        sent["metadata"] = binding.metadata
    if binding.namespace != protocol.DEFAULT_NAMESPACE:
        sent["namespace"] = binding.namespace
    if type_namespace != protocol.DEFAULT_NAMESPACE:
        sent["trigger_namespace"] = type_namespace
    return sent


def binding_ended(binding: Binding) -> Json:
    return {"type": protocol.UNREGISTER_TRIGGER, "id": binding.id, "trigger_type": binding.trigger_type}


def function_registered(namespace: str, function_id: str, revision: int) -> Json:
    """An observable function is there; its observers are told of one by one."""
    return {
        "type": protocol.FUNCTION_REGISTERED,
        "id": function_id,
        "namespace": namespace,
        "revision": revision,
        "local_dispatch": False,
        "observers": [],
    }


def observer_added(binding: Binding, namespace: str, function_id: str, revision: int) -> Json:
    """A binding as the owner of an observable function is told of it."""
    observer: Json = {"id": binding.id, "args": {}, "filters": {}, "target": binding.function_id}
    if not binding.observes:
        observer["legacy"] = {"trigger_type": binding.trigger_type, "config": binding.config}
    return {
        "type": protocol.OBSERVER_ADDED,
        "function_id": function_id,
        "namespace": namespace,
        "revision": revision,
        "observer": observer,
    }


def observer_removed(binding: Binding, namespace: str, function_id: str, revision: int) -> Json:
    return {
        "type": protocol.OBSERVER_REMOVED,
        "function_id": function_id,
        "namespace": namespace,
        "revision": revision,
        "id": binding.id,
    }


def observe_result(binding_id: str, *, active: bool) -> Json:
    """What the observing worker is told; one that is pending becomes active with its function."""
    return {
        "type": protocol.OBSERVE_RESULT,
        "id": binding_id,
        "state": "active" if active else "pending",
    }


def binding_refused(binding: Binding, error: Json) -> Json:
    """What the subscriber is told when its binding was not taken."""
    return {
        "type": protocol.TRIGGER_REGISTRATION_RESULT,
        "id": binding.id,
        "trigger_type": binding.trigger_type,
        "function_id": binding.function_id,
        "error": error,
    }


def _traced(sent: Json, asked: InvokeFunction) -> Json:
    if asked.traceparent is not None:
        sent["traceparent"] = asked.traceparent
    if asked.baggage is not None:
        sent["baggage"] = asked.baggage
    return sent
