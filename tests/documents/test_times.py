"""Times as text: what is read is what was written, in the same order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_directory.text import nanoseconds_of, rfc3339

SECOND = 1_000_000_000


@given(st.integers(0, 253_402_300_799 * SECOND))
def test_a_time_survives_being_written_and_read_to_the_microsecond(nanoseconds: int) -> None:
    assert nanoseconds_of(rfc3339(nanoseconds)) == nanoseconds // 1000 * 1000


@given(st.integers(0, 4_000_000_000 * 1_000_000), st.integers(0, 4_000_000_000 * 1_000_000))
def test_texts_sort_as_their_times_do(one: int, other: int) -> None:
    assert (one < other) == (rfc3339(one * 1000) < rfc3339(other * 1000))


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.5Z", SECOND + SECOND // 2),
        ("1970-01-01T00:00:00.123456789+00:00", 123_456_789),
        ("1970-01-01T00:00:00.1234567891234Z", 123_456_789),
        ("1970-01-01T02:30:00+02:30", 0),
        ("1969-12-31T22:00:00-02:00", 0),
        ("1970-01-01 00:00:00z", 0),
        ("1969-12-31T23:59:59Z", -SECOND),
    ],
)
def test_every_form_of_rfc_3339_is_read(text: str, nanoseconds: int) -> None:
    assert nanoseconds_of(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-01-01T25:00:00Z",
        "2026-01-01T00:00:00Z ",
        "٢٠٢٦-01-01T00:00:00Z",
    ],
)
def test_a_text_that_is_not_a_time_is_read_as_none(text: str) -> None:
    assert nanoseconds_of(text) is None


def test_a_time_past_the_last_year_is_written_as_its_last_second() -> None:
    assert rfc3339(10**30).startswith("9999-12-31T23:59:59.")
