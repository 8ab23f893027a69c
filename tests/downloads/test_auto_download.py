"""§7: what the worker fetches by itself."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.downloads.stage import TYPES, V1, V2, event
from tests.registered.stage import until
from tests.support.engine import WAIT, RawClient
from tests.support.installs import contents, hashes, put
from tests.support.registry import RawServer, answer

from iii_directory.install.service import Installer

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from tests.downloads.stage import Depot
    from tests.support.engine import EngineThread

    from iii_directory.install.bundle import Bundle
    from iii_directory.install.reports import Installation

ADDED = "directory::__on_worker_added"


def added(worker: Any, **fields: Any) -> dict[str, Any]:
    return {
        "operation": "add",
        "worker": worker,
        "stage": "done",
        "timestamp_ms": 1,
        "caller_mode": "trigger",
    } | fields


def not_found(path: str, connection: socket.socket) -> None:
    connection.sendall(answer({"error": "none"}, "404 Not Found"))


def broken(path: str, connection: socket.socket) -> None:
    connection.sendall(answer(b"no JSON"))


def test_automatic_downloads_are_off_on_the_embedded_engine_by_default(start: Callable[..., Depot]) -> None:
    with RawServer(not_found) as registry:
        depot = start(registry_url=registry.url)
        depot.another_client(name="db")

        assert depot.call(ADDED, added("db")) == {"ok": True}
        depot.settle()

        assert registry.asked == []
        bound = depot.call("engine::registered-triggers::list", trigger_type="worker")
        assert bound["registered_triggers"] == []


def test_on_an_engine_that_is_not_the_embedded_one_it_is_on(
    engine: EngineThread, start: Callable[..., Depot]
) -> None:
    async def forget_health() -> None:
        engine.server._router.engine_state.functions.pop(("default", "engine::health::check"))

    asyncio.run_coroutine_threadsafe(forget_health(), engine.loop).result(10)
    depot = start()
    depot.world.publish("db", "1.0.0", V1)

    depot.another_client(name="db")

    until(lambda: depot.ids() == ["db", "db/get"], "the skills of db are there")


def test_a_stop_does_not_wait_for_a_registry_that_hangs(start: Callable[..., Depot]) -> None:
    hanging = threading.Event()

    def hang(path: str, connection: socket.socket) -> None:
        hanging.set()
        registry.stopping.wait(WAIT)

    with RawServer(hang) as registry:
        depot = start(registry_url=registry.url, auto_download=True, download_timeout_ms=600_000)
        assert hanging.wait(WAIT)

        depot.retire(depot.worker)

        assert not registry.stopping.is_set()


def test_an_unexpected_failure_is_logged_and_the_next_worker_is_fetched(
    start: Callable[..., Depot], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    depot = start(auto_download=True)
    depot.world.publish("db", "1.0.0", V1)
    depot.settle()
    with monkeypatch.context() as patched:
        patched.setattr("iii_directory.install.service.Installer.auto_download", None)
        depot.another_client(name="db")
        until(lambda: "fetching the skills of db failed" in caplog.text, "the log says so")

    assert depot.call(ADDED, added("db")) == {"ok": True}

    until(lambda: depot.ids() == ["db", "db/get"], "the skills of db are there")


def test_a_worker_that_joins_brings_its_skills(start: Callable[..., Depot]) -> None:
    depot = start(auto_download=True)
    depot.world.publish("db", "1.0.0", V1)
    listeners = depot.listeners()
    (bound,) = depot.call("engine::registered-triggers::list", trigger_type="worker")["registered_triggers"]
    assert (bound["function_id"], bound["config"]) == (ADDED, {"operations": ["add"], "stages": ["done"]})

    depot.another_client(name="db")

    for kind in TYPES:
        assert listeners[kind].next() == event("db")
    assert depot.ids() == ["db", "db/get"]
    entry = depot.world.lock()["db"]
    assert (entry["by"], entry["resolved"]) == ("auto", "1.0.0")
    address = {"registry": depot.world.registry_url}
    assert entry["source"] == {"kind": "registry", "worker": "db", "tag": "latest", **address}


def test_a_worker_added_again_while_it_is_fetched_is_fetched_once_and_told_of_once(
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
    depot.world.publish("db", "1.0.0", V1)
    depot.world.publish("last", "1.0.0", V1)
    listeners = depot.listeners()

    with depot.visitor("db"):
        assert began.wait(WAIT)
        for _ in range(2):
            assert depot.call(ADDED, added("db")) == {"ok": True}
        go.set()
        until(lambda: depot.ids() == ["db", "db/get"], "the skills of db are there")
        depot.settle()
        depot.call("skills::download", worker="last")

    assert fetched == ["db", "last"]
    for listener in listeners.values():
        assert listener.take(2) == [event("db"), event("last")]


def test_what_is_installed_at_the_start_is_fetched(start: Callable[..., Depot]) -> None:
    depot = start()
    for name in ("db", "mail"):
        depot.world.publish(name, "1.0.0", V1)
        depot.another_client(name=name)
    assert depot.ids() == []
    depot._settings["auto_download"] = True

    depot.restart()

    until(lambda: depot.ids() == ["db", "db/get", "mail", "mail/get"], "both are there")


def test_a_namespace_that_is_current_is_left_alone_and_a_newer_version_is_brought(
    start: Callable[..., Depot], caplog: pytest.LogCaptureFixture
) -> None:
    depot = start(auto_download=True)
    depot.world.publish("db", "1.0.0", V1)
    depot.another_client(name="db")
    until(lambda: depot.ids() == ["db", "db/get"], "the skills of db are there")
    depot.settle()
    before = depot.files()

    with caplog.at_level(logging.DEBUG, "iii_directory.registry_server.registry_http"):
        caplog.clear()
        depot.restart()
        until(lambda: "GET /w/db?version=latest" in caplog.text, "the registry was asked for the version")
        depot.settle()
        assert "/w/db/skills" not in caplog.text
    assert depot.files() == before

    depot.world.publish("db", "2.0.0", V2)
    depot.restart()
    until(lambda: depot.title("db") == "db two", "the newer version is there")
    assert depot.world.lock()["db"]["by"] == "auto"


def test_a_hand_edited_file_survives_is_named_and_still_counts_as_edited(start: Callable[..., Depot]) -> None:
    depot = start(auto_download=True)
    depot.world.publish("db", "1.0.0", V1)
    depot.another_client(name="db")
    until(lambda: depot.ids() == ["db", "db/get"], "the skills of db are there")
    depot.settle()
    put(depot.folder, {"db/get.md": b"# edited\n", "db/own.md": b"# own\n"})
    depot.world.publish("db", "2.0.0", V2)

    depot.restart()
    until(lambda: "db/set" in depot.ids(), "the newer version is there")
    depot.settle()

    assert {name: depot.title(name) for name in depot.ids()} == {
        "db": "db two",
        "db/get": "edited",
        "db/own": "own",
        "db/set": "set",
    }
    (finding,) = depot.findings("edited")
    assert finding["subject"] == "db/get.md"
    recorded = depot.world.lock()["db"]["files"]
    there = hashes(contents(depot.folder / "db"))
    assert recorded["get.md"] == hashes({"get.md": V2["skills/get.md"].encode()})["get.md"]
    assert [path for path in recorded if recorded[path] != there[path]] == ["get.md"]

    depot.restart()
    assert depot.findings("edited") == [finding]

    depot.call("skills::download", worker="db")
    assert depot.findings("edited") == []
    assert depot.title("db/get") == "get two"


def test_what_was_asked_for_stays_asked_for(start: Callable[..., Depot]) -> None:
    depot = start(auto_download=True)
    depot.world.publish("db", "1.0.0", V1)
    depot.world.publish("pinned", "1.0.0", V1)
    depot.call("skills::download", worker="db")
    depot.call("skills::download", worker="pinned", version="1.0.0")
    for name in ("db", "pinned"):
        depot.world.publish(name, "2.0.0", V2)
        depot.another_client(name=name)

    until(lambda: depot.title("db") == "db two", "db is up to date")
    depot.settle()

    assert depot.title("pinned") == "db one"
    assert depot.world.lock()["db"]["by"] == "call"


def test_a_failure_is_in_the_log_and_in_the_diagnostics_until_it_works(
    start: Callable[..., Depot], caplog: pytest.LogCaptureFixture
) -> None:
    respond = broken

    def registry_of_the_day(path: str, connection: socket.socket) -> None:
        respond(path, connection)

    with RawServer(registry_of_the_day) as registry, caplog.at_level(logging.WARNING, "iii_directory"):
        depot = start(registry_url=registry.url, auto_download=True)
        depot.another_client(name="db")
        until(lambda: bool(depot.findings("download")), "the failure is in the diagnostics")
        depot.settle()
        depot.call(ADDED, added("db"))
        depot.settle()

        found = {row["subject"]: row for row in depot.findings("download")}
        assert "not JSON" in found["db"]["reason"]
        assert registry.url not in str(found)
        assert len([line for line in caplog.messages if line.startswith("db: ")]) == 1

        bundle = {"name": "db", "version": "1.0.0", "skills": [{"path": "SKILL.md", "content": "# db\n"}]}
        respond = lambda path, connection: connection.sendall(answer(bundle))  # noqa: E731
        depot.call("skills::download", worker="db")
        assert "db" not in {row["subject"] for row in depot.findings("download")}


def test_a_worker_without_skills_is_not_asked_for_again_and_is_not_a_failure(
    start: Callable[..., Depot],
) -> None:
    with RawServer(not_found) as registry:
        depot = start(registry_url=registry.url, auto_download=True)
        depot.another_client(name="db")
        until(lambda: any("/w/db/" in path for path in registry.asked), "the registry was asked")
        depot.settle()

        assert depot.call(ADDED, added("db")) == {"ok": True}
        depot.settle()

        assert [path for path in registry.asked if "/w/db/" in path] == ["/w/db/skills?version=latest"]
        assert depot.findings("download") == []


def test_only_names_of_installed_workers_are_sent_to_the_registry(start: Callable[..., Depot]) -> None:
    with RawServer(not_found) as registry:
        depot = start(registry_url=registry.url, auto_download=True)
        for name in ("secret-project", "../etc", "Upper", "", "iii", "iii-directory"):
            assert depot.call(ADDED, added(name)) == {"ok": True}
        depot.settle()

        assert [path for path in registry.asked if f"/w/{depot.client.name}/" not in path] == []


@pytest.mark.parametrize(
    "sent",
    [
        *(None, "text", 7, True, [1, 2], {}, {"worker": 7}, {"worker": None}, {"worker": ["db"]}),
        *(added("db", operation="remove"), added("db", stage="started"), added("db", operation=3)),
        added("x" * 100_000),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_download_listener_answers_ok_to_any_event(start: Callable[..., Depot], sent: Any) -> None:
    depot = start(auto_download=True)
    with RawClient(depot.url) as client:
        call_id = client.start_call(ADDED, sent)
        reply = client.receive_type("invocationresult")

    assert (reply["invocation_id"], reply["result"]) == (call_id, {"ok": True})
    depot.settle()
    assert depot.findings("download") == []


def test_the_download_listener_is_internal_whether_on_or_off(depot: Depot) -> None:
    info = depot.call("engine::functions::info", function_id=ADDED)

    assert info["metadata"] == {"internal": True}


def test_without_its_generation_it_is_off(start: Callable[..., Depot]) -> None:
    depot = start(auto_download=True, surfaces=("v0.4",))
    depot.world.publish("db", "1.0.0", V1)

    with depot.visitor("db"):
        depot.settle()

    assert not (depot.folder / "db").exists()
