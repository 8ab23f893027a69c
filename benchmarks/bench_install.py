"""Installing from a registry, against downloading the same bundle and writing it plainly."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import os
import subprocess
import tempfile
from pathlib import Path

from benchmarks.harness import Measurement, goal, interleave, measure, timed
from iii_directory.config import Settings
from iii_directory.install.bundle import Wanted
from iii_directory.install.requests import RepoTree
from iii_directory.install.service import Installer
from iii_directory.registry.registry_client import RegistryClient
from iii_directory.registry.registry_messages import worker_request
from iii_directory.registry_server.registry_http import RegistryServer
from iii_directory.registry_server.release import publish

FILES = 200
BYTES = 2_600
SKILLS = 17
SKILL_FILES = 12


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


@measure("install.200-files")
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
                runner.run(client.aclose())


async def _install(folder: Path, client: RegistryClient) -> None:
    installer = Installer(Settings(skills_folder=folder), registry=client)
    done = await installer.download(worker_request("big"))
    assert len(done.reply["skills_written"]) == FILES


def _collection(folder: Path) -> Path:
    """A repository with as many skills, and files of as many sizes, as the largest public collection has."""
    repository = folder / "mirror" / "o" / "r"
    for number in range(SKILLS):
        for page in range(SKILL_FILES):
            name = "SKILL.md" if page == 0 else f"references/page-{page}.md"
            path = repository / "skills" / f"skill-{number}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                f"---\nname: skill-{number}\ndescription: It helps.\n---\n" + f"{number} {page} " * 900
            )
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (
        ["init", "--quiet", "--initial-branch=main"],
        ["add", "--all"],
        ["commit", "--quiet", "-m", "x"],
    ):
        subprocess.run([*git, *command], cwd=repository, check=True)
    return repository


def _clone_and_write(repository: Path, folder: Path) -> None:
    """One shallow clone, and every file of it opened, written, synced and closed."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{repository}", str(clone)], check=True)
    for path in sorted((clone / "skills").rglob("*.md")):
        target = folder / "skills" / path.relative_to(clone / "skills")
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.write(path.read_bytes())
            file.flush()
            os.fsync(file.fileno())


@goal("install.add-17-skills", at_most=1.3)
def add_17_skills() -> Measurement:
    with tempfile.TemporaryDirectory() as scratch, asyncio.Runner() as runner:
        base = Path(scratch)
        numbers = itertools.count()
        repository = _collection(base)

        def safely() -> None:
            runner.run(_add_all(base / f"safely-{next(numbers)}", base / "mirror"))

        def plainly() -> None:
            _clone_and_write(repository, base / f"plainly-{next(numbers)}")

        return interleave(timed(safely), timed(plainly), notes=[f"{SKILLS} skills of {SKILL_FILES} files"])


async def _add_all(folder: Path, mirror: Path) -> None:
    settings = Settings(
        skills_folder=folder, repo_mirrors={"https://github.com/": f"{mirror}/"}, allow_file_repos=True
    )
    installer = Installer(settings, by_operator=True)
    try:
        _, added = await installer.add(RepoTree("https://github.com/o/r"), Wanted(everything=True))
        assert len(added.installed) == SKILLS
    finally:
        await installer.close()
