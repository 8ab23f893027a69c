"""The contract runs on the embedded engine; and on a real one too where III_ENGINE_WS_URL names it."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.reader import OtherWorker, Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.engine import EngineThread

REAL_ENGINE = os.environ.get("III_ENGINE_WS_URL")


@pytest.fixture(params=["embedded", *(["real"] if REAL_ENGINE else [])])
def engine_url(request: pytest.FixtureRequest) -> str:
    if request.param == "real":
        assert REAL_ENGINE is not None
        return REAL_ENGINE
    embedded: EngineThread = request.getfixturevalue("engine")
    return embedded.url


@pytest.fixture
def start(engine_url: str, tmp_path: Path) -> Iterator[Callable[..., Reader]]:
    """Starts the directory with settings of the test's own."""
    with ExitStack() as running:

        def begin(**settings: Any) -> Reader:
            return running.enter_context(Reader(engine_url, tmp_path, **settings))

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
