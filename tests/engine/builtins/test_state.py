"""``state::*``: values, operations, errors and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.driver import BrokenStore, Client, Driver

from iii_directory.engine.builtins.state_ops import apply_ops
from iii_directory.limits import MAX_READ_BYTES, MAX_READ_MARKS, MAX_STATE_OPS

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACE = {"scope": "s", "key": "k"}


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def client(driver: Driver) -> Client:
    return driver.connect("client")


def put(client: Client, value: Any, **place: str) -> Any:
    return client.result("state::set", {**PLACE, **place, "value": value})


def update(client: Client, *ops: dict[str, Any]) -> dict[str, Any]:
    return client.result("state::update", {**PLACE, "ops": list(ops)})


# Values


def test_setting_answers_the_old_and_the_new_value(client: Client) -> None:
    assert put(client, 1) == {"old_value": None, "new_value": 1}
    assert put(client, {"a": [2]}) == {"old_value": 1, "new_value": {"a": [2]}}


def test_data_is_taken_for_value(client: Client) -> None:
    assert client.result("state::set", {**PLACE, "data": 7})["new_value"] == 7
    assert client.result("state::set", {**PLACE, "data": 7, "value": 8})["new_value"] == 8


def test_getting_answers_the_bare_value(client: Client) -> None:
    put(client, {"a": 1})

    assert client.call("state::get", PLACE)["result"] == {"a": 1}


def test_a_missing_key_has_no_result_and_a_stored_null_a_null_one(client: Client) -> None:
    assert "result" not in client.call("state::get", PLACE)
    put(client, None)
    answer = client.call("state::get", PLACE)

    assert answer["result"] is None
    assert "result" in answer


def test_deleting_answers_the_deleted_value_or_nothing(client: Client) -> None:
    put(client, {"a": 1})

    assert client.call("state::delete", PLACE)["result"] == {"a": 1}
    assert "result" not in client.call("state::delete", PLACE)
    assert "result" not in client.call("state::get", PLACE)


def test_a_scope_lists_its_values_in_the_order_they_were_first_set(client: Client) -> None:
    for key in ("b", "a", "c"):
        put(client, key, key=key)
    put(client, "B", key="b")
    client.call("state::delete", {"scope": "s", "key": "a"})
    put(client, "A", key="a")

    assert client.result("state::list", {"scope": "s"}) == ["B", "c", "A"]
    assert client.result("state::list", {"scope": "none"}) == []


def test_scopes_are_listed_sorted_and_stay_after_their_last_key(client: Client) -> None:
    put(client, 1, scope="z")
    put(client, 1, scope="a")
    client.call("state::delete", {"scope": "z", "key": "k"})
    client.call("state::delete", {"scope": "never", "key": "k"})

    assert client.result("state::list_groups") == {"groups": ["a", "z"]}


def test_scope_and_key_are_taken_literally(client: Client) -> None:
    put(client, 1, scope="a/b", key="../c")
    put(client, 2, scope="a", key="b/../c")
    put(client, 3, scope="", key="")

    assert client.result("state::get", {"scope": "a/b", "key": "../c"}) == 1
    assert client.result("state::get", {"scope": "", "key": ""}) == 3


@pytest.mark.parametrize(
    ("function", "fields", "missing"),
    [
        ("set", {"scope": "s"}, "key"),
        ("set", {"key": "k", "value": 1}, "scope"),
        ("set", PLACE, "value"),
        ("get", {"scope": "s"}, "key"),
        ("delete", {"key": "k"}, "scope"),
        ("list", {}, "scope"),
        ("update", PLACE, "ops"),
        ("update", {"scope": "s", "ops": []}, "key"),
    ],
)
def test_a_missing_field_is_named(
    client: Client, function: str, fields: dict[str, Any], missing: str
) -> None:
    assert client.error(f"state::{function}", fields) == {
        "code": "deserialization_error",
        "message": f"Failed to deserialize input for state::{function}: missing field `{missing}`",
    }


@pytest.mark.parametrize("function", ["set", "get", "delete"])
def test_scope_and_key_are_texts(client: Client, function: str) -> None:
    error = client.error(f"state::{function}", {"scope": "s", "key": 7, "value": 1})

    assert error["code"] == "deserialization_error"


@pytest.mark.parametrize(
    ("function", "broken", "code"),
    [
        ("set", "get", "SET_ERROR"),
        ("set", "set", "SET_ERROR"),
        ("get", "get", "GET_ERROR"),
        ("delete", "delete", "DELETE_ERROR"),
        ("update", "get", "UPDATE_ERROR"),
        ("update", "set", "UPDATE_ERROR"),
        ("list", "values", "LIST_ERROR"),
        ("list_groups", "scopes", "LIST_GROUPS_ERROR"),
    ],
)
def test_a_store_that_fails_is_an_error_and_no_event(function: str, broken: str, code: str) -> None:
    store = BrokenStore()
    driver = Driver(state=store)
    client = driver.connect("client")
    client.register("c::seen")
    client.bind("b", "state", "c::seen")
    store.broken.add(broken)

    error = client.error(f"state::{function}", {**PLACE, "value": 1, "ops": []})
    assert error == {"code": code, "message": f"cannot {broken}"}
    assert client.take() == []


# Operations


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        # set: one literal first-level key, or the whole value
        ({"a": 1}, {"type": "set", "path": "b", "value": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"type": "set", "path": "a.b", "value": 2}, {"a": 1, "a.b": 2}),
        ({"a": 1}, {"type": "set", "path": "", "value": [3]}, [3]),
        ({"a": 1}, {"type": "set", "path": "a"}, {"a": None}),
        ([1], {"type": "set", "path": "", "value": None}, None),
        # merge: shallow, makes what is missing, replaces a scalar on its path
        ({"a": {"x": 1}}, {"type": "merge", "value": {"b": 2}}, {"a": {"x": 1}, "b": 2}),
        ({"a": {"x": 1}}, {"type": "merge", "path": "a", "value": {"y": 2}}, {"a": {"x": 1, "y": 2}}),
        ({"a": 7}, {"type": "merge", "path": "a", "value": {"y": 2}}, {"a": {"y": 2}}),
        ({"a": 7}, {"type": "merge", "path": ["a", "b"], "value": {"y": 2}}, {"a": {"b": {"y": 2}}}),
        ({}, {"type": "merge", "path": ["a", "b"], "value": {"y": {}}}, {"a": {"b": {"y": {}}}}),
        ({"a": {"x": {"n": 1}}}, {"type": "merge", "path": "a", "value": {"x": 2}}, {"a": {"x": 2}}),
        ([1], {"type": "merge", "path": ["a"], "value": {"y": 2}}, {"a": {"y": 2}}),
        (7, {"type": "merge", "value": {"y": 2}}, 7),
        ({"a": 1}, {"type": "merge", "path": [], "value": {"b": 2}}, {"a": 1, "b": 2}),
        ({"a": 1}, {"type": "merge", "path": "", "value": {"b": 2}}, {"a": 1, "b": 2}),
        # increment and decrement
        ({"n": 1}, {"type": "increment", "path": "n", "by": 2}, {"n": 3}),
        ({"n": 1.5}, {"type": "increment", "path": "n", "by": 2}, {"n": 3.5}),
        ({}, {"type": "increment", "path": "n", "by": 2}, {"n": 2}),
        ({"n": 1}, {"type": "decrement", "path": "n", "by": 2}, {"n": -1}),
        ({}, {"type": "decrement", "path": "n", "by": 2}, {"n": -2}),
        (5, {"type": "increment", "path": "", "by": 2}, 7),
        (2**63, {"type": "decrement", "path": "", "by": 1}, 2**63 - 1),
        # append
        ({"l": [1]}, {"type": "append", "path": "l", "value": 2}, {"l": [1, 2]}),
        ({"l": [1]}, {"type": "append", "path": "l", "value": [2]}, {"l": [1, [2]]}),
        ({"t": "a"}, {"type": "append", "path": "t", "value": "b"}, {"t": "ab"}),
        ({}, {"type": "append", "path": "t", "value": "b"}, {"t": "b"}),
        ({}, {"type": "append", "path": "t", "value": 1}, {"t": [1]}),
        ({"t": None}, {"type": "append", "path": "t", "value": "b"}, {"t": "b"}),
        ({}, {"type": "append", "path": ["a", "b"], "value": "x"}, {"a": {"b": ["x"]}}),
        ({"a": {"b": "x"}}, {"type": "append", "path": ["a", "b"], "value": "y"}, {"a": {"b": "xy"}}),
        ({"a": 7}, {"type": "append", "path": ["a", "b"], "value": 1}, {"a": {"b": [1]}}),
        ([1], {"type": "append", "value": 2}, [1, 2]),
        ("a", {"type": "append", "value": "b"}, "ab"),
        (None, {"type": "append", "value": "b"}, "b"),
        # remove
        ({"a": 1, "b": 2}, {"type": "remove", "path": "a"}, {"b": 2}),
        ({"b": 2}, {"type": "remove", "path": "a"}, {"b": 2}),
        ({"b": 2}, {"type": "remove", "path": ""}, None),
    ],
)
def test_an_operation_changes_the_value(client: Client, before: Any, op: dict[str, Any], after: Any) -> None:
    put(client, before)

    assert update(client, op) == {"old_value": before, "new_value": after}
    assert client.result("state::get", PLACE) == after


@pytest.mark.parametrize(
    ("op", "after"),
    [
        ({"type": "set", "path": "a", "value": 1}, {"a": 1}),
        ({"type": "merge", "value": {"a": 1}}, {"a": 1}),
        ({"type": "increment", "path": "n", "by": 3}, {"n": 3}),
        ({"type": "increment", "path": "", "by": 3}, 3),
        ({"type": "decrement", "path": "", "by": 3}, -3),
        ({"type": "append", "value": 1}, [1]),
        ({"type": "append", "value": "t"}, "t"),
        ({"type": "append", "path": "l", "value": 1}, {"l": [1]}),
        ({"type": "remove", "path": "a"}, {}),
    ],
)
def test_an_operation_on_a_missing_key_starts_from_nothing(
    client: Client, op: dict[str, Any], after: Any
) -> None:
    assert update(client, op) == {"old_value": None, "new_value": after}


def test_no_operations_make_an_empty_object_of_a_missing_key(client: Client) -> None:
    assert update(client) == {"old_value": None, "new_value": {}}


LONG = "x" * 257


@pytest.mark.parametrize(
    ("before", "op", "code"),
    [
        (7, {"type": "set", "path": "a", "value": 1}, "set.target_not_object"),
        (None, {"type": "set", "path": "a", "value": 1}, "set.target_not_object"),
        ({}, {"type": "set", "path": LONG, "value": 1}, "set.path.segment_too_long"),
        ({}, {"type": "set", "path": "é" * 129, "value": 1}, "set.path.segment_too_long"),
        ({}, {"type": "set", "path": "__proto__", "value": 1}, "set.path.proto_polluted"),
        ({}, {"type": "merge", "value": 7}, "merge.value.not_an_object"),
        ({}, {"type": "merge", "value": [1]}, "merge.value.not_an_object"),
        ({}, {"type": "merge", "path": ["a"] * 33, "value": {}}, "merge.path.too_deep"),
        ({}, {"type": "merge", "path": ["a", ""], "value": {}}, "merge.path.empty_segment"),
        ({}, {"type": "merge", "path": ["a", LONG], "value": {}}, "merge.path.segment_too_long"),
        ({}, {"type": "merge", "path": ["a", "prototype"], "value": {}}, "merge.path.proto_polluted"),
        ({}, {"type": "merge", "value": {"constructor": 1}}, "merge.value.proto_polluted"),
        ({}, {"type": "merge", "value": {str(n): 1 for n in range(1025)}}, "merge.value.too_many_keys"),
        ({"n": "x"}, {"type": "increment", "path": "n", "by": 1}, "increment.not_number"),
        ({"n": None}, {"type": "increment", "path": "n", "by": 1}, "increment.not_number"),
        ({"n": True}, {"type": "decrement", "path": "n", "by": 1}, "decrement.not_number"),
        ({"n": 2**64 - 1}, {"type": "increment", "path": "n", "by": 1}, "increment.not_number"),
        ({"n": -(2**63)}, {"type": "decrement", "path": "n", "by": 1}, "decrement.not_number"),
        ({"n": 10**4299}, {"type": "increment", "path": "n", "by": 1}, "increment.not_number"),
        ("x", {"type": "increment", "path": "", "by": 1}, "increment.not_number"),
        ([], {"type": "increment", "path": "n", "by": 1}, "increment.target_not_object"),
        ([], {"type": "decrement", "path": "n", "by": 1}, "decrement.target_not_object"),
        ({}, {"type": "increment", "path": "constructor", "by": 1}, "increment.path.proto_polluted"),
        ({}, {"type": "decrement", "path": LONG, "by": 1}, "decrement.path.segment_too_long"),
        ({"a": 1}, {"type": "append", "path": "a", "value": 1}, "append.type_mismatch"),
        ({"a": "t"}, {"type": "append", "path": "a", "value": 1}, "append.type_mismatch"),
        ({"a": {}}, {"type": "append", "path": "a", "value": "t"}, "append.type_mismatch"),
        ({}, {"type": "append", "value": 1}, "append.type_mismatch"),
        ([], {"type": "append", "path": "a", "value": 1}, "append.target_not_object"),
        ({}, {"type": "append", "path": ["a"] * 33, "value": 1}, "append.path.too_deep"),
        ({}, {"type": "append", "path": ["", "a"], "value": 1}, "append.path.empty_segment"),
        ({}, {"type": "append", "path": ["__proto__"], "value": 1}, "append.path.proto_polluted"),
        ([], {"type": "remove", "path": "a"}, "remove.target_not_object"),
        ({}, {"type": "remove", "path": LONG}, "remove.path.segment_too_long"),
    ],
)
def test_an_operation_that_fails_is_reported_and_changes_nothing(
    client: Client, before: Any, op: dict[str, Any], code: str
) -> None:
    put(client, before)
    answer = update(client, op)

    assert answer["new_value"] == before
    assert [(row["op_index"], row["code"]) for row in answer["errors"]] == [(0, code)]
    assert set(answer["errors"][0]) == {"op_index", "code", "message", "doc_url"}


def test_a_merged_object_has_at_most_16_levels(client: Client) -> None:
    def nested(levels: int) -> Any:
        value: Any = {}
        for _ in range(levels - 1):
            value = {"a": [value]} if levels % 2 else {"a": value}
        return value

    put(client, {})
    assert "errors" not in update(client, {"type": "merge", "value": nested(16)})
    assert (
        update(client, {"type": "merge", "value": nested(18)})["errors"][0]["code"] == "merge.value.too_deep"
    )


def test_polluting_keys_are_refused_at_the_top_only(client: Client) -> None:
    put(client, {})

    assert "errors" not in update(client, {"type": "merge", "value": {"a": {"constructor": 1}}})


def test_operations_apply_in_order_and_failing_ones_are_left_out(client: Client) -> None:
    put(client, {"n": 1})
    answer = update(
        client,
        {"type": "increment", "path": "n", "by": 1},
        {"type": "append", "path": "n", "value": 1},
        {"type": "set", "path": "m", "value": 2},
        {"type": "remove", "path": "zz"},
        {"type": "merge", "value": 3},
    )

    assert answer["new_value"] == {"n": 2, "m": 2}
    assert [row["op_index"] for row in answer["errors"]] == [1, 4]


@pytest.mark.parametrize(
    "op",
    [
        7,
        {},
        {"type": "unknown", "path": "a"},
        {"type": ["set"], "path": "a"},
        {"type": "set"},
        {"type": "set", "path": ["a"], "value": 1},
        {"type": "remove", "path": None},
        {"type": "merge", "path": 7, "value": {}},
        {"type": "merge", "path": ["a", 7], "value": {}},
        {"type": "merge", "path": "a"},
        {"type": "append", "path": "a"},
        {"type": "increment", "path": "a"},
        {"type": "increment", "path": "a", "by": 1.0},
        {"type": "increment", "path": "a", "by": True},
        {"type": "increment", "path": "a", "by": 2**63},
        {"type": "decrement", "path": "a", "by": "1"},
    ],
)
def test_an_unknown_operation_fails_the_whole_call(client: Client, op: Any) -> None:
    put(client, {"a": 1})
    error = client.error("state::update", {**PLACE, "ops": [{"type": "set", "path": "b", "value": 1}, op]})

    assert error["code"] == "deserialization_error"
    assert client.result("state::get", PLACE) == {"a": 1}


@pytest.mark.parametrize("ops", [None, {}, "x"])
def test_an_update_without_a_list_of_operations_is_refused(client: Client, ops: Any) -> None:
    assert client.error("state::update", {**PLACE, "ops": ops})["code"] == "deserialization_error"


@pytest.mark.parametrize("value", ["x" * (MAX_READ_BYTES - 2), [0] * MAX_READ_MARKS], ids=["text", "list"])
def test_a_value_does_not_grow_beyond_what_is_read_at_once(client: Client, value: Any) -> None:
    put(client, value)
    append = {"type": "append", "value": "y"}
    error = client.error("state::update", {**PLACE, "ops": [append]})

    assert error["code"] == "VALUE_TOO_LARGE"
    assert client.result("state::get", PLACE) == value


def test_a_value_that_takes_long_to_read_is_replaced_but_not_updated(client: Client) -> None:
    put(client, "x" * MAX_READ_BYTES)
    error = client.error("state::update", {**PLACE, "ops": [{"type": "append", "value": "y"}]})
    put(client, "short")

    assert error["code"] == "VALUE_TOO_LARGE"
    assert client.result("state::get", PLACE) == "short"


def test_an_old_value_is_not_changed_by_an_update(client: Client) -> None:
    put(client, {"l": [1], "d": {"x": 1}})
    answer = update(
        client,
        {"type": "append", "path": "l", "value": 2},
        {"type": "merge", "path": "d", "value": {"y": 2}},
        {"type": "remove", "path": "zz"},
    )

    assert answer["old_value"] == {"l": [1], "d": {"x": 1}}


# Events


def watching(driver: Driver, **config: Any) -> Client:
    watcher = driver.connect("watcher")
    watcher.register("w::seen")
    watcher.bind("w1", "state", "w::seen", config=config, metadata={"m": 1})
    return watcher


def event(kind: str, old: Any, new: Any) -> dict[str, Any]:
    return {
        "type": "state",
        "event_type": f"state:{kind}",
        **PLACE,
        "old_value": old,
        "new_value": new,
    }


def test_every_write_is_told(driver: Driver, client: Client) -> None:
    watcher = watching(driver)
    put(client, 1)
    put(client, 1)
    update(client, {"type": "set", "path": "", "value": {}})
    update(client)
    update(client, {"type": "merge", "value": 7})
    client.call("state::delete", PLACE)
    client.call("state::delete", PLACE)
    update(client)
    client.call("state::get", PLACE)
    seen = watcher.take()

    assert [message["data"] for message in seen] == [
        event("created", None, 1),
        event("updated", 1, 1),
        event("updated", 1, {}),
        event("updated", {}, {}),
        event("updated", {}, {}),
        event("deleted", {}, None),
        event("deleted", None, None),
        event("created", None, {}),
    ]
    assert {message["function_id"] for message in seen} == {"w::seen"}
    assert seen[0]["metadata"] == {"m": 1}
    assert "_caller_worker_id" not in seen[0]["data"]


@pytest.mark.parametrize(
    ("config", "heard"),
    [
        ({}, True),
        ({"scope": "s"}, True),
        ({"scope": "S"}, False),
        ({"key": "k"}, True),
        ({"scope": "s", "key": "k"}, True),
        ({"scope": "s", "key": "other"}, False),
        ({"scope": None, "key": None, "condition_function_id": None}, True),
        ({"scope": ""}, False),
    ],
)
def test_events_are_filtered_by_scope_and_key(
    driver: Driver, client: Client, config: dict[str, Any], heard: bool
) -> None:
    watcher = watching(driver, **config)
    put(client, 1)

    assert bool(watcher.take()) is heard


@pytest.mark.parametrize("config", [7, [], "x", {"scope": 1}, {"key": []}, {"condition_function_id": {}}])
def test_a_bad_config_is_refused_at_once(client: Client, config: Any) -> None:
    client.bind("b", "state", "f", config=config)

    assert client.take_one()["error"]["code"] == "trigger_registration_failed"


def test_a_null_config_means_everything(driver: Driver, client: Client) -> None:
    watcher = driver.connect("watcher")
    watcher.register("w::seen")
    watcher.bind("w1", "state", "w::seen", config=None)
    put(client, 1)

    assert watcher.take_one()


@pytest.mark.parametrize(
    ("answer", "heard"),
    [
        ({"result": True}, True),
        ({"result": False}, False),
        ({"result": None}, True),
        ({"result": 0}, True),
        ({"result": "false"}, True),
        ({}, True),
        ({"error": {"code": "c", "message": "m"}}, False),
    ],
)
def test_a_condition_holds_an_event_back_with_false_or_a_failure(
    driver: Driver, client: Client, answer: dict[str, Any], heard: bool
) -> None:
    watcher = watching(driver, condition_function_id="c::ask")
    judge = driver.connect("judge")
    judge.register("c::ask")
    put(client, 1)
    asked = judge.take_one()
    assert asked["data"] == event("created", None, 1)
    assert watcher.take() == []
    judge.answer(asked, **answer)

    assert bool(watcher.take()) is heard


def test_a_condition_function_that_is_missing_or_leaves_holds_the_event_back(
    driver: Driver, client: Client
) -> None:
    watcher = watching(driver, condition_function_id="c::ask")
    put(client, 1)
    judge = driver.connect("judge")
    judge.register("c::ask")
    put(client, 2)
    judge.leave()

    assert watcher.take() == []


def test_a_condition_answered_after_its_binding_ended_fires_nothing(driver: Driver, client: Client) -> None:
    watcher = watching(driver, condition_function_id="c::ask")
    judge = driver.connect("judge")
    judge.register("c::ask")
    put(client, 1)
    watcher.send("unregistertrigger", id="w1")
    judge.answer(judge.take_one(), result=True)

    assert watcher.take() == []


def test_condition_and_target_are_looked_up_in_the_binding_s_namespace(
    driver: Driver, client: Client
) -> None:
    watcher = driver.connect("watcher", namespace="n")
    watcher.register("w::seen")
    watcher.register("w::ask")
    watcher.bind("w1", "state", "w::seen", namespace="n", config={"condition_function_id": "w::ask"})
    put(client, 1)
    watcher.answer(watcher.take_one(), result=True)

    assert watcher.take_one()["function_id"] == "w::seen"


def test_a_subscriber_that_never_answers_delays_no_other(driver: Driver, client: Client) -> None:
    first = watching(driver)
    second = driver.connect("second")
    second.register("x::seen")
    second.bind("x1", "state", "x::seen")
    for number in range(3):
        put(client, number)

    assert len(first.take()) == len(second.take()) == 3


# What would keep everybody waiting


class Copied(dict[str, Any]):
    """An object that knows how often it was copied."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.copies = 0

    def keys(self) -> Any:
        self.copies += 1
        return super().keys()

    def __iter__(self) -> Iterator[str]:
        # Only what iterates in a way of its own is asked for its keys when it is copied.
        return super().__iter__()


def test_a_large_value_is_copied_once_for_all_operations_and_itself_left_alone() -> None:
    inner = Copied(n=0)
    outer = Copied(inner=inner, items=[0])
    ops: list[dict[str, Any]] = [{"type": "set", "path": f"k{n}", "value": n} for n in range(50)]
    ops += [{"type": "merge", "path": "inner", "value": {"n": n}} for n in range(50)]
    ops += [{"type": "append", "path": "items", "value": n} for n in range(1, 50)]
    ops += [{"type": "increment", "path": "total", "by": 2}] * 50
    ops += [{"type": "remove", "path": f"k{n}"} for n in range(1, 50)]
    new, errors = apply_ops(outer, ops)

    assert errors == []
    assert new == {"inner": {"n": 49}, "items": list(range(50)), "k0": 0, "total": 100}
    assert (outer.copies, inner.copies) == (1, 1)
    assert (outer["items"], inner["n"]) == ([0], 0)


def test_what_an_operation_brought_is_not_changed_by_the_next(client: Client) -> None:
    brought: dict[str, Any] = {"list": [1]}
    ops = [
        {"type": "set", "path": "a", "value": brought},
        {"type": "append", "path": ["a", "list"], "value": 2},
        {"type": "set", "path": "b", "value": brought},
    ]
    new, _ = apply_ops({}, ops)

    assert new == {"a": {"list": [1, 2]}, "b": {"list": [1]}}


def test_an_update_has_so_many_operations(client: Client) -> None:
    put(client, {"n": 0})
    step = {"type": "increment", "path": "n", "by": 1}
    error = client.error("state::update", {**PLACE, "ops": [step] * (MAX_STATE_OPS + 1)})

    assert error == {"code": "LIMIT_EXCEEDED", "message": f"an update has at most {MAX_STATE_OPS} operations"}
    assert update(client, *[step] * 100)["new_value"] == {"n": 100}


def test_appending_to_a_long_string_again_and_again_is_refused_and_changes_nothing(client: Client) -> None:
    put(client, {"text": "x" * 1_000_000})
    error = client.error(
        "state::update", {**PLACE, "ops": [{"type": "append", "path": "text", "value": "y"}] * 1_000}
    )

    assert error["code"] == "LIMIT_EXCEEDED"
    assert len(client.result("state::get", PLACE)["text"]) == 1_000_000


def test_a_scope_that_fits_no_answer_is_refused_before_it_is_read(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.limits.MAX_STATE_LIST_BYTES", 50)
    put(client, "x" * 30, key="a")
    assert client.result("state::list", {"scope": "s"}) == ["x" * 30]
    put(client, "x" * 30, key="b")
    assert client.error("state::list", {"scope": "s"})["code"] == "LIMIT_EXCEEDED"
    client.call("state::delete", {"scope": "s", "key": "a"})

    assert client.result("state::list", {"scope": "s"}) == ["x" * 30]
