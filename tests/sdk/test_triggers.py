"""Trigger types and bindings, as clients of the published SDKs own and make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.sdk.process import SdkError
from tests.sdk.stage import Stage, unique, until

if TYPE_CHECKING:
    from tests.sdk.stage import SdkClient


def fired(client: SdkClient, function: str) -> dict[str, Any]:
    """The payload of the next call of a function, without the field that the engine adds."""
    payload = client.event("called", function=function)["payload"]
    return {key: value for key, value in payload.items() if key != "_caller_worker_id"}


def test_a_binding_reaches_the_owner_of_its_type_and_what_it_fires_the_function(stage: Stage) -> None:
    owner, subscriber = stage.client("owner"), stage.client("subscriber")
    trigger_type = owner.own("on-change")
    function = subscriber.register("changed", "echo")

    subscriber.bind(trigger_type, function, config={"path": "a/b"}, metadata={"why": "test"})
    bound = owner.event("bound", type=trigger_type)
    owner.do("fire", type=trigger_type, payload={"changed": "a/b"})
    called = subscriber.event("called", function=function)

    assert (bound["function_id"], bound["config"], bound["metadata"]) == (
        function,
        {"path": "a/b"},
        {"why": "test"},
    )
    assert called["payload"] == {
        "changed": "a/b",
        "_caller_worker_id": called["payload"]["_caller_worker_id"],
    }
    assert called["metadata"] == {"why": "test"}


def test_a_binding_made_before_there_is_an_owner_waits_for_it(stage: Stage) -> None:
    subscriber = stage.client("subscriber")
    trigger_type = unique("sdk") + "::late"
    function = subscriber.register("changed", "echo")
    subscriber.bind(trigger_type, function, config={"n": 1})
    subscriber.settle()

    owner = stage.client("owner")
    owner.own_type(trigger_type)

    assert owner.event("bound", type=trigger_type)["config"] == {"n": 1}
    assert owner.do("fire", type=trigger_type, payload={"late": True}) == 1
    assert fired(subscriber, function) == {"late": True}


def test_bindings_pass_to_the_next_owner_when_the_owner_leaves(stage: Stage) -> None:
    first, subscriber = stage.client("first"), stage.client("subscriber")
    trigger_type = first.own("on-change")
    function = subscriber.register("changed", "echo")
    subscriber.bind(trigger_type, function, config={})
    first.event("bound", type=trigger_type)

    first.close()
    second = stage.client("second")
    second.own_type(trigger_type)

    second.event("bound", type=trigger_type)
    assert second.do("fire", type=trigger_type, payload={"from": "second"}) == 1
    assert fired(subscriber, function) == {"from": "second"}


def test_the_owner_is_told_when_a_binding_is_taken_back(stage: Stage) -> None:
    owner, subscriber = stage.client("owner"), stage.client("subscriber")
    trigger_type = owner.own("on-change")
    trigger = subscriber.bind(trigger_type, subscriber.register("changed", "echo"), config={})
    bound = owner.event("bound", type=trigger_type)

    subscriber.do("unbind", trigger=trigger)

    assert owner.event("unbound", type=trigger_type)["id"] == bound["id"]
    assert owner.do("fire", type=trigger_type, payload={}) == 0


def test_the_owner_is_told_when_a_subscriber_leaves(stage: Stage) -> None:
    owner, subscriber = stage.client("owner"), stage.client("subscriber")
    trigger_type = owner.own("on-change")
    subscriber.bind(trigger_type, subscriber.register("changed", "echo"), config={})
    bound = owner.event("bound", type=trigger_type)

    subscriber.close()

    assert owner.event("unbound", type=trigger_type)["id"] == bound["id"]


def test_a_binding_that_the_owner_refuses_is_reported_to_the_subscriber(stage: Stage) -> None:
    owner, subscriber = stage.client("owner"), stage.client("subscriber")
    reason = unique("no room")
    trigger_type = owner.own("full", refuses=reason)

    subscriber.bind(trigger_type, subscriber.register("changed", "echo"), config={})

    stage.driver.log(f"({trigger_type}): {reason}")


def test_a_binding_made_by_a_call_is_the_owners_to_confirm(stage: Stage) -> None:
    owner, caller = stage.client("owner"), stage.client("caller")
    trigger_type = owner.own("on-change")
    wanted = {"trigger_type": trigger_type, "function_id": caller.register("changed", "echo"), "config": {}}

    made = caller.call("engine::register_trigger", wanted)

    assert owner.event("bound", type=trigger_type)["id"] == made["id"]
    assert caller.call("engine::unregister_trigger", {"id": made["id"]}) == {"removed": True}
    assert owner.event("unbound", type=trigger_type)["id"] == made["id"]


def test_a_binding_made_by_a_call_is_the_owners_to_refuse(stage: Stage) -> None:
    owner, caller = stage.client("owner"), stage.client("caller")
    trigger_type = owner.own("full", refuses="there is no room")
    wanted = {"trigger_type": trigger_type, "function_id": caller.register("changed", "echo"), "config": {}}

    with pytest.raises(SdkError, match="there is no room") as raised:
        caller.call("engine::register_trigger", wanted)

    assert raised.value.code == "trigger_registration_failed"


def test_a_type_that_its_owner_gave_up_is_gone(embedded_stage: Stage) -> None:
    """A deviation: a real engine of 0.23 does not know the message, and keeps the type."""
    owner = embedded_stage.client("owner")
    trigger_type = owner.own("given-up")

    owner.do("disown", type=trigger_type)
    owner.settle()

    assert embedded_stage.answer("engine::triggers::info", {"id": trigger_type}) is None


def test_a_binding_to_state_is_fired_by_a_write_elsewhere(stage: Stage) -> None:
    subscriber, writer = stage.client("subscriber"), stage.client("writer")
    scope, function = unique("scope"), subscriber.register("changed", "echo")
    subscriber.bind("state", function, config={"scope": scope}, metadata={"kind": "state"})
    subscriber.until_bound(function)

    written = writer.call("state::set", {"scope": scope, "key": "k", "value": {"n": 1}})
    called = subscriber.event("called", function=function)

    assert written == {"old_value": None, "new_value": {"n": 1}}
    assert writer.call("state::get", {"scope": scope, "key": "k"}) == {"n": 1}
    assert called["payload"] == {
        "type": "state",
        "event_type": "state:created",
        "scope": scope,
        "key": "k",
        "old_value": None,
        "new_value": {"n": 1},
    }
    assert called["metadata"] == {"kind": "state"}
    writer.call("state::delete", {"scope": scope, "key": "k"})


def test_a_binding_to_state_without_a_scope_it_can_use_is_reported(stage: Stage) -> None:
    subscriber = stage.client("subscriber")
    function = subscriber.register("changed", "echo")

    subscriber.bind("state", function, config={"scope": 7})

    stage.driver.log("(state):")


def test_what_is_published_reaches_the_subscribers_of_the_topic_that_are_left(embedded_stage: Stage) -> None:
    """A deviation: when one subscriber leaves a topic, the real engine drops all of them."""
    staying, leaving = embedded_stage.client("staying"), embedded_stage.client("leaving")
    topic = unique("topic")
    kept, dropped = staying.register("kept", "echo"), leaving.register("dropped", "echo")
    staying.bind("subscribe", kept, config={"topic": topic})
    trigger = leaving.bind("subscribe", dropped, config={"topic": topic})
    staying.until_bound(kept)
    leaving.until_bound(dropped)

    staying.call("publish", {"topic": topic, "data": {"n": 1}})
    assert (fired(staying, kept), fired(leaving, dropped)) == ({"n": 1}, {"n": 1})
    leaving.do("unbind", trigger=trigger)
    leaving.settle()
    staying.call("publish", {"topic": topic, "data": {"n": 2}})

    assert fired(staying, kept) == {"n": 2}


def test_a_binding_to_arrivals_tells_of_new_clients(stage: Stage) -> None:
    subscriber = stage.client("subscriber")
    function = subscriber.register("arrived", "echo")
    subscriber.bind("engine::workers-available", function, config={})
    subscriber.until_bound(function)

    newcomer = stage.client("newcomer").until_known()["worker"]["id"]

    told: set[str] = set()

    def told_of_both() -> bool | None:
        event = fired(subscriber, function)
        if event["worker_id"] == newcomer:
            told.add(event["event"])
        # An engine with several threads tells of the two in either order.
        return True if told >= {"worker_connected", "worker_metadata_updated"} else None

    assert until(told_of_both, "the newcomer and its name are told of")
