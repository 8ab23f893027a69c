"""Functions and trigger types that another worker has: said, tried again, and taken over when it leaves."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tests.registered.stage import House, SdkClient
from tests.support.engine import EngineThread, RawClient
from tests.support.reader import until

from iii_directory.worker.registrations import FOLLOWER

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

RECORD = {"id": "early", "skill": "# early", "registered_at": "2026-01-01T00:00:00Z"}


def refused(house: House) -> dict[str, dict[str, Any]]:
    """The findings about what others have, by their subjects."""
    found = house.call("directory::diagnostics")["findings"]
    return {row["subject"]: row for row in found if row["kind"] == "refused"}


def test_functions_that_another_worker_has_are_findings_with_its_name_and_are_taken_over(
    engine: EngineThread, build: Callable[..., House], caplog: pytest.LogCaptureFixture
) -> None:
    with SdkClient(engine.url, name="old-skills") as other:
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
        house.call("state::set", scope="skills", key="early", value=RECORD)
    until(lambda: refused(house) == {}, "what the other left is taken over")
    assert list(house.skill_rows()) == ["early"]
    lines = [record.message for record in caplog.records if "another worker had" in record.message]
    assert lines == ["took over what another worker had: skills::list, skills::register"]


def test_many_refused_functions_are_one_line_in_the_log(
    engine: EngineThread, build: Callable[..., House], caplog: pytest.LogCaptureFixture
) -> None:
    with RawClient(engine.url, name="other") as other, caplog.at_level(logging.INFO):
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


def test_a_worker_that_also_has_the_listeners_is_followed_with_everything_it_knew(
    engine: EngineThread, build: Callable[..., House]
) -> None:
    with RawClient(engine.url, name="other") as other:
        for function_id in (FOLLOWER, "skills::list"):
            other.send(type="registerfunction", id=function_id)
        assert other.result("engine::workers::list")
        house = build()
        until(lambda: len(refused(house)) == 2, "both are findings")
        # The events of this write go to the other one.
        house.call("state::set", scope="skills", key="early", value=RECORD)
    until(lambda: refused(house) == {}, "what the other left is taken over")
    assert list(house.skill_rows()) == ["early"]


def test_a_directory_of_another_name_waits_for_the_functions_and_knows_everything_from_its_first_answer(
    engine: EngineThread, build: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    house = build()
    house.call("skills::register", id="before", skill="# x")
    monkeypatch.setenv("III_WORKER_NAME", "second-directory")
    second = house.directory(ready=False)
    until(lambda: "skills::list" in second._bus.refused, "the second is refused")
    house.call("skills::register", id="after", skill="# x")
    house.retire(house.worker)
    listed: list[list[str]] = []

    def answers() -> bool:
        try:
            listed.append(list(house.skill_rows()))
        except Exception:  # noqa: BLE001 (nobody has the function for a moment)
            return False
        return True

    until(answers, "the second answers")
    assert listed == [["after", "before"]]


def test_a_function_that_is_refused_again_stays_a_finding(
    engine: EngineThread, build: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.worker.offers.LOOK_SECONDS", 0.05)
    monkeypatch.setattr("iii_directory.worker.offers.OFFER_PAUSE_SECONDS", 0.01)
    with RawClient(engine.url, name="other") as other:
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
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with EngineThread() as engine:
        house, port = House(engine.url, tmp_path / "skills"), engine.server.port
    look = house.worker._catalogue._take_up

    def findings() -> list[str]:
        async def taken() -> list[str]:
            return [finding.reason for finding in look().noted]

        return house.worker._bus.run(taken())

    until(lambda: bool(findings()), "the engine is a finding")
    assert findings() == [
        f"the engine at ws://127.0.0.1:{port} is away; nobody can call this worker until it is back"
    ]
    with EngineThread(port=port):
        until(lambda: not findings(), "the finding is gone")
        house.close()
    lines = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert [line for line in lines if "engine" in line] == [
        f"the iii engine at ws://127.0.0.1:{port} has gone; waiting until it is back"
    ]
