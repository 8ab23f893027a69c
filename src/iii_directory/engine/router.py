"""The engine as a state machine: messages in, effects out. Pure.

    shell ── connect / receive / disconnect / timer ──▶ Router ──▶ effects ──▶ shell

It knows no sockets, no clock and no threads; ids and time come through the kernel, storage through the
built-ins. Every method returns the effects it caused, in the order they are to be carried out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory.engine import messages as m
from iii_directory.engine.calls import Calls
from iii_directory.engine.decoding import UndecodableError, decode
from iii_directory.engine.events import Events
from iii_directory.engine.kernel import (
    DEFAULT_NAMESPACE,
    ENGINE_PREFIX,
    Connection,
    EngineFault,
    Function,
    Kernel,
)
from iii_directory.engine.triggers import Triggers
from iii_directory.engine.wire_json import ABSENT
from iii_directory.limits import (
    FUNCTIONS_EVENT_SECONDS,
    MAX_QUEUED_REGISTRATIONS,
    NAMESPACE_GRACE_SECONDS,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.builtins.table import BuiltinWorker
    from iii_directory.engine.kernel import Effect


class Router:
    """One engine. ``kernel``, ``calls``, ``triggers`` and ``events`` are what the built-ins are made on."""

    def __init__(self, new_id: Callable[[], str], now_ms: Callable[[], int]) -> None:
        self.kernel = Kernel(new_id, now_ms)
        self.calls = Calls(self.kernel)
        self.triggers = Triggers(self.kernel)
        self.events = Events(self.kernel, self.calls, self.triggers)
        self.builtin_workers: dict[str, BuiltinWorker] = {}
        self.timers: dict[str, Callable[[str], None]] = {
            "namespace-grace": self._grace_over,
            "trigger-ack": self.triggers.acknowledgement_overdue,
            "functions-event": self._functions_settled,
        }
        self._functions_timer_runs = False
        self.on_functions_settled: Callable[[], None] = lambda: None
        self.on_worker_event: Callable[[str, Connection], None] = lambda _event, _connection: None

    # What the shell calls

    def connect(self, ip_address: str | None = None) -> tuple[str, list[Effect]]:
        """A worker's socket is open. Returns the id of the new connection."""
        kernel = self.kernel
        connection = Connection(kernel.new_id(), kernel.new_id(), kernel.now_ms(), ip_address)
        kernel.connections[connection.id] = connection
        kernel.send(
            connection.id,
            {
                "type": "workerregistered",
                "worker_id": connection.id,
                "reattach_token": connection.reattach_token,
            },
        )
        kernel.start_timer("namespace-grace", connection.id, NAMESPACE_GRACE_SECONDS)
        self.on_worker_event("worker_connected", connection)
        return connection.id, self._effects()

    def receive(self, connection_id: str, frame: str | bytes) -> list[Effect]:
        """A frame came in. A frame that is no message never ends the connection."""
        if connection_id not in self.kernel.connections:
            return []
        try:
            message = decode(frame)
        except UndecodableError as error:
            self._answer_undecodable(connection_id, error)
            return self._effects()
        return self._effects() if message is None else self.accept(connection_id, message)

    def accept(self, connection_id: str, message: m.Message) -> list[Effect]:
        """A message came; one from a worker in this process came without a frame."""
        connection = self.kernel.connections.get(connection_id)
        if connection is not None:
            self._handle(connection, message)
        return self._effects()

    def disconnect(self, connection_id: str) -> list[Effect]:
        """A worker's socket is gone."""
        self._forget(connection_id)
        return self._effects()

    def timer(self, key: tuple[str, str]) -> list[Effect]:
        """A timer that an effect started has run out."""
        kind, subject = key
        self.timers[kind](subject)
        return self._effects()

    # What built-ins call

    def announce(self, connection: Connection, namespace: str, name: str | None) -> bool:
        """A connection said who it is: claim its name, settle its namespace, let its registrations in."""
        if connection.namespace is not None:
            namespace = connection.namespace
        if name is not None and name not in connection.names:
            holder = self.kernel.names.setdefault((namespace, name), connection.id)
            if holder != connection.id:
                self._reject_name(connection, namespace, name, holder)
                return False
            connection.names.append(name)
        self._settle_namespace(connection, namespace)
        return True

    # Inner workings

    def _effects(self) -> list[Effect]:
        if self.kernel.functions_changed and not self._functions_timer_runs:
            self._functions_timer_runs = True
            self.kernel.start_timer("functions-event", "", FUNCTIONS_EVENT_SECONDS)
        return self.kernel.take_effects()

    def _functions_settled(self, _subject: str) -> None:
        self._functions_timer_runs = False
        self.kernel.functions_changed = False
        self.on_functions_settled()

    def _handle(self, connection: Connection, message: m.Message) -> None:
        match message:
            case m.InvokeFunction():
                self.calls.invoke(connection.id, message)
            case m.InvocationResult():
                self.calls.resolve(connection.id, message)
            case m.TriggerRegistrationResult():
                self.triggers.acknowledge(connection.id, message)
            case m.Reattach():
                self._reattach(connection, message)
            case m.Ping():
                self.kernel.send(connection.id, {"type": "pong"})
            case m.Ignored():
                pass
            case _:
                self._register_or_queue(connection, message)

    def _answer_undecodable(self, connection_id: str, error: UndecodableError) -> None:
        """Whoever waits for the call this was about is told, instead of waiting for a timeout."""
        self.kernel.log("warning", f"a frame was not understood: {error}")
        body = EngineFault("deserialization_error", f"Invalid message: {error}").body()
        if error.call is not None:
            self.kernel.send(
                connection_id,
                {
                    "type": "invocationresult",
                    "invocation_id": error.call,
                    "function_id": error.function_id,
                    "error": body,
                },
            )
        if error.answered is not None:
            self.calls.resolve(
                connection_id, m.InvocationResult(error.answered, error.function_id, ABSENT, body)
            )

    def _register_or_queue(self, connection: Connection, message: m.Registration) -> None:
        if connection.namespace is not None:
            self._register(connection, connection.namespace, message)
        elif len(connection.queued) < MAX_QUEUED_REGISTRATIONS:
            connection.queued.append(message)
        else:
            self.kernel.log("warning", "a connection queued too many registrations and is closed")
            self._forget(connection.id)
            self.kernel.close(connection.id)

    def _register(self, connection: Connection, namespace: str, message: m.Registration) -> None:
        match message:
            case m.RegisterFunction():
                self._register_function(connection, namespace, message)
            case m.UnregisterFunction():
                held = self.kernel.function(namespace, message.id)
                if held is not None and held.owner == connection.id:
                    self.kernel.remove_function(namespace, message.id)
            case m.RegisterTriggerType():
                self.triggers.add_type(connection.id, namespace, message)
            case m.UnregisterTriggerType():
                self.triggers.remove_type(connection.id, message.namespace or namespace, message.id)
            case m.RegisterTrigger():
                self.triggers.bind(connection.id, namespace, message)
            case _:
                self.triggers.unbind(message.id)

    def _register_function(self, connection: Connection, namespace: str, message: m.RegisterFunction) -> None:
        if not message.id.strip():
            self.kernel.log("warning", "a function without an id was refused")
            return
        if message.http_invoked:
            self.kernel.log("warning", f"{message.id} is HTTP-invoked, which needs a worker of its own")
            return
        held = self.kernel.function(namespace, message.id)
        foreign_engine_id = message.id.startswith(ENGINE_PREFIX) and namespace != DEFAULT_NAMESPACE
        if foreign_engine_id or (held is not None and held.owner != connection.id):
            self.kernel.send(
                connection.id,
                {
                    "type": "registrationrejected",
                    "code": "FUNCTION_NAMESPACE_CONFLICT",
                    "namespace": namespace,
                    "function_id": message.id,
                    "owner_worker_id": (held.owner or "") if held is not None else "",
                },
            )
            return
        self.kernel.add_function(
            Function(
                message.id,
                namespace,
                connection.id,
                None,
                message.description,
                message.request_format,
                message.response_format,
                message.metadata,
            )
        )

    def _settle_namespace(self, connection: Connection, namespace: str) -> None:
        if connection.namespace is None:
            connection.namespace = namespace
            queued, connection.queued = connection.queued, []
            for message in queued:
                self._register(connection, namespace, message)

    def _grace_over(self, connection_id: str) -> None:
        connection = self.kernel.connections.get(connection_id)
        if connection is not None:
            self._settle_namespace(connection, DEFAULT_NAMESPACE)

    def _reject_name(self, connection: Connection, namespace: str, name: str, holder: str) -> None:
        self.kernel.send(
            connection.id,
            {
                "type": "registrationrejected",
                "code": "WORKER_NAMESPACE_CONFLICT",
                "namespace": namespace,
                "worker_name": name,
                "owner_worker_id": holder,
            },
        )
        self._forget(connection.id)
        self.kernel.close(connection.id)

    def _reattach(self, connection: Connection, message: m.Reattach) -> None:
        previous = self.kernel.connections.get(message.previous_worker_id)
        if previous is None or previous is connection or message.reattach_token != previous.reattach_token:
            return
        self._forget(previous.id)
        self.kernel.close(previous.id, abrupt=True)

    def _forget(self, connection_id: str) -> None:
        """Clean up after a connection, in the order the protocol promises; nothing is sent to it any more."""
        connection = self.kernel.connections.pop(connection_id, None)
        if connection is None:
            return
        for function in self.kernel.functions_of(connection_id):
            self.kernel.remove_function(function.namespace, function.id)
        self.calls.stop(connection_id)
        self.triggers.connection_gone(connection_id)
        for name in connection.names:
            self.kernel.names.pop((connection.namespace or DEFAULT_NAMESPACE, name), None)
        self.on_worker_event("worker_disconnected", connection)
