"""What workers say to the engine: one type for each kind of message. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iii_directory.engine.wire_json import Json


@dataclass(slots=True)
class RegisterFunction:
    id: str
    description: str | None
    request_format: object
    response_format: object
    metadata: object
    http_invoked: bool


@dataclass(slots=True)
class UnregisterFunction:
    id: str


@dataclass(slots=True)
class RegisterTriggerType:
    id: str
    description: str
    trigger_request_format: object
    call_request_format: object
    namespace: str | None


@dataclass(slots=True)
class UnregisterTriggerType:
    id: str
    namespace: str | None


@dataclass(slots=True)
class RegisterTrigger:
    id: str
    trigger_type: str
    function_id: str
    config: object
    metadata: object
    namespace: str | None
    trigger_namespace: str | None


@dataclass(slots=True)
class UnregisterTrigger:
    id: str


@dataclass(slots=True)
class TriggerRegistrationResult:
    id: str
    trigger_type: str
    function_id: str
    error: Json | None


@dataclass(slots=True)
class InvokeFunction:
    function_id: str
    data: object
    invocation_id: str | None
    action: str | None
    queue: str | None
    metadata: object
    namespace: str | None
    traceparent: str | None
    baggage: str | None


@dataclass(slots=True)
class InvocationResult:
    """An executor's answer. The id is in lower case: an executor may write a UUID its own way."""

    invocation_id: str
    function_id: str
    result: object
    error: Json | None


@dataclass(slots=True)
class Reattach:
    previous_worker_id: str
    reattach_token: str | None


@dataclass(slots=True)
class Ping:
    pass


@dataclass(slots=True)
class Ignored:
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
    Registration | TriggerRegistrationResult | InvokeFunction | InvocationResult | Reattach | Ping | Ignored
)
