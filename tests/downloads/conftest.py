"""A registry, a mirror and a folder for each test; in memory, because installs sync every file."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.downloads.stage import Depot
from tests.support.memory import in_memory
from tests.support.world import World

from iii_directory.registry_server.registry_http import RegistryServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.engine import EngineThread


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    with in_memory(tmp_path) as path:
        yield path


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with RegistryServer(tmp_path / "registry") as registry:
        yield World(tmp_path, registry.url)


@pytest.fixture
def start(engine: EngineThread, world: World) -> Iterator[Callable[..., Depot]]:
    """Starts the directory with settings of the test's own."""
    with ExitStack() as opened:

        def begin(**settings: Any) -> Depot:
            depot = Depot(engine.url, world, **settings)
            opened.callback(depot.close)
            return depot

        yield begin


@pytest.fixture
def depot(start: Callable[..., Depot]) -> Depot:
    return start()
