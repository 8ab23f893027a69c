"""Every check runs for every SDK; on the embedded engine, and on a real one if III_ENGINE_WS_URL names it.

The SDKs and the embedded engine are an ordinary user's, and no token is set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.sdk.process import DriverProcess
from tests.sdk.sdks import SDKS
from tests.sdk.stage import Stage
from tests.sdk.user_engine import ORDINARY_USER, UserEngine
from tests.support.engine import REAL_ENGINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.sdk.sdks import Sdk


@pytest.fixture(scope="session")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Sdk], DriverProcess]]:
    """Gives the process of an SDK; each is started when first asked for, and serves all checks."""
    started: dict[Sdk, DriverProcess] = {}

    def driver_of(sdk: Sdk) -> DriverProcess:
        if sdk not in started:
            started[sdk] = DriverProcess(sdk, tmp_path_factory.mktemp(sdk.name), user=ORDINARY_USER)
        return started[sdk]

    yield driver_of
    for driver in started.values():
        driver.stop()


@pytest.fixture(params=SDKS, ids=lambda sdk: sdk.name)
def driver(request: pytest.FixtureRequest, drivers: Callable[[Sdk], DriverProcess]) -> DriverProcess:
    return drivers(request.param)


@pytest.fixture(scope="session")
def embedded_url() -> Iterator[str]:
    with UserEngine() as engine:
        yield engine.url


@pytest.fixture(params=["embedded", *(["real"] if REAL_ENGINE else [])])
def engine_url(request: pytest.FixtureRequest) -> str:
    return REAL_ENGINE if REAL_ENGINE and request.param == "real" else request.getfixturevalue("embedded_url")


@pytest.fixture
def stage(driver: DriverProcess, engine_url: str) -> Iterator[Stage]:
    """For what every engine does."""
    yield from _stage(driver, engine_url)


@pytest.fixture
def embedded_stage(driver: DriverProcess, embedded_url: str) -> Iterator[Stage]:
    """For what the embedded engine does on purpose, where the real one does less."""
    yield from _stage(driver, embedded_url)


def _stage(driver: DriverProcess, url: str) -> Iterator[Stage]:
    opened = Stage(driver, url)
    yield opened
    opened.close()
