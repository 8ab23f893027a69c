"""What is registered, as the engine tells it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.driver import Client, Driver


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def client(driver: Driver) -> Client:
    return driver.connect("asker")


@pytest.fixture
def stocked(driver: Driver) -> Driver:
    """A few workers with something of everything."""
    notes = driver.connect("notes")
    notes.register("notes::add", description="Add a note", metadata={"k": 1})
    notes.register("notes::state", description="Something else")
    notes.register("notes::hidden", metadata={"internal": True})
    notes.provide("notes::changed", description="A note changed")
    mail = driver.connect("mail", namespace="work")
    mail.register("mail::send", description="Send, mentioning state")
    mail.register("notes::add", description="Another")
    mail.provide("mail::came", description="Mail came")
    mail.bind("m1", "notes::changed", "mail::send", namespace="work", config={"folder": "in"})
    notes.bind("n1", "notes::changed", "notes::add", metadata={"m": 1})
    notes.bind("n2", "engine::workers-available", "engine::health::check")
    notes.bind("n3", "state", "no::such", config={"scope": "x" * 100})
    return driver


def ids(rows: dict[str, Any], key: str, column: str = "function_id") -> list[str]:
    return [row[column] for row in rows[key]]


def functions(client: Client, **filters: Any) -> list[str]:
    return ids(client.result("engine::functions::list", filters), "functions")


def trigger_types(client: Client, **filters: Any) -> list[str]:
    return ids(client.result("engine::triggers::list", filters), "triggers", "id")


def bindings(client: Client, **filters: Any) -> list[str]:
    return ids(client.result("engine::registered-triggers::list", filters), "registered_triggers", "id")


# engine::functions


def test_functions_of_all_namespaces_are_listed_by_id_and_internal_ones_hidden(
    stocked: Driver, client: Client
) -> None:
    listed = functions(client)

    assert listed == sorted(listed)
    assert [f for f in listed if f.startswith(("notes::", "mail::"))] == [
        "mail::send",
        "notes::add",
        "notes::add",
        "notes::state",
    ]
    assert not [f for f in listed if f.startswith("engine::")]
    everything = functions(client, include_internal=True)
    assert "notes::hidden" in everything
    assert "engine::functions::list" in everything


def test_queue_functions_are_shown_though_their_ids_are_the_engine_s(stocked: Driver, client: Client) -> None:
    stocked.connect("queue").register("engine::queue::enqueue")

    assert "engine::queue::enqueue" in functions(client)


def test_a_row_has_no_schema_and_only_what_is_known(stocked: Driver, client: Client) -> None:
    rows = client.result("engine::functions::list", {"prefix": "notes::add"})["functions"]

    assert rows == [
        {
            "function_id": "notes::add",
            "namespace": "default",
            "worker_name": "notes",
            "description": "Add a note",
            "metadata": {"k": 1},
        },
        {
            "function_id": "notes::add",
            "namespace": "work",
            "worker_name": "mail",
            "description": "Another",
        },
    ]


def test_a_function_of_a_nameless_connection_is_named_after_its_id(driver: Driver, client: Client) -> None:
    bare = driver.connect()
    bare.register("tool::run")
    bare.register("run")
    driver.run_timer("namespace-grace", bare.id)
    rows = client.result("engine::functions::list", {"search": "run"})["functions"]

    assert {row["function_id"]: row["worker_name"] for row in rows} == {"run": "run", "tool::run": "tool"}


def test_functions_are_filtered_by_prefix_and_worker(stocked: Driver, client: Client) -> None:
    assert functions(client, prefix="notes::s") == ["notes::state"]
    assert functions(client, worker="mail") == ["mail::send", "notes::add"]
    assert functions(client, workers=["mail", "notes"]) == [
        "mail::send",
        "notes::add",
        "notes::add",
        "notes::state",
    ]
    assert functions(client, worker="mail", workers=["notes"]) == functions(client, workers=["mail", "notes"])
    assert functions(client, workers=[]) == functions(client)
    assert functions(client, worker="nobody") == []


def test_a_search_ranks_ids_before_descriptions(stocked: Driver, client: Client) -> None:
    stocked.connect("x").register("x::restated")
    found = functions(client, search="STATE")
    anchored = [f for f in found if f.startswith("state::") or f == "notes::state"]

    assert found == [*sorted(anchored), "x::restated", *sorted(found[len(anchored) + 1 :])]
    assert "mail::send" in found[len(anchored) :]
    assert functions(client, search="") == functions(client)


@pytest.mark.parametrize(
    "filters",
    [{"search": 1}, {"prefix": []}, {"worker": {}}, {"workers": "notes"}, {"include_internal": "yes"}],
)
def test_a_filter_of_the_wrong_type_is_an_error(client: Client, filters: dict[str, Any]) -> None:
    error = client.error("engine::functions::list", filters)

    assert error["code"] == "deserialization_error"
    assert next(iter(filters)) in error["message"]


def test_one_function_in_full(stocked: Driver, client: Client) -> None:
    owner = stocked.connect("full")
    owner.register(
        "full::f",
        description="d",
        request_format={"type": "object"},
        response_format={"type": "string"},
        metadata={"m": 1},
    )
    owner.bind("f1", "state", "full::f", config={"scope": "s"})
    owner.bind("f2", "late::changed", "full::f")
    owner.bind("f3", "state", "full::f", namespace="elsewhere")

    assert client.result("engine::functions::info", {"function_id": "full::f"}) == {
        "function_id": "full::f",
        "namespace": "default",
        "worker_name": "full",
        "description": "d",
        "request_schema": {"type": "object"},
        "response_schema": {"type": "string"},
        "metadata": {"m": 1},
        "registered_triggers": [{"id": "f1", "trigger_type": "state", "config": {"scope": "s"}}],
    }


def test_a_builtin_function_shows_its_schema_and_its_worker(client: Client) -> None:
    detail = client.result("engine::functions::info", {"function_id": "state::set"})

    assert detail["worker_name"] == "iii-state"
    assert detail["request_schema"]["required"] == ["scope", "key", "value"]


def test_without_a_namespace_default_comes_first_then_the_only_one(stocked: Driver, client: Client) -> None:
    info = "engine::functions::info"

    assert client.result(info, {"function_id": "notes::add"})["namespace"] == "default"
    assert client.result(info, {"function_id": "mail::send"})["namespace"] == "work"
    assert client.result(info, {"function_id": "notes::add", "namespace": "work"})["description"] == "Another"


def test_a_function_of_several_namespaces_is_ambiguous(stocked: Driver, client: Client) -> None:
    stocked.connect("mail", namespace="home").register("mail::send")
    error = client.error("engine::functions::info", {"function_id": "mail::send"})

    assert error["code"] == "NOT_FOUND"
    assert "ambiguous" in error["message"]
    assert "home, work" in error["message"]
    assert "namespace" in error["message"]


def test_an_unknown_function_is_not_found(stocked: Driver, client: Client) -> None:
    info = "engine::functions::info"

    assert client.error(info, {"function_id": "zz"}) == {
        "code": "NOT_FOUND",
        "message": "Function 'zz' is not registered.",
    }
    assert "work" in client.error(info, {"function_id": "mail::send", "namespace": "zz"})["message"]


def test_a_batch_answers_in_order_once_each_with_markers(stocked: Driver, client: Client) -> None:
    batch = client.result(
        "engine::functions::info", {"function_ids": ["zz", "notes::add", "zz", "mail::send", "notes::add"]}
    )

    assert batch["functions"][0] == {"function_id": "zz", "error": "not_found"}
    assert ids(batch, "functions") == ["zz", "notes::add", "mail::send"]
    assert "registered_triggers" in batch["functions"][1]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"function_id": "a", "function_ids": ["a"]},
        {"function_ids": []},
        {"function_ids": [1]},
        {"function_ids": ["a", None]},
        {"function_ids": ["1", 1]},
        {"function_ids": [["a"]]},
        {"function_ids": [f"f{number}" for number in range(33)]},
    ],
)
def test_info_takes_one_id_or_up_to_32(client: Client, fields: dict[str, Any]) -> None:
    assert client.error("engine::functions::info", fields)["code"] == "INVALID_ARGUMENTS"


def test_32_different_ids_are_taken_however_often_they_are_given(client: Client) -> None:
    wanted = [f"f{number}" for number in range(32)] * 3

    assert len(client.result("engine::functions::info", {"function_ids": wanted})["functions"]) == 32


# engine::triggers


def test_trigger_types_are_listed_by_id(stocked: Driver, client: Client) -> None:
    assert trigger_types(client) == [
        "configuration",
        "mail::came",
        "notes::changed",
        "state",
        "subscribe",
        "worker",
    ]
    assert "engine::workers-available" in trigger_types(client, include_internal=True)


def test_trigger_types_are_filtered(stocked: Driver, client: Client) -> None:
    assert trigger_types(client, prefix="no") == ["notes::changed"]
    assert trigger_types(client, worker="mail") == ["mail::came"]
    assert trigger_types(client, search="MAIL CAME") == ["mail::came"]
    assert trigger_types(client, search="changed", prefix="x") == []


def test_one_trigger_type_in_full(stocked: Driver, client: Client) -> None:
    owner = stocked.connect("o")
    owner.provide("o::t", description="d", trigger_request_format={"a": 1}, call_request_format={"b": 1})
    owner.bind("o1", "o::t", "o::f")

    assert client.result("engine::triggers::info", {"id": "o::t"}) == {
        "id": "o::t",
        "namespace": "default",
        "worker_name": "o",
        "description": "d",
        "configuration_schema": {"a": 1},
        "request_schema": {"b": 1},
        "instance_count": 1,
    }


def test_a_type_without_schemas_has_none_and_its_namespace_must_be_named(
    stocked: Driver, client: Client
) -> None:
    info = "engine::triggers::info"
    detail = client.result(info, {"id": "mail::came", "namespace": "work"})

    assert set(detail) == {"id", "namespace", "worker_name", "description", "instance_count"}
    assert client.error(info, {"id": "mail::came"}) == {
        "code": "NOT_FOUND",
        "message": "Trigger type 'mail::came' is not registered in namespace 'default'.",
    }
    assert client.error(info, {})["code"] == "deserialization_error"


def test_a_type_of_a_nameless_connection_is_named_after_its_id(driver: Driver, client: Client) -> None:
    bare = driver.connect()
    bare.provide("tool::done")
    driver.run_timer("namespace-grace", bare.id)

    assert client.result("engine::triggers::info", {"id": "tool::done"})["worker_name"] == "tool"


# engine::registered-triggers


def test_bindings_are_listed_by_id_and_those_of_the_engine_s_functions_hidden(
    stocked: Driver, client: Client
) -> None:
    assert bindings(client) == ["m1", "n1", "n3"]
    assert bindings(client, include_internal=True) == ["m1", "n1", "n2", "n3"]


def test_bindings_are_filtered(stocked: Driver, client: Client) -> None:
    assert bindings(client, trigger_type="notes::changed") == ["m1", "n1"]
    assert bindings(client, function_id="notes::add") == ["n1"]
    assert bindings(client, worker="mail") == ["m1"]
    assert bindings(client, worker="no") == ["n3"], "a missing function is named after its id"
    assert bindings(client, search="NOTES::ADD") == ["n1"]
    assert bindings(client, search="m1") == ["m1"]
    assert bindings(client, search="stat") == ["n3"]


def test_a_binding_row_has_a_short_summary_of_its_config(stocked: Driver, client: Client) -> None:
    rows = client.result("engine::registered-triggers::list")["registered_triggers"]

    assert rows[0] == {
        "id": "m1",
        "trigger_type": "notes::changed",
        "function_id": "mail::send",
        "worker_name": "mail",
        "config": {"folder": "in"},
        "config_summary": '{"folder":"in"}',
    }
    assert rows[2]["config_summary"] == ('{"scope":"' + "x" * 100)[:80] + "…"


def test_one_binding_in_full(stocked: Driver, client: Client) -> None:
    detail = client.result("engine::registered-triggers::info", {"id": "n1"})

    assert {key: detail[key] for key in detail if key not in ("trigger", "function")} == {
        "id": "n1",
        "trigger_type": "notes::changed",
        "function_id": "notes::add",
        "worker_name": "notes",
        "config": {},
        "metadata": {"m": 1},
    }
    assert detail["trigger"]["instance_count"] == 2
    assert detail["function"]["registered_triggers"] == [
        {"id": "n1", "trigger_type": "notes::changed", "config": {}}
    ]


def test_a_binding_to_a_missing_function_shows_null(stocked: Driver, client: Client) -> None:
    detail = client.result("engine::registered-triggers::info", {"id": "n3"})

    assert detail["function"] is None
    assert "metadata" not in detail


def test_an_unknown_or_parked_binding_is_not_found(stocked: Driver, client: Client) -> None:
    client.bind("parked", "late::changed", "f")

    for binding_id in ("zz", "parked"):
        assert client.error("engine::registered-triggers::info", {"id": binding_id}) == {
            "code": "NOT_FOUND",
            "message": f"Registered trigger '{binding_id}' was not found.",
        }


# engine::functions-available


def watching(driver: Driver) -> Client:
    watcher = driver.connect("watcher")
    watcher.register("w::seen")
    driver.run_timer("functions-event")
    watcher.bind("w1", "engine::functions-available", "w::seen", config=None, metadata={"m": 1})
    return watcher


def test_a_change_of_functions_makes_one_event_with_all_of_them(driver: Driver) -> None:
    watcher = watching(driver)
    worker = driver.connect("worker")
    for number in range(5):
        worker.register(f"x::{number}")
    assert watcher.take() == [], "it is gathered first"
    driver.run_timer("functions-event")
    seen = watcher.take_one()

    assert seen["data"]["event"] == "functions_changed"
    assert seen["metadata"] == {"m": 1}
    listed = {row["function_id"]: row for row in seen["data"]["functions"]}
    assert set(listed) >= {"x::0", "x::4", "engine::functions::list", "w::seen"}
    assert listed["x::0"] == {"function_id": "x::0", "namespace": "default", "worker_name": "worker"}


def test_functions_that_go_make_an_event_too(driver: Driver) -> None:
    watcher = watching(driver)
    worker = driver.connect("worker")
    worker.register("x::f")
    worker.register("x::g")
    driver.run_timer("functions-event")
    watcher.take()
    worker.send("unregisterfunction", id="x::g")
    driver.run_timer("functions-event")
    assert watcher.take_one()
    worker.leave()
    driver.run_timer("functions-event")

    assert "x::f" not in [row["function_id"] for row in watcher.take_one()["data"]["functions"]]


def test_no_event_when_the_set_of_ids_is_what_it_was(driver: Driver) -> None:
    watcher = watching(driver)
    worker = driver.connect("worker")
    worker.register("x::f")
    worker.send("unregisterfunction", id="x::f")
    driver.run_timer("functions-event")
    watcher.register("w::seen", description="new words")
    driver.run_timer("functions-event")

    assert watcher.take() == []


def test_a_condition_is_not_asked_for_this_type(driver: Driver) -> None:
    watcher = watching(driver)
    watcher.bind("w2", "engine::functions-available", "w::seen", config={"condition_function_id": "no::such"})
    driver.connect("worker").register("x::f")
    driver.run_timer("functions-event")

    assert len(watcher.take()) == 2
