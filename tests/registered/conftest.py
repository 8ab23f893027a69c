"""A house for each module, or one of its own for a test that breaks things."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.registered.stage import House
from tests.support.engine import REAL_ENGINE, EngineThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="module", params=["inside", "joined", *(["real"] if REAL_ENGINE else [])])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """The directory inside an engine, or joined to one, shared by a module: tests use ids of their own."""
    folder = tmp_path_factory.mktemp("skills")
    with EngineThread() as engine:
        inside = engine if request.param == "inside" else None
        url = REAL_ENGINE if REAL_ENGINE and request.param == "real" else engine.url
        running = House(url, folder, inside)
        yield running
        running.close()


@pytest.fixture
def build(engine: EngineThread, tmp_path: Path) -> Iterator[Callable[..., House]]:
    """Opens houses on an engine that nobody else uses, with settings of the test's own."""
    with ExitStack() as opened:

        def open_house(**settings: Any) -> House:
            running = House(engine.url, tmp_path / "skills", **settings)
            opened.callback(running.close)
            return running

        yield open_house


@pytest.fixture
def own_house(build: Callable[..., House]) -> House:
    """The directory on an engine that nobody else uses."""
    return build()
