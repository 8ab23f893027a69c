"""The registered entries in memory: whatever order news arrives in, they end up as the state has them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iii_directory import limits
from iii_directory.catalog.registered import SKILLS, RecordChange, Table, decode, size_of
from iii_directory.shapes import object_of
from iii_directory.text import nanoseconds_of, rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTHING, REGISTERED, UNREGISTERED, DOUBTFUL = RecordChange
SECOND = 1_000_000_000
NOW = 1_800_000_000 * SECOND


def record(stamp: int, skill_id: str = "a", body: str = "") -> dict[str, Any]:
    return {"id": skill_id, "skill": body or f"# at {stamp}", "registered_at": rfc3339(NOW + stamp * SECOND)}


def held(table: Table, key: str = "a") -> str | None:
    found = table.get(key)
    return None if found is None else found["skill"]


def written(table: Table, key: str, value: dict[str, Any]) -> RecordChange:
    return table.wrote(decode(SKILLS, value, key), 0.0, 0.0)


def heard(table: Table, key: str, old: object, new: object) -> RecordChange:
    return table.heard(key, old, new)[1]


def removed(table: Table, key: str, old: object) -> RecordChange:
    return table.removed(key, old, 0.0, 0.0)


def stamp(table: Table, key: str, now: int) -> int:
    return table.draft({"id": key, "skill": "# A skill"}, now).stamp


def news_of(steps: Iterator[tuple[str, RecordChange]]) -> list[tuple[str, RecordChange]]:
    """Every step taken, and what was news."""
    return [(key, outcome) for key, outcome in steps if outcome is not NOTHING]


@pytest.fixture
def table() -> Table:
    return Table(SKILLS)


def test_an_own_write_is_served_and_its_event_says_nothing_new(table: Table) -> None:
    assert written(table, "a", record(1)) is REGISTERED
    assert heard(table, "a", None, record(1)) is NOTHING
    assert held(table) == "# at 1"


def test_an_event_that_comes_before_the_answer_counts_once(table: Table) -> None:
    assert heard(table, "a", None, record(1)) is REGISTERED
    assert written(table, "a", record(1)) is NOTHING


def test_the_event_of_a_record_that_is_being_written_is_that_record_and_is_not_checked_again(
    table: Table,
) -> None:
    ours = table.draft({"id": "a", "skill": "# Ours"}, NOW)
    assert heard(table, "a", None, dict(object_of(ours.value))) is REGISTERED
    assert table.get("a") is ours.value
    assert table.wrote(ours, 0.0, 0.0) is NOTHING

    theirs = dict(record(60))
    assert heard(table, "a", ours.value, theirs) is REGISTERED
    assert table.get("a") is theirs


def test_another_workers_write_of_a_key_that_is_being_written_counts_as_theirs(table: Table) -> None:
    ours = table.draft({"id": "a", "skill": "# Ours"}, NOW)
    assert heard(table, "a", None, record(5, body="# Theirs")) is REGISTERED
    assert held(table) == "# Theirs"
    assert table.wrote(ours, 0.0, 0.0) is NOTHING


def test_the_draft_that_another_one_of_its_key_followed_is_dropped_alone(table: Table) -> None:
    first = table.draft({"id": "a", "skill": "# First"}, NOW)
    second = table.draft({"id": "a", "skill": "# Second"}, NOW)
    table.drop_draft(first)
    heard(table, "a", None, dict(object_of(second.value)))
    assert table.get("a") is second.value


@given(
    st.dictionaries(st.text(max_size=9), st.text(st.characters(), max_size=30), max_size=4)
    | st.dictionaries(st.text(max_size=9), st.lists(st.text() | st.integers()), max_size=3)
    | st.integers()
)
def test_the_size_of_a_value_is_that_of_its_longest_json(value: object) -> None:
    assert size_of(value) == len(json.dumps(value))


def test_a_registration_of_the_same_body_is_news(table: Table) -> None:
    written(table, "a", record(1, body="same"))
    assert heard(table, "a", record(1, body="same"), record(2, body="same")) is REGISTERED


def test_an_event_that_follows_upon_what_is_held_is_applied(table: Table) -> None:
    written(table, "a", record(1))
    assert heard(table, "a", record(1), record(2)) is REGISTERED
    assert held(table) == "# at 2"


def test_an_answer_that_comes_after_another_writers_event_does_not_bring_the_old_back(table: Table) -> None:
    heard(table, "a", None, record(1))
    heard(table, "a", record(1), record(2))
    assert written(table, "a", record(1)) is NOTHING
    assert held(table) == "# at 2"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(record(2), record(3), id="of a successor to something never seen"),
        pytest.param(None, record(0), id="of an older record"),
        pytest.param(record(1), record(0), id="of a record that was put back"),
        pytest.param(record(2), None, id="of the deletion of something else"),
    ],
)
def test_an_event_that_does_not_fit_puts_the_key_in_doubt(table: Table, old: Any, new: Any) -> None:
    written(table, "a", record(1))
    assert heard(table, "a", old, new) is DOUBTFUL
    assert held(table) == "# at 1"


def test_the_value_in_the_state_settles_a_doubt(table: Table) -> None:
    written(table, "a", record(1))
    heard(table, "a", record(1), record(0))
    assert table.settled("a", record(0)) is REGISTERED
    assert held(table) == "# at 0"


def test_a_doubtful_key_is_asked_for_once(table: Table) -> None:
    written(table, "a", record(1))
    assert heard(table, "a", None, record(0)) is DOUBTFUL
    assert heard(table, "a", None, record(0)) is NOTHING


def test_an_answer_is_too_old_when_there_was_news_meanwhile(table: Table) -> None:
    written(table, "a", record(1))
    heard(table, "a", record(1), record(0))
    heard(table, "a", record(0), record(3))
    assert table.settled("a", record(0)) is DOUBTFUL
    assert table.settled("a", record(3)) is REGISTERED
    assert held(table) == "# at 3"


def test_an_unanswered_doubt_can_come_up_again(table: Table) -> None:
    written(table, "a", record(1))
    heard(table, "a", None, record(0))
    table.leave_doubtful("a")
    assert table.settled("a", record(0)) is NOTHING
    assert heard(table, "a", None, record(0)) is DOUBTFUL


def test_a_deletion_is_remembered_against_late_events(table: Table) -> None:
    assert heard(table, "a", record(1), None) is NOTHING
    assert heard(table, "a", None, record(1)) is DOUBTFUL
    assert table.settled("a", None) is NOTHING
    assert held(table) is None


def test_only_so_many_deletions_are_remembered(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iii_directory.catalog.registered.MAX_REMEMBERED_DELETIONS", 2)
    for key in "abc":
        heard(table, key, record(1, key), None)
    assert heard(table, "a", None, record(1, "a")) is REGISTERED
    assert heard(table, "c", None, record(1, "c")) is DOUBTFUL
    assert limits.MAX_REMEMBERED_DELETIONS == 10_000


def test_a_deletion_by_this_worker_removes_the_entry(table: Table) -> None:
    written(table, "a", record(1))
    assert removed(table, "a", record(1)) is UNREGISTERED
    assert heard(table, "a", record(1), None) is NOTHING
    assert held(table) is None


def test_a_deletion_of_a_version_not_seen_yet_takes_the_older_one(table: Table) -> None:
    written(table, "a", record(1))
    assert removed(table, "a", record(2)) is UNREGISTERED


def test_a_deletion_leaves_what_was_registered_since(table: Table) -> None:
    written(table, "a", record(2))
    assert removed(table, "a", record(1)) is NOTHING
    assert held(table) == "# at 2"


def test_deleting_what_the_state_does_not_have_is_nothing_or_a_doubt(table: Table) -> None:
    assert removed(table, "a", None) is NOTHING
    written(table, "a", record(1))
    assert removed(table, "a", None) is DOUBTFUL


def test_the_time_of_a_registration_is_later_than_all_known_of_its_key(table: Table) -> None:
    written(table, "a", record(100))
    drafted = stamp(table, "a", NOW)
    assert rfc3339(drafted) > record(100)["registered_at"]
    heard(table, "b", record(200, "b"), None)
    assert stamp(table, "b", NOW) > NOW + 200 * SECOND


def test_two_registrations_in_one_tick_have_different_times(table: Table) -> None:
    assert rfc3339(stamp(table, "a", NOW)) < rfc3339(stamp(table, "a", NOW))


def test_a_listing_replaces_everything(table: Table) -> None:
    written(table, "a", record(5))
    written(table, "b", record(5, "b"))
    table.listing_asked()
    outcomes = news_of(table.news_in([record(1), record(1, "c")]))
    assert sorted((key, outcome.value) for key, outcome in outcomes) == [
        ("a", "register"),
        ("b", "unregister"),
        ("c", "register"),
    ]
    assert (held(table), held(table, "b"), held(table, "c")) == ("# at 1", None, "# at 1")


def test_a_listing_leaves_alone_what_was_touched_since_it_was_asked_for(table: Table) -> None:
    written(table, "gone", record(1, "gone"))
    table.listing_asked()
    written(table, "a", record(5))
    heard(table, "gone", record(1, "gone"), None)
    assert news_of(table.news_in([record(1), record(1, "gone")])) == []
    assert (held(table), held(table, "gone")) == ("# at 5", None)


def test_news_between_the_steps_of_a_listing_wins_over_the_listing(table: Table) -> None:
    for key in ("gone", "kept", "other"):
        written(table, key, record(1, key))
    table.listing_asked()
    steps = table.news_in([record(1, "kept"), record(2, "other"), record(2, "new")])
    assert [next(steps)[0] for _ in range(3)] == ["kept", "other", "new"]

    written(table, "gone", record(3, "gone"))
    heard(table, "other", record(1, "other"), None)
    assert table.hinted("new", record(9, "new")["registered_at"]) is DOUBTFUL
    assert table.settled("new", record(9, "new")) is REGISTERED
    assert next(steps) == ("gone", NOTHING)
    assert next(steps) == ("kept", NOTHING)
    heard(table, "kept", record(1, "kept"), record(4, "kept"))

    assert news_of(steps) == []
    assert (held(table, "gone"), held(table, "kept"), held(table, "other")) == ("# at 3", "# at 4", None)
    assert held(table, "new") == "# at 9"
    assert heard(table, "new", record(9, "new"), None) is UNREGISTERED


def test_a_listing_of_what_is_held_checks_nothing_again(table: Table) -> None:
    written(table, "a", record(1))
    before = table.get("a")
    table.listing_asked()

    assert news_of(table.news_in([record(1)])) == []
    assert table.get("a") is before


def test_a_listing_with_a_key_twice_serves_the_newer(table: Table) -> None:
    news_of(table.news_in([record(2), record(1)]))
    assert held(table) == "# at 2"


def test_changes_are_handed_out_once_as_documents(table: Table) -> None:
    written(table, "a", record(1))
    written(table, "b", record(1, "b"))
    removed(table, "b", record(1, "b"))
    changes = table.take_changes()
    document = changes["skill:a"]
    assert document is not None
    assert document.skill is not None
    assert (document.skill.title, changes["skill:b"]) == ("at 1", None)
    assert table.take_changes() == {}


def test_an_undecodable_record_is_a_finding_and_no_entry(table: Table) -> None:
    assert heard(table, "a", None, {"id": "a"}) is DOUBTFUL
    assert table.settled("a", {"id": "a"}) is NOTHING
    assert held(table) is None
    document = table.take_changes()["skill:a"]
    assert document is not None
    assert document.findings[0].kind == "undecodable"


def test_a_record_that_becomes_undecodable_is_gone_for_readers(table: Table) -> None:
    written(table, "a", record(1))
    broken = {**record(2), "skill": ""}
    assert heard(table, "a", record(1), broken) is UNREGISTERED


def test_deleting_an_undecodable_record_is_told(table: Table) -> None:
    news_of(table.news_in([{"id": "a"}]))
    assert heard(table, "a", {"id": "a"}, None) is UNREGISTERED


def test_a_record_without_a_name_is_forgotten_when_it_goes(table: Table) -> None:
    news_of(table.news_in([5, record(1)]))
    assert "skill:(unnamed 0)" in table.take_changes()
    heard(table, "whatever", 5, None)
    assert table.take_changes() == {"skill:(unnamed 0)": None}


# Any order at all

KEYS = ("a", "b")
WRITES = st.lists(
    st.tuples(st.sampled_from(["set", "set", "delete"]), st.sampled_from(KEYS), st.integers(0, 20)),
    max_size=14,
)


class World:
    """A state, and one reader to whom events are delivered in any order. Clocks of the writers differ."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.events: list[tuple[str, Any, Any]] = []
        self.table = Table(SKILLS)
        self.asked: list[str] = []
        self.answers: list[tuple[str, Any]] = []

    def write(self, kind: str, key: str, stamp: int, number: int) -> None:
        old = self.state.pop(key, None)
        if kind == "set":
            self.state[key] = record(stamp, key, f"# write {number}")
        if old is not None or kind == "set":
            self.events.append((key, old, self.state.get(key)))

    def deliver(self, choice: int) -> None:
        """One of the events, an ask reaching the state, or an answer coming back."""
        steps = (
            [self._event] * len(self.events)
            + [self._ask] * len(self.asked)
            + [self._answer] * len(self.answers)
        )
        if steps:
            steps[choice % len(steps)](choice)

    def finish(self) -> None:
        while self.events or self.asked or self.answers:
            self.deliver(0)

    def _event(self, choice: int) -> None:
        key, old, new = self.events.pop(choice % len(self.events))
        self._doubt(key, heard(self.table, key, old, new))

    def _ask(self, choice: int) -> None:
        key = self.asked.pop(choice % len(self.asked))
        self.answers.append((key, self.state.get(key)))

    def _answer(self, choice: int) -> None:
        key, value = self.answers.pop(choice % len(self.answers))
        self._doubt(key, self.table.settled(key, value))

    def _doubt(self, key: str, outcome: RecordChange) -> None:
        if outcome is DOUBTFUL:
            self.asked.append(key)


@settings(max_examples=300)
@given(WRITES, st.lists(st.integers(0, 10_000), max_size=60), st.integers(0, 14))
def test_the_table_ends_equal_to_the_state(
    writes: list[tuple[str, str, int]], choices: list[int], late: int
) -> None:
    world = World()
    for number, (kind, key, stamp) in enumerate(writes):
        world.write(kind, key, stamp, number)
        if number >= late and choices:
            world.deliver(choices.pop())
    for choice in choices:
        world.deliver(choice)
    world.finish()
    assert {key: world.table.get(key) for key in KEYS} == {key: world.state.get(key) for key in KEYS}


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=20))
def test_registrations_of_one_key_never_go_back_in_time(clock: list[int]) -> None:
    table = Table(SKILLS)
    times = [rfc3339(stamp(table, "a", NOW + step * SECOND)) for step in clock]
    assert times == sorted(set(times))
    assert all(nanoseconds_of(time) is not None for time in times)
