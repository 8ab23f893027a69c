"""Long answers, and lists that are answered again and again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_directory.engine.repeats import Repeats
from iii_directory.engine.wire_json import Unread, Written, encode_message, encode_parts, whole
from iii_directory.limits import KEPT_LISTS, KIB


def rows(first: int = 0, count: int = 600) -> list[dict[str, Any]]:
    return [{"number": first + number, "text": "é"} for number in range(count)]


def steps(repeats: Repeats, result: object) -> tuple[int, Any]:
    """How many steps it took to write a result, and what came of it."""
    answer, taken = repeats.answer(result), 0
    if answer is None:
        return 0, result
    while answer.write_some():
        taken += 1
    return taken, answer.result


def written(repeats: Repeats, result: object) -> Any:
    return steps(repeats, result)[1]


def test_an_answer_is_the_same_however_often_it_is_given() -> None:
    repeats, result = Repeats(), {"skills": rows(), "more": [1], "next": None}

    said = [json.loads(encode_message(written(repeats, dict(result)))) for _ in range(4)]

    assert said == [result] * 4


@given(count=st.integers(0, 1_100), length=st.integers(0, 400_000), letter=st.sampled_from('xé"\\\n🦆'))
def test_a_long_value_reads_as_it_would_if_it_were_short(count: int, length: int, letter: str) -> None:
    for value in (rows(count=count), letter * length):
        for result in (value, {"value": value}, {"before": 1, "value": value, "after": "text"}):
            said = {"type": "t", "result": written(Repeats(), result), "last": True}
            parts = encode_parts(said)

            assert json.loads(b"".join(parts)) == {"type": "t", "result": result, "last": True}
            assert json.loads(encode_message(said)) == json.loads(b"".join(parts))
            assert whole(said["result"]) == result


def test_a_long_list_is_written_once() -> None:
    repeats, long = Repeats(), rows()
    given: list[tuple[int, Any]] = [steps(repeats, {"skills": long}) for _ in range(3)]

    assert isinstance(given[0][1]["skills"], Written)
    assert all(one["skills"] is given[0][1]["skills"] for _, one in given)
    assert [taken for taken, _ in given[1:]] == [0, 0]


def test_a_longer_list_takes_more_steps_and_no_longer_ones() -> None:
    few, many = (steps(Repeats(), {"skills": rows(count=count)})[0] for count in (1_000, 10_000))

    assert many > 8 * few > 16


def test_those_who_ask_at_the_same_time_share_the_work() -> None:
    repeats, long = Repeats(), rows(count=10_000)
    alone, _ = steps(Repeats(), {"skills": long})

    waiting = [repeats.answer({"skills": long}) for _ in range(8)]
    taken, left = 0, [answer for answer in waiting if answer]
    while left:
        taken += len(left)
        left = [answer for answer in left if answer.write_some()]

    assert taken == alone + 8  # each finds once that nothing is left


def test_an_answer_that_is_text_already_is_not_copied() -> None:
    for long in (Unread(b"[%s]" % (b"1," * 100 * KIB + b"1")), written(Repeats(), rows(count=10_000))):
        own = long.parts if isinstance(long, Written) else [long.text]
        for message in ({"type": "t", "result": long}, {"type": "t", "data": {"few": 1, "value": long}}):
            parts = encode_parts(message)
            assert [part for part in parts if len(part) > KIB] == [part for part in own if len(part) > KIB]
            assert all(any(part is kept for kept in own) for part in parts if len(part) > KIB)


@pytest.mark.parametrize("result", [None, 1, "text", [1, 2], {"few": [1, 2]}, {"text": "x"}, Unread(b"[1]")])
def test_everything_else_stays_as_it_is(result: Any) -> None:
    assert Repeats().answer(result) is None


@pytest.mark.parametrize("value", [[*rows(), object()], [*rows(), "\ud800"], "x" * 300 * KIB + "\ud800"])
def test_what_is_no_json_is_left_to_whoever_sends_it_for_all_who_wait(value: Any) -> None:
    repeats, result = Repeats(), {"value": value}
    together = [repeats.answer(result) for _ in range(2)]

    for answer in together:
        assert answer is not None
        while answer.write_some():
            pass
        assert answer.result == result
    assert written(repeats, result) == result


def test_a_list_in_the_place_of_one_that_is_gone_is_another_list() -> None:
    repeats = Repeats()
    for first in range(50):
        # Each takes the place of the last in memory, as soon as that is not kept any more.
        said = [
            encode_message(written(repeats, {"rows": fresh})) for fresh in [rows(first)] for _ in range(2)
        ]
        assert json.loads(said[1])["rows"][0]["number"] == first


def test_only_the_last_lists_are_kept() -> None:
    repeats, lists = Repeats(), [rows(number) for number in range(KEPT_LISTS + 1)]
    taken = [steps(repeats, {"rows": one})[0] for one in [*lists, *lists, lists[-1]]]

    assert all(taken[:-1])
    assert not taken[-1]
