"""Trigger types, the bindings to them, and the rows in which lists show both. Pure.

A custom type is provided by a connection: the engine forwards bindings to it and takes no part in firing.
A built-in type is provided by the engine: it checks the config at once and fires through ``Events``.
A binding whose type is missing is parked until a worker provides the type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory import limits
from iii_directory.engine.engine_state import (
    EngineFault,
    TriggerType,
    binding_of,
    limit_exceeded,
    registration_size,
)
from iii_directory.wire.json_text import encode_value
from iii_directory.wire.messages import RegisterTrigger, TriggerRegistrationResult, UnregisterTrigger
from iii_directory.wire.protocol import DEFAULT_NAMESPACE, TRIGGER_REGISTRATION_FAILED, first_segment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iii_directory.engine.calls import Outcome
    from iii_directory.engine.engine_state import (
        Binding,
        Connection,
        EngineState,
        RegisteredFunction,
        TypeKey,
    )
    from iii_directory.wire.json_text import Json
    from iii_directory.wire.messages import Message, RegisterTriggerType


class Triggers:
    """All trigger types and bindings of one engine."""

    def __init__(self, engine_state: EngineState) -> None:
        self._engine_state = engine_state
        self.types: dict[TypeKey, TriggerType] = {}
        self.bindings: dict[str, Binding] = {}
        self._of_type: dict[str, dict[str, Binding]] = {}
        """The bindings by their trigger types, in the order they were made."""
        self._durable = 0

    def live(self, trigger_type: str | None = None) -> Iterator[Binding]:
        """Return the bindings that are not parked, in the order they were made."""
        chosen = self.bindings if trigger_type is None else self._of_type.get(trigger_type, {})
        for binding in chosen.values():
            if binding.provider is not None:
                yield binding

    # Types

    def add_type(self, connection: Connection, namespace: str, message: RegisterTriggerType) -> None:
        """Let a connection provide a type; the one that provided it before is replaced and not told."""
        key = (message.namespace or namespace, message.id)
        held = self.types.get(key)
        if held is not None and held.owner is None:
            refusal = f"trigger type {message.id} is built in and cannot be replaced"
            self._engine_state.log_mistake(connection, refusal)
            return
        if held is not None and self._is_inside(held.owner) and held.owner != connection.id:
            refusal = f"trigger type {message.id} belongs to this engine's own worker and cannot be taken"
            self._engine_state.log_mistake(connection, refusal)
            return
        own = held if held is not None and held.owner == connection.id else None
        schemas = message.trigger_request_format, message.call_request_format
        try:
            most = limits.MAX_CONNECTION_TRIGGER_TYPES
            if own is None and connection.held.trigger_types >= most:
                raise limit_exceeded(f"a connection provides at most {most} trigger types")
            size = registration_size(connection, own, message.id, message.description, *schemas)
        except EngineFault as fault:
            self._engine_state.log_mistake(connection, f"trigger type {message.id} was refused: {fault}")
            return
        if held is not None:
            self._count_type(held, -1)
        self.types[key] = TriggerType(
            id=message.id,
            namespace=key[0],
            owner=connection.id,
            description=message.description,
            configuration_schema=message.trigger_request_format,
            request_schema=message.call_request_format,
            size=size,
        )
        self._count_type(self.types[key], 1)
        for binding in list(self._of_type.get(message.id, {}).values()):
            if self._provider_for(binding) == key:
                self._attach(binding, key)

    def remove_type(self, connection_id: str, namespace: str, type_id: str) -> None:
        held = self.types.get((namespace, type_id))
        if held is not None and held.owner == connection_id:
            self._drop_type(held)

    def _drop_type(self, held: TriggerType) -> None:
        del self.types[held.key]
        self._count_type(held, -1)
        for binding in list(self.live(held.id)):
            if binding.provider == held.key:
                binding.provider = None
                fallback = self._provider_for(binding)
                if fallback is not None:
                    self._attach(binding, fallback)
                else:
                    # Parked: no owner is left whose answer could be waited for.
                    self._accepted(binding)

    def _count_type(self, kind: TriggerType, change: int) -> None:
        owner = self._engine_state.connections.get(kind.owner or "")
        if owner is not None:
            owner.held.trigger_types += change
            owner.held.size += change * kind.size

    # Bindings

    def bind(self, connection: Connection, home: str, message: RegisterTrigger) -> None:
        """Bind a function for a connection; an id that is taken is taken over."""
        binding = binding_of(message, connection.id, home)
        if self._belongs_inside(message.id, connection):
            problem = "a binding of this engine's own worker has that id"
            self._refuse(binding, EngineFault(TRIGGER_REGISTRATION_FAILED, problem).body())
            return
        held = self.bindings.get(message.id)
        own = held if held is not None and held.subscriber == connection.id else None
        try:
            if own is None and connection.held.bindings >= (most := limits.MAX_CONNECTION_BINDINGS):
                raise limit_exceeded(f"a connection has at most {most} bindings")
            binding.size = _binding_size(connection, own, message)
        except EngineFault as fault:
            self._refuse(binding, fault.body())
            return
        self._bind(binding)

    def bind_durably(self, message: RegisterTrigger, outcome: Outcome) -> None:
        """Bind by a function call: the binding outlives the caller, who waits for the owner's answer.

        Raises:
            EngineFault: it is too large, or there are as many as an engine keeps.
        """
        if self._durable >= (most := limits.MAX_DURABLE_BINDINGS):
            raise limit_exceeded(f"an engine keeps at most {most} bindings without a subscriber")
        binding = binding_of(message, None, DEFAULT_NAMESPACE)
        binding.size = _binding_size(None, None, message)
        binding.waiting = outcome
        self._bind(binding)
        key = binding.provider
        if key is None or self.types[key].owner is None:
            self._accepted(binding)
        else:
            self._engine_state.start_timer("trigger-ack", binding.id, limits.TRIGGER_ACK_SECONDS)

    def acknowledgement_overdue(self, binding_id: str) -> None:
        binding = self.bindings.get(binding_id)
        if binding is not None:
            self._accepted(binding)

    def unbind_for(self, connection: Connection | None, binding_id: str) -> bool:
        """End a binding. By protocol every worker may, except for bindings of a worker inside the engine."""
        if self._belongs_inside(binding_id, connection):
            if connection is not None:
                refusal = "a binding of this engine's own worker cannot be ended by others"
                self._engine_state.log_mistake(connection, refusal)
            return False
        return self.unbind(binding_id)

    def _belongs_inside(self, binding_id: str, connection: Connection | None) -> bool:
        """Return whether a binding is one of a worker inside the engine, and not of this connection."""
        held = self.bindings.get(binding_id)
        if held is None or held.subscriber is None or not self._is_inside(held.subscriber):
            return False
        return connection is None or connection.id != held.subscriber

    def _is_inside(self, connection_id: str | None) -> bool:
        connection = self._engine_state.connections.get(connection_id or "")
        return connection is not None and connection.inside

    def unbind(self, binding_id: str) -> bool:
        binding = self._take(binding_id)
        if binding is None:
            return False
        self._detach(binding)
        self._accepted(binding)
        return True

    def acknowledge(self, connection_id: str, message: TriggerRegistrationResult) -> None:
        """Take the answer of a type's owner to a binding; answers of others are ignored."""
        binding = self.bindings.get(message.id)
        if binding is None or binding.provider is None:
            return
        if self.types[binding.provider].owner != connection_id:
            return
        error = message.error
        if error is None:
            self._accepted(binding)
            return
        if binding.waiting is not None:
            self._take(binding.id)
            error = EngineFault(TRIGGER_REGISTRATION_FAILED, f"{error['code']}: {error['message']}").body()
        else:
            # Parked, so that an owner that registers its type anew is asked again.
            binding.provider = None
        self._refuse(binding, error)

    def connection_gone(self, connection_id: str) -> None:
        """Its bindings end, then its types: what was bound to those is parked or moves to ``default``."""
        for binding in list(self.bindings.values()):
            if binding.subscriber == connection_id:
                self.unbind(binding.id)
        for held in [t for t in self.types.values() if t.owner == connection_id]:
            self._drop_type(held)

    # Inner workings

    def _bind(self, binding: Binding) -> None:
        key = self._provider_for(binding)
        problem = self._problem_with(binding, key) if key is not None else None
        if problem is not None:
            # Whatever held the id before keeps it.
            self._refuse(binding, EngineFault(TRIGGER_REGISTRATION_FAILED, problem).body())
            return
        held = self._take(binding.id)
        if held is not None:
            self._accepted(held)
            if held.provider != key:
                self._detach(held)
        self.bindings[binding.id] = binding
        self._of_type.setdefault(binding.trigger_type, {})[binding.id] = binding
        self._count_binding(binding, 1)
        if key is not None:
            self._attach(binding, key)

    def _take(self, binding_id: str) -> Binding | None:
        binding = self.bindings.pop(binding_id, None)
        if binding is not None:
            alike = self._of_type[binding.trigger_type]
            del alike[binding.id]
            if not alike:
                del self._of_type[binding.trigger_type]
            self._count_binding(binding, -1)
        return binding

    def _count_binding(self, binding: Binding, change: int) -> None:
        if binding.subscriber is None:
            self._durable += change
            return
        subscriber = self._engine_state.connections.get(binding.subscriber)
        if subscriber is not None:
            subscriber.held.bindings += change
            subscriber.held.size += change * binding.size

    def _problem_with(self, binding: Binding, key: TypeKey) -> str | None:
        check = self.types[key].check
        return check({} if binding.config is None else binding.config) if check is not None else None

    def _provider_for(self, binding: Binding) -> TypeKey | None:
        """Return the namespace that provides the type: the one asked for, else home, else ``default``."""
        wanted = binding.wanted_namespace
        homes = (wanted,) if wanted is not None else (binding.home, DEFAULT_NAMESPACE)
        for namespace in homes:
            if (namespace, binding.trigger_type) in self.types:
                return namespace, binding.trigger_type
        return None

    def _attach(self, binding: Binding, key: TypeKey) -> None:
        if binding.provider is not None and binding.provider != key:
            self._detach(binding)
        if self._problem_with(binding, key) is not None:
            # Its own provider took the config; the built-in one it falls back to does not. It stays parked.
            return
        binding.provider = key
        kind = self.types[key]
        if kind.owner is not None:
            self._engine_state.send(kind.owner, self._bound(binding, kind))

    def _detach(self, binding: Binding) -> None:
        provider = self.types.get(binding.provider) if binding.provider else None
        binding.provider = None
        if provider is not None and provider.owner is not None:
            self._engine_state.send(provider.owner, self._unbound(binding, provider))

    def _bound(self, binding: Binding, kind: TriggerType) -> Message:
        """Return how the owner of a type is told of a binding."""
        return RegisterTrigger(
            id=binding.id,
            trigger_type=binding.trigger_type,
            function_id=binding.function_id,
            metadata=binding.metadata,
            namespace=binding.namespace if binding.namespace != DEFAULT_NAMESPACE else None,
            trigger_namespace=kind.namespace if kind.namespace != DEFAULT_NAMESPACE else None,
            config=binding.config,
        )

    def _unbound(self, binding: Binding, _kind: TriggerType) -> Message:
        return UnregisterTrigger(id=binding.id, trigger_type=binding.trigger_type)

    def _accepted(self, binding: Binding) -> None:
        waiting, binding.waiting = binding.waiting, None
        if waiting is not None:
            waiting({"id": binding.id}, None)

    def _refuse(self, binding: Binding, error: Json) -> None:
        """Tell who asked for a binding that it is refused: the caller who waits, else the subscriber."""
        waiting, binding.waiting = binding.waiting, None
        if waiting is not None:
            waiting(None, error)
        elif binding.subscriber is not None:
            refused = TriggerRegistrationResult(
                id=binding.id, trigger_type=binding.trigger_type, function_id=binding.function_id, error=error
            )
            self._engine_state.send(binding.subscriber, refused)


def _binding_size(connection: Connection | None, own: Binding | None, message: RegisterTrigger) -> int:
    parts = message.function_id, message.config, message.metadata
    return registration_size(connection, own, message.id, None, *parts)


class Rows:
    """Makes the rows and details that lists and infos consist of."""

    def __init__(self, engine_state: EngineState, triggers: Triggers) -> None:
        self._engine_state = engine_state
        self._triggers = triggers

    def function_summary(self, function: RegisteredFunction) -> Json:
        row: Json = {
            "function_id": function.id,
            "namespace": function.namespace,
            "worker_name": self._engine_state.worker_name(function),
        }
        if function.description is not None:
            row["description"] = function.description
        if function.metadata is not None:
            row["metadata"] = function.metadata
        return row

    def function_detail(self, function: RegisteredFunction) -> Json:
        detail = self.function_summary(function)
        if function.request_schema is not None:
            detail["request_schema"] = function.request_schema
        if function.response_schema is not None:
            detail["response_schema"] = function.response_schema
        detail["registered_triggers"] = [
            {"id": b.id, "trigger_type": b.trigger_type, "config": b.config}
            for b in self._triggers.live()
            if b.function_id == function.id and b.namespace == function.namespace
        ]
        return detail

    def type_summary(self, kind: TriggerType) -> Json:
        return {
            "id": kind.id,
            "namespace": kind.namespace,
            "worker_name": self._engine_state.worker_name(kind),
            "description": kind.description,
        }

    def type_detail(self, kind: TriggerType) -> Json:
        detail = self.type_summary(kind)
        if kind.configuration_schema is not None:
            detail["configuration_schema"] = kind.configuration_schema
        if kind.request_schema is not None:
            detail["request_schema"] = kind.request_schema
        detail["instance_count"] = sum(b.provider == kind.key for b in self._triggers.live(kind.id))
        return detail

    def binding_row(self, binding: Binding) -> Json:
        function = self._engine_state.functions.get((binding.namespace, binding.function_id))
        summary = encode_value(binding.config).decode()
        if len(summary) > limits.CONFIG_SUMMARY_CHARS:
            summary = summary[: limits.CONFIG_SUMMARY_CHARS] + "…"
        named = self._engine_state.worker_name(function) if function else first_segment(binding.function_id)
        return {
            "id": binding.id,
            "trigger_type": binding.trigger_type,
            "function_id": binding.function_id,
            "worker_name": named,
            "config": binding.config,
            "config_summary": summary,
        }
