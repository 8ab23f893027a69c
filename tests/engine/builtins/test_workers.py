"""Who is connected, and the events about it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.driver import VERSION, Client, Driver


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def client(driver: Driver) -> Client:
    return driver.connect("asker")


def names(client: Client, **filters: Any) -> list[str | None]:
    rows = client.result("engine::workers::list", filters)["workers"]
    return [row["name"] for row in rows if row["runtime"] != "engine" or "runtime" in filters]


def test_a_worker_s_row_has_every_field(driver: Driver, client: Client) -> None:
    driver.now = 5_000
    worker = driver.connect(
        "w",
        description="does things",
        version="1.2",
        runtime="python",
        os="Linux",
        pid=77,
        isolation="none",
        namespace="n",
        telemetry={"language": "en"},
        features=["observe.v1"],
    )
    worker.register("w::f")
    rows = client.result("engine::workers::list", {"search": "w", "runtime": "python"})["workers"]

    assert rows == [
        {
            "name": "w",
            "description": "does things",
            "version": "1.2",
            "id": worker.id,
            "namespace": "n",
            "runtime": "python",
            "os": "Linux",
            "status": "connected",
            "function_count": 1,
            "connected_at_ms": 5_000,
            "active_invocations": 0,
            "isolation": "none",
            "ip_address": "127.0.0.1",
        }
    ]


def test_a_builtin_worker_s_row_has_every_field(client: Client) -> None:
    rows = client.result("engine::workers::list", {"search": "iii-state"})["workers"]

    assert len(rows) == 1
    assert rows[0] == {
        "name": "iii-state",
        "description": rows[0]["description"],
        "version": VERSION,
        "id": "iii-state",
        "namespace": "default",
        "runtime": "engine",
        "os": None,
        "status": "available",
        "function_count": 6,
        "connected_at_ms": 1_000,
        "active_invocations": 0,
        "isolation": "in-process",
        "ip_address": None,
    }


def test_a_field_that_a_worker_leaves_out_is_null(driver: Driver, client: Client) -> None:
    worker = driver.connect()
    worker.call("engine::workers::register", {"pid": 1, "name": "w"})
    row = next(r for r in client.result("engine::workers::list")["workers"] if r["id"] == worker.id)

    assert row["runtime"] == "unknown"
    assert [row[key] for key in ("description", "version", "os", "isolation")] == [None] * 4


def test_a_connection_without_a_process_id_is_hidden_from_the_list_but_found_by_name(
    driver: Driver, client: Client
) -> None:
    driver.connect()
    shy = driver.connect()
    shy.call("engine::workers::register", {"name": "shy"})

    assert names(client) == ["asker"]
    worker = client.result("engine::workers::info", {"name": "shy"})["worker"]
    assert worker["id"] == shy.id
    assert "pid" not in worker


def test_workers_are_listed_by_name_and_filtered(driver: Driver, client: Client) -> None:
    driver.connect("zoo", runtime="node")
    driver.connect("Bee", runtime="node", description="asker of nothing")
    driver.connect().announce(None)

    assert names(client) == [None, "Bee", "asker", "zoo"], "without a name the id counts"
    assert names(client, search="AS") == ["asker"]
    assert names(client, runtime="node") == ["Bee", "zoo"]
    assert names(client, status="connected", runtime="test") == [None, "asker"]
    assert names(client, status="available") == []
    assert "configuration" in names(client, runtime="engine")
    assert names(client, search="") == names(client)


def test_one_worker_with_what_it_registered(driver: Driver, client: Client) -> None:
    worker = driver.connect("w", pid=9)
    worker.register("w::b")
    worker.register("w::a", description="d")
    worker.provide("w::changed")
    client.bind("b1", "w::changed", "w::a")
    client.bind("b0", "state", "w::b")
    client.bind("b2", "w::changed", "asker::f")
    info = client.result("engine::workers::info", {"name": "w"})

    assert info["worker"]["pid"] == 9
    assert info["worker"]["internal"] is False
    assert [f["function_id"] for f in info["functions"]] == ["w::a", "w::b"]
    assert info["trigger_types"] == [
        {"id": "w::changed", "namespace": "default", "worker_name": "w", "description": "a type"}
    ]
    assert [b["id"] for b in info["registered_triggers"]] == ["b0", "b1"]
    assert set(info["registered_triggers"][0]) == {
        "id",
        "trigger_type",
        "function_id",
        "worker_name",
        "config",
        "config_summary",
    }


def test_a_builtin_worker_with_what_it_provides(client: Client) -> None:
    info = client.result("engine::workers::info", {"name": "iii-pubsub"})

    assert info["worker"]["internal"] is True
    assert [f["function_id"] for f in info["functions"]] == ["publish"]
    assert [t["id"] for t in info["trigger_types"]] == ["subscribe"]


def test_workers_of_one_name_in_two_namespaces_are_told_apart(driver: Driver, client: Client) -> None:
    for namespace in ("a", "b"):
        driver.connect("w", namespace=namespace).register(f"w::{namespace}")
    error = client.error("engine::workers::info", {"name": "w"})
    assert error["code"] == "NOT_FOUND"
    assert "ambiguous" in error["message"]
    assert "a, b" in error["message"]
    found = client.result("engine::workers::info", {"name": "w", "namespace": "b"})
    assert [f["function_id"] for f in found["functions"]] == ["w::b"]

    driver.connect("w").register("w::default")
    found = client.result("engine::workers::info", {"name": "w"})
    assert [f["function_id"] for f in found["functions"]] == ["w::default"]


def test_functions_of_others_with_the_same_first_segment_are_not_a_worker_s(
    driver: Driver, client: Client
) -> None:
    driver.connect("w").register("w::mine")
    bare = driver.connect()
    bare.register("w::foreign")
    driver.run_timer("namespace-grace", bare.id)
    info = client.result("engine::workers::info", {"name": "w"})

    assert [f["function_id"] for f in info["functions"]] == ["w::mine"]


def test_an_unknown_worker_is_not_found(driver: Driver, client: Client) -> None:
    driver.connect("w", namespace="n")
    info = "engine::workers::info"

    assert client.error(info, {"name": "zz"}) == {
        "code": "NOT_FOUND",
        "message": "Worker 'zz' is not connected.",
    }
    assert "it is in: n" in client.error(info, {"name": "w", "namespace": "m"})["message"]
    assert client.error(info, {"name": "zz", "namespace": "m"})["message"] == "Worker 'zz' is not connected."
    assert client.error(info, {})["code"] == "deserialization_error"


def test_names_and_descriptions_lose_what_hides_or_reorders_text_and_are_cut(driver: Driver) -> None:
    worker = driver.connect("\u202ew\x00\x1b[31m" + "x" * 400, description="a\nb\u2066" + "y" * 400)
    row = next(r for r in worker.result("engine::workers::list")["workers"] if r["id"] == worker.id)

    assert row["name"] == ("w[31m" + "x" * 400)[:280]
    assert row["description"] == ("ab" + "y" * 400)[:280]


@pytest.mark.parametrize(
    "field", ["name", "description", "version", "runtime", "os", "isolation", "namespace"]
)
def test_an_announcement_of_the_wrong_type_changes_nothing(driver: Driver, field: str) -> None:
    worker = driver.connect()
    error = worker.error("engine::workers::register", {"name": "w", "description": "d", "pid": 1, field: 7})

    assert error["code"] == "deserialization_error"
    connection = driver.router.engine_state.connections[worker.id]
    assert (connection.name, connection.description, connection.namespace) == (None, None, None)


@pytest.mark.parametrize("pid", ["7", True, 1.5])
def test_a_process_id_is_an_integer(driver: Driver, pid: Any) -> None:
    assert (
        driver.connect().error("engine::workers::register", {"pid": pid})["code"] == "deserialization_error"
    )


def test_only_a_connection_can_register_itself(driver: Driver, client: Client) -> None:
    client.bind("b1", "engine::workers-available", "engine::workers::register")
    driver.connect("other")

    assert any("Only a connected worker" in line for line in driver.log)


# Events


def watching(driver: Driver, kind: str, **fields: Any) -> Client:
    watcher = driver.connect("watcher")
    watcher.register("w::seen")
    watcher.bind("w1", kind, "w::seen", **fields)
    return watcher


def test_workers_coming_and_going_are_told_at_once(driver: Driver) -> None:
    watcher = watching(driver, "engine::workers-available", config=None, metadata={"m": 1})
    worker = driver.connect("worker")
    worker.leave()
    seen = watcher.take()

    assert [message["data"] for message in seen] == [
        {"event": "worker_connected", "worker_id": worker.id},
        {"event": "worker_metadata_updated", "worker_id": worker.id},
        {"event": "worker_disconnected", "worker_id": worker.id},
    ]
    assert seen[0]["metadata"] == {"m": 1}


def test_a_rejected_worker_is_told_as_gone_and_never_as_announced(driver: Driver) -> None:
    driver.connect("worker")
    watcher = watching(driver, "engine::workers-available")
    rival = driver.connect()
    rival.start("engine::workers::register", {"name": "worker"})

    assert [message["data"]["event"] for message in watcher.take()] == [
        "worker_connected",
        "worker_disconnected",
    ]


def test_names_seen_longest_ago_are_forgotten_first(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iii_directory.engine.builtins.workers.MAX_SEEN_WORKERS", 2)
    watcher = watching(driver, "worker", config=None)
    for name in ("a", "b", "a", "c", "a", "b"):
        driver.connect(name).leave()

    # "a" came back in time and stayed known; "b" had to make room for "c".
    assert [event["data"]["worker"] for event in watcher.take()] == ["a", "b", "c", "b"]


def test_a_worker_that_connects_for_the_first_time_counts_as_added(driver: Driver) -> None:
    watcher = watching(driver, "worker", config=None)
    driver.now = 7_000
    driver.connect("pdfkit")

    assert watcher.take_one()["data"] == {
        "operation": "add",
        "worker": "pdfkit",
        "stage": "done",
        "timestamp_ms": 7_000,
        "caller_mode": "trigger",
    }


def test_a_worker_is_added_once(driver: Driver) -> None:
    watcher = watching(driver, "worker")
    first = driver.connect("pdfkit")
    first.announce("pdfkit", version="2")
    first.leave()
    driver.connect("pdfkit")
    driver.connect().announce(None)
    assert len(watcher.take()) == 1

    driver.connect("pdfkit", namespace="n")
    assert len(watcher.take()) == 1, "another namespace has its own"


@pytest.mark.parametrize(
    ("config", "heard"),
    [
        ({}, True),
        ({"operations": []}, True),
        ({"operations": ["add"]}, True),
        ({"operations": ["remove"]}, False),
        ({"stages": ["done"]}, True),
        ({"stages": ["started"]}, False),
        ({"workers": ["pdfkit", "x"]}, True),
        ({"workers": ["x"]}, False),
        ({"operations": ["add"], "workers": ["x"]}, False),
        ({"operations": "add"}, True),
    ],
)
def test_added_workers_are_filtered(driver: Driver, config: dict[str, Any], heard: bool) -> None:
    watcher = watching(driver, "worker", config=config)
    driver.connect("pdfkit")

    assert bool(watcher.take()) is heard


def test_the_connected_workers_stand_for_the_installed_ones(driver: Driver) -> None:
    client = driver.connect("b", version="1", pid=4)
    driver.connect("a", namespace="n")
    driver.connect()

    for fields in ({}, {"running_only": True}):
        rows = client.result("worker::list", fields)["workers"]
        assert rows[0] == {"name": "b", "version": "1", "running": True, "status": "running", "pid": 4}
        assert [row["name"] for row in rows] == ["b", "a"]


def test_compose_does_not_exist_up_to_0_22(client: Client) -> None:
    assert client.error("compose::status", {})["code"] == "function_not_found"
