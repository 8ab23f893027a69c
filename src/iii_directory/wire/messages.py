"""Every message between engines and workers: one type each, used by both sides. Pure.

A field that is None is not sent, and is None when it was not sent. What a call and an answer carry stays the
JSON it came as (:class:`msgspec.Raw`) until some code needs the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from iii_directory.wire.json_text import ABSENT

if TYPE_CHECKING:
    Payload = object
    """JSON text, or the value itself in the process that made it."""
else:
    Payload = msgspec.Raw

Json = dict[str, Any]


class _Message(msgspec.Struct, tag=str.lower, tag_field="type", omit_defaults=True, kw_only=True):
    """A message; its type on the wire is the name of its class in lower case."""


# Calls


class Action(msgspec.Struct, omit_defaults=True):
    """What a caller wants other than an answer."""

    type: Literal["void", "enqueue"]
    queue: str | None = None


class Activation(msgspec.Struct):
    """The observer that is told of something; the engine knows its function, namespace and metadata."""

    observer_id: object = None


class InvokeFunction(_Message, gc=False):
    function_id: str
    invocation_id: str | None = None
    action: Action | None = None
    metadata: Any = None
    namespace: str | None = None
    traceparent: str | None = None
    baggage: str | None = None
    activation: Activation | None = None
    data: Payload = ABSENT


class InvocationResult(_Message, gc=False):
    """The outcome of a call. The id is in lower case: an executor may write a UUID its own way."""

    invocation_id: str
    function_id: str
    error: Json | None = None
    traceparent: str | None = None
    baggage: str | None = None
    result: Payload = ABSENT


# Registrations


class RegisterFunction(_Message):
    id: str
    description: str | None = None
    request_format: Any = None
    response_format: Any = None
    metadata: Any = None
    invocation: Any = None
    """How the engine calls the function over HTTP."""
    observe: Json | None = None
    """How an observable function delivers, and the trigger type it stands for."""


class UnregisterFunction(_Message):
    id: str


class RegisterTriggerType(_Message):
    id: str
    description: str
    trigger_request_format: Any = None
    call_request_format: Any = None
    namespace: str | None = None


class UnregisterTriggerType(_Message):
    id: str
    namespace: str | None = None


class RegisterTrigger(_Message):
    """A binding, as a worker asks for it and as the owner of the trigger type is told of it."""

    id: str
    trigger_type: str
    function_id: str
    metadata: Any = None
    namespace: str | None = None
    trigger_namespace: str | None = None
    config: Any = ABSENT


class UnregisterTrigger(_Message):
    id: str
    trigger_type: str | None = None


class TriggerRegistrationResult(_Message):
    id: str
    trigger_type: str
    function_id: str
    error: Json | None = None


class RegistrationRejected(_Message):
    """Another worker has the function or the name, or it is past a limit; the engine's own owner is empty.

    To SDKs a function conflict is the one code that costs the function and not the whole worker, so a limit
    uses it too.
    """

    code: str | None = None
    namespace: str | None = None
    function_id: str | None = None
    worker_name: str | None = None
    owner_worker_id: str | None = None
    message: str | None = None


# The family of 0.25, in which functions are observed instead of triggers bound; our own engine ignores it


class ObservedFunction(msgspec.Struct):
    function_id: str
    namespace: str | None = None
    args: Any = None


class Observe(_Message):
    id: str
    source: ObservedFunction
    target: ObservedFunction
    metadata: Any = None


class Unobserve(_Message):
    id: str


class ObserveResult(_Message):
    """What the observing worker is told; a pending observer becomes active with its function."""

    id: str
    state: Literal["active", "pending"]


class ObserverAck(_Message):
    """The owner of an observable function has taken an observer in."""

    id: str
    function_id: str
    namespace: str | None = None
    revision: int = 0


class FunctionRegistered(_Message, omit_defaults=False):
    id: str
    namespace: str | None = None
    revision: int = 0
    local_dispatch: bool = False
    observers: list[Json] = []


class ObserverAdded(_Message):
    function_id: str
    observer: Json
    namespace: str | None = None
    revision: int = 0


class ObserverRemoved(_Message):
    function_id: str
    id: str
    namespace: str | None = None
    revision: int = 0


# Connections


class WorkerRegistered(_Message):
    worker_id: str
    reattach_token: str | None = None
    features: list[Any] = []


class Reattach(_Message):
    previous_worker_id: str
    reattach_token: str | None = None


class Ping(_Message):
    pass


class Pong(_Message):
    pass


class RegisterService(_Message):
    """Said by older SDKs; neither side has a use for it."""


class InvocationsObserved(_Message):
    """Said by SDKs of 0.25; neither side has a use for it."""


class LocalInvocationStats(_Message):
    """Said by SDKs of 0.25; neither side has a use for it."""


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
    | Observe
    | Unobserve
    | InvokeFunction
    | InvocationResult
    | TriggerRegistrationResult
    | RegistrationRejected
    | ObserveResult
    | ObserverAck
    | FunctionRegistered
    | ObserverAdded
    | ObserverRemoved
    | WorkerRegistered
    | Reattach
    | Ping
    | Pong
    | RegisterService
    | InvocationsObserved
    | LocalInvocationStats
)
