"""How the SDKs get onto the machine."""

from __future__ import annotations

import json
import re
from importlib.metadata import version as installed
from typing import TYPE_CHECKING

import pytest
from tests.sdk.installation import HERE, RegistryNeededError, install_node, install_python
from tests.sdk.sdks import SDKS

if TYPE_CHECKING:
    from pathlib import Path

PYTHON_LOCKS = sorted(HERE.glob("requirements-*.txt"))


@pytest.fixture
def no_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Set package registries that do not answer, without caches of their earlier answers."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:1/")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm-cache"))


def test_every_supported_generation_is_tested_the_one_in_use_included() -> None:
    versions = {sdk.version for sdk in SDKS if sdk.language == "python"}

    assert {"0.23", "0.24", "0.25"} == {version.rpartition(".")[0] for version in versions}
    assert installed("iii-sdk") in versions


def test_the_lock_files_pin_hashes_and_name_no_registry() -> None:
    node = json.loads((HERE / "node" / "package-lock.json").read_text())["packages"]
    packages = [package for path, package in node.items() if path]
    python = "".join(lock.read_text() for lock in PYTHON_LOCKS)

    assert packages
    assert all("resolved" not in package and "integrity" in package for package in packages)
    assert len(re.findall(r"==", python)) == len(
        re.findall(r"--hash=sha256:[0-9a-f]{64}$", python, re.MULTILINE)
    )
    assert "://" not in python


@pytest.mark.usefixtures("no_registry")
def test_an_unreachable_registry_is_named_as_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(
        RegistryNeededError, match=r"python-0\.23\.0 could not .* registry has to be reachable"
    ):
        install_python("0.23.0", tmp_path / "sdks")
    with pytest.raises(RegistryNeededError, match=r"node could not .* has to be reachable"):
        install_node(tmp_path / "sdks")


def test_what_is_installed_already_needs_no_registry(request: pytest.FixtureRequest) -> None:
    first = (install_python("0.23.0"), install_node())
    request.getfixturevalue("no_registry")

    assert (install_python("0.23.0"), install_node()) == first


@pytest.mark.usefixtures("no_registry")
def test_a_folder_filled_from_another_lock_file_is_not_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "python-0.23.0"
    folder.mkdir()
    (folder / "requirements-0.23.txt").write_text("iii-sdk==0.0.1\n")

    with pytest.raises(RegistryNeededError):
        install_python("0.23.0", tmp_path)
