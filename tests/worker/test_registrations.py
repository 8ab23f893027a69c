"""Registrations when the state answers late, wrongly or not at all: a bus that does as it is told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.engine import WAIT

from iii_directory.bus.seam import CallError, Subscription
from iii_directory.catalog.registered_source import RegisteredSource
from iii_directory.config import Settings
from iii_directory.errors import DirectoryError
from iii_directory.limits import MAX_HINTS
from iii_directory.worker.change_events import ChangeEvents
from iii_directory.worker.registrations import FOLLOWER, Registrations, bound_scopes

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from iii_directory.documents.model import ParsedFile

BOUND = {
    "registered_triggers": [
        {"trigger_type": "state", "config": {"scope": scope}} for scope in ("skills", "prompts")
    ]
}


def record(skill_id: str, second: int = 1) -> dict[str, Any]:
    return {"id": skill_id, "skill": f"# {second}", "registered_at": f"2026-01-01T00:00:{second:02}Z"}


class ScriptedBus:
    """Answers calls from a state of its own, or as a script says."""

    def __init__(self) -> None:
        self.state: dict[str, dict[str, Any]] = {"skills": {}, "prompts": {}}
        self.calls: list[str] = []
        self.told: list[tuple[str, Any]] = []
        self.bound: Any = BOUND
        self.started = 1
        self.adapters: dict[str, str] = {}
        """The adapters of iii-state and iii-pubsub, where the engine tells them."""
        self.is_embedded = False
        self.published: list[dict[str, Any]] = []
        self.before: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {}
        """What happens before a function answers."""

    async def call(
        self, function_id: str, payload: Mapping[str, Any], *, timeout_ms: int, namespace: str | None = None
    ) -> Any:
        self.calls.append(function_id)
        if function_id in self.before:
            await self.before[function_id]()
        if function_id.startswith("state::"):
            return self._of_state(function_id, self.state[payload["scope"]], payload)
        return await self._of_engine(function_id, payload)

    async def _of_engine(self, function_id: str, payload: Mapping[str, Any]) -> Any:
        match function_id:
            case "engine::functions::info":
                return self.bound
            case "engine::workers::list":
                return {"workers": [{"runtime": "engine", "connected_at_ms": self.started}]}
            case "engine::health::check":
                return {"components": {"engine": {"kind": "embedded"}} if self.is_embedded else {}}
            case "publish":
                self.published.append(payload["data"])
                return None
            case "configuration::get" if payload["id"] in self.adapters:
                return {"value": {"adapter": {"name": self.adapters[payload["id"]]}}}
            case _:
                return await fail()

    def _of_state(self, function_id: str, scope: dict[str, Any], payload: Mapping[str, Any]) -> Any:
        match function_id:
            case "state::list":
                return list(scope.values())
            case "state::get":
                return scope.get(payload["key"])
            case "state::set":
                old = scope.get(payload["key"])
                scope[payload["key"]] = payload["value"]
                return {"old_value": old, "new_value": payload["value"]}
            case _:
                return scope.pop(payload["key"], None)

    async def tell(self, subscription: Subscription, event: Mapping[str, Any]) -> None:
        if subscription.function_id == "publish":
            self.published.append(event["data"])
        else:
            self.told.append((subscription.function_id, dict(event)))


class Desk:
    """Registrations on a scripted bus."""

    def __init__(self, timeout_ms: int = int(WAIT * 1000)) -> None:
        self.bus = ScriptedBus()
        self.source = RegisteredSource(timeout_ms / 1000)
        self.entries: dict[str, ParsedFile | None] = {}
        self.events = ChangeEvents(self.bus)
        self.events.owner_for("skills::on-change", "skills").subscribed(
            Subscription("s", "listener", None, None)
        )
        settings = Settings(state_timeout_ms=timeout_ms)
        self.registrations = Registrations(self.bus, self.events, self.source, settings)

    async def loaded(self) -> None:
        await self.registrations.connected()
        await self.settled()

    async def settled(self) -> None:
        """Until nothing is under way."""
        async with asyncio.timeout(WAIT):
            while tasks := [task for task in self._tasks() if not task.done()]:
                await asyncio.wait(tasks)
            await self.events.close()

    def _tasks(self) -> list[asyncio.Task[None]]:
        loading = self.registrations._loading
        asking = (self.registrations.skills, self.registrations.prompts)
        return [*(task for one in asking for task in one._asking._running), *([loading] if loading else [])]

    async def keys(self) -> list[str]:
        """Return what the source gives to a reader."""
        await self.source.ready()
        self.entries.update(self.source.take_changes())
        return sorted(key for key, entry in self.entries.items() if entry is not None)

    async def until_served(self, key: str, body: str) -> None:
        async with asyncio.timeout(WAIT):
            while self.source.body(key) != body:  # noqa: ASYNC110 (no event announces it)
                await asyncio.sleep(0)

    def problem(self) -> str | None:
        return self.source.findings[0].reason if self.source.findings else None

    async def event(self, key: str, old: Any, new: Any, scope: str = "skills") -> None:
        self.registrations.state_changed({"scope": scope, "key": key, "old_value": old, "new_value": new})

    def told(self) -> list[tuple[str, str]]:
        return [(event["op"], event["id"]) for _, event in self.bus.told]


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


async def fail() -> None:
    raise CallError("function_not_found", "not here")


async def never() -> None:
    await asyncio.Event().wait()


def fails_once() -> Callable[[], Coroutine[Any, Any, None]]:
    failures = [CallError("TIMEOUT", "too slow")]

    async def before() -> None:
        if failures:
            raise failures.pop()

    return before


def test_a_reader_waits_for_the_first_load() -> None:
    async def test() -> None:
        desk, gate = Desk(), asyncio.Event()
        desk.bus.state["skills"]["a"] = record("a")

        async def wait() -> None:
            await gate.wait()

        desk.bus.before["state::list"] = wait
        await desk.registrations.connected()
        reader = asyncio.create_task(desk.keys())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not reader.done()
        gate.set()
        assert await reader == ["skill:a"]
        assert desk.source.body("a") == "# 1"

    run(test)


def test_a_reader_does_not_wait_longer_than_a_call_may_take() -> None:
    async def test() -> None:
        desk = Desk(timeout_ms=20)
        desk.bus.before["state::list"] = never
        await desk.registrations.connected()
        async with asyncio.timeout(WAIT):
            assert await desk.keys() == []
            assert await desk.keys() == []
        desk.registrations.close()

    run(test)


def test_the_first_failure_lets_readers_go_and_the_next_load_serves_them() -> None:
    async def test() -> None:
        desk = Desk()
        desk.bus.state["skills"]["a"] = record("a")
        desk.bus.before["state::list"] = fails_once()
        await desk.registrations.connected()
        assert await desk.keys() == []
        assert "too slow" in (desk.problem() or "")
        await desk.settled()
        assert await desk.keys() == ["skill:a"]
        assert desk.problem() is None

    run(test)


def test_reads_ask_the_state_nothing() -> None:
    async def test() -> None:
        desk = Desk()
        await desk.loaded()
        desk.bus.calls.clear()
        for _ in range(100):
            await desk.keys()
        assert desk.bus.calls == []

    run(test)


def test_it_lists_again_when_the_events_began_to_arrive_after_the_listing() -> None:
    async def test() -> None:
        desk = Desk()
        desk.bus.bound = {"registered_triggers": []}
        await desk.registrations.connected()
        assert await desk.keys() == []
        desk.bus.state["skills"]["missed"] = record("missed")
        desk.bus.bound = BOUND
        await desk.settled()
        assert await desk.keys() == ["skill:missed"]

    run(test)


def test_an_engine_that_never_shows_the_bindings_is_not_listed_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("iii_directory.worker.registrations._LONGEST_PAUSE_SECONDS", 0)

    async def test() -> None:
        desk = Desk()
        desk.bus.before["engine::functions::info"] = fail
        await desk.loaded()
        assert desk.bus.calls.count("engine::functions::info") == 7
        assert desk.bus.calls.count("state::list") == 16

    run(test)


def test_an_engine_that_cannot_say_what_is_bound_is_listed_again() -> None:
    async def test() -> None:
        desk = Desk()
        desk.bus.before["engine::functions::info"] = fails_once()
        await desk.loaded()
        assert desk.bus.calls.count("state::list") == 4

    run(test)


def test_a_doubtful_event_is_settled_by_asking() -> None:
    async def test() -> None:
        desk = Desk()
        desk.bus.state["skills"]["a"] = record("a", 5)
        await desk.loaded()
        desk.bus.state["skills"]["a"] = record("a", 2)
        await desk.event("a", record("a", 3), record("a", 2))
        await desk.settled()
        await desk.keys()
        assert desk.bus.calls[-1] == "state::get"
        assert desk.source.body("a") == "# 2"

    run(test)


def test_everything_is_listed_again_when_a_doubt_stays_unsettled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iii_directory.worker.registrations.HINTED_LOOK_SECONDS", 0)

    async def test() -> None:
        desk = Desk()
        desk.bus.state["skills"]["a"] = record("a", 5)
        await desk.loaded()
        desk.bus.state["skills"]["a"] = record("a", 2)
        desk.bus.before["state::get"] = fail
        await desk.event("a", record("a", 3), record("a", 2))
        await desk.until_served("a", "# 2")
        desk.registrations.close()

    run(test)


def test_the_first_load_sends_no_events_and_later_ones_send_the_changes() -> None:
    async def test() -> None:
        desk = Desk()
        desk.bus.state["skills"] = {"a": record("a"), "b": record("b")}
        await desk.loaded()
        assert desk.told() == []
        desk.bus.state["skills"] = {"b": record("b", 2), "c": record("c")}
        await desk.loaded()
        assert sorted(desk.told()) == [("register", "b"), ("register", "c"), ("unregister", "a")]

    run(test)


def test_a_load_that_the_connection_cut_short_is_begun_again_after_a_rest() -> None:
    async def test() -> None:
        desk = Desk()
        desk.bus.before["state::list"] = never
        await desk.registrations.connected()
        await asyncio.sleep(0)
        desk.registrations.connection_lost()
        assert "connection ended" in (desk.problem() or "")
        del desk.bus.before["state::list"]
        desk.bus.state["skills"]["a"] = record("a")
        await desk.loaded()
        assert await desk.keys() == ["skill:a"]
        assert desk.problem() is None

    run(test)


def test_more_than_a_listing_can_carry_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iii_directory.catalog.registered.MAX_REGISTERED_BYTES", 300)

    async def test() -> None:
        desk = Desk()
        await desk.loaded()
        skills = desk.registrations.skills
        await skills.register({"id": "a", "skill": "x" * 150})
        with pytest.raises(DirectoryError, match=r"D113 .*too large to list"):
            await skills.register({"id": "b", "skill": "x" * 150})
        assert list(desk.bus.state["skills"]) == ["a"]
        await skills.register({"id": "a", "skill": "y" * 200})
        await skills.unregister("a")
        await skills.register({"id": "b", "skill": "x" * 150})
        assert await desk.keys() == ["skill:b"]

    run(test)


# Writes whose outcome was not told


@pytest.mark.parametrize("code", ["TIMEOUT", "connection_lost", "invocation_stopped"])
def test_a_write_without_an_answer_may_have_been_done_and_is_looked_up(code: str) -> None:
    async def test() -> None:
        desk = Desk()
        await desk.loaded()
        skills = desk.registrations.skills

        async def done_unheard() -> None:
            desk.bus.state["skills"]["a"] = record("a")
            raise CallError(code, "no answer")

        desk.bus.before["state::set"] = done_unheard
        with pytest.raises(DirectoryError, match=r"D412 outcome_unknown: .*it may have been.* back"):
            await skills.register({"id": "a", "skill": "# 1"})
        await desk.settled()
        assert await desk.keys() == ["skill:a"]
        assert desk.told() == [("register", "a")]
        desk.registrations.close()

    run(test)


def test_a_deletion_without_an_answer_that_was_not_done_leaves_the_record() -> None:
    async def test() -> None:
        desk = Desk()
        desk.bus.state["skills"]["a"] = record("a")
        await desk.loaded()

        async def not_done() -> None:
            raise CallError("TIMEOUT", "no answer")

        desk.bus.before["state::delete"] = not_done
        with pytest.raises(DirectoryError, match="D412"):
            await desk.registrations.skills.unregister("a")
        await desk.settled()
        assert await desk.keys() == ["skill:a"]
        assert desk.told() == []
        desk.registrations.close()

    run(test)


def test_a_write_that_never_left_has_changed_nothing() -> None:
    async def test() -> None:
        desk = Desk()
        await desk.loaded()

        async def away() -> None:
            raise CallError("TIMEOUT", "there is no engine", sent=False)

        desk.bus.before["state::set"] = away
        with pytest.raises(DirectoryError, match=r"D410 .*nothing was changed"):
            await desk.registrations.skills.register({"id": "a", "skill": "# 1"})
        desk.registrations.close()

    run(test)


# An engine that died with its newest writes


class Died(Desk):
    """A directory whose engine is killed and comes back with a state of some time before."""

    async def write(self, *skill_ids: str) -> None:
        for skill_id in skill_ids:
            await self.registrations.skills.register({"id": skill_id, "skill": f"# {skill_id}"})

    async def die_and_return(self, state: dict[str, Any], *, same_engine: bool = False) -> None:
        await self.settled()
        self.registrations.connection_lost()
        self.bus.state["skills"] = state
        self.bus.started += not same_engine
        self.bus.told.clear()
        await self.loaded()


def test_what_was_acknowledged_a_moment_before_the_engine_died_is_written_again() -> None:
    async def test() -> None:
        desk = Died()
        await desk.loaded()
        await desk.write("kept", "changed", "gone")
        flushed = dict(desk.bus.state["skills"])
        await desk.write("changed", "new")
        await desk.registrations.skills.unregister("gone")
        newest = dict(desk.bus.state["skills"])
        await desk.die_and_return(flushed)
        assert desk.bus.state["skills"] == newest
        assert await desk.keys() == ["skill:changed", "skill:kept", "skill:new"]
        assert desk.told() == []
        (finding,) = desk.source.findings
        assert (finding.kind, finding.urgent) == ("restored", False)
        assert "without 3 of the last registrations" in finding.reason
        desk.registrations.close()

    run(test)


def test_absences_older_than_a_minute_are_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iii_directory.catalog.registered.REMEMBERED_WRITE_SECONDS", -1)

    async def test() -> None:
        desk = Died()
        await desk.loaded()
        await desk.write("old")
        await desk.die_and_return({})
        assert await desk.keys() == []
        assert desk.told() == [("unregister", "old")]
        desk.registrations.close()

    run(test)


def test_what_is_missing_on_the_engine_it_was_has_been_deleted() -> None:
    async def test() -> None:
        desk = Died()
        await desk.loaded()
        await desk.write("deleted-meanwhile")
        await desk.die_and_return({}, same_engine=True)
        assert await desk.keys() == []
        assert desk.bus.state["skills"] == {}
        desk.registrations.close()

    run(test)


def test_what_was_acknowledged_before_a_survivor_was_sent_has_been_deleted() -> None:
    async def test() -> None:
        desk = Died()
        await desk.loaded()
        await desk.write("deleted", "survivor", "lost")
        survivor = desk.bus.state["skills"]["survivor"]
        await desk.die_and_return({"survivor": survivor})
        assert sorted(desk.bus.state["skills"]) == ["lost", "survivor"]
        assert await desk.keys() == ["skill:lost", "skill:survivor"]
        desk.registrations.close()

    run(test)


def test_a_state_outside_of_the_engine_lost_nothing_with_it() -> None:
    async def test() -> None:
        desk = Died()
        desk.bus.adapters = {"iii-state": "redis", "iii-pubsub": "redis"}
        await desk.loaded()
        await desk.write("deleted-meanwhile")
        await desk.die_and_return({})
        assert desk.bus.state["skills"] == {}
        assert await desk.keys() == []
        assert desk.source.findings == ()
        desk.registrations.close()

    run(test)


def test_what_a_hint_says_and_the_state_confirms_as_deleted_is_not_restored() -> None:
    async def test() -> None:
        desk = Died()
        await desk.loaded()
        await desk.write("deleted")
        desk.bus.state["skills"] = {}
        await hint(desk, {"scope": "skills", "key": "deleted", "at": None})
        assert desk.told() == [("register", "deleted"), ("unregister", "deleted")]
        await desk.die_and_return({})
        assert desk.bus.state["skills"] == {}
        desk.registrations.close()

    run(test)


def test_what_another_worker_wrote_or_deleted_since_is_not_repeated() -> None:
    async def test() -> None:
        desk = Died()
        await desk.loaded()
        await desk.write("deleted", "changed")
        mine = dict(desk.bus.state["skills"])
        theirs = {**mine["changed"], "skill": "# theirs", "registered_at": "2099-01-01T00:00:00Z"}
        await desk.event("deleted", mine["deleted"], None)
        await desk.event("changed", mine["changed"], theirs)
        await desk.die_and_return({})
        assert desk.bus.state["skills"] == {}
        desk.registrations.close()

    run(test)


def test_a_state_that_fails_while_it_is_told_again_is_told_once_more() -> None:
    async def test() -> None:
        desk = Died()
        await desk.loaded()
        await desk.write("a", "b")
        desk.bus.before["state::set"] = fails_once()
        await desk.die_and_return({})
        assert sorted(desk.bus.state["skills"]) == ["a", "b"]
        assert desk.told() == []
        desk.registrations.close()

    run(test)


# Directories on other engines


async def hint(desk: Desk, *writes: Any, by: str = "other") -> None:
    desk.registrations.written_elsewhere({"by": by, "writes": list(writes)})
    await desk.settled()


def test_a_hint_of_what_is_known_asks_nothing_and_one_of_news_asks_the_state() -> None:
    async def test() -> None:
        desk = Desk()
        desk.bus.state["skills"]["a"] = record("a")
        await desk.loaded()
        desk.bus.calls.clear()
        await hint(desk, {"scope": "skills", "key": "a", "at": record("a")["registered_at"]})
        await hint(desk, {"scope": "skills", "key": "b", "at": None})
        await hint(desk, {"scope": "elsewhere", "key": "a", "at": None}, 5, {"key": "a"}, {"scope": "skills"})
        assert desk.bus.calls == []
        # The hint says that it is gone; the state has the last word.
        await hint(desk, {"scope": "skills", "key": "a", "at": None})
        assert desk.bus.calls == ["state::get"]
        assert await desk.keys() == ["skill:a"]
        desk.bus.state["skills"] = {"b": record("b")}
        await hint(
            desk,
            {"scope": "skills", "key": "a", "at": None},
            {"scope": "skills", "key": "b", "at": record("b")["registered_at"]},
        )
        assert await desk.keys() == ["skill:b"]
        desk.registrations.close()

    run(test)


@pytest.mark.parametrize(
    "writes", [None, "all", [{"scope": "skills", "key": f"k{n}"} for n in range(MAX_HINTS + 1)]]
)
def test_a_hint_of_a_great_many_is_one_look_at_all(writes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iii_directory.worker.registrations.HINTED_LOOK_SECONDS", 0)

    async def test() -> None:
        desk = Desk()
        desk.bus.state["skills"]["a"] = record("a")
        await desk.loaded()
        desk.bus.state["skills"]["a"] = record("a", 2)
        desk.registrations.written_elsewhere({"by": "other", "writes": writes})
        await desk.until_served("a", "# 2")
        assert "state::get" not in desk.bus.calls
        desk.registrations.close()

    run(test)


def test_hints_beyond_what_is_asked_at_once_are_one_look_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iii_directory.worker.registrations.HINTED_LOOK_SECONDS", 0)

    async def test() -> None:
        desk = Desk()
        desk.bus.state["skills"]["a"] = record("a")
        await desk.loaded()
        desk.bus.state["skills"]["a"] = record("a", 2)
        desk.bus.before["state::get"] = never
        for batch in range(3):
            writes = [
                {"scope": "skills", "key": f"k{batch}-{n}", "at": record("a")["registered_at"]}
                for n in range(MAX_HINTS // 2 + 1)
            ]
            desk.registrations.written_elsewhere({"by": "other", "writes": writes})
        await desk.until_served("a", "# 2")
        assert desk.bus.calls.count("state::get") <= MAX_HINTS
        desk.registrations.close()

    run(test)


def test_of_two_writes_at_one_moment_the_one_that_the_state_kept_counts() -> None:
    async def test() -> None:
        desk = Died()
        await desk.loaded()
        await desk.write("a")
        # Their clock is behind ours, and their write came last.
        desk.bus.state["skills"]["a"] = record("a")
        await hint(desk, {"scope": "skills", "key": "a", "at": record("a")["registered_at"]})
        assert await desk.keys() == ["skill:a"]
        assert desk.source.body("a") == "# 1"
        desk.registrations.close()

    run(test)


class Publishing(Died):
    """A directory that publishes hints without a pause."""

    async def published(self, *skill_ids: str) -> list[str]:
        """Write, and return the keys of which the others were told."""
        self.bus.published.clear()
        await self.write(*skill_ids)
        await self.registrations._hints._tasks.ended()
        return [row["key"] for data in self.bus.published for row in data["writes"]]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iii_directory.worker.shared_state.HINT_BURST_SECONDS", 0)


@pytest.mark.usefixtures("at_once")
def test_hints_are_calls_without_an_answer_once_the_engine_has_shown_that_it_has_topics() -> None:
    async def test() -> None:
        desk = Publishing()
        await desk.loaded()
        assert await desk.published("a") == ["a"]
        assert await desk.published("b") == ["b"]
        assert desk.bus.calls.count("publish") == 1
        desk.registrations.close()

    run(test)


@pytest.mark.usefixtures("at_once")
def test_an_engine_without_topics_is_not_told_with_every_write() -> None:
    async def test() -> None:
        desk = Publishing()
        await desk.loaded()
        desk.bus.before["publish"] = fail
        for number in range(3):
            assert await desk.published(f"a{number}") == []
        assert desk.bus.calls.count("publish") == 1
        desk.registrations.close()

    run(test)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("embedded", [True, False])
def test_a_state_that_no_other_engine_can_use_has_no_hints(embedded: bool) -> None:
    async def test() -> None:
        desk = Publishing()
        desk.bus.is_embedded = embedded
        desk.bus.adapters = {} if embedded else {"iii-state": "kv", "iii-pubsub": "redis"}
        await desk.loaded()
        assert await desk.published("a") == []
        assert desk.source.findings == ()
        desk.registrations.close()

    run(test)


@pytest.mark.usefixtures("at_once")
def test_what_was_written_just_before_the_connection_ended_is_told_again_after_it() -> None:
    async def test() -> None:
        desk = Publishing()
        desk.bus.adapters = {"iii-state": "redis", "iii-pubsub": "redis"}
        await desk.loaded()
        await desk.published("a")
        desk.bus.published.clear()
        await desk.die_and_return(desk.bus.state["skills"])
        await desk.registrations._hints._tasks.ended()
        assert [row["key"] for data in desk.bus.published for row in data["writes"]] == ["a"]
        desk.registrations.close()

    run(test)


@pytest.mark.parametrize("topics", ["local", None])
def test_a_finding_says_that_topics_do_not_reach_the_engines_that_share_the_state(topics: str | None) -> None:
    async def test() -> None:
        desk = Desk()
        desk.bus.adapters = {"iii-state": "redis", **({"iii-pubsub": topics} if topics else {})}
        await desk.loaded()
        (finding,) = desk.source.findings
        assert finding.subject == "iii-pubsub"
        assert "seen here after up to 60 seconds" in finding.reason
        assert "redis adapter" in finding.fix
        desk.registrations.close()

    run(test)


def test_topics_that_an_engine_tells_of_later_than_of_its_state_are_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("iii_directory.worker.registrations.HINTED_LOOK_SECONDS", 0)

    async def test() -> None:
        desk = Desk()
        desk.bus.adapters = {"iii-state": "redis"}
        await desk.loaded()
        desk.bus.adapters["iii-pubsub"] = "redis"
        async with asyncio.timeout(WAIT):
            while desk.source.findings:  # noqa: ASYNC110 (no event announces it)
                await asyncio.sleep(0)
        desk.registrations.close()

    run(test)


@pytest.mark.parametrize(
    "event", [{}, {"scope": "skills"}, {"scope": "skills", "key": 5}, {"scope": "other", "key": "a"}]
)
def test_an_event_of_something_else_is_ignored(event: dict[str, Any]) -> None:
    async def test() -> None:
        desk = Desk()
        await desk.loaded()
        desk.registrations.state_changed({"new_value": record("a"), **event})
        assert await desk.keys() == []

    run(test)


def test_a_body_that_has_just_gone_is_not_found() -> None:
    async def test() -> None:
        desk = Desk()
        await desk.loaded()
        await desk.event("a", None, record("a"))
        await desk.keys()
        await desk.event("a", record("a"), None)
        with pytest.raises(DirectoryError, match=r"D110 .*not found"):
            desk.source.body("a")

    run(test)


def test_the_follower_is_known_by_its_bindings() -> None:
    assert FOLLOWER.startswith("directory::__")
    assert bound_scopes(BOUND) == {"skills", "prompts"}
    assert bound_scopes(None) == set()
    assert (
        bound_scopes({"registered_triggers": [5, {"trigger_type": "state"}, {"trigger_type": "x"}]}) == set()
    )
