"""Rows within a budget: descriptions give way first, then rows, and it is said."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.corpora import own

from iii_directory.search.finding import SearchResult, find
from iii_directory.search.search_replies import result_of, row_of, shortened, snippet, within

REQUEST = "create, edit and convert a file with text and images"


def results(finding: SearchResult) -> list[dict[str, Any]]:
    def make(hit: Any) -> dict[str, Any]:
        return row_of(hit, "brief")

    return [result_of(finding, make)]


def found(request: str = REQUEST) -> SearchResult:
    return find({"skill": own("skills"), "function": own("functions")}, request, limit=10)


def hits(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [hit for section in result["sections"] for hit in section["hits"]]


def test_an_answer_within_its_budget_is_left_alone() -> None:
    before, after = results(found()), results(found())

    assert not within(after, 100_000)
    assert after == before


def test_descriptions_are_shortened_before_a_row_is_dropped() -> None:
    whole, cut = results(found()), results(found())
    budget = len(orjson.dumps(whole)) - 300

    assert within(cut, budget)
    assert [hit["id"] for hit in hits(cut[0])] == [hit["id"] for hit in hits(whole[0])]
    assert len(orjson.dumps(cut)) <= budget


@pytest.mark.parametrize("budget", [1800, 1500, 1000])
def test_an_answer_keeps_its_budget_and_the_best_of_each_section(budget: int) -> None:
    whole, cut = results(found()), results(found())

    assert within(cut, budget)
    assert len(orjson.dumps(cut)) <= budget
    assert [section["hits"][0]["id"] for section in cut[0]["sections"]] == [
        section["hits"][0]["id"] for section in whole[0]["sections"]
    ]


def test_a_description_is_cut_at_a_word() -> None:
    assert shortened("Resize an image to a width", 20) == "Resize an image to…"
    assert shortened("Resize\n  an image", 160) == "Resize an image"
    assert shortened("图" * 200, 10) == "图" * 9 + "…"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.integers(2, 160))
def test_a_shortened_text_is_never_longer_than_its_limit(text: str, limit: int) -> None:
    assert len(shortened(text, limit)) <= limit


def test_a_snippet_shows_the_line_that_matched() -> None:
    body = "# Reference\n\nOwner and user passwords.\n- Bates numbering of court exhibits, page by page.\n"

    assert snippet(body, ["bates"]) == "Bates numbering of court exhibits, page by page."
    assert snippet(body, ["nothing"]) == ""
