"""The engine goes away and comes back; so do the clients of the published SDKs, with all that they had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.sdk.line import Line
from tests.sdk.stage import SdkClient, Stage, unique, until
from tests.sdk.user_engine import UserEngine
from tests.support.commands import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sdk.process import DriverProcess


class Engines:
    """One engine after another on the same port."""

    def __init__(self) -> None:
        self._running = UserEngine(port=free_port()).__enter__()
        self.url = self._running.url

    def stop(self) -> None:
        self._running.__exit__(None, None, None)

    def start(self) -> None:
        self._running = UserEngine(port=self._running.port).__enter__()


@pytest.fixture
def engines() -> Iterator[Engines]:
    running = Engines()
    yield running
    running.stop()


@pytest.fixture
def stage(driver: DriverProcess, engines: Engines) -> Iterator[Stage]:
    opened = Stage(driver, engines.url)
    yield opened
    opened.close()


def restart(engines: Engines, stage: Stage) -> None:
    engines.stop()
    engines.start()
    stage.look_anew()


def until_away(client: SdkClient) -> None:
    until(
        lambda: True if client.do("state") != "connected" else None,
        "the client noticed that the engine is gone",
    )


def payload_of(client: SdkClient, function: str) -> dict[str, Any]:
    return client.event("called", function=function)["payload"]


def test_functions_and_bindings_work_again_after_a_restart(stage: Stage, engines: Engines) -> None:
    owner, subscriber = stage.client("owner"), stage.client("subscriber")
    trigger_type, scope = owner.own("on-change"), unique("scope")
    echo = owner.register("echo", "echo", description="Says it back")
    changed, written = subscriber.register("changed", "echo"), subscriber.register("written", "echo")
    subscriber.bind(trigger_type, changed, config={"n": 1})
    subscriber.bind("state", written, config={"scope": scope})
    subscriber.until_bound(written)
    owner.event("bound", type=trigger_type)
    stage.driver.forget_events()

    restart(engines, stage)

    assert owner.until_registered(echo)["description"] == "Says it back"
    assert subscriber.until_known()["worker"]["version"] == stage.sdk.version
    assert owner.event("bound", type=trigger_type)["config"] == {"n": 1}
    subscriber.until_bound(written)
    assert subscriber.call(echo, [1])["payload"] == [1]
    owner.do("fire", type=trigger_type, payload={"n": 2})
    assert payload_of(subscriber, changed)["n"] == 2
    owner.call("state::set", {"scope": scope, "key": "k", "value": 3})
    assert payload_of(subscriber, written)["new_value"] == 3


def test_what_was_unregistered_stays_away_after_a_restart(stage: Stage, engines: Engines) -> None:
    client = stage.client()
    kept, dropped = client.register("kept", "echo"), client.register("dropped", "echo")
    client.do("unregister", function=dropped)

    restart(engines, stage)

    client.until_registered(kept)
    assert stage.answer("engine::functions::info", {"function_id": dropped}) is None


def test_what_a_client_does_while_the_engine_is_away_takes_effect_when_it_is_back(
    stage: Stage, engines: Engines
) -> None:
    client = stage.client()
    function, scope = f"{unique('sdk')}::late", unique("scope")
    engines.stop()
    until_away(client)

    client.do("register", function=function, behaviour="echo")
    write = client.start_call("state::set", {"scope": scope, "key": "k", "value": 1})
    engines.start()
    stage.look_anew()

    assert write.result(10)["new_value"] == 1
    client.until_registered(function)
    assert client.call(function, [1])["payload"] == [1]


def test_a_client_that_was_cut_off_takes_its_place_back_though_the_engine_saw_nothing(
    driver: DriverProcess, embedded_url: str
) -> None:
    """The engine still holds the old connection, and with it the client's name and functions."""
    with Line(embedded_url) as line:
        stage = Stage(driver, line.url)
        client = stage.client()
        function = client.register("echo", "echo", description="Says it back")
        before = client.until_known()["worker"]["id"]

        line.cut()
        until_away(client)
        stage.look_anew()

        def look() -> str | None:
            known = client.until_known()["worker"]["id"]
            return known if known != before else None

        until(look, "the engine has the client's new connection")
        client.until_registered(function)
        assert stage.answer(function, {"n": 1}) is not None
        stage.close()
