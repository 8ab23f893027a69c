"""Shapes of JSON from outside."""

from __future__ import annotations

import pytest

from iii_directory import shapes


@pytest.mark.parametrize(
    "answer", [None, [], "rows", 3, {}, {"rows": None}, {"rows": {"a": 1}}, {"other": [{}]}]
)
def test_an_answer_without_the_list_has_no_rows(answer: object) -> None:
    assert shapes.rows_of(answer, "rows") == []


def test_a_list_item_that_is_not_an_object_is_dropped_alone() -> None:
    assert shapes.rows_of({"rows": [{"a": 1}, None, "b", [], {"c": 2}]}, "rows") == [{"a": 1}, {"c": 2}]


@pytest.mark.parametrize(
    ("value", "expected"), [(0, True), (7, True), (-1, False), (True, False), (1.0, False), ("1", False)]
)
def test_a_count_is_a_whole_number_from_zero_on(value: object, *, expected: bool) -> None:
    assert shapes.is_count(value) is expected


def test_one_value_of_another_kind_makes_neither_a_map_nor_a_list_of_texts() -> None:
    assert shapes.is_text_map({"a": "b"})
    assert not shapes.is_text_map({"a": "b", "c": 1})
    assert not shapes.is_text_map(["a"])
    assert shapes.is_text_list(["a"])
    assert not shapes.is_text_list(["a", None])
    assert not shapes.is_text_list({"a": "b"})


def test_what_is_not_there_is_empty() -> None:
    assert shapes.object_of([1]) == {}
    assert shapes.items_of({"a": 1}) == []
    assert shapes.text_of(b"bytes") is None
