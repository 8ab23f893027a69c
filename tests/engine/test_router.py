"""Connections: who they are, what they register, and what is left when they go."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.driver import Client, Driver, message_of, uuid_of

from iii_directory.engine.engine_state import Close, Send
from iii_directory.limits import MAX_LOG_CHARS, MAX_QUEUED_REGISTRATIONS, NAMESPACE_GRACE_SECONDS


@pytest.fixture
def driver() -> Driver:
    return Driver()


def rejected(owner: Client | None, **fields: Any) -> dict[str, Any]:
    return {
        "type": "registrationrejected",
        "namespace": "default",
        "owner_worker_id": owner.id if owner else "",
        **fields,
    }


def function_conflict(owner: Client | None, function_id: str, **fields: Any) -> dict[str, Any]:
    return rejected(owner, code="FUNCTION_NAMESPACE_CONFLICT", function_id=function_id, **fields)


def functions_of(driver: Driver, client: Client) -> list[tuple[str, str]]:
    return [(f.namespace, f.id) for f in driver.router.engine_state.functions_of(client.id)]


# Connecting


def test_the_engine_speaks_first_and_starts_the_grace(driver: Driver) -> None:
    client = driver.connect()

    assert client.welcome == {
        "type": "workerregistered",
        "worker_id": client.id,
        "reattach_token": client.welcome["reattach_token"],
    }
    assert client.welcome["reattach_token"] != client.id
    assert driver.timers[0] == (("namespace-grace", client.id), NAMESPACE_GRACE_SECONDS)


def test_a_ping_is_answered_and_a_pong_is_not(driver: Driver) -> None:
    client = driver.connect()
    client.send("ping")
    assert client.take_one() == {"type": "pong"}
    client.send("pong")
    assert client.take() == []


def test_a_frame_from_a_connection_that_is_gone_does_nothing(driver: Driver) -> None:
    client = driver.connect("c")
    client.leave()
    client.register("c::f")
    client.leave()

    assert driver.effects == []
    assert driver.router.engine_state.functions.get(("default", "c::f")) is None


@pytest.mark.parametrize(
    "frame", ["", "x", "{}", '{"type":[]}', b"\xff", "[" * 99_999, '{"type":"?"}', b"LOGSx"]
)
def test_a_frame_that_is_not_a_message_changes_nothing(driver: Driver, frame: str | bytes) -> None:
    client = driver.connect("c")
    client.frame(frame)

    assert client.take() == []
    assert driver.closed == []
    assert client.result("engine::health::check")


def test_a_client_s_words_stay_on_one_short_line_of_the_log(driver: Driver) -> None:
    client = driver.connect("c")
    client.send("invokefunction", function_id="a\nERROR forged \x1b[2J\u202e" + "x" * 100_000, data=1)

    assert "\n" not in driver.log[-1]
    assert "\x1b" not in driver.log[-1]
    assert len(driver.log[-1]) <= MAX_LOG_CHARS


# The queue of registrations


def test_registrations_wait_until_a_connection_says_who_it_is(driver: Driver) -> None:
    client = driver.connect()
    client.register("c::f")
    client.provide("c::changed")
    client.bind("b1", "c::changed", "c::f")
    assert functions_of(driver, client) == []
    client.announce("c", namespace="n")

    assert functions_of(driver, client) == [("n", "c::f")]
    assert client.take_one()["id"] == "b1"


def test_queued_registrations_are_taken_in_their_order(driver: Driver) -> None:
    client = driver.connect()
    client.register("c::f")
    client.send("unregisterfunction", id="c::f")
    client.register("c::g")
    client.send("unregisterfunction", id="c::h")
    client.register("c::h")
    client.announce("c")

    assert functions_of(driver, client) == [("default", "c::g"), ("default", "c::h")]


def test_calls_are_not_queued(driver: Driver) -> None:
    client = driver.connect()

    assert client.result("state::list_groups") == {"groups": []}


def test_after_the_grace_registrations_go_to_default_for_good(driver: Driver) -> None:
    client = driver.connect()
    client.register("c::f")
    driver.run_timer("namespace-grace", client.id)
    assert functions_of(driver, client) == [("default", "c::f")]
    client.register("c::g")
    client.announce("c", namespace="n")

    assert functions_of(driver, client) == [("default", "c::f"), ("default", "c::g")]
    row = client.result("engine::workers::info", {"name": "c"})["worker"]
    assert row["namespace"] == "default"


def test_the_grace_of_a_connection_that_said_who_it_is_or_left_means_nothing(driver: Driver) -> None:
    named, gone = driver.connect("named", namespace="n"), driver.connect()
    gone.leave()
    driver.run_timer("namespace-grace")
    named.register("n::f")

    assert functions_of(driver, named) == [("n", "n::f")]


def test_a_connection_that_queues_without_end_is_closed(driver: Driver) -> None:
    client = driver.connect()
    for number in range(MAX_QUEUED_REGISTRATIONS):
        client.register(f"c::{number}")
    assert driver.closed == []
    client.register("c::more")

    assert driver.closed == [(client.id, False)]
    assert client.id not in driver.router.engine_state.connections


def test_a_blank_namespace_is_refused_and_settles_nothing(driver: Driver) -> None:
    client = driver.connect()
    client.register("c::f")

    assert client.announce("c", namespace=" ")["error"]["code"] == "INVALID_NAMESPACE"
    assert functions_of(driver, client) == []


def test_an_announcement_by_a_void_call_is_the_usual_one(driver: Driver) -> None:
    client = driver.connect()
    client.register("c::f")
    client.send(
        "invokefunction",
        function_id="engine::workers::register",
        data={"name": "c", "pid": 7},
        action={"type": "void"},
    )

    assert client.take() == []
    assert functions_of(driver, client) == [("default", "c::f")]


# Names


def test_a_name_in_use_is_refused_and_the_connection_closed(driver: Driver) -> None:
    first, second = driver.connect("c"), driver.connect()
    second.register("c::f")
    second.start("engine::workers::register", {"name": "c"})

    assert second.take() == [rejected(first, code="WORKER_NAMESPACE_CONFLICT", worker_name="c")]
    assert isinstance(driver.effects[0], Send)
    assert driver.effects[1] == Close(second.id)
    assert driver.router.engine_state.functions.get(("default", "c::f")) is None


def test_a_name_is_free_in_another_namespace_and_after_its_holder_left(driver: Driver) -> None:
    first, other = driver.connect("c"), driver.connect("c", namespace="n")
    first.leave()
    heir = driver.connect("c")

    assert driver.closed == []
    assert driver.router.engine_state.names == {("n", "c"): other.id, ("default", "c"): heir.id}


def test_a_new_name_keeps_the_old_one_held(driver: Driver) -> None:
    client = driver.connect("one")
    client.announce("two")
    rival = driver.connect()
    rival.start("engine::workers::register", {"name": "one"})
    assert rival.take_one()["owner_worker_id"] == client.id
    assert client.result("engine::workers::info", {"name": "two"})

    client.leave()
    assert driver.router.engine_state.names == {}


def test_the_same_name_again_just_updates(driver: Driver) -> None:
    client = driver.connect("c", version="1")
    assert client.announce("c", version="2")["result"] == {"success": True}
    assert client.result("engine::workers::info", {"name": "c"})["worker"]["version"] == "2"


@pytest.mark.parametrize("name", [None, "", "  ", "\u202e\x00"])
def test_connections_without_a_name_cannot_collide(driver: Driver, name: str | None) -> None:
    for _ in range(2):
        client = driver.connect()
        assert client.announce(name)["result"] == {"success": True}

    assert driver.router.engine_state.names == {}


def test_names_that_look_alike_are_the_same(driver: Driver) -> None:
    driver.connect("worker")
    rival = driver.connect()
    rival.start("engine::workers::register", {"name": " wor\u200bker\n"})

    assert rival.take_one()["worker_name"] == "worker"


# Functions


def test_a_function_in_use_is_refused_and_the_connection_stays(driver: Driver) -> None:
    first, second = driver.connect("one"), driver.connect("two")
    first.register("x::f", description="first")
    second.register("x::f", description="second")
    second.register("x::g")

    assert second.take_one() == function_conflict(first, "x::f")
    assert driver.closed == []
    assert first.result("engine::functions::info", {"function_id": "x::f"})["description"] == "first"
    assert functions_of(driver, second) == [("default", "x::g")]


def test_a_function_is_free_in_another_namespace_and_after_its_owner_left(driver: Driver) -> None:
    first, other = driver.connect("one"), driver.connect("two", namespace="n")
    first.register("x::f")
    other.register("x::f")
    first.leave()
    heir = driver.connect("three")
    heir.register("x::f")

    assert other.take() == []
    assert heir.take() == []


def test_one_s_own_function_is_replaced(driver: Driver) -> None:
    client = driver.connect("c")
    client.register("c::f", description="a", request_format={"a": 1}, metadata={"m": 1})
    client.register("c::f", response_format={"b": 1})

    detail = client.result("engine::functions::info", {"function_id": "c::f"})
    assert detail == {
        "function_id": "c::f",
        "namespace": "default",
        "worker_name": "c",
        "response_schema": {"b": 1},
        "registered_triggers": [],
    }


def test_a_function_is_unregistered_by_its_owner_alone(driver: Driver) -> None:
    owner, stranger = driver.connect("one"), driver.connect("two")
    owner.register("x::f")
    stranger.send("unregisterfunction", id="x::f")
    assert functions_of(driver, owner)

    owner.send("unregisterfunction", id="x::f")
    assert functions_of(driver, owner) == []


@pytest.mark.parametrize("function_id", ["state::get", "engine::functions::list", "publish", "worker::list"])
def test_a_builtin_cannot_be_overridden(driver: Driver, function_id: str) -> None:
    client = driver.connect("c")
    client.register(function_id)
    assert client.take_one() == function_conflict(None, function_id)
    client.send("unregisterfunction", id=function_id)
    client.leave()

    assert driver.router.engine_state.functions.get(("default", function_id)) is not None


def test_a_builtin_id_is_free_in_other_namespaces_unless_it_is_the_engine_s(driver: Driver) -> None:
    client = driver.connect("c", namespace="n")
    client.register("state::get")
    assert client.take() == []
    client.register("engine::anything")
    assert client.take_one() == function_conflict(None, "engine::anything", namespace="n")


def test_an_engine_id_that_is_not_built_in_can_be_registered_in_default(driver: Driver) -> None:
    client = driver.connect("c")
    client.register("engine::queue::enqueue")

    assert functions_of(driver, client) == [("default", "engine::queue::enqueue")]


@pytest.mark.parametrize("function_id", ["", " ", "\n"])
def test_an_empty_function_id_is_refused(driver: Driver, function_id: str) -> None:
    client = driver.connect("c")
    client.register(function_id)

    assert functions_of(driver, client) == []
    assert any("without an id" in line for line in driver.log)


def test_an_http_function_is_refused_with_a_line_in_the_log(driver: Driver) -> None:
    client = driver.connect("c")
    client.register("c::f", invocation={"url": "http://127.0.0.1/"})

    assert functions_of(driver, client) == []
    assert any("HTTP" in line for line in driver.log)


# Reattaching


def test_a_connection_that_proves_who_it_was_evicts_its_predecessor(driver: Driver) -> None:
    old = driver.connect("c")
    old.register("c::f")
    new = driver.connect()
    new.send("reattach", previous_worker_id=old.id, reattach_token=old.welcome["reattach_token"])
    assert driver.effects[-1] == Close(old.id, abrupt=True)
    new.register("c::f")
    new.announce("c")

    assert new.take() == []
    assert functions_of(driver, new) == [("default", "c::f")]
    assert old.id not in driver.router.engine_state.connections


@pytest.mark.parametrize("token", [None, "", "wrong", uuid_of(1)])
def test_a_wrong_token_evicts_no_connection(driver: Driver, token: str | None) -> None:
    old, new = driver.connect("c"), driver.connect()
    new.send("reattach", previous_worker_id=old.id, reattach_token=token)

    assert driver.effects == []
    assert old.id in driver.router.engine_state.connections


def test_reattaching_to_an_unknown_worker_or_oneself_does_nothing(driver: Driver) -> None:
    client = driver.connect("c")
    for previous in ("unknown", client.id):
        client.send("reattach", previous_worker_id=previous, reattach_token=client.welcome["reattach_token"])
        assert driver.effects == []


# Leaving


def test_the_traces_of_a_connection_go_in_the_promised_order(driver: Driver) -> None:
    watcher = driver.connect("watcher")
    watcher.register("w::seen")
    watcher.bind("watch", "engine::workers-available", "w::seen")
    fallback = driver.connect("fallback")
    fallback.provide("l::changed")
    other = driver.connect("other", namespace="n")
    other.provide("o::changed")
    other.register("o::f")
    other.bind("moves", "l::changed", "o::f", namespace="n")

    leaver = driver.connect("leaver", namespace="n")
    leaver.register("l::f")
    leaver.provide("l::changed")
    leaver.provide("l::only")
    leaver.bind("ends", "o::changed", "l::f", namespace="n")
    leaver.bind("own", "l::only", "l::f", namespace="n")
    leaver.bind("parked", "nobody::changed", "l::f")
    other.bind("parks", "l::only", "o::f", namespace="n")
    asked_of_leaver = other.start("l::f", {}, namespace="n")
    asked_by_leaver = leaver.start("o::f", {}, namespace="n")
    for client in driver.clients.values():
        client.take()

    leaver.leave()

    sent = [(e.connection_id, message_of(e)) for e in driver.effects if isinstance(e, Send)]
    assert sent == [
        (
            other.id,
            {
                "type": "invocationresult",
                "invocation_id": asked_of_leaver,
                "function_id": "l::f",
                "error": {"code": "invocation_stopped", "message": "Invocation stopped"},
            },
        ),
        (other.id, {"type": "unregistertrigger", "id": "ends", "trigger_type": "o::changed"}),
        (
            fallback.id,
            {
                "type": "registertrigger",
                "id": "moves",
                "trigger_type": "l::changed",
                "function_id": "o::f",
                "config": {},
                "namespace": "n",
            },
        ),
        (
            watcher.id,
            {
                "type": "invokefunction",
                "invocation_id": sent[-1][1]["invocation_id"],
                "function_id": "w::seen",
                "data": {"event": "worker_disconnected", "worker_id": leaver.id},
            },
        ),
    ]
    triggers, engine_state = driver.router.triggers, driver.router.engine_state
    assert set(triggers.bindings) == {"watch", "moves", "parks"}
    assert triggers.bindings["parks"].provider is None
    assert functions_of(driver, leaver) == []
    assert leaver.id not in engine_state.names.values()
    assert asked_by_leaver not in str(driver.effects), "the executor is not told"


def test_nothing_is_sent_to_a_connection_that_is_evicted(driver: Driver) -> None:
    old = driver.connect("c", namespace="n")
    for namespace in ("n", "default"):
        old.provide("c::changed", namespace=namespace)
    old.bind("b1", "c::changed", "c::f")
    old.start("c::g", {})
    old.take()
    new = driver.connect()
    new.send("reattach", previous_worker_id=old.id, reattach_token=old.welcome["reattach_token"])

    assert old.take() == []


def test_a_name_is_free_before_the_event_of_leaving_is_seen(driver: Driver) -> None:
    watcher = driver.connect("watcher")
    watcher.register("w::seen")
    watcher.bind("watch", "engine::workers-available", "w::seen")
    leaver = driver.connect("leaver")
    watcher.take()
    leaver.leave()
    watcher.take()
    heir = driver.connect("leaver")

    assert heir.take() == []
    assert [m["data"]["event"] for m in watcher.take()] == ["worker_connected", "worker_metadata_updated"]


def test_nothing_is_left_when_everybody_left(driver: Driver) -> None:
    clients = [driver.connect(f"c{number}", namespace=f"n{number % 2}") for number in range(6)]
    for number, client in enumerate(clients):
        client.register(f"c{number}::f")
        client.provide(f"c{number % 3}::changed")
        client.bind(f"b{number}", f"c{(number + 1) % 3}::changed", f"c{number}::f")
        client.start(f"c{(number + 1) % 6}::f", {}, namespace=f"n{(number + 1) % 2}")
    for client in clients:
        client.leave()

    engine_state, triggers = driver.router.engine_state, driver.router.triggers
    assert engine_state.connections == engine_state.names == triggers.bindings == {}
    assert [f for f in engine_state.functions.values() if f.owner] == []
    assert [t for t in triggers.types.values() if t.owner] == []
    assert driver.router.calls.open_calls() == 0
