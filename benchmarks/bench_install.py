"""Installing from a registry, against downloading the same bundle and writing it plainly."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import os
import tempfile
from pathlib import Path

from benchmarks.harness import Measurement, goal, interleave, timed
from iii_directory.config import Settings
from iii_directory.install.service import Installer
from iii_directory.registry.client import RegistryClient
from iii_directory.registry.requests import worker_request
from iii_directory.registry_server.release import publish
from iii_directory.registry_server.server import RegistryServer

FILES = 200
BYTES = 2_600


def _publish(folder: Path) -> Path:
    source, registry = folder / "big", folder / "registry"
    for number in range(FILES):
        path = source / "skills" / f"topic-{number % 10}" / f"page-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Page {number}\n\n" + "All work and no play. " * (BYTES // 22))
    publish(source, registry, "1.0.0")
    return registry


def _plainly(url: str, folder: Path) -> None:
    """The bare minimum: one request, and every file opened, written, synced and closed."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    connection.request("GET", "/w/big/skills?version=latest")
    bundle = json.loads(connection.getresponse().read())
    connection.close()
    for skill in bundle["skills"]:
        path = folder / "big" / skill["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.write(skill["content"].encode())
            file.flush()
            os.fsync(file.fileno())


@goal("install.200-files", at_most=1.5)
def install_200_files() -> Measurement:
    with tempfile.TemporaryDirectory() as scratch, asyncio.Runner() as runner:
        base = Path(scratch)
        numbers = itertools.count()
        with RegistryServer(_publish(base)) as server:
            # One client for all rounds, as in a running worker.
            client = RegistryClient(server.url, timeout_ms=60_000, cache_ttl_ms=0)

            def safely() -> None:
                runner.run(_install(base / f"safely-{next(numbers)}", client))

            def plainly() -> None:
                _plainly(server.url, base / f"plainly-{next(numbers)}")

            try:
                return interleave(timed(safely), timed(plainly), notes=[f"{FILES} files of {BYTES} bytes"])
            finally:
                runner.run(client.close())


async def _install(folder: Path, client: RegistryClient) -> None:
    installer = Installer(Settings(skills_folder=folder), registry=client)
    done = await installer.download(worker_request("big"))
    assert len(done.reply["skills_written"]) == FILES
