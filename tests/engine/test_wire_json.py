"""JSON that can pass the wire, and what is left of a text that cannot."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_directory.engine.wire_json import ABSENT, NotJsonError, encode, encode_message, is_text, parse

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_text_is_compact_and_keeps_characters_as_they_are() -> None:
    assert encode({"type": "pong", "x": ["é", 1.0]}) == '{"type":"pong","x":["é",1.0]}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: float("-inf")}])
def test_a_number_that_is_none_is_never_written(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        encode(value)


@given(VALUES)
def test_what_is_written_is_read_again(value: Any) -> None:
    assert parse(encode(value)) == value
    assert parse(encode_message(value).decode()) == value


@pytest.mark.parametrize("value", [2**64, -(2**80), [2**63, {"deep": 10**100}]])
def test_integers_of_any_size_are_sent_as_they_are(value: Any) -> None:
    assert parse(encode_message(value).decode()) == value


@pytest.mark.parametrize("value", [{1, 2}, object(), {"a": b"bytes"}, "\ud800"])
def test_what_is_no_json_is_not_sent(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        encode_message(value)


@pytest.mark.parametrize(
    ("text", "reason", "readable"),
    [
        ("", "not JSON", None),
        ("{", "not JSON", None),
        ('{"a": Infinity}', "Infinity is not JSON", {"a": float("inf")}),
        ("[1e999]", "number out of range: 1e999", [float("inf")]),
        ('["\\ud800"]', "lone surrogate", ["\ud800"]),
        ("[" * 129 + "]" * 129, "nested too deeply", ...),
        ("[" * 200_000, "nested too deeply", None),
        ("1" * 5_000, "not JSON", None),
    ],
)
def test_what_cannot_pass_is_refused_with_what_could_be_read(text: str, reason: str, readable: Any) -> None:
    with pytest.raises(NotJsonError, match=reason) as refused:
        parse(text)

    assert refused.value.value == readable or readable is ...


def test_text_is_what_utf_8_can_write() -> None:
    assert is_text(["é", "\U0001f600"])
    assert not is_text({"a": ["\ud800"]})


def test_nothing_has_a_name_of_its_own() -> None:
    assert repr(ABSENT) == "ABSENT"
