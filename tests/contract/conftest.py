"""The contract runs inside an embedded engine, joined to one, and on the one III_ENGINE_WS_URL names."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.places import PLACES, Place
from tests.support.engine import REAL_ENGINE, EngineThread
from tests.support.reader import OtherWorker, Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "real":
        assert REAL_ENGINE is not None
        return Place(REAL_ENGINE)
    embedded: EngineThread = request.getfixturevalue(
        "engine_of_0_23" if request.param == "inside" else "engine"
    )
    return Place(embedded.url, embedded if request.param == "inside" else None)


@pytest.fixture
def engine_of_0_23() -> Iterator[EngineThread]:
    """Inside, the engine speaks like 0.23 and later; joined, like the ones before."""
    with EngineThread(dialect="0.23") as running:
        yield running


@pytest.fixture
def engine_url(place: Place) -> str:
    return place.url


@pytest.fixture
def start(place: Place, tmp_path: Path) -> Iterator[Callable[..., Reader]]:
    """Starts the directory with settings of the test's own."""
    with ExitStack() as running:

        def begin(**settings: Any) -> Reader:
            return running.enter_context(Reader(place.url, tmp_path, place.inside, **settings))

        yield begin


@pytest.fixture
def directory(start: Callable[..., Reader]) -> Reader:
    """The directory with default settings and an empty folder."""
    return start()


@pytest.fixture
def other(engine_url: str) -> Iterator[OtherWorker]:
    """Another worker on the same engine."""
    with OtherWorker(engine_url) as client:
        yield client
