"""What a worker registers and who subscribes to it, between this worker's words and an engine's."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import orjson

from iii_directory.bus.seam import Subscription
from iii_directory.engine import protocol
from iii_directory.engine.messages import (
    InvocationResult,
    RegisterFunction,
    RegisterTrigger,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.bus.seam import Function, Payload
    from iii_directory.engine.messages import RegisterTriggerType, Registration
    from iii_directory.engine.wire_json import Json


class Listening(NamedTuple):
    """Who takes the events of a function: those that are surely the engine's, and those that may be."""

    heard: Callable[[Payload], None]
    doubted: Callable[[Payload], None]
    hears_workers: bool


def observable(kind: RegisterTriggerType) -> RegisterFunction:
    """A trigger type for an engine that has observable functions; old bindings to it count as observers."""
    return RegisterFunction(
        id=kind.id,
        description=kind.description,
        request_format=kind.call_request_format,
        response_format=None,
        metadata={"internal": True},
        observe={"delivery": "owner", "legacy_trigger_type": kind.id},
    )


def bound_by(message: Json) -> Subscription:
    """Who is bound, as an engine with trigger types tells their owner."""
    return Subscription(
        message["id"], message["function_id"], message.get("metadata"), message.get("namespace")
    )


def observed_by(observer: Json) -> Subscription:
    """Who observes, as an engine with observable functions tells their owner."""
    return Subscription(observer["id"], observer["target"], None, None, observes=True)


def place_of(message: Registration) -> tuple[str, ...]:
    """What two messages have in common of which the later one takes the place of the other.

    Of a binding not its id: one that is made again has a new one.
    """
    kind = type(message).__name__
    if isinstance(message, RegisterTrigger):
        config = orjson.dumps(message.config, option=orjson.OPT_SORT_KEYS)
        return kind, message.trigger_type, message.function_id, config.decode()
    return kind, message.id


def not_here(message: Json) -> InvocationResult:
    function_id = message["function_id"]
    error = {"code": protocol.FUNCTION_NOT_FOUND, "message": f"Function '{function_id}' not found"}
    return InvocationResult(message["invocation_id"], function_id, None, error)


def registration(function: Function) -> RegisterFunction:
    return RegisterFunction(
        id=function.id,
        description=function.description,
        request_format=function.request,
        response_format=function.response,
        metadata=function.metadata,
    )
