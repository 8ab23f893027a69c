"""§3: which downloaded namespaces are shown."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.downloads.stage import V1
from tests.registered.stage import until
from tests.support.installs import put

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.downloads.stage import Depot
    from tests.support.engine import EngineThread

DB = ["db", "db/get"]


def fetched_by_itself(depot: Depot) -> None:
    """The skills of a worker that came and went."""
    depot.world.publish("db", "1.0.0", V1)
    with depot.visitor("db"):
        until(lambda: depot.ids() == DB, "the skills of db are there")
    depot.settle()


def test_what_a_call_downloaded_is_shown_though_no_such_worker_is_installed(depot: Depot) -> None:
    depot.world.publish("db", "1.0.0", V1)

    depot.call("skills::download", worker="db")

    assert depot.ids() == DB
    depot.restart()
    assert depot.ids() == DB


def test_what_the_worker_fetched_by_itself_is_hidden_when_its_worker_is_gone(
    start: Callable[..., Depot],
) -> None:
    depot = start(auto_download=True, registry_cache_ttl_ms=0)
    fetched_by_itself(depot)

    until(lambda: depot.ids() == [], "the skills of db are hidden")
    (finding,) = depot.findings("hidden")
    assert finding["subject"] == "db"
    assert "D110" in depot.refusal("skill::fetch", uri="iii://db")
    assert [row["name"] for row in depot.call("prompts::list")["prompts"]] == []

    depot.another_client(name="db")
    until(lambda: depot.ids() == DB, "they are shown again with their worker")


def test_asking_for_it_shows_it_for_good(start: Callable[..., Depot]) -> None:
    depot = start(auto_download=True, registry_cache_ttl_ms=0)
    fetched_by_itself(depot)
    until(lambda: depot.ids() == [], "the skills of db are hidden")

    depot.call("skills::download", worker="db")

    assert depot.ids() == DB
    assert depot.world.lock()["db"]["by"] == "call"


def test_a_file_of_ones_own_in_it_shows_it(start: Callable[..., Depot]) -> None:
    depot = start(auto_download=True, registry_cache_ttl_ms=0)
    fetched_by_itself(depot)
    until(lambda: depot.ids() == [], "the skills of db are hidden")

    put(depot.folder, {"db/own.md": b"# own\n"})

    assert depot.ids() == [*DB, "db/own"]


def test_without_the_filter_it_stays_shown(start: Callable[..., Depot]) -> None:
    depot = start(auto_download=True, registry_cache_ttl_ms=0, filter_unregistered=False)
    fetched_by_itself(depot)

    depot.restart()

    assert depot.ids() == DB
    assert depot.findings("hidden") == []


def test_nothing_is_hidden_while_the_installed_workers_are_unknown(
    engine: EngineThread, start: Callable[..., Depot]
) -> None:
    depot = start(auto_download=True, registry_cache_ttl_ms=0)
    fetched_by_itself(depot)
    until(lambda: depot.ids() == [], "the skills of db are hidden")

    async def forget_worker_list() -> None:
        engine.server._router.engine_state.functions.pop(("default", "worker::list"))

    asyncio.run_coroutine_threadsafe(forget_worker_list(), engine.loop).result(10)

    until(lambda: depot.ids() == DB, "nothing is hidden")
    depot.restart()
    assert depot.ids() == DB


def test_the_documents_of_a_worker_that_left_are_marked_in_the_lists(depot: Depot) -> None:
    depot.world.publish("db", "1.0.0", V1)
    depot.world.publish("web", "1.0.0", {"skills/SKILL.md": "# web\n"})
    for name in ("db", "web"):
        depot.call("skills::download", worker=name)

    def marks() -> dict[str, bool | None]:
        skills = depot.call("directory::skills::list", prefix="db")["skills"]
        prompts = depot.call("directory::prompts::list")["prompts"]
        return {row.get("id", row.get("name")): row.get("connected") for row in (*skills, *prompts)}

    with depot.visitor("db"):
        until(lambda: bool(marks()) and "db" in depot.worker.installed._met, "the worker is known")
        assert marks() == {"db": None, "db/get": None, "ask": None}
    until(lambda: marks() == {"db": False, "db/get": False, "ask": False}, "its documents are marked")
    (web,) = depot.call("directory::skills::list", prefix="web")["skills"]
    assert "connected" not in web
    with depot.visitor("db"):
        until(lambda: marks() == {"db": None, "db/get": None, "ask": None}, "it is back")
