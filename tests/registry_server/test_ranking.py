"""Search in a registry of one's own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_directory.registry_server.published_workers import (
    BadCursorError,
    decode_cursor,
    encode_cursor,
    page_of,
    search_rows,
    similarity,
    trigrams,
)


def row(name: str, description: str = "", downloads: int = 0) -> dict[str, Any]:
    return {"name": name, "description": description, "total_downloads": downloads}


ROWS = [
    row("agent-memory", "Remembers what agents observed", 50),
    row("resend", "Send transactional email", 10),
    row("iii-sandbox", "Run untrusted code", 90),
    row("mail-merge", "Letters from templates", 10),
]


def names(search: str | None) -> list[str]:
    return [found["name"] for _, found in search_rows(ROWS, search)]


def test_trigrams_are_those_of_pg_trgm() -> None:
    assert trigrams("Cat") == {"  c", " ca", "cat", "at "}
    assert trigrams("foo|bar") == trigrams("foo bar")
    assert trigrams("  ") == frozenset()


def test_browsing_shows_the_most_downloaded_first_and_ties_by_name() -> None:
    assert names(None) == ["iii-sandbox", "agent-memory", "mail-merge", "resend"]


@pytest.mark.parametrize(
    ("search", "first"),
    [
        ("sandbox", "iii-sandbox"),
        ("sandbx", "iii-sandbox"),
        ("EMAIL", "resend"),
        ("agent memory", "agent-memory"),
    ],
)
def test_a_search_finds_by_name_and_description_and_forgives_typos(search: str, first: str) -> None:
    assert names(search)[0] == first


@pytest.mark.parametrize("search", ["zzzz", "quantum", "!?", "𓀀"])
def test_a_search_for_nothing_like_it_finds_nothing(search: str) -> None:
    assert names(search) == []


def test_the_name_itself_is_the_best_hit() -> None:
    assert similarity("resend", "resend", "") == 1.0
    assert similarity("resend", "resend-mail", "resend") < 1.0


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 3)), unique_by=lambda pair: pair[0]))
def test_pages_by_cursor_show_every_row_once_and_in_order(pairs: list[tuple[str, int]]) -> None:
    placed = search_rows([row(name, downloads=count) for name, count in pairs], None)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = page_of(placed, cursor, size=3)
        seen += [found["name"] for found in page["workers"]]
        cursor = page["pagination"]["next_cursor"]
        assert page["pagination"]["has_more"] == (cursor is not None)
        if cursor is None:
            break

    assert seen == [found["name"] for _, found in placed]


def test_a_row_added_meanwhile_does_not_show_another_one_twice() -> None:
    first = page_of(search_rows(ROWS, None), None, size=2)
    more = [*ROWS, row("new", downloads=1000)]

    second = page_of(search_rows(more, None), first["pagination"]["next_cursor"], size=2)

    assert [found["name"] for found in second["workers"]] == ["mail-merge", "resend"]


@given(st.floats(0, 1e9), st.text(max_size=20))
def test_a_cursor_reads_back(score: float, name: str) -> None:
    assert decode_cursor(encode_cursor((-score, name))) == (-score, name)


@pytest.mark.parametrize(
    "cursor", ["", "x", "%%%", "e30", "W10", "WzEsMl0", "é", "W" * 1000, "WyJhIiwgImIiXQ"]
)
def test_a_cursor_from_elsewhere_is_refused(cursor: str) -> None:
    with pytest.raises(BadCursorError):
        decode_cursor(cursor)
