"""The published SDKs as an ordinary user, without a token, and as another user, who is refused.

Where the tests run as an ordinary user, all of them show the first. Root shows both, with a real second user.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from tests.access.test_ownership import NOBODY, needs_kernel, needs_root
from tests.sdk.process import DriverProcess
from tests.sdk.sdks import SDKS
from tests.sdk.stage import unique, until
from tests.support.commands import running_program
from tests.support.engine import EngineThread, RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tests.sdk.sdks import Sdk

# What is imported is imported first: the interpreter may lie where nobody else may read.
ENGINE = f"""
import asyncio, encodings.idna, os, sqlite3
from iii_directory.engine.schemas import load_library
from iii_directory.engine.server import EngineServer

load_library()
os.setgid({NOBODY})
os.setuid({NOBODY})


async def serve():
    server = EngineServer(port=0)
    await server.start()
    print("engine at", server.url, flush=True)
    await asyncio.Event().wait()


asyncio.run(serve())
"""


@pytest.fixture(params=SDKS, ids=lambda sdk: sdk.name)
def user_s_driver(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DriverProcess]:
    sdk: Sdk = request.param
    driver = DriverProcess(sdk, tmp_path_factory.mktemp(sdk.name), user=NOBODY)
    yield driver
    driver.stop()


@needs_root
@needs_kernel
def test_an_ordinary_user_needs_no_token_on_an_engine_of_their_own(user_s_driver: DriverProcess) -> None:
    with running_program(sys.executable, "-c", ENGINE) as engine:
        url = engine.wait_for("engine at").split()[-1]
        driver, name = user_s_driver, unique("worker")
        driver.ask("connect", name, name=name, url=url)
        driver.ask("register", name, function="mine::echo", behaviour="echo")

        def answered() -> Any | None:
            listed = driver.ask("call", name, function="engine::functions::list", payload={})
            return next((row for row in listed["functions"] if row["function_id"] == "mine::echo"), None)

        until(answered, "the function is there")
        assert driver.ask("call", name, function="mine::echo", payload=[1])["payload"] == [1]
        driver.ask("close", name)


@needs_root
@needs_kernel
def test_another_user_is_refused_and_told_so_by_the_sdk(
    user_s_driver: DriverProcess, engine: EngineThread
) -> None:
    name = unique("stranger")
    user_s_driver.start("connect", name, name=name, url=engine.url)

    user_s_driver.log("401")
    with RawClient(engine.url) as owner:
        workers = owner.result("engine::workers::list")["workers"]
        assert name not in [row["name"] for row in workers]
