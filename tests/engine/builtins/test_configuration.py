"""``configuration::*``: entries, placeholders, restarts and events."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.driver import BrokenStore, Client, Driver

from iii_directory.engine.builtins.configuration import expand
from iii_directory.engine.store import MemoryStore

PORT = {"type": "object", "properties": {"port": {"type": "integer"}}, "required": ["port"]}


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def client(driver: Driver) -> Client:
    return driver.connect("client")


def declare(client: Client, entry_id: str = "web", **fields: Any) -> dict[str, Any]:
    return client.call(
        "configuration::register",
        {"id": entry_id, "name": "Web", "description": "d", "schema": PORT, **fields},
    )


def put(client: Client, value: Any, entry_id: str = "web") -> dict[str, Any]:
    return client.call("configuration::set", {"id": entry_id, "value": value})


def value_of(client: Client, **fields: Any) -> Any:
    return client.result("configuration::get", {"id": "web", **fields})["value"]


# Entries


def test_an_entry_is_declared_read_and_replaced(client: Client) -> None:
    assert declare(client, initial_value={"port": 1}, metadata={"m": 1})["result"] == {
        "id": "web",
        "name": "Web",
        "description": "d",
        "schema": PORT,
        "value": {"port": 1},
        "metadata": {"m": 1},
    }
    assert put(client, {"port": 2})["result"] == {"old_value": {"port": 1}, "new_value": {"port": 2}}
    assert client.result("configuration::get", {"id": "web"}) == {"id": "web", "value": {"port": 2}}


def test_declaring_again_keeps_the_value_unless_one_is_given(client: Client) -> None:
    declare(client, initial_value={"port": 1})
    put(client, {"port": 2})
    assert declare(client)["result"]["value"] == {"port": 2}
    assert declare(client, initial_value=None)["result"]["value"] == {"port": 2}
    assert declare(client, initial_value={"port": 3})["result"]["value"] == {"port": 3}


def test_declaring_again_replaces_the_words_and_does_not_check_the_old_value(client: Client) -> None:
    declare(client, initial_value={"port": 1}, metadata={"m": 1})
    entry = declare(client, name="New", schema={"type": "string"})["result"]

    assert (entry["name"], entry["schema"]) == ("New", {"type": "string"})
    assert "metadata" not in entry
    assert client.error("configuration::get", {"id": "web"})["code"] == "SCHEMA_INVALID"
    assert value_of(client, raw=True) == {"port": 1}


def test_a_value_must_fit_the_schema(client: Client) -> None:
    assert declare(client, initial_value={"port": "x"})["error"]["code"] == "SCHEMA_INVALID"
    assert client.error("configuration::get", {"id": "web"})["code"] == "NOT_FOUND", "nothing was kept"
    declare(client, initial_value={"port": 1})
    assert put(client, {})["error"]["code"] == "SCHEMA_INVALID"
    assert value_of(client) == {"port": 1}


def test_an_entry_without_a_value_is_checked_when_it_is_read(client: Client) -> None:
    declare(client)
    assert client.error("configuration::get", {"id": "web"})["code"] == "SCHEMA_INVALID"
    assert value_of(client, raw=True) is None
    declare(client, schema={})
    assert value_of(client) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        {"pattern": "("},
        {"multipleOf": 0},
        {"$ref": "http://127.0.0.1:1/x"},
        {"$ref": "#/nowhere"},
        {"properties": 7},
        {"required": 7},
        {"allOf": {}},
        {"minimum": "x"},
        {"$ref": "#"},
    ],
)
def test_a_strange_schema_can_be_declared_and_at_worst_lets_no_value_in(client: Client, schema: Any) -> None:
    assert "error" not in declare(client, schema=schema)
    for value in ("text", {"a": 1}, 7, [1]):
        answer = put(client, value)
        assert answer.get("error", {"code": "SCHEMA_INVALID"})["code"] == "SCHEMA_INVALID"


@pytest.mark.parametrize("schema", [True, {}, "text", 7, []])
def test_an_invalid_schema_accepts_everything(client: Client, schema: Any) -> None:
    declare(client, schema=schema)

    assert "error" not in put(client, {"any": "thing"})


def test_huge_numbers_do_not_confuse_the_check(client: Client) -> None:
    declare(client, schema={"multipleOf": 0.5})

    assert put(client, 10**400)["error"]["code"] == "SCHEMA_INVALID"


@pytest.mark.parametrize("entry_id", ["", "A", "a b", "a/b", "../a", "é", "a" * 65, "a\n"])
def test_an_id_is_short_and_plain(client: Client, entry_id: str) -> None:
    assert declare(client, entry_id)["error"]["code"] == "INVALID_ID"
    assert put(client, 1, entry_id)["error"]["code"] == "INVALID_ID"


def test_the_longest_id_is_taken(client: Client) -> None:
    assert "error" not in declare(client, "a-0_" * 16)


def test_an_undeclared_configuration_does_not_exist(client: Client) -> None:
    assert put(client, 1)["error"]["code"] == "NOT_REGISTERED"
    assert client.error("configuration::get", {"id": "web"})["code"] == "NOT_FOUND"
    assert client.error("configuration::schema", {"id": "web"})["code"] == "NOT_FOUND"
    assert client.result("configuration::list") == {"configurations": []}


@pytest.mark.parametrize("missing", ["id", "name", "description", "schema"])
def test_declaring_needs_every_field(client: Client, missing: str) -> None:
    fields = {"id": "web", "name": "n", "description": "d", "schema": {}}
    del fields[missing]
    error = client.error("configuration::register", fields)

    assert error["code"] == "deserialization_error"
    assert f"`{missing}`" in error["message"]


def test_a_configuration_value_is_required_and_may_be_null(client: Client) -> None:
    declare(client, schema={})

    assert client.error("configuration::set", {"id": "web"})["code"] == "deserialization_error"
    assert put(client, None)["result"] == {"old_value": None, "new_value": None}


def test_entries_are_listed_by_id_without_values(client: Client) -> None:
    declare(client, "b", initial_value={"port": 1}, metadata={"m": 1})
    declare(client, "a")

    listed = client.result("configuration::list")["configurations"]
    assert [entry["id"] for entry in listed] == ["a", "b"]
    assert listed[1] == {
        "id": "b",
        "name": "Web",
        "description": "d",
        "schema": PORT,
        "metadata": {"m": 1},
    }
    assert client.result("configuration::schema", {"id": "b"}) == listed[1]


def test_a_store_that_fails_is_an_error_and_keeps_the_old_value(client: Client) -> None:
    store = BrokenStore()
    client = Driver(configuration=store).connect("client")
    declare(client, initial_value={"port": 1})
    store.broken.add("set")

    assert put(client, {"port": 2})["error"]["code"] == "ADAPTER_ERROR"
    assert declare(client, initial_value={"port": 2})["error"]["code"] == "ADAPTER_ERROR"
    assert value_of(client) == {"port": 1}


# Placeholders


@pytest.mark.parametrize("start", ["${", "${A", "${A:", "${A:${"])
def test_placeholders_that_never_end_are_passed_over_at_once(start: str) -> None:
    endless = start * 300_000

    assert expand(endless, {"A": "a"}, []) == endless
    assert expand(f"${{A}}}}{endless}", {"A": "a"}, []) == f"a}}{endless}"


@pytest.mark.parametrize(
    ("value", "expanded"),
    [
        ("${HOST}", "db"),
        ("http://${HOST}:${PORT}/", "http://db:8080/"),
        ("${PORT}", 8080),
        ("x${PORT}", "x8080"),
        (" ${PORT} ", 8080),
        ("${NONE:3}", 3),
        ("${NONE:-3.5}", -3.5),
        ("${NONE:true}", True),
        ("${NONE:null}", None),
        ('${NONE:"3"}', "3"),
        ("${NONE:[1, 2]}", [1, 2]),
        ("${NONE:}", ""),
        ("${NONE:text}", "text"),
        ("${NONE:NaN}", "NaN"),
        ("${NONE:1e400}", "1e400"),
        ("${NONE:Infinity}", "Infinity"),
        ('${NONE:"\\ud800"}', '"\\ud800"'),
        ("${NONE:" + "[" * 5000 + "}", "[" * 5000),
        ("${HOST:other}", "db"),
        ("${a.b:7}", 7),
        ("${}", "${}"),
        ("${", "${"),
        ("$HOST", "$HOST"),
        ("${BYTES}", "a\ufffdb"),
        ({"a": ["${PORT}", 1, None], "${HOST}": "x"}, {"a": [8080, 1, None], "${HOST}": "x"}),
    ],
)
def test_placeholders_are_filled_and_lone_ones_typed(value: Any, expanded: Any) -> None:
    unset: list[str] = []
    environment = {"HOST": "db", "PORT": "8080", "BYTES": "a\udcffb"}

    assert expand(value, environment, unset) == expanded
    assert unset == []


def test_a_variable_without_a_value_stays_and_is_named() -> None:
    unset: list[str] = []

    assert expand(["${A}", "x${B}"], {}, unset) == ["${A}", "x${B}"]
    assert unset == ["A", "B"]


def test_values_are_kept_raw_and_filled_when_read(driver: Driver, client: Client) -> None:
    raw = {"port": "${PORT:80}"}
    assert declare(client, initial_value=raw)["result"]["value"] == raw
    assert value_of(client) == {"port": 80}
    driver.environment["PORT"] = "81"
    assert value_of(client) == {"port": 81}
    assert value_of(client, raw=True) == raw
    assert put(client, {"port": "${PORT}"})["result"] == {"old_value": raw, "new_value": {"port": "${PORT}"}}


def test_the_filled_value_is_what_must_fit(driver: Driver, client: Client) -> None:
    assert declare(client, initial_value={"port": "${PORT:x}"})["error"]["code"] == "SCHEMA_INVALID"
    declare(client, initial_value={"port": "${PORT:80}"})
    driver.environment["PORT"] = "many"

    assert client.error("configuration::get", {"id": "web"})["code"] == "SCHEMA_INVALID"


def test_a_value_that_waits_for_a_variable_is_kept_and_read_later(driver: Driver, client: Client) -> None:
    assert "error" not in declare(client, initial_value={"port": "${PORT}"})
    error = client.error("configuration::get", {"id": "web"})
    assert error["code"] == "EXPAND_FAILED"
    assert "PORT" in error["message"]
    driver.environment["PORT"] = "80"

    assert value_of(client) == {"port": 80}


def test_a_value_whose_variable_is_gone_can_be_replaced(driver: Driver, client: Client) -> None:
    driver.environment["PORT"] = "80"
    declare(client, initial_value={"port": "${PORT}"})
    del driver.environment["PORT"]

    assert put(client, {"port": 1})["result"]["new_value"] == {"port": 1}


# Restarts


def test_after_a_restart_values_are_there_and_schemas_are_not() -> None:
    store = MemoryStore()
    first = Driver(configuration=store).connect("client")
    declare(first, initial_value={"port": 1}, metadata={"m": 1})
    client = Driver(configuration=store).connect("client")

    assert value_of(client) == {"port": 1}
    assert put(client, {"port": 2})["error"]["code"] == "SCHEMA_UNAVAILABLE"
    assert client.result("configuration::list")["configurations"] == [
        {"id": "web", "name": "Web", "description": "d", "schema": None, "metadata": {"m": 1}}
    ]
    assert declare(client)["result"]["value"] == {"port": 1}
    assert put(client, {"port": 2})["result"]["old_value"] == {"port": 1}


# Events


def watching(driver: Driver, **config: Any) -> Client:
    watcher = driver.connect("watcher")
    watcher.register("w::seen")
    watcher.bind("w1", "configuration", "w::seen", config=config, metadata={"m": 1})
    return watcher


def test_declaring_and_setting_are_told_with_filled_values(driver: Driver, client: Client) -> None:
    watcher = watching(driver)
    declare(client, initial_value={"port": "${PORT:80}"}, metadata={"x": 1})
    declare(client)
    put(client, {"port": "${NONE}"})
    seen = watcher.take()

    assert seen[0]["data"] == {
        "type": "configuration",
        "event_type": "configuration:registered",
        "id": "web",
        "name": "Web",
        "description": "d",
        "schema": PORT,
        "old_value": None,
        "new_value": {"port": 80},
        "metadata": {"x": 1},
    }
    assert seen[0]["metadata"] == {"m": 1}
    assert [message["data"]["event_type"] for message in seen[1:]] == ["configuration:updated"] * 2
    assert seen[2]["data"]["old_value"] == {"port": 80}
    assert seen[2]["data"]["new_value"] == {"port": "${NONE}"}


def test_a_failed_change_sends_no_event(driver: Driver, client: Client) -> None:
    watcher = watching(driver)
    declare(client, initial_value={})
    put(client, 1)

    assert watcher.take() == []


@pytest.mark.parametrize(
    ("config", "heard"),
    [
        ({}, True),
        ({"configuration_id": "web"}, True),
        ({"configuration_id": "other"}, False),
        ({"event_types": ["configuration:registered"]}, True),
        ({"event_types": ["configuration:updated"]}, False),
        ({"event_types": []}, False),
        ({"event_types": None}, True),
        ({"condition_function_id": "no::such"}, False),
        ({"condition_function_id": "state::list_groups"}, True),
    ],
)
def test_events_are_filtered(driver: Driver, client: Client, config: dict[str, Any], heard: bool) -> None:
    watcher = watching(driver, **config)
    declare(client)

    assert bool(watcher.take()) is heard


@pytest.mark.parametrize(
    "config", [7, [], {"configuration_id": 7}, {"event_types": "x"}, {"condition_function_id": 1}]
)
def test_a_bad_config_is_refused_at_once(client: Client, config: Any) -> None:
    client.bind("b", "configuration", "f", config=config)

    assert client.take_one()["error"]["code"] == "trigger_registration_failed"


def test_declaring_bound_to_its_own_event_comes_to_an_end(driver: Driver, client: Client) -> None:
    client.bind("b", "configuration", "configuration::register")

    assert "error" not in declare(client)
    assert any("cause each other" in line for line in driver.log)
