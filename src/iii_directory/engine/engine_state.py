"""What the engine remembers, and the effects it asks its shell for: no sockets, no clock, no threads. Pure.

The parts of the router (calls, triggers, channels, built-ins) share one :class:`EngineState`. They never send
anything; they append effects to its outbox, and the shell carries them out in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from iii_directory.limits import MAX_CONNECTION_LOG_LINES, MAX_LOG_CHARS
from iii_directory.text import without_controls
from iii_directory.wire.protocol import DESERIALIZATION_ERROR, first_segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from iii_directory.engine.bindings import TriggerType
    from iii_directory.wire.json_text import Json
    from iii_directory.wire.messages import Message, Registration

Level = Literal["debug", "info", "warning", "error"]


class EngineFault(Exception):  # noqa: N818 (it travels as an ErrorBody, not as a Python error)
    """A failure that goes to a caller as ``{code, message}``; the codes are in ``protocol.CODES``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def body(self) -> Json:
        return {"code": self.code, "message": str(self)}


def bad_input(function_id: str, problem: str) -> EngineFault:
    """The fault of a caller whose input a built-in function cannot use."""
    return EngineFault(DESERIALIZATION_ERROR, f"Failed to deserialize input for {function_id}: {problem}")


@dataclass(slots=True)
class Send:
    """Deliver a message to a connection."""

    connection_id: str
    message: Message
    is_event: bool = False
    """Whether the connection did not ask for it and no caller waits for what becomes of it."""


@dataclass(slots=True)
class Close:
    """End a connection; ``abrupt`` drops the socket without a close frame."""

    connection_id: str
    abrupt: bool = False


@dataclass(slots=True)
class StartTimer:
    """Call :meth:`Router.timer` with this key after a while."""

    key: tuple[str, str]
    seconds: float


@dataclass(slots=True)
class Log:
    level: Level
    text: str


@dataclass(slots=True)
class EndChannel:
    """One side of a channel never came: let go of the other."""

    channel_id: str


Effect = Send | Close | StartTimer | Log | EndChannel


@dataclass(slots=True)
class Held:
    """What one connection keeps in the engine's memory, counted as it comes and goes."""

    functions: int = 0
    trigger_types: int = 0
    bindings: int = 0
    channels: int = 0
    size: int = 0
    pending_calls: int = 0
    """What it waits for."""
    unanswered_events: int = 0
    """What it was called for by nobody who counts: by the engine, or by somebody who does not wait."""


@dataclass(slots=True)
class Connection:
    """One worker connection. ``namespace`` is None until it is known where its registrations belong."""

    id: str
    reattach_token: str
    connected_at_ms: int
    ip_address: str | None = None
    namespace: str | None = None
    inside: bool = False
    """Whether it is a worker of the engine's own process: what is its is nobody else's to change."""
    names: list[str] = field(default_factory=list[str])
    description: str | None = None
    version: str | None = None
    runtime: str | None = None
    os: str | None = None
    pid: int | None = None
    isolation: str | None = None
    queued: list[Registration] = field(default_factory=list["Registration"])
    active_invocations: int = 0
    held: Held = field(default_factory=Held)
    log_lines: int = 0

    @property
    def name(self) -> str | None:
        """The name it announced last."""
        return self.names[-1] if self.names else None


@dataclass(slots=True, kw_only=True)
class Function:
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
    def internal(self) -> bool:
        return isinstance(self.metadata, dict) and self.metadata.get("internal") is True  # pyright: ignore[reportUnknownMemberType]


class EngineState:
    """Connections, names and functions; ids and time come from outside."""

    def __init__(self, new_id: Callable[[], str], now_ms: Callable[[], int]) -> None:
        self.new_id = new_id
        self.now_ms = now_ms
        self.connections: dict[str, Connection] = {}
        self.names: dict[tuple[str, str], str] = {}
        self.functions: dict[tuple[str, str], Function] = {}
        self.outbox: list[Effect] = []
        self.functions_changed = False

    def send(self, connection_id: str, message: Message, *, is_event: bool = False) -> None:
        """Deliver if the connection is still there; a message to one that is gone is dropped."""
        if connection_id in self.connections:
            self.outbox.append(Send(connection_id, message, is_event))

    def close(self, connection_id: str, *, abrupt: bool = False) -> None:
        self.outbox.append(Close(connection_id, abrupt))

    def start_timer(self, kind: str, subject: str, seconds: float) -> None:
        self.outbox.append(StartTimer((kind, subject), seconds))

    def end_channel(self, channel_id: str) -> None:
        self.outbox.append(EndChannel(channel_id))

    def log(self, level: Level, text: str) -> None:
        """Much of what is logged is a client's words: they stay on one line, and a short one."""
        self.outbox.append(Log(level, without_controls(text[:MAX_LOG_CHARS])))

    def log_mistake(self, connection: Connection, text: str) -> None:
        """A line about what a connection did wrong; one that goes on and on is not listened to for ever."""
        connection.log_lines += 1
        if connection.log_lines <= MAX_CONNECTION_LOG_LINES:
            self.log("warning", text)
        elif connection.log_lines == MAX_CONNECTION_LOG_LINES + 1:
            self.log("warning", f"further mistakes of connection {connection.id} are not told")

    def take_effects(self) -> list[Effect]:
        effects, self.outbox = self.outbox, []
        return effects

    def function(self, namespace: str, function_id: str) -> Function | None:
        return self.functions.get((namespace, function_id))

    def add_function(self, function: Function) -> None:
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

    def functions_of(self, connection_id: str) -> list[Function]:
        return [f for f in self.functions.values() if f.owner == connection_id]

    def namespaces_with(self, function_id: str) -> list[str]:
        return sorted(namespace for namespace, name in self.functions if name == function_id)

    def worker_name(self, provided: Function | TriggerType) -> str:
        """The registered name of the owning connection, else the first segment of the id."""
        if provided.worker_name is not None:
            return provided.worker_name
        owner = self.connections.get(provided.owner or "")
        return (owner.name if owner else None) or first_segment(provided.id)

    def visible_connections(self) -> Iterator[Connection]:
        """Connections that are listed; a bare client without a process id stays hidden."""
        return (c for c in self.connections.values() if c.pid is not None)
