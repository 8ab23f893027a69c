"""Engines from 0.23 on, where Compose says what is installed: what it adds shows, and is fetched once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from iii import InvocationError
from tests.downloads.stage import V1, Depot, event
from tests.registered.stage import SdkClient, until
from tests.support.commands import COMMAND, run, running_program
from tests.support.engine import WAIT, EngineThread, RawClient
from tests.support.real_engine import QUIET, RealMortal, program_or_skip

from iii_directory.install.service import Installer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.world import World

    from iii_directory.install.bundle import Bundle
    from iii_directory.install.reports import Installation

ROOT = Path(__file__).parents[2]


@pytest.fixture
def engine() -> Iterator[EngineThread]:
    """In the words of 0.23; the workers that are connected stand for the containers."""
    with EngineThread(dialect="0.23") as running:
        yield running


def test_the_diagnostics_and_doctor_say_who_told_what_is_installed(start: Callable[..., Depot]) -> None:
    depot = start()
    assert depot.call("directory::diagnostics")["installed_by"] == "compose::status"
    done = run("doctor", "--url", depot.url, "--config", str(depot.write_config()))
    assert "which workers are installed is told by compose::status" in done.stderr


def test_a_worker_that_compose_adds_is_shown_with_the_next_read_after_the_news(
    start: Callable[..., Depot],
) -> None:
    depot = start(auto_download=True)
    depot.world.publish("db", "1.0.0", V1)
    with depot.visitor("db"):
        until(lambda: depot.ids() == ["db", "db/get"], "the skills of db are there")
    until(lambda: depot.ids() == [], "they are hidden with their worker")
    news = depot.listener("engine::workers-available")
    with depot.visitor("db"):
        while news.next()["event"] != "worker_metadata_updated":
            pass
        assert depot.ids() == ["db", "db/get"]


class Compose(RawClient):
    """A daemon with its containers, in a namespace of its own; a context manager."""

    def __init__(self, url: str, namespace: str, file: object, *containers: str) -> None:
        super().__init__(url, name="compose", namespace=namespace)
        rows = [{"container": name, "state": "ready"} for name in containers]
        self._status = {"file": file, "containers": rows}
        self.send(type="registerfunction", id="compose::status")
        assert self.result("engine::workers::list")
        self._answering = threading.Thread(target=self._answer, daemon=True)
        self._answering.start()

    def _answer(self) -> None:
        while True:
            try:
                asked = self.receive(timeout=WAIT * 6)
                if asked["type"] == "invokefunction":
                    answer = {key: asked[key] for key in ("invocation_id", "function_id")}
                    self.send(type="invocationresult", **answer, result=self._status)
            except Exception:  # noqa: BLE001 (the test is over)
                return


def project_file(folder: Path, **containers: str) -> Path:
    """A ``worker-compose.yaml`` with a container of each name, beside this worker."""
    path = folder / "worker-compose.yaml"
    declared = {"iii-directory": "path://./iii-directory", **containers}
    path.write_text(json.dumps({"containers": {key: {"worker": spec} for key, spec in declared.items()}}))
    return path


def test_the_daemon_that_has_this_worker_is_found_though_it_does_not_say_where_it_answers(
    world: World,
) -> None:
    file = str(project_file(world.tmp_path, db="path://./db", web="path://./web"))
    with (
        EngineThread() as engine,
        Compose(engine.url, "brave-otter", file, "web", "somebody"),
        Compose(engine.url, "proud-willow", file, "db", "iii-directory"),
    ):
        for name in ("db", "web"):
            world.publish(name, "1.0.0", V1)
        with closing(Depot(engine.url, world, auto_download=True)) as depot:
            assert depot.call("directory::diagnostics")["installed_by"] == "compose::status"
            until(lambda: depot.ids() == ["db", "db/get"], "the skills of db are there")
            depot.settle()
            assert depot.ids() == ["db", "db/get"]


MEMORY = ["agent-memory", "agent-memory/get"]


def test_the_skills_of_a_container_are_those_of_the_package_that_the_file_of_its_daemon_declares(
    world: World,
) -> None:
    file = project_file(world.tmp_path, memory="package://registry/agent-memory@1.0.0")
    with (
        EngineThread() as engine,
        Compose(engine.url, "proud-willow", str(file), "iii-directory", "memory"),
    ):
        for name in ("memory", "agent-memory"):
            world.publish(name, "1.0.0", V1)
        with closing(Depot(engine.url, world, auto_download=True)) as depot:
            until(lambda: depot.ids() != [], "skills are there")
            depot.settle()
            assert depot.ids() == MEMORY


def test_where_no_file_says_what_package_a_container_is_nothing_is_fetched_for_it_and_nothing_is_hidden(
    world: World,
) -> None:
    file = project_file(world.tmp_path, memory="package://registry/agent-memory@1.0.0", db="path://./db")
    for name in ("agent-memory", "memory", "database"):
        world.publish(name, "1.0.0", V1)
    with (
        EngineThread() as engine,
        Compose(engine.url, "proud-willow", str(file), "iii-directory", "memory", "db"),
        closing(Depot(engine.url, world, auto_download=True, registry_cache_ttl_ms=0)) as depot,
    ):
        until(lambda: depot.ids() == MEMORY, "the skills of the package are there")
        depot.settle()

        project_file(world.tmp_path, db="database@1.0.0")
        until(lambda: "installed_by" not in depot.call("directory::diagnostics"), "nobody can say")
        assert depot.call("directory::__on_worker_added", worker="memory") == {"ok": True}
        with depot.visitor("passer-by"):
            until(lambda: "database" in depot.ids(), "the skills of what is known are fetched")
        depot.settle()

        assert depot.ids() == [*MEMORY, "database", "database/get"]
        assert depot.findings("hidden") == []
        done = run("doctor", "--url", depot.url, "--config", str(depot.write_config()))
        assert "told by compose::status" not in done.stderr


def test_a_worker_of_an_unknown_package_is_listed_as_the_engine_knows_it(world: World) -> None:
    with (
        EngineThread() as engine,
        Compose(engine.url, "proud-willow", None, "iii-directory", "memory"),
        closing(Depot(engine.url, world)) as depot,
    ):
        assert "memory" in depot.call("directory::skills::get", id="memory")["body"]


@pytest.mark.parametrize(
    "named", ["a pipe", "worker-compose.yaml", "/nowhere/worker-compose.yaml", "\0", 7, ""]
)
def test_whatever_a_daemon_names_as_its_file_readers_are_answered(world: World, named: object) -> None:
    if named == "a pipe":
        named = str(world.tmp_path / "pipe")
        os.mkfifo(named)
    with (
        EngineThread() as engine,
        Compose(engine.url, "proud-willow", named, "iii-directory", "db"),
        closing(Depot(engine.url, world)) as depot,
    ):
        assert depot.ids() == []
        assert "installed_by" not in depot.call("directory::diagnostics")


def test_a_worker_that_compose_adds_is_fetched_once_and_told_of_once_though_ten_events_come(
    start: Callable[..., Depot], monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go, fetched = threading.Event(), threading.Event(), list[str]()
    really = Installer._install

    def slowly(self: Installer, bundle: Bundle, *rest: Any, **options: Any) -> Installation:
        fetched.append(bundle.namespace)
        began.set()
        assert go.wait(WAIT)
        return really(self, bundle, *rest, **options)

    monkeypatch.setattr(Installer, "_install", slowly)
    depot = start(auto_download=True)
    for name in ("db", "last"):
        depot.world.publish(name, "1.0.0", V1)
    listeners = depot.listeners()
    with ExitStack() as opened:
        opened.enter_context(depot.visitor("db"))
        assert began.wait(WAIT)
        for number in range(10):
            opened.enter_context(RawClient(depot.url, name=f"passer-by-{number}"))
        go.set()
        until(lambda: depot.ids() == ["db", "db/get"], "the skills of db are there")
        depot.settle()
        depot.call("skills::download", worker="last")
    assert fetched == ["db", "last"]
    for listener in listeners.values():
        assert listener.take(2) == [event("db"), event("last")]


# The real tool


OTHER = """
import os, threading
from iii import InitOptions, register_worker

name = os.environ["III_WORKER_NAME"]
worker = register_worker(os.environ["III_URL"], InitOptions(worker_name=name, otel={"enabled": False}))
threading.Event().wait()
"""


@pytest.fixture
def project(tmp_path: Path, world: World) -> Path:
    """A folder for Compose: this worker as its manifest describes it, and another one that can be added."""
    ours, other = tmp_path / "project" / "iii-directory", tmp_path / "project" / "other"
    for folder in (ours, other):
        folder.mkdir(parents=True)
    shutil.copy(ROOT / "iii.worker.yaml", ours)
    (ours / "config.yaml").write_text(json.dumps({"registry_url": world.registry_url}))
    (other / "main.py").write_text(OTHER)
    (other / "iii.worker.yaml").write_text(f"name: other\nscripts:\n  start: exec {sys.executable} main.py\n")
    ours.with_name("worker-compose.yaml").write_text(
        "containers:\n  iii-directory:\n    worker: path://./iii-directory\n"
    )
    return ours.parent


def test_compose_of_a_real_engine_starts_this_worker_and_the_skills_of_what_it_adds_are_fetched(
    tmp_path: Path, project: Path, world: World
) -> None:
    program = program_or_skip()
    world.publish("other", "1.0.0", V1)
    with ExitStack() as opened:
        engine = RealMortal(tmp_path / "engine")
        engine.start()
        opened.callback(engine.kill)
        path = f"{Path(COMMAND).parent}:{os.environ['PATH']}"
        words = (program, "compose", "up", "--engine", engine.url)
        up = opened.enter_context(
            running_program(*words, cwd=project, HOME=str(tmp_path), PATH=path, **QUIET)
        )
        # It stops its containers when it is asked to end.
        opened.callback(up.stop, signal.SIGINT)
        up.wait_for("up: 1 of 1")
        client = opened.enter_context(SdkClient(engine.url))
        until(lambda: told_by(client) == "compose::status", "Compose says what is installed")
        rows = client.call("engine::workers::list")["workers"]
        (daemon,) = [row["namespace"] for row in rows if row["name"] == "compose"]
        added = client.call("compose::add", worker="./other", to=daemon, timeout_ms=60_000)
        assert added["status"] == "ok", added
        until(
            lambda: skills_of(client, "other") == ["other", "other/get"], "the skills of the other are there"
        )


def told_by(client: SdkClient) -> str | None:
    """The worker that tells the directory what is installed; None while it is not connected yet."""
    try:
        return client.call("directory::diagnostics").get("installed_by")
    except InvocationError:
        return None


def skills_of(client: SdkClient, namespace: str) -> list[str]:
    """The skills of a worker; Compose starts the directory again when it adds one."""
    try:
        rows = client.call("directory::skills::list")["skills"]
    except InvocationError:
        return []
    return [row["id"] for row in rows if row["id"].split("/")[0] == namespace]
