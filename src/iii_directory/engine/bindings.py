"""What can be bound to, and who is bound: trigger types and bindings, as the engine keeps them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iii_directory.wire.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.calls import Outcome
    from iii_directory.wire.messages import RegisterTrigger

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
    observed: str | None = None
    """The observable function whose observers are the bindings; None for a type of its own."""
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
    observes: bool = False
    size: int = 0


def binding_of(
    message: RegisterTrigger, subscriber: str | None, home: str, *, observes: bool = False
) -> Binding:
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
        observes=observes,
    )
