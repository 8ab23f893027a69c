"""The functions and trigger types the embedded engine provides itself. Pure: storage comes from outside.

Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iii_directory.engine.builtins import (
    channels,
    configuration,
    introspection,
    observability,
    pubsub,
    state,
    workers,
)
from iii_directory.engine.builtins.rows import Rows
from iii_directory.engine.router import Router

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.engine.store import Store


@dataclass(frozen=True, slots=True)
class World:
    """Everything an engine takes from outside; tests and simulations bring their own."""

    new_id: Callable[[], str]
    now_ms: Callable[[], int]
    state: Store
    configuration: Store
    environment: Mapping[str, str]
    schema_problem: Callable[[object, object], str | None]
    """What is wrong with a value under a JSON Schema, or None."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A router with its built-ins, ready for a shell."""

    router: Router
    channels: channels.Channels


def build_engine(world: World, version: str) -> Engine:
    """An engine with everything on it."""
    router = Router(world.new_id, world.now_ms)
    rows = Rows(router)
    introspection.install(router, rows)
    workers.install(router, rows, version)
    state.install(router, world.state)
    pubsub.install(router)
    configuration.install(router, world.configuration, world.environment, world.schema_problem)
    observability.install(router, version)
    return Engine(router, channels.install(router))
