"""A worker in the engine's process: others can neither end nor take over nor imitate what it has."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.driver import Client, Driver


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def own(driver: Driver) -> Client:
    worker = driver.connect("iii-directory", inside=True)
    worker.register("directory::heard")
    worker.bind("own", "state", "directory::heard", config={"scope": "skills"})
    worker.provide("skills::on-change")
    return worker


@pytest.fixture
def stranger(driver: Driver, own: Client) -> Client:
    return driver.connect("stranger")


def bindings(client: Client) -> list[str]:
    return [row["id"] for row in client.result("engine::registered-triggers::list")["registered_triggers"]]


def hears(own: Client, stranger: Client) -> bool:
    own.take()
    stranger.result("state::set", {"scope": "skills", "key": "k", "value": 1})
    return [message["function_id"] for message in own.take()] == ["directory::heard"]


def test_no_other_worker_ends_its_bindings(driver: Driver, own: Client, stranger: Client) -> None:
    stranger.send("unregistertrigger", id="own")
    assert stranger.result("engine::unregister_trigger", {"id": "own"}) == {"removed": False}

    assert bindings(stranger) == ["own"]
    assert hears(own, stranger)
    assert "a binding of this engine's own worker cannot be ended by others" in driver.log
    own.send("unregistertrigger", id="own")
    assert bindings(stranger) == []


def test_no_other_worker_takes_the_id_of_its_binding(own: Client, stranger: Client) -> None:
    stranger.bind("own", "state", "stranger::f", config={"scope": "other"})

    assert stranger.take_one()["error"]["message"] == "a binding of this engine's own worker has that id"
    assert hears(own, stranger)


def test_no_other_worker_becomes_the_owner_of_its_trigger_types(
    driver: Driver, own: Client, stranger: Client
) -> None:
    stranger.provide("skills::on-change")
    stranger.bind("s", "skills::on-change", "stranger::f")

    assert [message["id"] for message in own.take()] == ["s"]
    assert stranger.take() == []
    assert [line for line in driver.log if "skills::on-change belongs to" in line]


def test_bindings_of_others_can_be_ended_by_anybody_as_the_protocol_says(
    driver: Driver, own: Client, stranger: Client
) -> None:
    driver.connect("third").bind("third", "subscribe", "f", config={"topic": "t"})
    stranger.send("unregistertrigger", id="third")

    assert bindings(stranger) == ["own"]


@pytest.mark.parametrize(
    "name",
    [
        "iii-directory",
        "III-Directory",
        "iii_directory",
        "iii-directory\u200b",
        "\u0456ii-directory",
        "iii-d1rectory",
        "iii-state",
        "configuration",
        "c\u043enfiguration",
        "iii.worker.manager",
    ],
)
def test_a_name_that_passes_for_its_own_or_a_built_in_one_is_refused(
    driver: Driver, own: Client, name: str
) -> None:
    imposter = driver.connect()
    imposter.start("engine::workers::register", {"name": name, "pid": 1})

    assert imposter.take()[0]["code"] == "WORKER_NAMESPACE_CONFLICT"
    assert driver.closed == [(imposter.id, False)]
    assert own.announce("iii-directory")["result"] == {"success": True}


@pytest.mark.parametrize(
    "described", [{"name": "iii-directory", "namespace": "two"}, {"name": "iii-directory-mcp"}]
)
def test_a_second_instance_and_a_longer_name_are_taken(
    driver: Driver, own: Client, described: dict[str, Any]
) -> None:
    assert driver.connect().announce(**described)["result"] == {"success": True}
