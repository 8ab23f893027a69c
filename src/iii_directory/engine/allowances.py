"""What one connection may keep on the engine, and the sentence it gets when that is used up. Pure.

Past a bound whoever asked is refused; what it has already stays, and nobody else notices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory.engine.engine_state import EngineFault
from iii_directory.limits import (
    MAX_CONNECTION_BINDINGS,
    MAX_CONNECTION_BYTES,
    MAX_CONNECTION_FUNCTIONS,
    MAX_CONNECTION_TRIGGER_TYPES,
    MAX_PENDING_CALLS,
    MAX_READ_BYTES,
    MAX_REGISTRATION_BYTES,
    MAX_REGISTRATION_DESCRIPTION_CHARS,
    MAX_REGISTRATION_ID_CHARS,
    MIB,
)
from iii_directory.wire.json_text import encode_value, too_long_sentence
from iii_directory.wire.protocol import LIMIT_EXCEEDED

if TYPE_CHECKING:
    from iii_directory.engine.bindings import Binding, TriggerType
    from iii_directory.engine.engine_state import Connection, Function
    from iii_directory.wire.messages import RegisterFunction, RegisterTrigger, RegisterTriggerType


def size_of(*parts: object) -> int:
    """What JSON values take as text, about what they take in memory."""
    return sum(len(encode_value(part)) for part in parts if part is not None)


def limit_exceeded(sentence: str) -> EngineFault:
    return EngineFault(LIMIT_EXCEEDED, sentence)


def too_long(who: str, most: int = MAX_READ_BYTES) -> EngineFault:
    """For what would keep everybody else waiting while somebody reads it."""
    return limit_exceeded(too_long_sentence(who, most))


def function_size(connection: Connection, message: RegisterFunction, held: Function | None) -> int:
    """The size of a function that a connection registers, in the place of ``held`` if it had it before.

    Raises:
        EngineFault: it is too large, or the connection holds as much as one may.
    """
    size = _registration_size(
        message.id, message.description, message.request_format, message.response_format, message.metadata
    )
    if held is None and connection.held.functions >= MAX_CONNECTION_FUNCTIONS:
        raise limit_exceeded(f"a connection provides at most {MAX_CONNECTION_FUNCTIONS} functions")
    _check_room(connection, size - (held.size if held is not None else 0))
    return size


def type_size(connection: Connection, message: RegisterTriggerType, held: TriggerType | None) -> int:
    """The same for a trigger type."""
    own = held if held is not None and held.owner == connection.id else None
    size = _registration_size(
        message.id, message.description, message.trigger_request_format, message.call_request_format
    )
    if own is None and connection.held.trigger_types >= MAX_CONNECTION_TRIGGER_TYPES:
        raise limit_exceeded(f"a connection provides at most {MAX_CONNECTION_TRIGGER_TYPES} trigger types")
    _check_room(connection, size - (own.size if own is not None else 0))
    return size


def binding_size(connection: Connection | None, message: RegisterTrigger, held: Binding | None) -> int:
    """The same for a binding; without a connection it is one that outlives its maker."""
    own = held if held is not None and connection is not None and held.subscriber == connection.id else None
    size = _registration_size(message.id, None, message.function_id, message.config, message.metadata)
    if connection is not None:
        if own is None and connection.held.bindings >= MAX_CONNECTION_BINDINGS:
            raise limit_exceeded(f"a connection has at most {MAX_CONNECTION_BINDINGS} bindings")
        _check_room(connection, size - (own.size if own is not None else 0))
    return size


def check_pending(connection: Connection) -> None:
    """Whether a connection may wait for the call that was just counted."""
    if connection.held.pending_calls > MAX_PENDING_CALLS:
        raise limit_exceeded(f"a connection waits for at most {MAX_PENDING_CALLS} calls at once")


def _registration_size(name: str, description: str | None, *parts: object) -> int:
    if len(name) > MAX_REGISTRATION_ID_CHARS:
        raise limit_exceeded(f"an id has at most {MAX_REGISTRATION_ID_CHARS} characters")
    if description is not None and len(description) > MAX_REGISTRATION_DESCRIPTION_CHARS:
        raise limit_exceeded(
            f"a description has at most {MAX_REGISTRATION_DESCRIPTION_CHARS} characters; this one has "
            f"{len(description)}"
        )
    size = len(name) + len(description or "") + size_of(*parts)
    if size > MAX_REGISTRATION_BYTES:
        raise limit_exceeded(
            f"a registration has at most {MAX_REGISTRATION_BYTES} bytes; this one has {size}"
        )
    return size


def _check_room(connection: Connection, size: int) -> None:
    if connection.held.size + size > MAX_CONNECTION_BYTES:
        raise limit_exceeded(
            f"what a connection registers holds at most {MAX_CONNECTION_BYTES // MIB} MiB together"
        )
