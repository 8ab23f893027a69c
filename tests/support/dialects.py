"""Engines that speak like 0.23 and like 0.25, made of the embedded engine, which speaks like 0.22.

From 0.23 on Compose tells what is installed. From 0.25 on functions can be observed as well: an observable
function stands for a trigger type, and its owner is told of observers and of bindings alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, cast

from iii_directory.engine.builtins.table import BuiltinFunction, provide, schema
from iii_directory.engine.engine_state import Send
from iii_directory.engine.router import Router
from iii_directory.engine.triggers import Triggers
from iii_directory.shapes import text_of
from iii_directory.wire import messages as m
from iii_directory.wire.protocol import DEFAULT_NAMESPACE, OBSERVE_FEATURE

if TYPE_CHECKING:
    from iii_directory.engine.calls import BuiltinRequest, Outcome
    from iii_directory.engine.engine_state import Binding, Connection, Effect, TriggerType, TypeKey
    from iii_directory.wire.codec import UndecodableError

Dialect = Literal["0.22", "0.23", "0.25"]
_INSTALLED: Final = "iii-worker-ops"


def speak(router: Router, dialect: Dialect) -> None:
    """Let an engine that no worker has joined yet speak like another version."""
    if dialect == "0.22":
        return
    _compose(router)
    if dialect == "0.25":
        router.__class__ = ObservingRouter
        router.triggers.__class__ = ObservingTriggers


def _compose(router: Router) -> None:
    """Replace ``worker::list`` by ``compose::status``: the connected workers stand for the containers."""
    gone = router.builtin_workers.pop(_INSTALLED)
    for function in gone.functions:
        del router.calls.builtins[function.id]
        router.engine_state.remove_function(DEFAULT_NAMESPACE, function.id)
    for kind in gone.types:
        del router.triggers.types[DEFAULT_NAMESPACE, kind.id]

    def status(_request: BuiltinRequest) -> dict[str, Any]:
        named = [c for c in router.engine_state.visible_connections() if c.name is not None]
        rows = [
            {"container": c.name, "worker": "path://.", "state": "ready", "pid": c.pid, "owned": False}
            for c in named
        ]
        return {"namespace": DEFAULT_NAMESPACE, "containers": rows}

    takes = schema(file="string", namespace="string")
    function = BuiltinFunction("compose::status", "The containers of this project.", status, takes)
    provide(router, "compose", "Workers of this project.", [function])


class ObservingTriggers(Triggers):
    """Trigger types of which some stand for an observable function."""

    @property
    def observed(self) -> dict[TypeKey, str]:
        """The observable functions by the types that stand for them."""
        return self.__dict__.setdefault("_observed", {})

    @property
    def observers(self) -> set[str]:
        """The ids of the bindings that were made by ``observe``."""
        return self.__dict__.setdefault("_observers", set())

    def next_revision(self) -> int:
        """Return a number by which owners tell old news from new."""
        revision: int = self.__dict__.setdefault("_revision", 0) + 1
        self.__dict__["_revision"] = revision
        return revision

    def remove_observable(self, namespace: str, function_id: str) -> None:
        for key, function in list(self.observed.items()):
            if function == function_id and key[0] == namespace and key in self.types:
                self._drop_type(self.types[key])

    def bind_durably(self, message: m.RegisterTrigger, outcome: Outcome) -> None:
        super().bind_durably(message, outcome)
        binding = self.bindings.get(message.id)
        if binding is not None and binding.provider in self.observed:
            self._accepted(binding)

    def _drop_type(self, held: TriggerType) -> None:
        super()._drop_type(held)
        self.observed.pop(held.key, None)

    def _bound(self, binding: Binding, kind: TriggerType) -> m.Message:
        function = self.observed.get(kind.key)
        if function is None:
            return super()._bound(binding, kind)
        observer: dict[str, Any] = {
            "id": binding.id,
            "args": {},
            "filters": {},
            "target": binding.function_id,
        }
        if binding.id not in self.observers:
            observer["legacy"] = {"trigger_type": binding.trigger_type, "config": binding.config}
        return m.ObserverAdded(
            function_id=function, observer=observer, namespace=kind.namespace, revision=self.next_revision()
        )

    def _unbound(self, binding: Binding, kind: TriggerType) -> m.Message:
        function = self.observed.get(kind.key)
        if function is None:
            return super()._unbound(binding, kind)
        return m.ObserverRemoved(
            function_id=function, id=binding.id, namespace=kind.namespace, revision=self.next_revision()
        )


class ObservingRouter(Router):
    """An engine of 0.25."""

    triggers: ObservingTriggers

    def connect(self, ip_address: str | None = None, *, inside: bool = False) -> tuple[str, list[Effect]]:
        connection_id, effects = super().connect(ip_address, inside=inside)
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, m.WorkerRegistered):
                effect.message.features = [OBSERVE_FEATURE]
        return connection_id, effects

    def accept(self, connection_id: str, message: m.Message | UndecodableError) -> list[Effect]:
        connection = self.engine_state.connections.get(connection_id)
        if connection is not None and isinstance(message, m.Observe | m.Unobserve):
            self._register_or_queue(connection, cast("m.Registration", message))
        if (
            connection is not None
            and isinstance(message, m.InvokeFunction)
            and message.activation is not None
        ):
            self._address(connection, message, message.activation)
        return super().accept(connection_id, message)

    def _register(
        self, connection: Connection, namespace: str, message: m.Registration | m.Observe | m.Unobserve
    ) -> None:
        if isinstance(message, m.Observe):
            self._observe(connection, namespace, message)
            return
        if isinstance(message, m.Unobserve):
            message = m.UnregisterTrigger(id=message.id)
        super()._register(connection, namespace, message)
        key = (namespace, getattr(message, "id", ""))
        held = self.engine_state.functions.get(key)
        if isinstance(message, m.UnregisterFunction) and held is None:
            self.triggers.remove_observable(*key)
        is_ours = held is not None and held.owner == connection.id
        if isinstance(message, m.RegisterFunction) and message.observe is not None and is_ours:
            self._make_observable(connection, namespace, message, message.observe)

    def _make_observable(
        self, connection: Connection, namespace: str, message: m.RegisterFunction, observe: dict[str, Any]
    ) -> None:
        """Provide the types a function stands for; its owner is told of their observers and bindings."""
        # Its observers are told of one by one.
        registered = m.FunctionRegistered(
            id=message.id, namespace=namespace, revision=self.triggers.next_revision()
        )
        self.engine_state.send(connection.id, registered)
        for type_id in dict.fromkeys((message.id, text_of(observe.get("legacy_trigger_type")) or message.id)):
            self.triggers.observed[namespace, type_id] = message.id
            kind = m.RegisterTriggerType(
                id=type_id,
                description=message.description or "",
                trigger_request_format=observe.get("args_format"),
                call_request_format=message.request_format,
            )
            self.triggers.add_type(connection, namespace, kind)

    def _observe(self, connection: Connection, namespace: str, message: m.Observe) -> None:
        """Bind an observer of a function to the trigger type that the function stands for."""
        binding = m.RegisterTrigger(
            id=message.id,
            trigger_type=message.source.function_id,
            function_id=message.target.function_id,
            metadata=message.metadata,
            namespace=message.target.namespace,
            trigger_namespace=message.source.namespace,
            config=message.source.args,
        )
        self.triggers.observers.add(message.id)
        self.triggers.bind(connection, namespace, binding)
        bound = self.triggers.bindings.get(message.id)
        is_active = bound is not None and bound.provider is not None
        told = m.ObserveResult(id=message.id, state="active" if is_active else "pending")
        self.engine_state.send(connection.id, told)

    def _address(self, connection: Connection, message: m.InvokeFunction, activation: m.Activation) -> None:
        """Address an observer that is told of something by its own function, with its own metadata."""
        bound = self.triggers.bindings.get(text_of(activation.observer_id) or "")
        if bound is None or bound.provider is None:
            return
        if self.triggers.types[bound.provider].owner == connection.id:
            message.function_id, message.namespace = bound.function_id, bound.namespace
            message.metadata = bound.metadata
