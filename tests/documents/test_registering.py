"""What a registration must hold, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from iii_directory.documents.ids import check_new_skill_id
from iii_directory.documents.payload_fields import prompt_fields, skill_fields
from iii_directory.errors import DirectoryError

PROMPT = {"name": "greet", "description": "Say hello.", "function_id": "demo::greet"}


def refused(problem: dict[str, Any]) -> str:
    with pytest.raises(DirectoryError) as error:
        prompt_fields({**PROMPT, **problem})
    return str(error.value)


def test_a_skill_is_its_id_and_its_body_as_given() -> None:
    given = {"id": "demo", "skill": " # demo \r\n", "_caller_worker_id": "w", "extra": 1}
    assert skill_fields(given, check_new_skill_id) == {"id": "demo", "skill": " # demo \r\n"}


@pytest.mark.parametrize(
    "given", [{"skill": "x"}, {"id": 7, "skill": "x"}, {"id": "a"}, {"id": "a", "skill": None}]
)
def test_a_missing_field_of_a_skill_is_named(given: dict[str, Any]) -> None:
    field = "skill" if "id" in given and given["id"] == "a" else "id"
    with pytest.raises(DirectoryError, match=f"D100 .*'{field}'"):
        skill_fields(given, check_new_skill_id)


def test_a_prompt_gets_its_arguments_completed() -> None:
    arguments = [{"name": "to", "description": "Who", "required": True}, {"name": "tone"}]
    fields = prompt_fields({**PROMPT, "arguments": arguments})
    assert fields == {
        **PROMPT,
        "arguments": [
            {"name": "to", "description": "Who", "required": True},
            {"name": "tone", "required": False},
        ],
    }


@pytest.mark.parametrize("arguments", [None, []])
def test_a_prompt_needs_no_arguments(arguments: object) -> None:
    assert prompt_fields({**PROMPT, "arguments": arguments})["arguments"] == []


def test_null_in_an_argument_counts_as_not_given() -> None:
    argument = {"name": "to", "description": None, "required": None}
    assert prompt_fields({**PROMPT, "arguments": [argument]})["arguments"] == [
        {"name": "to", "required": False}
    ]


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ({"name": ""}, "D211 invalid_input: name must be non-empty"),
        ({"name": "Greet"}, "lowercase"),
        ({"name": "a/b"}, "lowercase"),
        ({"name": "a" * 65}, "too long"),
        ({"name": None}, "D100 invalid_input: field 'name'"),
        ({"description": " \n"}, "D211 invalid_input: description must be non-empty"),
        ({"description": 1}, "D100 invalid_input: field 'description'"),
        ({"function_id": " "}, "D211 invalid_input: function_id must be non-empty"),
        ({"function_id": None}, "D100 invalid_input: field 'function_id'"),
        ({"arguments": {}}, "D100 invalid_input: field 'arguments'"),
        ({"arguments": ["to"]}, "D100 invalid_input: field 'arguments'"),
        ({"arguments": [{}]}, "D100 invalid_input: field 'arguments[].name'"),
        ({"arguments": [{"name": " "}]}, "D211 invalid_input: argument name must be non-empty"),
        ({"arguments": [{"name": "a"}, {"name": "a"}]}, "duplicate argument name 'a'"),
        ({"arguments": [{"name": "a", "description": 1}]}, "'arguments[].description' must be a string"),
        ({"arguments": [{"name": "a", "required": "yes"}]}, "'arguments[].required' must be true or false"),
        ({"description": "x" * 300_000}, "too large"),
        ({"description": "\ud800"}, "UTF-8"),
    ],
)
def test_a_wrong_prompt_is_refused_in_words(problem: dict[str, Any], words: str) -> None:
    assert words in refused(problem)


def test_a_name_of_64_characters_is_a_name() -> None:
    assert prompt_fields({**PROMPT, "name": "a" * 64})["name"] == "a" * 64
