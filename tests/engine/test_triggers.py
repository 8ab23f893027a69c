"""Custom trigger types: every case of the table of orderings, and the way through functions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.driver import Client, Driver

from iii_directory.limits import TRIGGER_ACK_SECONDS

REFUSED = {"code": "bad_config", "message": "no such thing"}


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def owner(driver: Driver) -> Client:
    return driver.connect("owner")


@pytest.fixture
def sub(driver: Driver) -> Client:
    return driver.connect("sub")


def binding(binding_id: str = "b1", **fields: Any) -> dict[str, Any]:
    """What an owner is told of a binding."""
    return {
        "type": "registertrigger",
        "id": binding_id,
        "trigger_type": "o::changed",
        "function_id": "s::f",
        "config": {},
        **fields,
    }


def unbinding(binding_id: str = "b1") -> dict[str, Any]:
    return {"type": "unregistertrigger", "id": binding_id, "trigger_type": "o::changed"}


def listed(client: Client) -> list[str]:
    rows = client.result("engine::registered-triggers::list", {"trigger_type": "o::changed"})
    return [row["id"] for row in rows["registered_triggers"]]


def test_a_binding_goes_to_the_owner_of_its_type_and_is_live_at_once(owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f", config={"x": 1}, metadata={"m": 1})

    assert owner.take_one() == binding(config={"x": 1}, metadata={"m": 1})
    assert listed(sub) == ["b1"]
    assert sub.take() == []


def test_an_accepted_binding_is_not_mentioned_again(driver: Driver, owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f")
    owner.accept(owner.take_one())

    assert driver.effects == []
    assert listed(sub) == ["b1"]


def test_a_refused_binding_is_parked_and_its_subscriber_told(owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f")
    owner.accept(owner.take_one(), error=REFUSED)

    assert sub.take_one() == {
        "type": "triggerregistrationresult",
        "id": "b1",
        "trigger_type": "o::changed",
        "function_id": "s::f",
        "error": REFUSED,
    }
    assert listed(sub) == []


def test_only_the_owner_can_refuse(driver: Driver, owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f")
    bound = owner.take_one()
    driver.connect("stranger").accept(bound, error=REFUSED)
    sub.accept(bound, error=REFUSED)
    owner.accept({**bound, "id": "unknown"}, error=REFUSED)

    assert sub.take() == []
    assert listed(sub) == ["b1"]


def test_a_subscriber_before_its_owner_is_parked_and_replayed(owner: Client, sub: Client) -> None:
    sub.bind("b1", "o::changed", "s::f", config={"x": 1})
    sub.bind("b2", "o::changed", "s::f")
    assert sub.take() == []
    assert listed(sub) == []

    owner.provide("o::changed")
    assert owner.take() == [binding("b1", config={"x": 1}), binding("b2")]
    assert listed(sub) == ["b1", "b2"]


def test_an_owner_that_registers_again_gets_live_parked_and_refused_bindings(
    owner: Client, sub: Client
) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f")
    sub.bind("b2", "o::changed", "s::f")
    owner.accept(owner.take()[1], error=REFUSED)
    owner.provide("o::changed")

    assert owner.take() == [binding("b1"), binding("b2")]
    assert listed(sub) == ["b1", "b2"]


def test_bindings_of_an_owner_that_left_wait_for_the_next(driver: Driver, owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f")
    owner.leave()
    assert sub.take() == []
    assert listed(sub) == []

    heir = driver.connect("heir")
    heir.provide("o::changed")
    assert heir.take_one() == binding()
    assert listed(sub) == ["b1"]


def test_bindings_move_to_default_when_their_home_provider_leaves(driver: Driver) -> None:
    common, local = driver.connect("common"), driver.connect("local", namespace="n")
    sub = driver.connect("sub", namespace="n")
    common.provide("o::changed")
    local.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f", namespace="n")
    assert local.take_one() == binding(namespace="n", trigger_namespace="n")
    local.leave()

    assert common.take_one() == binding(namespace="n")
    assert listed(sub) == ["b1"]


def test_a_second_owner_takes_over_and_the_first_is_not_told(
    driver: Driver, owner: Client, sub: Client
) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f")
    bound = owner.take_one()
    second = driver.connect("second")
    second.provide("o::changed")
    assert second.take_one() == binding()
    assert owner.take() == []

    owner.accept(bound, error=REFUSED)
    assert sub.take() == [], "the first has no say any more"
    owner.leave()
    assert listed(sub) == ["b1"], "and takes nothing along"


def test_an_id_sent_again_replaces_the_binding_without_an_unregister(owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f", config={"x": 1})
    sub.bind("b1", "o::changed", "s::f", config={"x": 2})

    assert [message["config"] for message in owner.take()] == [{"x": 1}, {"x": 2}]
    assert listed(sub) == ["b1"]


def test_an_id_used_again_for_another_type_leaves_the_first(
    driver: Driver, owner: Client, sub: Client
) -> None:
    owner.provide("o::changed")
    other = driver.connect("other")
    other.provide("p::changed")
    sub.bind("b1", "o::changed", "s::f")
    owner.take()
    sub.bind("b1", "p::changed", "s::f")

    assert owner.take_one() == unbinding()
    assert other.take_one() == binding(trigger_type="p::changed")
    sub.bind("b1", "nobody::changed", "s::f")
    assert other.take_one() == {**unbinding(), "trigger_type": "p::changed"}


def test_an_id_taken_over_by_another_connection_stays_when_the_first_leaves(
    driver: Driver, owner: Client, sub: Client
) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f")
    thief = driver.connect("thief")
    thief.bind("b1", "o::changed", "t::f")
    owner.take()
    sub.leave()
    assert owner.take() == []

    thief.leave()
    assert owner.take_one() == unbinding()


def test_a_binding_to_a_missing_function_is_accepted_and_its_fires_fail(owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "no::such")

    assert listed(sub) == ["b1"]
    assert owner.error("no::such")["code"] == "function_not_found"


def test_a_home_provider_that_comes_late_gets_what_fell_back(driver: Driver) -> None:
    common = driver.connect("common")
    sub = driver.connect("sub", namespace="n")
    common.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f")
    assert common.take_one() == binding()
    local = driver.connect("local", namespace="n")
    local.provide("o::changed")

    assert common.take_one() == unbinding()
    assert local.take_one() == binding(trigger_namespace="n")


def test_a_provider_of_a_foreign_namespace_gets_nothing(driver: Driver, sub: Client) -> None:
    foreign = driver.connect("foreign", namespace="n")
    foreign.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f")

    assert foreign.take() == []
    assert listed(sub) == []


def test_a_named_provider_namespace_is_that_one_or_none(driver: Driver, owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f", trigger_namespace="n")
    assert owner.take() == []
    local = driver.connect("local", namespace="n")
    local.provide("o::changed")
    assert local.take_one() == binding(trigger_namespace="n")
    local.leave()

    assert owner.take() == []
    assert listed(sub) == []


def test_a_type_can_be_provided_in_another_namespace_than_one_s_own(owner: Client, driver: Driver) -> None:
    owner.provide("o::changed", namespace="n")
    sub = driver.connect("sub", namespace="n")
    sub.bind("b1", "o::changed", "s::f")

    assert owner.take_one() == binding(trigger_namespace="n")


def test_a_parked_binding_that_is_unregistered_is_dropped(owner: Client, sub: Client) -> None:
    sub.bind("b1", "o::changed", "s::f")
    sub.send("unregistertrigger", id="b1")
    owner.provide("o::changed")

    assert owner.take() == []


def test_unregistering_tells_the_owner_and_anybody_may_do_it(
    driver: Driver, owner: Client, sub: Client
) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f")
    owner.take()
    driver.connect("stranger").send("unregistertrigger", id="b1", trigger_type="whatever")

    assert owner.take_one() == unbinding()
    assert listed(sub) == []


def test_unregistering_what_is_not_there_does_nothing(driver: Driver, sub: Client) -> None:
    sub.send("unregistertrigger", id="nope")

    assert driver.effects == []


def test_a_subscriber_that_leaves_is_unregistered_and_its_parked_bindings_dropped(
    driver: Driver, owner: Client, sub: Client
) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f")
    sub.bind("b2", "late::changed", "s::f")
    owner.take()
    sub.leave()
    owner.provide("late::changed")

    assert owner.take() == [unbinding()]
    assert driver.router.triggers.bindings == {}


def test_a_type_that_is_unregistered_parks_its_bindings(driver: Driver, owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f")
    owner.take()
    driver.connect("stranger").send("unregistertriggertype", id="o::changed")
    assert listed(sub) == ["b1"], "only its owner can"

    owner.send("unregistertriggertype", id="o::changed")
    assert listed(sub) == []
    owner.provide("o::changed")
    assert owner.take_one() == binding()


def test_a_type_of_another_namespace_is_unregistered_by_name(driver: Driver, owner: Client) -> None:
    owner.provide("o::changed", namespace="n")
    owner.send("unregistertriggertype", id="o::changed")
    assert ("n", "o::changed") in driver.router.triggers.types

    owner.send("unregistertriggertype", id="o::changed", namespace="n")
    assert ("n", "o::changed") not in driver.router.triggers.types


def test_a_missing_config_is_null_to_the_owner(owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    sub.send("registertrigger", id="b1", trigger_type="o::changed", function_id="s::f")

    assert owner.take_one()["config"] is None


def test_a_builtin_type_refuses_a_bad_config_at_once_and_parks_nothing(driver: Driver, sub: Client) -> None:
    sub.bind("b1", "state", "s::f", config={"scope": 7})

    assert sub.take_one() == {
        "type": "triggerregistrationresult",
        "id": "b1",
        "trigger_type": "state",
        "function_id": "s::f",
        "error": {"code": "trigger_registration_failed", "message": "'scope' must be a string"},
    }
    assert driver.router.triggers.bindings == {}


def test_a_bad_config_for_an_id_in_use_leaves_what_was_there(driver: Driver, sub: Client) -> None:
    sub.bind("b1", "state", "s::f", config={"scope": "a"})
    sub.bind("b1", "state", "s::f", config={"scope": 7})

    assert driver.router.triggers.bindings["b1"].config == {"scope": "a"}


@pytest.mark.parametrize(
    "kind", ["subscribe", "engine::workers-available", "engine::functions-available", "worker"]
)
@pytest.mark.parametrize("config", [None, 7, "x", [], {"topic": 7}])
def test_the_other_builtin_types_accept_any_config(sub: Client, kind: str, config: Any) -> None:
    sub.bind("b1", kind, "s::f", config=config)

    assert sub.take() == []


def test_a_builtin_type_cannot_be_replaced(driver: Driver, owner: Client, sub: Client) -> None:
    owner.provide("state")
    sub.bind("b1", "state", "s::f")

    assert owner.take() == []
    assert any("built in" in line for line in driver.log)


def test_a_builtin_type_of_another_namespace_is_its_provider_s_alone(driver: Driver) -> None:
    local = driver.connect("local", namespace="n")
    local.provide("state")
    sub = driver.connect("sub", namespace="n")
    sub.register("s::f")
    sub.bind("b1", "state", "s::f", namespace="n", config={"scope": 7})
    assert local.take_one()["config"] == {"scope": 7}
    driver.connect("writer").call("state::set", {"scope": "a", "key": "b", "value": 1})
    assert sub.take() == [], "the engine does not fire what another provides"

    local.leave()
    assert sub.take() == []
    assert driver.router.triggers.bindings["b1"].provider is None, "a config state cannot use stays parked"


def test_a_fire_is_a_void_call_with_what_the_owner_forwards(owner: Client, sub: Client) -> None:
    sub.register("s::f")
    owner.send(
        "invokefunction",
        function_id="s::f",
        data={"op": "register"},
        action={"type": "void"},
        metadata={"m": 1},
    )
    fired = sub.take_one()

    assert fired["data"] == {"op": "register", "_caller_worker_id": owner.id}
    assert fired["metadata"] == {"m": 1}


# The way through functions


def ask(client: Client, **fields: Any) -> None:
    client.start("engine::register_trigger", {"trigger_type": "o::changed", "function_id": "s::f", **fields})


def test_a_binding_by_function_waits_for_the_owner_s_word(driver: Driver, owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    ask(sub, config={"x": 1}, metadata={"m": 1})
    bound = owner.take_one()
    assert sub.take() == []
    assert driver.timers[-1] == (("trigger-ack", bound["id"]), TRIGGER_ACK_SECONDS)
    owner.accept(bound)

    assert sub.take_one()["result"] == {"id": bound["id"]}
    assert bound == binding(bound["id"], config={"x": 1}, metadata={"m": 1})


def test_a_binding_by_function_that_is_refused_is_gone(driver: Driver, owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    ask(sub)
    owner.accept(owner.take_one(), error=REFUSED)

    assert sub.take_one()["error"] == {
        "code": "trigger_registration_failed",
        "message": "bad_config: no such thing",
    }
    assert driver.router.triggers.bindings == {}


def test_an_owner_that_says_nothing_for_ten_seconds_has_accepted(
    driver: Driver, owner: Client, sub: Client
) -> None:
    owner.provide("o::changed")
    ask(sub)
    bound = owner.take_one()
    driver.run_timer("trigger-ack")
    assert sub.take_one()["result"] == {"id": bound["id"]}

    owner.accept(bound, error=REFUSED)
    assert sub.take() == []
    assert listed(sub) == [], "refused too late: parked"


def test_the_owner_s_word_makes_the_timer_meaningless(driver: Driver, owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    ask(sub)
    owner.accept(owner.take_one())
    sub.take()
    driver.run_timer("trigger-ack")

    assert sub.take() == []


def test_an_owner_that_leaves_before_its_word_has_accepted(owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    ask(sub)
    bound = owner.take_one()
    owner.leave()

    assert sub.take_one()["result"] == {"id": bound["id"]}


def test_a_binding_that_is_removed_while_it_waits_is_answered(
    driver: Driver, owner: Client, sub: Client
) -> None:
    owner.provide("o::changed")
    ask(sub)
    bound = owner.take_one()
    other = driver.connect("other")

    assert other.result("engine::unregister_trigger", {"id": bound["id"]}) == {"removed": True}
    assert sub.take_one()["result"] == {"id": bound["id"]}
    driver.run_timer("trigger-ack")
    assert sub.take() == []


def test_a_binding_taken_over_while_it_waits_is_answered(driver: Driver, owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    ask(sub)
    bound = owner.take_one()
    driver.connect("other").bind(bound["id"], "o::changed", "s::f")

    assert sub.take_one()["result"] == {"id": bound["id"]}


def test_a_binding_by_function_outlives_its_caller(driver: Driver, owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    ask(sub)
    bound = owner.take_one()
    owner.accept(bound)
    sub.leave()

    assert owner.take() == []
    assert listed(owner) == [bound["id"]]


def test_a_caller_that_left_is_not_answered(driver: Driver, owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    ask(sub)
    bound = owner.take_one()
    sub.leave()
    owner.accept(bound)

    assert sub.take() == []
    assert listed(owner) == [bound["id"]]


def test_a_binding_by_function_to_an_unknown_type_is_parked_for_good(
    driver: Driver, owner: Client, sub: Client
) -> None:
    ask(sub)
    answered = sub.take_one()["result"]["id"]
    sub.leave()
    owner.provide("o::changed")

    assert owner.take_one() == binding(answered, config=None)


def test_a_binding_by_function_to_a_builtin_type_is_answered_at_once(sub: Client) -> None:
    assert sub.result("engine::register_trigger", {"trigger_type": "state", "function_id": "s::f"})["id"]
    error = sub.error(
        "engine::register_trigger", {"trigger_type": "state", "function_id": "s::f", "config": {"key": 1}}
    )
    assert error["code"] == "trigger_registration_failed"


def test_a_binding_by_function_can_name_the_provider_s_namespace(driver: Driver, sub: Client) -> None:
    local = driver.connect("local", namespace="n")
    local.provide("o::changed")
    ask(sub, trigger_namespace="n")

    assert local.take_one()["trigger_namespace"] == "n"


@pytest.mark.parametrize("missing", ["trigger_type", "function_id"])
def test_a_binding_by_function_needs_a_type_and_a_function(sub: Client, missing: str) -> None:
    fields = {"trigger_type": "o::changed", "function_id": "s::f"}
    del fields[missing]

    assert sub.error("engine::register_trigger", fields) == {
        "code": "deserialization_error",
        "message": f"Failed to deserialize input for engine::register_trigger: missing field `{missing}`",
    }


def test_removing_by_function_says_whether_there_was_anything(owner: Client, sub: Client) -> None:
    owner.provide("o::changed")
    sub.bind("b1", "o::changed", "s::f")
    owner.take()

    assert sub.result("engine::unregister_trigger", {"id": "b1"}) == {"removed": True}
    assert owner.take_one() == unbinding()
    assert sub.result("engine::unregister_trigger", {"id": "b1"}) == {"removed": False}
