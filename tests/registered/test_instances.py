"""Several directories on one engine, and what is left after any of them, or the engine, is killed."""

from __future__ import annotations

import logging
import signal
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest
from iii import InvocationError
from tests.registered.stage import House, Listener, SdkClient, on_every_engine
from tests.support.commands import free_port, running
from tests.support.engine import WAIT, EngineThread
from tests.support.reader import until

from iii_directory.config import Scopes
from iii_directory.engine.sqlite_store import Database
from iii_directory.limits import MAX_HINTS
from iii_directory.worker.registrations import FOLLOWER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.commands import Running


PROMPT = {"description": "d", "function_id": "a::b"}


@pytest.fixture(params=["inside", "joined"])
def two(request: pytest.FixtureRequest, engine: EngineThread, build: Callable[..., House]) -> House:
    """A second directory joined to the engine, in the namespace ``two``, beside one of either kind."""
    house = build(inside=engine if request.param == "inside" else None)
    house.directory(namespace="two", joined=True)
    return house


@pytest.mark.parametrize(("writer", "reader"), [("default", "two"), ("two", "default")])
def test_a_write_through_one_is_the_next_read_through_the_other(two: House, writer: str, reader: str) -> None:
    for number in range(100):
        body = f"# version {number}"
        two.call("skills::register", id="shared", skill=body, to=writer)
        assert two.call("directory::skills::get", id="shared", to=reader)["body"] == body
    two.call("prompts::register", name="shared", **PROMPT, to=writer)
    assert "shared" in two.prompt_rows(to=reader)
    two.call("skills::unregister", id="shared", to=writer)
    two.call("prompts::unregister", name="shared", to=writer)
    assert "shared" not in two.skill_rows(to=reader)
    assert "shared" not in two.prompt_rows(to=reader)


def test_registrations_of_one_id_through_both_never_go_back_in_time(two: House) -> None:
    times = [
        two.call("skills::register", id="shared", skill=f"# {number}", to=("default", "two")[number % 2])
        for number in range(20)
    ]
    stamps = [reply["registered_at"] for reply in times]
    assert stamps == sorted(set(stamps))


def test_subscribers_of_either_are_told_of_writes_through_both(two: House) -> None:
    client = two.another_client(namespace="two")
    here = two.listener("skills::on-change")
    there = Listener(client, "skills::on-change", trigger_namespace="two")
    for writer in ("default", "two"):
        two.call("skills::register", id=f"by-{writer}", skill="# x", to=writer)
        event = {"op": "register", "id": f"by-{writer}"}
        assert here.next() == event
        assert there.next() == event


@on_every_engine
def test_a_record_written_past_the_directory_is_seen_and_told(own_house: House) -> None:
    listener = own_house.listener("skills::on-change")
    record = {"id": "theirs", "skill": "# theirs", "registered_at": "2026-01-01T00:00:00.5+00:00"}
    own_house.call("state::set", scope=own_house.scope("skills"), key="theirs", value=record)
    assert listener.next() == {"op": "register", "id": "theirs"}
    row = own_house.skill_rows()["theirs"]
    assert (row["title"], row["registered_at"]) == ("theirs", "2026-01-01T00:00:00.5+00:00")
    own_house.call("state::delete", scope=own_house.scope("skills"), key="theirs")
    assert listener.next() == {"op": "unregister", "id": "theirs"}


@pytest.mark.parametrize("inside", [True, False])
def test_forged_news_of_the_state_changes_nothing(
    engine: EngineThread, build: Callable[..., House], inside: bool
) -> None:
    house = build(inside=engine if inside else None)
    house.call("skills::register", id="real", skill="# real")
    ghost = {"id": "ghost", "skill": "# ghost", "registered_at": "2026-01-01T00:00:00Z"}
    forged = [
        {"type": "state", "scope": "skills", "key": "ghost", "old_value": None, "new_value": ghost},
        {
            "type": "state",
            "scope": "skills",
            "key": "real",
            "old_value": house.stored("real"),
            "new_value": None,
        },
    ]
    for event in forged:
        house.call(FOLLOWER, event)

    assert list(house.skill_rows()) == ["real"]


@pytest.mark.parametrize("inside", [True, False])
def test_published_data_that_looks_like_news_of_the_state_changes_nothing(
    engine: EngineThread, build: Callable[..., House], inside: bool
) -> None:
    house = build(inside=engine if inside else None)
    house.call("skills::register", id="real", skill="# real")
    listener = house.listener("skills::on-change")
    for event in _lies(house, 2 * MAX_HINTS):
        house.call("publish", topic="t", data=event)
    house.call("skills::register", id="last", skill="# last")

    assert sorted(house.skill_rows()) == ["last", "real"]
    # No event tells what was never true: the first news is correct.
    assert listener.next() == {"op": "register", "id": "last"}


def _lies(house: House, ghosts: int) -> list[dict[str, object]]:
    """Events of writes that never were, and a binding by which anybody can send them as the engine's."""
    house.call(
        "engine::register_trigger", trigger_type="subscribe", function_id=FOLLOWER, config={"topic": "t"}
    )
    lies: list[tuple[str, object, object]] = [("real", house.stored("real"), None)]
    for number in range(ghosts):
        key = f"ghost-{number}"
        lies.append((key, None, {"id": key, "skill": "# g", "registered_at": "2030-01-01T00:00:00Z"}))
    return [
        {"type": "state", "scope": "skills", "key": key, "old_value": old, "new_value": new}
        for key, old, new in lies
    ]


@on_every_engine
def test_bindings_that_were_ended_are_made_again_and_missed_changes_are_found(
    build: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.worker.registrations.LOOK_SECONDS", 0.2)
    house = build()
    bound = house.call("engine::registered-triggers::list", function_id=FOLLOWER)["registered_triggers"]
    for row in bound:
        assert house.call("engine::unregister_trigger", id=row["id"]) == {"removed": True}
    record = {"id": "late", "skill": "# late", "registered_at": "2026-01-01T00:00:00Z"}
    house.call("state::set", scope=house.scope("skills"), key="late", value=record)

    until(lambda: "late" in house.skill_rows(), "what no event told of is found")
    until(lambda: len(house.client.bindings(FOLLOWER)) >= 2, "the directory listens again")


@on_every_engine
def test_an_older_record_that_is_put_back_is_what_is_served(own_house: House) -> None:
    own_house.call("skills::register", id="demo", skill="# new")
    older = {"id": "demo", "skill": "# older", "registered_at": "2020-01-01T00:00:00Z"}
    own_house.call("state::set", scope=own_house.scope("skills"), key="demo", value=older)
    until(
        lambda: own_house.call("directory::skills::get", id="demo")["body"] == "# older",
        "the older record is served",
    )


def test_records_that_do_not_decode_are_left_out_and_reported(
    engine: EngineThread, build: Callable[..., House]
) -> None:
    with SdkClient(engine.url) as client:
        for scope, key, value in (
            ("skills", "no-body", {"id": "no-body", "registered_at": "2026-01-01T00:00:00Z"}),
            ("skills", "text", "just text"),
            ("prompts", "bad", {"name": "bad"}),
        ):
            client.call("state::set", scope=scope, key=key, value=value)
    house = build()
    assert house.skill_rows() == {}
    assert house.prompt_rows() == {}
    found = house.call("directory::diagnostics")
    assert found["counts"] == {"undecodable": 3}
    house.call("state::set", scope=house.scope("skills"), key="live", value={"id": "live"})
    until(
        lambda: house.call("directory::diagnostics")["counts"] == {"undecodable": 4}, "the fourth is reported"
    )
    for key in ("no-body", "text", "live"):
        assert house.call("skills::unregister", id=key)["removed"]
    house.call("prompts::unregister", name="bad")
    assert house.call("directory::diagnostics")["counts"] == {}


def test_other_scopes_are_used_when_the_configuration_says_so(build: Callable[..., House]) -> None:
    house = build(scopes=Scopes("our-skills", "our-prompts"))
    house.call("skills::register", id="demo", skill="# x")
    house.call("prompts::register", name="demo", **PROMPT)
    assert [row["id"] for row in house.state("our-skills")] == ["demo"]
    assert [row["name"] for row in house.state("our-prompts")] == ["demo"]
    assert house.state("skills") == []
    assert list(house.skill_rows()) == ["demo"]


# Restarts


class Site:
    """An engine on a data directory and directories on it, each in a process that can be killed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = free_port()
        self.url = f"ws://127.0.0.1:{self.port}"
        self._open = ExitStack()
        self.engine = self.start_engine()
        self.client = self._open.enter_context(SdkClient(self.url))

    def start_engine(self) -> Running:
        data = str(self.root / "data")
        started = self._open.enter_context(
            running("engine", "--port", str(self.port), "--data", data, cwd=self.root)
        )
        started.wait_for("engine at")
        return started

    def start_directory(self, namespace: str = "default") -> Running:
        started = self._open.enter_context(
            running("serve", "--url", self.url, cwd=self.root, III_NAMESPACE=namespace)
        )
        self.wait_for_directory(namespace)
        return started

    def wait_for_directory(self, namespace: str = "default") -> None:
        until(lambda: self.ids(namespace) is not None, f"the directory in {namespace} answers")

    def ids(self, namespace: str = "default") -> list[str] | None:
        """Return the registered skills, or None without an answer."""
        return registered_ids(self.client, to=namespace)

    def close(self) -> None:
        self._open.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    opened = Site(tmp_path)
    yield opened
    opened.close()


def test_killing_either_directory_or_the_engine_loses_nothing_acknowledged(site: Site) -> None:
    first, second = site.start_directory(), site.start_directory("two")
    acknowledged: list[str] = []

    def register(namespace: str, count: int) -> None:
        for _ in range(count):
            skill_id = f"kept/{len(acknowledged):03}"
            site.client.call("skills::register", id=skill_id, skill="# x", to=namespace)
            acknowledged.append(skill_id)

    register("default", 20)
    first.stop(signal.SIGKILL)
    register("two", 20)
    assert site.ids("two") == acknowledged
    site.start_directory()
    assert site.ids() == acknowledged
    second.stop(signal.SIGKILL)
    register("default", 20)
    site.engine.stop(signal.SIGKILL)
    site.engine = site.start_engine()
    site.wait_for_directory()
    assert site.ids() == acknowledged
    register("default", 5)
    assert site.ids() == acknowledged


def test_killing_up_loses_nothing_acknowledged(tmp_path: Path) -> None:
    port = str(free_port())
    acknowledged: list[str] = []
    with ExitStack() as opened:

        def start() -> tuple[Running, SdkClient]:
            up = opened.enter_context(running("up", "--port", port, "--http-port", "0", cwd=tmp_path))
            up.wait_for("Ctrl-C")
            client = opened.enter_context(SdkClient(f"ws://127.0.0.1:{port}"))
            until(lambda: registered_ids(client) == acknowledged, "everything acknowledged is there")
            return up, client

        for kill in range(3):
            up, client = start()
            for number in range(30):
                skill_id = f"kept/{kill}-{number:02}"
                client.call("skills::register", id=skill_id, skill="# x")
                acknowledged.append(skill_id)
            up.stop(signal.SIGKILL)
        start()


def test_everything_is_there_after_the_engine_was_restarted_on_its_data(tmp_path: Path) -> None:
    with EngineThread(database=Database(tmp_path / "data")) as engine:
        house = House(engine.url, tmp_path / "skills", data=tmp_path / "data")
        house.call("skills::register", id="demo/a", skill="# a")
        house.call("prompts::register", name="demo", **PROMPT)
        skills, prompts = house.skill_rows(), house.prompt_rows()
        house.close()
    with EngineThread(database=Database(tmp_path / "data")) as engine:
        house = House(engine.url, tmp_path / "skills", data=tmp_path / "data")
        # The registrant is known as before, and is not connected to the new engine.
        for row in (*skills.values(), *prompts.values()):
            row["provenance"]["state"] = "gone"
        assert house.skill_rows() == skills
        assert house.prompt_rows() == prompts
        house.close()


def test_what_changed_while_the_directory_was_cut_off_is_known_after_the_reconnect(tmp_path: Path) -> None:
    port = free_port()
    with EngineThread(port=port) as engine:
        house = House(engine.url, tmp_path / "skills")
        old = {"id": "lost", "skill": "# lost", "registered_at": "2026-01-01T00:00:00Z"}
        house.call("state::set", scope=house.scope("skills"), key="lost", value=old)
        house.call("skills::register", id="acknowledged", skill="# x")
    # The next engine has none of the old state, but what another directory wrote; and what ours has just
    # acknowledged is written again.
    with EngineThread(port=port) as engine, closing(house), SdkClient(engine.url) as other:
        record = {"id": "found", "skill": "# found", "registered_at": "2026-01-01T00:00:00Z"}
        other.call("state::set", scope="skills", key="found", value=record)
        until(
            lambda: registered_ids(other) == ["acknowledged", "found"],
            "the directory is back with the new state",
        )
        other.call("skills::register", id="after", skill="# x")
        assert registered_ids(other) == ["acknowledged", "after", "found"]


def registered_ids(client: SdkClient, **where: str) -> list[str] | None:
    """Return the registered skills, or None without an answer."""
    try:
        rows = client.call("skills::list", **where, timeout_ms=500)["skills"]
    except InvocationError:
        return None
    return [row["id"] for row in rows if row["source"] == "registered"]


# One worker of a name in a namespace


@on_every_engine
def test_a_second_directory_in_the_namespace_says_who_is_there_and_takes_over(
    own_house: House, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.bus.wire_bus._TAKE_OVER_SECONDS", 0.05)
    listener = own_house.listener("skills::on-change")
    own_house.call("skills::register", id="before", skill="# x")
    listener.next()
    with caplog.at_level(logging.WARNING, logger="iii_directory.worker"):
        second = own_house.directory(ready=False)
        until(lambda: "owns the functions" in caplog.text, "the second says that another is there")
    assert own_house.worker_count() == 1
    own_house.call("skills::register", id="still-first", skill="# x")
    assert listener.next() == {"op": "register", "id": "still-first"}
    own_house.retire(own_house.worker)
    assert second.wait_ready(WAIT)
    assert list(own_house.skill_rows()) == ["before", "still-first"]
    until(lambda: bool(own_house.client.bindings(listener.function_id)), "the binding was handed on")
    own_house.call("skills::register", id="after", skill="# x")
    assert listener.next() == {"op": "register", "id": "after"}
    assert caplog.text.count("owns the functions") == 1
