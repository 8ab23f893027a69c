"""A house for each module, or one of its own for a test that breaks things."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.registered.stage import House
from tests.support.engine import REAL_ENGINE, EngineThread
from tests.support.real_engine import EmbeddedMortal, RealMortal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.real_engine import MortalEngine


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
def engine_url(request: pytest.FixtureRequest) -> str:
    """The address of an engine of this test alone; with ``on_every_engine``, of the real one too."""
    if REAL_ENGINE and getattr(request, "param", "embedded") == "real":
        return REAL_ENGINE
    embedded: EngineThread = request.getfixturevalue("engine")
    return embedded.url


@pytest.fixture(params=["embedded", "real"])
def mortal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MortalEngine]:
    """An engine of the test's own that runs, to be killed and started again."""
    engine = RealMortal(tmp_path / "engine") if request.param == "real" else EmbeddedMortal()
    engine.start()
    yield engine
    engine.kill()


@pytest.fixture
def mortal_house(mortal: MortalEngine, tmp_path: Path) -> Iterator[House]:
    """A directory on such an engine; its reconnecting ends with the test, even if it was lost."""
    house = House(mortal.url, tmp_path / "skills")
    yield house
    house.close()


@pytest.fixture
def build(engine_url: str, tmp_path: Path) -> Iterator[Callable[..., House]]:
    """Opens houses on such an engine, with settings of the test's own."""
    with ExitStack() as opened:

        def open_house(**settings: Any) -> House:
            running = House(engine_url, tmp_path / "skills", **settings)
            opened.callback(running.close)
            return running

        yield open_house


@pytest.fixture
def own_house(build: Callable[..., House]) -> House:
    """The directory on an engine of this test alone."""
    return build()
