"""JSON that can pass the wire, and what is left of a text that cannot."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_directory.wire.codec import parse
from iii_directory.wire.json_text import encode_value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_text_is_compact_and_keeps_characters_as_they_are() -> None:
    assert encode_value({"type": "pong", "x": ["é", 1.0]}).decode() == '{"type":"pong","x":["é",1.0]}'


@given(VALUES)
def test_what_is_written_is_read_again(value: Any) -> None:
    assert parse(encode_value(value).decode()) == value


@pytest.mark.parametrize("value", [2**64, -(2**80), [2**63, {"deep": 10**100}]])
def test_integers_of_any_size_are_sent_as_they_are(value: Any) -> None:
    assert parse(encode_value(value).decode()) == value


@pytest.mark.parametrize("value", [{1, 2}, object(), {"a": b"bytes"}, "\ud800"])
def test_a_value_that_json_cannot_express_is_not_sent(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        encode_value(value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "truncated"),
        ("{", "truncated"),
        ('{"a": Infinity}', "malformed"),
        ("[1e999]", "out of range"),
        ('["\\ud800"]', "truncated|surrogate|malformed"),
        ("[" * 129 + "]" * 129, "nested too deeply"),
        ("[" * 200_000, "nested too deeply"),
        ("1" * 5_000, "out of range"),
    ],
)
def test_what_cannot_pass_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(text)
