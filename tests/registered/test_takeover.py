"""Functions and trigger types that another worker has: said, tried again, and taken over when it leaves."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from iii import InvocationError
from tests.registered.stage import House, SdkClient, on_every_engine
from tests.support.engine import RawClient
from tests.support.reader import until

from iii_directory.engine.engine_state import EngineState
from iii_directory.wire.messages import RegistrationRejected
from iii_directory.worker.registration_conflicts import RegistrationConflicts
from iii_directory.worker.registrations import FOLLOWER

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.engine import EngineThread
    from tests.support.real_engine import MortalEngine

    from iii_directory.wire.messages import Message

RECORD = {"id": "early", "skill": "# early", "registered_at": "2026-01-01T00:00:00Z"}


def refused(house: House) -> dict[str, dict[str, Any]]:
    """The findings about what others have, by their subjects."""
    found = house.call("directory::diagnostics")["findings"]
    return {row["subject"]: row for row in found if row["kind"] == "refused"}


@on_every_engine
def test_functions_that_another_worker_has_are_findings_with_its_name_and_are_taken_over(
    engine_url: str, build: Callable[..., House], caplog: pytest.LogCaptureFixture
) -> None:
    with SdkClient(engine_url, name="old-skills") as other:
        other.answer("skills::list", {"skills": "of the other"})
        other.answer("skills::register", {})
        house = build()
        until(lambda: len(refused(house)) == 2, "both are findings")
        row = refused(house)["skills::list"]
        assert row["reason"] == (
            "the worker 'old-skills' has this function in the namespace 'default' and answers its calls"
        )
        assert "III_NAMESPACE" in row["fix"]
        assert house.call("skills::list") == {"skills": "of the other"}
        assert house.call("directory::skills::list")["skills"]
        house.call("state::set", scope=house.scope("skills"), key="early", value=RECORD)
    until(lambda: refused(house) == {}, "what the other left is taken over")
    assert list(house.skill_rows()) == ["early"]
    lines = [record.message for record in caplog.records if "another worker had" in record.message]
    assert lines == ["took over what another worker had: skills::list, skills::register"]


@on_every_engine
def test_many_refused_functions_are_one_line_in_the_log(
    engine_url: str, build: Callable[..., House], caplog: pytest.LogCaptureFixture
) -> None:
    with RawClient(engine_url, name="other") as other, caplog.at_level(logging.INFO):
        for number in range(5):
            other.send(
                type="registerfunction", id=f"skills::{('list', 'register', 'unregister')[number % 3]}"
            )
        other.send(type="registerfunction", id="prompts::list")
        other.send(type="registerfunction", id="prompts::register")
        assert other.result("engine::workers::list")
        house = build()
        until(lambda: len(refused(house)) == 5, "all are findings")
        lines = [record.message for record in caplog.records if "has this function" in record.message]
        assert len(lines) == 1


@on_every_engine
def test_a_worker_that_also_has_the_listeners_is_followed_with_everything_it_knew(
    engine_url: str, build: Callable[..., House]
) -> None:
    with RawClient(engine_url, name="other") as other:
        for function_id in (FOLLOWER, "skills::list"):
            other.send(type="registerfunction", id=function_id)
        assert other.result("engine::workers::list")
        house = build()
        until(lambda: len(refused(house)) == 2, "both are findings")
        # The events of this write go to the other one.
        house.call("state::set", scope=house.scope("skills"), key="early", value=RECORD)
    until(lambda: refused(house) == {}, "what the other left is taken over")
    assert list(house.skill_rows()) == ["early"]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory looks all the time for what others have no more."""
    monkeypatch.setattr("iii_directory.worker.registration_conflicts.LOOK_SECONDS", 0.05)
    monkeypatch.setattr("iii_directory.worker.registration_conflicts.OFFER_PAUSE_SECONDS", 0.01)


@on_every_engine
@pytest.mark.usefixtures("often")
def test_a_function_that_a_worker_gives_up_is_taken_over_though_it_keeps_our_listener(
    engine_url: str, build: Callable[..., House]
) -> None:
    with RawClient(engine_url, name="other") as other:
        for function_id in (FOLLOWER, "skills::list", "skills::register"):
            other.send(type="registerfunction", id=function_id)
        assert other.result("engine::workers::list")
        house = build()
        until(lambda: len(refused(house)) == 3, "all are findings")
        # The events of this write go to the other one.
        house.call("state::set", scope=house.scope("skills"), key="early", value=RECORD)
        other.send(type="unregisterfunction", id="skills::list")
        assert other.result("engine::workers::list")
        assert first_list(house) == ["early"]
        until(lambda: set(refused(house)) == {FOLLOWER, "skills::register"}, "what it kept stays a finding")


@pytest.mark.usefixtures("often")
def test_where_an_engine_names_no_owners_what_one_worker_leaves_does_not_wait_for_another(
    build: Callable[..., House], engine: EngineThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = EngineState.send

    def without_owner(state: EngineState, to: str, message: Message, **given: Any) -> None:
        if isinstance(message, RegistrationRejected):
            message.owner_worker_id = ""
        really(state, to, message, **given)

    monkeypatch.setattr(EngineState, "send", without_owner)
    with RawClient(engine.url, name="hearer") as hearer:
        hearer.send(type="registerfunction", id=FOLLOWER)
        assert hearer.result("engine::workers::list")
        with RawClient(engine.url, name="other") as other:
            other.send(type="registerfunction", id="skills::list")
            assert other.result("engine::workers::list")
            house = build()
            until(lambda: len(refused(house)) == 2, "both are findings")
        until(lambda: list(refused(house)) == [FOLLOWER], "what the other left is taken over")


@on_every_engine
def test_a_directory_of_another_name_waits_for_the_functions_and_knows_everything_from_its_first_answer(
    engine_url: str, build: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    house = build()
    house.call("skills::register", id="before", skill="# x")
    monkeypatch.setenv("III_WORKER_NAME", "second-directory")
    second = house.directory(ready=False)
    until(lambda: "skills::list" in second.bus.refused, "the second is refused")
    house.call("skills::register", id="after", skill="# x")
    house.retire(house.worker)
    assert first_list(house) == ["after", "before"]


def first_list(house: House) -> list[str]:
    """Return what is registered by the first answer after a while without an owner of the function."""
    listed: list[list[str]] = []

    def answers() -> bool:
        try:
            listed.append(list(house.skill_rows()))
        except InvocationError:
            return False
        return True

    until(answers, "somebody answers")
    return listed[0]


@on_every_engine
def test_a_worker_that_leaves_in_the_middle_of_a_round_is_followed_with_everything_it_knew(
    engine_url: str, build: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, names = RegistrationConflicts._types_of_others, RegistrationConflicts._names
    leaving: list[Callable[[], None]] = []
    in_a_round: list[Callable[[], None]] = []

    async def begun(conflicts: RegistrationConflicts) -> Any:
        in_a_round.extend(leaving)
        leaving.clear()
        return await begin(conflicts)

    async def asked_after_the_listeners(conflicts: RegistrationConflicts) -> dict[str, str]:
        found = await names(conflicts)
        while in_a_round:
            in_a_round.pop()()
        return found

    monkeypatch.setattr(RegistrationConflicts, "_types_of_others", begun)
    monkeypatch.setattr(RegistrationConflicts, "_names", asked_after_the_listeners)
    with RawClient(engine_url, name="other") as other:
        for function_id in (FOLLOWER, "skills::list"):
            other.send(type="registerfunction", id=function_id)
        assert other.result("engine::workers::list")
        house = build()
        until(lambda: len(refused(house)) == 2, "both are findings")

        def leave() -> None:
            house.call("state::set", scope=house.scope("skills"), key="early", value=RECORD)
            other.socket.close()
            until(lambda: "other" not in connected(house), "the other has left")

        leaving.append(leave)
        until(lambda: "other" not in connected(house), "the other has left")
    assert first_list(house) == ["early"]


def connected(house: House) -> set[str]:
    return {row["name"] for row in house.call("engine::workers::list")["workers"]}


@on_every_engine
@pytest.mark.usefixtures("often")
def test_a_function_that_is_refused_again_stays_a_finding(
    engine_url: str, build: Callable[..., House]
) -> None:
    with RawClient(engine_url, name="other") as other:
        other.send(type="registerfunction", id="skills::list")
        assert other.result("engine::workers::list")
        house = build()
        until(lambda: list(refused(house)) == ["skills::list"], "it is a finding")
        for _ in range(20):
            assert list(refused(house)) == ["skills::list"]


# Trigger types


def provide(client: RawClient, type_id: str) -> None:
    client.send(type="registertriggertype", id=type_id, description="another one's")
    assert client.result("engine::workers::list")


@on_every_engine
def test_a_second_provider_of_a_trigger_type_that_came_and_went_leaves_no_subscriber_deaf(
    own_house: House,
) -> None:
    before = own_house.listener("skills::on-change")
    gone = own_house.listener("skills::on-change")
    with RawClient(own_house.url, name="usurper") as other:
        provide(other, "skills::on-change")
        during = own_house.listener("skills::on-change")
        own_house.client.unsubscribe("skills::on-change", gone.function_id)
        assert other.receive_type("unregistertrigger")
    house_type = {"id": "skills::on-change"}
    until(
        lambda: own_house.client._answers("engine::triggers::info", house_type), "the type is provided again"
    )
    until(lambda: bool(own_house.client.bindings(during.function_id)), "who was bound meanwhile is handed on")
    own_house.call("skills::register", id="demo", skill="# x")
    assert before.next() == during.next() == {"op": "register", "id": "demo"}
    own_house.client.subscribe("skills::on-change", gone.function_id)
    own_house.call("skills::register", id="later", skill="# x")
    assert gone.heard_nothing_before({"op": "register", "id": "later"})


@on_every_engine
def test_a_trigger_type_that_another_worker_provides_is_a_finding_until_it_leaves(
    own_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RawClient(own_house.url, name="usurper") as other:
        provide(other, "skills::on-change")
        with RawClient(own_house.url, name="passer-by"):
            pass
        until(lambda: "skills::on-change" in refused(own_house), "it is a finding")
        assert "the worker 'usurper' provides" in refused(own_house)["skills::on-change"]["reason"]
    until(lambda: refused(own_house) == {}, "the finding is gone")


def test_an_engine_that_is_away_is_one_line_in_the_log_and_a_finding_until_it_is_back(
    mortal: MortalEngine, mortal_house: House, caplog: pytest.LogCaptureFixture
) -> None:
    mortal.kill()
    look = mortal_house.worker.catalogue._take_up

    def findings() -> list[str]:
        async def taken() -> list[str]:
            return [finding.reason for finding in look().noted]

        return mortal_house.worker.bus.run(taken())

    until(lambda: bool(findings()), "the engine is a finding")
    assert findings() == [
        f"the engine at {mortal.url} is away; this worker cannot be called until it is back"
    ]
    mortal.start()
    until(lambda: not findings(), "the finding is gone")
    lines = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert [line for line in lines if "engine" in line] == [
        f"the iii engine at {mortal.url} has gone; waiting until it is back"
    ]
