"""What a worker says to an engine, as the JSON objects that are sent. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory.engine import protocol
from iii_directory.engine.messages import (
    InvocationResult,
    InvokeFunction,
    ObserverAck,
    Reattach,
    RegisterFunction,
    RegisterTrigger,
    RegisterTriggerType,
    TriggerRegistrationResult,
)
from iii_directory.engine.wire_json import ABSENT

if TYPE_CHECKING:
    from iii_directory.engine.messages import Message
    from iii_directory.engine.wire_json import Json


def as_json(message: Message) -> Json:
    """A message as an object; what is not there is left out, except where an engine wants to see a null."""
    match message:
        case InvocationResult():
            return _result(message)
        case InvokeFunction():
            return _invocation(message)
        case RegisterFunction():
            return _some(
                protocol.REGISTER_FUNCTION,
                id=message.id,
                description=message.description,
                request_format=message.request_format,
                response_format=message.response_format,
                metadata=message.metadata,
                observe=message.observe,
            )
        case RegisterTriggerType():
            return _some(
                protocol.REGISTER_TRIGGER_TYPE,
                id=message.id,
                description=message.description,
                trigger_request_format=message.trigger_request_format,
                call_request_format=message.call_request_format,
                namespace=message.namespace,
            )
        case RegisterTrigger():
            sent = _some(
                protocol.REGISTER_TRIGGER,
                id=message.id,
                trigger_type=message.trigger_type,
                function_id=message.function_id,
                metadata=message.metadata,
                namespace=message.namespace,
                trigger_namespace=message.trigger_namespace,
            )
            return {**sent, "config": message.config}
        case TriggerRegistrationResult():
            return _some(
                protocol.TRIGGER_REGISTRATION_RESULT,
                id=message.id,
                trigger_type=message.trigger_type,
                function_id=message.function_id,
                error=message.error,
            )
        case ObserverAck():
            return _some(
                protocol.OBSERVER_ACK,
                function_id=message.function_id,
                namespace=message.namespace,
                id=message.id,
                revision=message.revision,
            )
        case Reattach():
            return _some(
                protocol.REATTACH,
                previous_worker_id=message.previous_worker_id,
                reattach_token=message.reattach_token,
            )
        case _:
            raise TypeError(f"a worker never says {type(message).__name__}")


def _result(message: InvocationResult) -> Json:
    sent: Json = {
        "type": protocol.INVOCATION_RESULT,
        "invocation_id": message.invocation_id,
        "function_id": message.function_id,
    }
    if message.error is not None:
        sent["error"] = message.error
    elif message.result is not ABSENT:
        sent["result"] = message.result
    return sent


def _invocation(message: InvokeFunction) -> Json:
    sent: Json = {"type": protocol.INVOKE_FUNCTION, "function_id": message.function_id}
    if message.invocation_id is not None:
        sent["invocation_id"] = message.invocation_id
    if message.action is not None:
        sent["action"] = {"type": message.action}
    if message.metadata is not None:
        sent["metadata"] = message.metadata
    if message.namespace is not None:
        sent["namespace"] = message.namespace
    if message.traceparent is not None:
        sent["traceparent"] = message.traceparent
    if message.baggage is not None:
        sent["baggage"] = message.baggage
    if message.observer_id is not None:
        sent["activation"] = {"observer_id": message.observer_id}
    sent["data"] = message.data
    return sent


def _some(kind: str, **fields: object) -> Json:
    return {"type": kind, **{name: value for name, value in fields.items() if value is not None}}
