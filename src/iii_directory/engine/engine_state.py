"""What the engine remembers: connections, functions, trigger types and bindings. Pure.

The parts of the router (calls, triggers, channels, built-ins) share one :class:`EngineState`. They never send
anything; they append effects to its outbox, and the shell carries them out in order. A connection that has
used up a bound is refused what it asks for next; what it holds already stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec

from iii_directory import limits
from iii_directory.shapes import object_of
from iii_directory.text import without_controls
from iii_directory.wire.json_text import encode_value, too_long_sentence
from iii_directory.wire.protocol import (
    DEFAULT_NAMESPACE,
    DESERIALIZATION_ERROR,
    ENGINE_PREFIX,
    LIMIT_EXCEEDED,
    first_segment,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from iii_directory.engine.calls import Outcome
    from iii_directory.wire.json_text import Json
    from iii_directory.wire.messages import Message, RegisterTrigger, Registration


Level = Literal["debug", "info", "warning", "error"]


class EngineFault(Exception):  # noqa: N818 (it travels as an ErrorBody, not as a Python error)
    """A failure that goes to a caller as ``{code, message}``; `protocol` has the codes."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def body(self) -> Json:
        return {"code": self.code, "message": str(self)}


def bad_input(function_id: str, problem: str) -> EngineFault:
    """Make the fault for input that a built-in function cannot use."""
    return EngineFault(DESERIALIZATION_ERROR, f"Failed to deserialize input for {function_id}: {problem}")


class Send(msgspec.Struct):
    """Deliver a message to a connection."""

    connection_id: str
    message: Message
    is_event: bool = False
    """Whether the connection did not ask for it and no caller waits for what becomes of it."""


class Close(msgspec.Struct):
    """End a connection; ``abrupt`` drops the socket without a close frame."""

    connection_id: str
    abrupt: bool = False


class StartTimer(msgspec.Struct):
    """Call :meth:`Router.timer` with this key after a while."""

    key: tuple[str, str]
    seconds: float


class Log(msgspec.Struct):
    level: Level
    text: str


class EndChannel(msgspec.Struct):
    """One side of a channel never came: let go of the other."""

    channel_id: str


Effect = Send | Close | StartTimer | Log | EndChannel


@dataclass(slots=True)
class ConnectionUsage:
    """What one connection keeps in the engine's memory, counted as it comes and goes."""

    functions: int = 0
    trigger_types: int = 0
    bindings: int = 0
    channels: int = 0
    size: int = 0
    pending_calls: int = 0
    """What it waits for."""
    unanswered_events: int = 0
    """Calls to it for which no connection waits: the engine's own, and those of callers that do not wait."""


@dataclass(slots=True)
class Connection:
    """One worker connection. ``namespace`` is None until it is known where its registrations belong."""

    id: str
    reattach_token: str
    connected_at_ms: int
    ip_address: str | None = None
    namespace: str | None = None
    inside: bool = False
    """Whether it is a worker of the engine's own process, whose registrations no other may change."""
    names: list[str] = field(default_factory=list[str])
    description: str | None = None
    version: str | None = None
    runtime: str | None = None
    os: str | None = None
    pid: int | None = None
    isolation: str | None = None
    queued: list[Registration] = field(default_factory=list["Registration"])
    active_invocations: int = 0
    held: ConnectionUsage = field(default_factory=ConnectionUsage)
    log_lines: int = 0

    @property
    def name(self) -> str | None:
        """Return the name it announced last."""
        return self.names[-1] if self.names else None


@dataclass(slots=True, kw_only=True)
class RegisteredFunction:
    """A registered function. ``owner`` is a connection id, or None for what the engine provides itself."""

    id: str
    namespace: str
    owner: str | None
    worker_name: str | None = None
    description: str | None
    request_schema: object
    response_schema: object
    metadata: object = None
    size: int = 0

    @property
    def is_hidden(self) -> bool:
        """Return whether lists leave it out unless they are asked for internal functions."""
        is_engines = self.id.startswith(ENGINE_PREFIX) and not self.id.startswith("engine::queue::")
        return is_engines or object_of(self.metadata).get("internal") is True


class EngineState:
    """Connections, names and functions; ids and time come from outside."""

    def __init__(self, new_id: Callable[[], str], now_ms: Callable[[], int]) -> None:
        self.new_id = new_id
        self.now_ms = now_ms
        self.connections: dict[str, Connection] = {}
        self.names: dict[tuple[str, str], str] = {}
        self.functions: dict[tuple[str, str], RegisteredFunction] = {}
        self.outbox: list[Effect] = []
        self.functions_changed = False

    def send(self, connection_id: str, message: Message, *, is_event: bool = False) -> None:
        """Deliver if the connection is still there; a message to one that is gone is dropped."""
        if connection_id in self.connections:
            self.outbox.append(Send(connection_id, message, is_event))

    def start_timer(self, kind: str, subject: str, seconds: float) -> None:
        self.outbox.append(StartTimer((kind, subject), seconds))

    def log(self, level: Level, text: str) -> None:
        """Much of what is logged is a client's words: they stay on one line, and a short one."""
        self.outbox.append(Log(level, without_controls(text[: limits.MAX_LOG_CHARS])))

    def log_mistake(self, connection: Connection, text: str) -> None:
        """Log a line about a mistake of a connection; after many mistakes its lines are dropped."""
        connection.log_lines += 1
        if connection.log_lines <= limits.MAX_CONNECTION_LOG_LINES:
            self.log("warning", text)
        elif connection.log_lines == limits.MAX_CONNECTION_LOG_LINES + 1:
            self.log("warning", f"further mistakes of connection {connection.id} are not told")

    def add_function(self, function: RegisteredFunction) -> None:
        replaced = self.functions.get((function.namespace, function.id))
        self.functions[function.namespace, function.id] = function
        self.functions_changed = True
        owner = self.connections.get(function.owner or "")
        if owner is not None:
            owner.held.functions += replaced is None
            owner.held.size += function.size - (replaced.size if replaced else 0)

    def remove_function(self, namespace: str, function_id: str) -> None:
        function = self.functions.pop((namespace, function_id))
        self.functions_changed = True
        owner = self.connections.get(function.owner or "")
        if owner is not None:
            owner.held.functions -= 1
            owner.held.size -= function.size

    def functions_of(self, connection_id: str) -> list[RegisteredFunction]:
        return [f for f in self.functions.values() if f.owner == connection_id]

    def namespaces_with(self, function_id: str) -> list[str]:
        return sorted(namespace for namespace, name in self.functions if name == function_id)

    def worker_name(self, provided: RegisteredFunction | TriggerType) -> str:
        """Return the registered name of the owning connection, else the first segment of the id."""
        if provided.worker_name is not None:
            return provided.worker_name
        owner = self.connections.get(provided.owner or "")
        return (owner.name if owner else None) or first_segment(provided.id)

    def visible_connections(self) -> Iterator[Connection]:
        """Connections that are listed; a bare client without a process id stays hidden."""
        return (c for c in self.connections.values() if c.pid is not None)


TypeKey = tuple[str, str]
"""A namespace and an id."""


@dataclass(slots=True, kw_only=True)
class TriggerType:
    """A kind of event. ``owner`` is a connection id, or None for one the engine provides itself."""

    id: str
    namespace: str
    owner: str | None
    worker_name: str | None = None
    description: str
    configuration_schema: object
    request_schema: object
    check: Callable[[object], str | None] | None = None
    """For a built-in type: what is wrong with a config, or None."""
    size: int = 0

    @property
    def key(self) -> TypeKey:
        return self.namespace, self.id


@dataclass(slots=True, kw_only=True)
class Binding:
    """A function bound to a trigger type. ``provider`` is None while the binding is parked."""

    id: str
    trigger_type: str
    function_id: str
    config: object
    metadata: object
    namespace: str
    wanted_namespace: str | None
    subscriber: str | None
    home: str
    provider: TypeKey | None = None
    waiting: Outcome | None = None
    """Who waits for the owner's word, on the function path."""
    size: int = 0


def binding_of(message: RegisterTrigger, subscriber: str | None, home: str) -> Binding:
    return Binding(
        id=message.id,
        trigger_type=message.trigger_type,
        function_id=message.function_id,
        config=message.config,
        metadata=message.metadata,
        namespace=message.namespace or DEFAULT_NAMESPACE,
        wanted_namespace=message.trigger_namespace,
        subscriber=subscriber,
        home=home,
    )


def limit_exceeded(sentence: str) -> EngineFault:
    return EngineFault(LIMIT_EXCEEDED, sentence)


def too_long(who: str, most: int = limits.MAX_READ_BYTES) -> EngineFault:
    """Return the fault for a value that takes so long to read that other callers would wait."""
    return limit_exceeded(too_long_sentence(who, most))


def registration_size(
    connection: Connection | None,
    replaced: RegisteredFunction | TriggerType | Binding | None,
    name: str,
    description: str | None,
    *parts: object,
) -> int:
    """Return the size of a registration: what it takes as text, which is about what it takes in memory.

    ``replaced`` is what the connection registered under that name before. A registration without a connection
    outlives its maker and is not counted.

    Raises:
        EngineFault: it is too large, or the connection holds as much as one may.
    """
    if len(name) > limits.MAX_REGISTRATION_ID_CHARS:
        raise limit_exceeded(f"an id has at most {limits.MAX_REGISTRATION_ID_CHARS} characters")
    if description is not None and len(description) > limits.MAX_REGISTRATION_DESCRIPTION_CHARS:
        most = limits.MAX_REGISTRATION_DESCRIPTION_CHARS
        raise limit_exceeded(f"a description has at most {most} characters; this one has {len(description)}")
    size = len(name) + len(description or "")
    size += sum(len(encode_value(part)) for part in parts if part is not None)
    if size > (most := limits.MAX_REGISTRATION_BYTES):
        raise limit_exceeded(f"a registration has at most {most} bytes; this one has {size}")
    grows = size - (replaced.size if replaced is not None else 0)
    if connection is not None and connection.held.size + grows > limits.MAX_CONNECTION_BYTES:
        most = limits.MAX_CONNECTION_BYTES // limits.MIB
        raise limit_exceeded(f"what a connection registers holds at most {most} MiB together")
    return size
