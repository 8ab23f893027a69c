"""Answers of registries, good and bad."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_directory.errors import DirectoryError
from iii_directory.registry.registry_messages import (
    BundleAnswer,
    PromptAnswer,
    SkillAnswer,
    parse_bundle,
    parse_detail,
    parse_page,
    parse_row,
    skills_tree,
)

ROW = {
    "name": "db",
    "description": "A database",
    "type": "binary",
    "version": "1.2.3",
    "repo": "https://example.org/db",
    "config": {"port": 1},
    "supported_targets": ["linux"],
    "total_downloads": 7,
    "dependencies": [{"name": "state", "version": "^1"}],
    "author": {"name": "me", "pfp": None, "verified": True},
}
FUNCTION = {
    "name": "db::get",
    "description": "get",
    "request_schema": {},
    "response_schema": {},
    "metadata": {"a": 1},
}
TRIGGER = {
    "name": "db::on",
    "description": "on",
    "invocation_schema": {},
    "return_schema": {},
    "metadata": None,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


def test_a_whole_row_passes_as_it_is() -> None:
    assert parse_row(ROW) == ROW
    assert parse_row({**ROW, "image": "x:1"}) == {**ROW, "image": "x:1"}


def test_a_bare_row_gets_its_defaults() -> None:
    assert parse_row({"name": "db"}) == {
        "name": "db",
        "description": None,
        "type": None,
        "version": None,
        "repo": None,
        "config": {},
        "supported_targets": [],
        "total_downloads": 0,
        "dependencies": [],
        "author": None,
    }


def test_wrong_types_in_a_row_lose_only_themselves() -> None:
    row = parse_row(
        {
            "name": "db",
            "description": 7,
            "total_downloads": -1,
            "supported_targets": ["a", 1],
            "dependencies": [{"name": "x"}, {"version": "1"}, 7],
            "author": {"name": 1},
            "image": 5,
        }
    )

    assert row is not None
    assert row["description"] is None
    assert row["total_downloads"] == 0
    assert row["supported_targets"] == ["a"]
    assert row["dependencies"] == [{"name": "x", "version": "*"}]
    assert row["author"] == {"name": None, "pfp": None, "verified": False}
    assert "image" not in row


def test_a_page_loses_only_its_malformed_rows() -> None:
    page = parse_page(
        {"workers": [ROW, {}, None, {"name": ""}, {"name": "x"}], "pagination": {"next_cursor": "n"}}
    )

    assert [row["name"] for row in page["workers"]] == ["db", "x"]
    assert page["pagination"] == {"next_cursor": "n", "has_more": False, "page_size": 0}


def test_pagination_is_passed_on() -> None:
    given_ = {"next_cursor": None, "has_more": True, "page_size": 20}

    assert parse_page({"workers": [], "pagination": given_})["pagination"] == given_


@pytest.mark.parametrize("answer", [None, [], "x", {}, {"workers": None}, {"workers": {}}])
def test_an_answer_without_workers_is_an_error(answer: Any) -> None:
    with pytest.raises(DirectoryError, match=r"D320"):
        parse_page(answer)


def test_the_detail_is_taken_from_the_envelope() -> None:
    wrapped = {"worker": {**ROW, "readme": "# db", "functions": [FUNCTION], "triggers": [TRIGGER]}}

    assert parse_detail(wrapped, "db") == {
        "worker": ROW,
        "readme": "# db",
        "api_reference": {"functions": [FUNCTION], "triggers": [TRIGGER]},
    }


def test_the_detail_of_an_older_registry_lies_at_the_top() -> None:
    flat = {**ROW, "readme": "# db", "functions": [FUNCTION], "triggers": []}
    half = {"worker": ROW, "readme": "# db", "api_reference": {"functions": [FUNCTION]}}

    for answer in (flat, half):
        detail = parse_detail(answer, "db")
        assert detail["worker"] == ROW
        assert detail["readme"] == "# db"
        assert detail["api_reference"] == {"functions": [FUNCTION], "triggers": []}


def test_a_malformed_function_or_trigger_loses_only_itself() -> None:
    answer = {"worker": {**ROW, "functions": [FUNCTION, {}, 7, {"name": 1}], "triggers": [None, TRIGGER]}}

    detail = parse_detail(answer, "db")

    assert detail["api_reference"] == {"functions": [FUNCTION], "triggers": [TRIGGER]}
    assert "readme" not in detail


@pytest.mark.parametrize(
    "answer", [None, [], {}, {"worker": {}}, {"worker": {"name": "other"}}, {"name": "other"}]
)
def test_a_detail_of_nothing_or_of_another_worker_is_an_error(answer: Any) -> None:
    with pytest.raises(DirectoryError, match=r"D320"):
        parse_detail(answer, "db")


def test_a_bundle_is_read_whole() -> None:
    answer = {
        "name": "db",
        "version": "1.2.3",
        "skills": [{"path": "SKILL.md", "content": "# db"}],
        "prompts": [
            {"name": "p", "description": "d", "args_schema": {"a": 1}, "content": "c"},
            {"name": "q", "content": ""},
        ],
    }

    bundle = parse_bundle(answer, "db", "latest")

    assert bundle == BundleAnswer(
        "1.2.3",
        (SkillAnswer("SKILL.md", "# db"),),
        (PromptAnswer("p", "d", {"a": 1}, "c"), PromptAnswer("q", "", None, "")),
    )
    assert skills_tree(bundle) == {
        "skills": [{"path": "SKILL.md"}],
        "prompts": [{"name": "p", "description": "d"}, {"name": "q", "description": None}],
    }
    assert skills_tree(None) == {"skills": [], "prompts": []}


def test_a_bundle_without_name_and_version_takes_what_was_asked() -> None:
    assert parse_bundle({"skills": None}, "db", "1.0.0") == BundleAnswer("1.0.0", (), ())


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {"name": "other"},
        {"name": 7},
        {"version": 7},
        {"skills": {}},
        {"prompts": "x"},
        {"skills": [{"path": "a.md"}]},
        {"skills": [{"content": "x"}]},
        {"skills": [None]},
        {"prompts": [{"name": "x"}]},
        {"prompts": [{"name": 1, "content": ""}]},
    ],
)
def test_a_bundle_with_anything_wrong_is_an_error(answer: Any) -> None:
    with pytest.raises(DirectoryError, match=r"D320"):
        parse_bundle(answer, "db", "latest")


@given(JSON)
def test_no_json_whatever_makes_anything_else_happen(value: Any) -> None:
    def attempt(act: Any) -> None:
        try:
            act()
        except DirectoryError as error:
            assert error.code == "D320"  # noqa: PT017

    attempt(lambda: parse_page(value))
    attempt(lambda: parse_page({"workers": [value], "pagination": value}))
    attempt(lambda: parse_detail({"worker": {"name": "db", "functions": value, "author": value}}, "db"))
    attempt(lambda: parse_bundle({"skills": value, "prompts": [value]}, "db", "x"))
