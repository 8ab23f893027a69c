"""The published SDKs as an ordinary user, without a token, and as another user, who is refused.

The first is what every check of this folder shows; the second needs root, and a real second user.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sdk.installation import install_python
from tests.sdk.process import DriverProcess
from tests.sdk.sdks import SDKS, Sdk
from tests.sdk.stage import Stage, unique
from tests.sdk.user_engine import ORDINARY_USER, UserEngine
from tests.support.engine import EngineThread, RawClient
from tests.wire.test_ownership import needs_kernel, needs_root

if TYPE_CHECKING:
    from collections.abc import Iterator


@needs_root
def test_every_check_of_this_folder_is_one_of_an_ordinary_user(driver: DriverProcess) -> None:
    """What the other files show is therefore shown without a token and without being root."""
    with UserEngine() as engine:
        stage = Stage(driver, engine.url)
        stage.client()
        assert {_user_of(driver.process_id), _user_of(engine.process_id)} == {ORDINARY_USER}
        stage.close()


@needs_root
def test_an_sdk_works_from_a_folder_that_its_user_may_not_read(tmp_path: Path) -> None:
    """As in a checkout below root's home."""
    sdk = SDKS[1]
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    shutil.copytree(install_python(sdk.version), private / "packages")

    class PrivateSdk(Sdk):
        def command(self) -> tuple[list[str], dict[str, str]]:
            return super().command()[0], {"PYTHONPATH": str(private / "packages")}

    driver = DriverProcess(PrivateSdk(**vars(sdk)), tmp_path, user=ORDINARY_USER)
    try:
        with UserEngine() as engine:
            stage = Stage(driver, engine.url)
            assert stage.client().until_known()["worker"]["version"] == sdk.version
            stage.close()
    finally:
        driver.stop()


def _user_of(process_id: int) -> int:
    return Path(f"/proc/{process_id}").stat().st_uid


@pytest.fixture(params=SDKS, ids=lambda sdk: sdk.name)
def stranger(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DriverProcess]:
    """A process of its own: one that is refused goes on trying."""
    sdk: Sdk = request.param
    driver = DriverProcess(sdk, tmp_path_factory.mktemp(sdk.name), user=ORDINARY_USER)
    yield driver
    driver.stop()


@needs_root
@needs_kernel
def test_another_user_is_refused_and_told_so_by_the_sdk(
    stranger: DriverProcess, engine: EngineThread
) -> None:
    name = unique("stranger")
    stranger.start("connect", name, name=name, url=engine.url)

    stranger.log("401")
    with RawClient(engine.url) as owner:
        workers = owner.result("engine::workers::list")["workers"]
        assert name not in [row["name"] for row in workers]
