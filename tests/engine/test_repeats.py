"""Lists that are answered again and again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from iii_directory.engine.repeats import Repeats
from iii_directory.engine.wire_json import Unread, encode_message
from iii_directory.limits import KEPT_LISTS


def rows(first: int = 0) -> list[dict[str, Any]]:
    return [{"number": first + number, "text": "é"} for number in range(200)]


def test_an_answer_is_the_same_however_often_it_is_given() -> None:
    repeats, result = Repeats(), {"skills": rows(), "more": [1], "next": None}

    said = [json.loads(encode_message(repeats.with_texts(dict(result)))) for _ in range(4)]

    assert said == [result] * 4


def test_a_long_list_is_written_once() -> None:
    repeats, long = Repeats(), rows()
    given: list[Any] = [repeats.with_texts({"skills": long}) for _ in range(3)]

    assert given[0]["skills"] is long
    assert isinstance(given[1]["skills"], Unread)
    assert given[2]["skills"] is given[1]["skills"]


@pytest.mark.parametrize("result", [None, 1, "text", rows(), {"few": [1, 2]}, Unread(b"[1]")])
def test_everything_else_stays_as_it_is(result: Any) -> None:
    repeats = Repeats()

    assert repeats.with_texts(result) is result
    assert repeats.with_texts(result) is result


def test_a_list_in_the_place_of_one_that_is_gone_is_another_list() -> None:
    repeats = Repeats()
    for first in range(50):
        # Each takes the place of the last in memory, as soon as that is not kept any more.
        said = [
            encode_message(repeats.with_texts({"rows": fresh})) for fresh in [rows(first)] for _ in range(2)
        ]
        assert json.loads(said[1])["rows"][0]["number"] == first


def test_only_the_last_lists_are_kept() -> None:
    repeats, lists = Repeats(), [rows(number) for number in range(KEPT_LISTS + 1)]
    given: list[Any] = [repeats.with_texts({"rows": one}) for one in [*lists, *lists]]

    assert [one["rows"] for one in given] == [*lists, *lists]
