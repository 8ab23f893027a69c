"""The engine as a state machine: messages in, effects out. Pure.

    shell ── connect / receive / disconnect / timer ──▶ Router ──▶ effects ──▶ shell

It knows no sockets, no clock and no threads; ids and time come through its state, storage through the
built-ins. Every method returns the effects it caused, in the order they are to be carried out. Of streaming
channels only the table is kept here; their bytes flow through the shell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from iii_directory import limits
from iii_directory.engine.calls import BuiltinEvents, CallTable
from iii_directory.engine.engine_state import (
    Close,
    Connection,
    EndChannel,
    EngineFault,
    EngineState,
    RegisteredFunction,
    limit_exceeded,
    registration_size,
)
from iii_directory.engine.triggers import Rows, Triggers
from iii_directory.text import skeleton
from iii_directory.wire import messages as m
from iii_directory.wire import protocol
from iii_directory.wire.access import same_secret
from iii_directory.wire.codec import UndecodableError, decode
from iii_directory.wire.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.builtins.table import BuiltinWorker
    from iii_directory.engine.engine_state import Effect


Direction = Literal["read", "write"]


@dataclass(slots=True)
class Channel:
    """One channel; each side can be taken once."""

    id: str
    access_key: str
    buffer_size: int
    maker: Connection | None = None
    taken: set[Direction] = field(default_factory=set[Direction])


class Channels:
    """Channels by id, until they were used or one side never came."""

    def __init__(self, engine_state: EngineState) -> None:
        self._engine_state = engine_state
        self._channels: dict[str, Channel] = {}

    def create(self, wanted_buffer: int | None, maker: Connection | None) -> Channel:
        """Make a channel, which outlives its maker.

        Raises:
            EngineFault: the maker has as many open as one may, or the engine has.
        """
        if maker is not None and maker.held.channels >= limits.MAX_CONNECTION_CHANNELS:
            raise limit_exceeded(f"a connection has at most {limits.MAX_CONNECTION_CHANNELS} channels open")
        if len(self._channels) >= limits.MAX_CHANNELS:
            raise limit_exceeded(f"an engine has at most {limits.MAX_CHANNELS} channels open")
        size = limits.DEFAULT_CHANNEL_BUFFER if wanted_buffer is None else wanted_buffer
        new_id = self._engine_state.new_id
        channel = Channel(new_id(), new_id(), max(1, min(size, limits.MAX_CHANNEL_BUFFER)), maker)
        if maker is not None:
            maker.held.channels += 1
        self._channels[channel.id] = channel
        self._engine_state.start_timer("channel-idle", channel.id, limits.CHANNEL_IDLE_SECONDS)
        return channel

    def find(self, channel_id: str, access_key: str) -> Channel | None:
        channel = self._channels.get(channel_id)
        return channel if channel is not None and same_secret(access_key, channel.access_key) else None

    def forget(self, channel_id: str) -> None:
        channel = self._channels.pop(channel_id, None)
        if channel is not None and channel.maker is not None:
            channel.maker.held.channels -= 1

    def idle(self, channel_id: str) -> None:
        """Time is up: a channel whose two sides are not both there ends."""
        channel = self._channels.get(channel_id)
        if channel is not None and channel.taken != {"read", "write"}:
            self.forget(channel_id)
            self._engine_state.outbox.append(EndChannel(channel_id))


FUNCTIONS_AVAILABLE: Final = "engine::functions-available"
WORKERS_AVAILABLE: Final = "engine::workers-available"


class Router:
    """One engine. Its parts, all but this class itself, are what the built-ins are made on."""

    def __init__(self, new_id: Callable[[], str], now_ms: Callable[[], int]) -> None:
        self.engine_state = EngineState(new_id, now_ms)
        self.calls = CallTable(self.engine_state)
        self.triggers = Triggers(self.engine_state)
        self.events = BuiltinEvents(self.engine_state, self.calls, self.triggers)
        self.channels = Channels(self.engine_state)
        self.rows = Rows(self.engine_state, self.triggers)
        self.builtin_workers: dict[str, BuiltinWorker] = {}
        self._timers: dict[str, Callable[[str], None]] = {
            "namespace-grace": self._grace_over,
            "trigger-ack": self.triggers.acknowledgement_overdue,
            "functions-event": self._functions_settled,
            "channel-idle": self.channels.idle,
        }
        self._functions_timer_runs = False
        self._announced_functions: set[tuple[str, str]] = set()

    # What the shell calls

    def connect(self, ip_address: str | None = None, *, inside: bool = False) -> tuple[str, list[Effect]]:
        """Take in a worker at a socket or ``inside`` this process; return its connection id and effects."""
        engine_state = self.engine_state
        connection = Connection(
            engine_state.new_id(), engine_state.new_id(), engine_state.now_ms(), ip_address, inside=inside
        )
        engine_state.connections[connection.id] = connection
        welcome = m.WorkerRegistered(worker_id=connection.id, reattach_token=connection.reattach_token)
        engine_state.send(connection.id, welcome)
        engine_state.start_timer("namespace-grace", connection.id, limits.NAMESPACE_GRACE_SECONDS)
        self.worker_event("worker_connected", connection)
        return connection.id, self._effects()

    def receive(self, connection_id: str, frame: bytes) -> list[Effect]:
        """Handle a frame. A frame that is not a message never ends the connection."""
        try:
            message = decode(frame)
        except UndecodableError as error:
            message = error
        return self._effects() if message is None else self.accept(connection_id, message)

    def accept(self, connection_id: str, message: m.Message | UndecodableError) -> list[Effect]:
        """Handle a message that came without a frame, or in one that was decoded already or could not be."""
        connection = self.engine_state.connections.get(connection_id)
        if connection is None:
            pass  # it is gone
        elif type(message) is m.InvokeFunction:
            self.calls.invoke(connection, message)
        elif type(message) is m.InvocationResult:
            self.calls.resolve(connection_id, message)
        elif isinstance(message, UndecodableError):
            self._answer_undecodable(connection, message)
        elif isinstance(message, m.TriggerRegistrationResult):
            self.triggers.acknowledge(connection_id, message)
        elif isinstance(message, m.Reattach):
            self._reattach(connection, message)
        elif isinstance(message, m.Ping):
            self.engine_state.send(connection_id, m.Pong())
        elif isinstance(message, m.Registration):
            self._register_or_queue(connection, message)
        # Pongs, telemetry and what engines alone say have no effect.
        return self._effects()

    def disconnect(self, connection_id: str) -> list[Effect]:
        """Release what a lost connection had."""
        self._forget(connection_id)
        return self._effects()

    def timer(self, key: tuple[str, str]) -> list[Effect]:
        """Carry on after a timer that an effect started."""
        kind, subject = key
        self._timers[kind](subject)
        return self._effects()

    def carry_on(self, action: Callable[[], None]) -> list[Effect]:
        """Carry on after work that was done elsewhere."""
        action()
        return self._effects()

    # What built-ins call

    def announce(self, connection: Connection, namespace: str, name: str | None) -> bool:
        """Take an announcement: claim the name, settle the namespace, let the registrations in."""
        if connection.namespace is not None:
            namespace = connection.namespace
        if name is not None and name not in connection.names:
            if len(connection.names) >= limits.MAX_CONNECTION_NAMES:
                raise limit_exceeded(f"a connection has at most {limits.MAX_CONNECTION_NAMES} names")
            holder = self._holder_of(connection, namespace, name)
            if holder != connection.id:
                self._reject_name(connection, namespace, name, holder)
                return False
            connection.names.append(name)
        self._settle_namespace(connection, namespace)
        return True

    def _reject_name(self, connection: Connection, namespace: str, name: str, holder: str) -> None:
        rejected = m.RegistrationRejected(
            code=protocol.WORKER_CONFLICT, namespace=namespace, worker_name=name, owner_worker_id=holder
        )
        self.engine_state.send(connection.id, rejected)
        self._forget(connection.id)
        self.engine_state.outbox.append(Close(connection.id))

    def _holder_of(self, connection: Connection, namespace: str, name: str) -> str:
        """Who has a name, or one that looks like it and belongs to the engine or a worker inside it."""
        looks = skeleton(name)
        if looks in map(skeleton, self.builtin_workers):
            return ""
        for (_, taken), holder in self.engine_state.names.items():
            if self.engine_state.connections[holder].inside and holder != connection.id:
                if taken == name and self.engine_state.names.get((namespace, name)) != holder:
                    continue  # the same name in a namespace of its own is a second instance
                if skeleton(taken) == looks:
                    return holder
        return self.engine_state.names.setdefault((namespace, name), connection.id)

    def worker_event(self, event: str, connection: Connection) -> None:
        """Fire the event that a worker came, said who it is, or left."""
        self.events.fire(WORKERS_AVAILABLE, {"event": event, "worker_id": connection.id})

    # Inner workings

    def _effects(self) -> list[Effect]:
        if self.engine_state.functions_changed and not self._functions_timer_runs:
            self._functions_timer_runs = True
            self.engine_state.start_timer("functions-event", "", limits.FUNCTIONS_EVENT_SECONDS)
        effects, self.engine_state.outbox = self.engine_state.outbox, []
        return effects

    def _functions_settled(self, _subject: str) -> None:
        self._functions_timer_runs = False
        self.engine_state.functions_changed = False
        functions = self.engine_state.functions
        if functions.keys() != self._announced_functions:
            self._announced_functions = set(functions)
            rows = [self.rows.function_summary(function) for function in functions.values()]
            self.events.fire(FUNCTIONS_AVAILABLE, {"event": "functions_changed", "functions": rows})

    def _answer_undecodable(self, connection: Connection, error: UndecodableError) -> None:
        """Fail the call that a frame was about, so that its caller does not wait for a timeout."""
        self.engine_state.log_mistake(connection, f"a frame was not understood: {error}")
        body = EngineFault(protocol.DESERIALIZATION_ERROR, f"Invalid message: {error}").body()
        failed = m.InvocationResult(invocation_id="", function_id=error.function_id, error=body)
        if error.call is not None:
            failed.invocation_id = error.call
            self.engine_state.send(connection.id, failed)
        elif error.answered is not None:
            failed.invocation_id = error.answered
            self.calls.resolve(connection.id, failed)

    def _register_or_queue(self, connection: Connection, message: m.Registration) -> None:
        # Where registrations belong is known once the connection says who it is.
        if connection.namespace is not None:
            self._register(connection, connection.namespace, message)
        elif len(connection.queued) < limits.MAX_QUEUED_REGISTRATIONS:
            connection.queued.append(message)
        else:
            self.engine_state.log("warning", "a connection queued too many registrations and is closed")
            self._forget(connection.id)
            self.engine_state.outbox.append(Close(connection.id))

    def _register(self, connection: Connection, namespace: str, message: m.Registration) -> None:
        match message:
            case m.RegisterFunction():
                self._register_function(connection, namespace, message)
            case m.UnregisterFunction():
                held = self.engine_state.functions.get((namespace, message.id))
                if held is not None and held.owner == connection.id:
                    self.engine_state.remove_function(namespace, message.id)
            case m.RegisterTriggerType():
                self.triggers.add_type(connection, namespace, message)
            case m.UnregisterTriggerType():
                self.triggers.remove_type(connection.id, message.namespace or namespace, message.id)
            case m.RegisterTrigger():
                self.triggers.bind(connection, namespace, message)
            case _:
                self.triggers.unbind_for(connection, message.id)

    def _register_function(self, connection: Connection, namespace: str, message: m.RegisterFunction) -> None:
        if not message.id.strip():
            self.engine_state.log_mistake(connection, "a function without an id was refused")
            return
        if message.invocation is not None:
            about = f"{message.id} is HTTP-invoked, which needs a worker of its own"
            self.engine_state.log_mistake(connection, about)
            return
        held = self.engine_state.functions.get((namespace, message.id))
        foreign_engine_id = message.id.startswith(protocol.ENGINE_PREFIX) and namespace != DEFAULT_NAMESPACE
        rejected = m.RegistrationRejected(
            code=protocol.FUNCTION_CONFLICT, namespace=namespace, function_id=message.id, owner_worker_id=""
        )
        if foreign_engine_id or (held is not None and held.owner != connection.id):
            rejected.owner_worker_id = (held.owner if held is not None else None) or ""
            self.engine_state.send(connection.id, rejected)
            return
        kept = message.request_format, message.response_format, message.metadata
        try:
            if held is None and connection.held.functions >= (most := limits.MAX_CONNECTION_FUNCTIONS):
                raise limit_exceeded(f"a connection provides at most {most} functions")
            size = registration_size(connection, held, message.id, message.description, *kept)
        except EngineFault as fault:
            self.engine_state.log_mistake(connection, f"function {message.id} was refused: {fault}")
            rejected.message = str(fault)
            self.engine_state.send(connection.id, rejected)
            return
        self.engine_state.add_function(
            RegisteredFunction(
                id=message.id,
                namespace=namespace,
                owner=connection.id,
                description=message.description,
                request_schema=message.request_format,
                response_schema=message.response_format,
                metadata=message.metadata,
                size=size,
            )
        )

    def _settle_namespace(self, connection: Connection, namespace: str) -> None:
        if connection.namespace is None:
            connection.namespace = namespace
            queued, connection.queued = connection.queued, []
            for message in queued:
                self._register(connection, namespace, message)

    def _grace_over(self, connection_id: str) -> None:
        connection = self.engine_state.connections.get(connection_id)
        if connection is not None:
            self._settle_namespace(connection, DEFAULT_NAMESPACE)

    def _reattach(self, connection: Connection, message: m.Reattach) -> None:
        previous = self.engine_state.connections.get(message.previous_worker_id)
        if previous is None or previous is connection or message.reattach_token != previous.reattach_token:
            return
        self._forget(previous.id)
        self.engine_state.outbox.append(Close(previous.id, abrupt=True))

    def _forget(self, connection_id: str) -> None:
        """Clean up after a connection, in the order the protocol promises; nothing is sent to it any more."""
        connection = self.engine_state.connections.pop(connection_id, None)
        if connection is None:
            return
        # Most connections hold nothing; when thousands leave at once, none of them looks at what others hold.
        if connection.held.functions:
            for function in self.engine_state.functions_of(connection_id):
                self.engine_state.remove_function(function.namespace, function.id)
        self.calls.stop(connection_id)
        if connection.held.bindings or connection.held.trigger_types:
            self.triggers.connection_gone(connection_id)
        for name in connection.names:
            self.engine_state.names.pop((connection.namespace or DEFAULT_NAMESPACE, name), None)
        self.worker_event("worker_disconnected", connection)
