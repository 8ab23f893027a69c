"""The functions and trigger types the embedded engine provides itself. Pure.

Storage comes from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iii_directory.engine.builtins.configuration import provide_configuration
from iii_directory.engine.builtins.introspection import provide_introspection
from iii_directory.engine.builtins.state import provide_state
from iii_directory.engine.builtins.workers import (
    provide_channels,
    provide_observability,
    provide_pubsub,
    provide_workers,
)
from iii_directory.engine.router import Router

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.engine.sqlite_store import DatabaseQueue
    from iii_directory.engine.store import Store


@dataclass(frozen=True, slots=True)
class World:
    """Everything an engine takes from outside; tests and simulations bring their own."""

    new_id: Callable[[], str]
    now_ms: Callable[[], int]
    state: Store
    configuration: Store
    state_queue: DatabaseQueue
    """How the state's store is used."""
    environment: Mapping[str, str]
    set_aside: Callable[[], str | None] = lambda: None
    """The name of a file of state that was damaged or taken away, and is kept beside."""


def build_engine(world: World, version: str) -> Router:
    """Make a router with its built-ins, ready for a shell."""
    router = Router(world.new_id, world.now_ms)
    provide_introspection(router)
    provide_workers(router, version)
    provide_state(router, world.state, world.state_queue)
    provide_pubsub(router)
    provide_configuration(router, world.configuration, world.environment)
    provide_observability(router, version, world.set_aside)
    provide_channels(router)
    return router
