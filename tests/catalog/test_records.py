"""Records of iii-state: decoded, or reported with a reason."""

from __future__ import annotations

from typing import Any

import pytest

from iii_directory.catalog.registered import PROMPTS, SKILLS, RecordKind, decode, values_of
from iii_directory.documents.model import PromptArgument

AT = "2026-01-02T03:04:05.123456789+00:00"
SKILL: dict[str, Any] = {"id": "demo/a", "skill": "# A title\n\nA line.\n", "registered_at": AT}
PROMPT: dict[str, Any] = {
    "name": "greet",
    "description": "Say hello.",
    "arguments": [
        {"name": "to", "required": True},
        {"name": "tone", "description": "How", "required": False},
    ],
    "function_id": "demo::greet",
    "registered_at": AT,
}


def test_a_skill_of_the_reference_worker_is_a_skill() -> None:
    skill = decode(SKILLS, SKILL, "demo/a").parsed(SKILLS).skill
    assert skill is not None
    assert (skill.id, skill.title, skill.description) == ("demo/a", "A title", "A line.")
    assert (skill.modified_at, skill.provenance.kind, skill.bytes) == (AT, "registered", 19)


def test_a_prompt_of_the_reference_worker_is_a_prompt() -> None:
    prompt = decode(PROMPTS, PROMPT, "greet").parsed(PROMPTS).prompt
    assert prompt is not None
    assert (prompt.name, prompt.description, prompt.function_id) == ("greet", "Say hello.", "demo::greet")
    assert prompt.arguments == (PromptArgument("to", None, required=True), PromptArgument("tone", "How"))
    assert (prompt.modified_at, prompt.provenance.kind, prompt.path) == (AT, "registered", None)


def test_the_older_record_without_arguments_is_a_prompt() -> None:
    older = {key: value for key, value in PROMPT.items() if key != "arguments"}
    prompt = decode(PROMPTS, older, "greet").parsed(PROMPTS).prompt
    assert prompt is not None
    assert prompt.arguments == ()


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (SKILLS, "text", "not an object"),
        (SKILLS, [], "not an object"),
        (SKILLS, {}, "'id' must be given"),
        (SKILLS, {**SKILL, "id": "Demo"}, "lowercase"),
        (SKILLS, {**SKILL, "id": "fn/x"}, "reserved"),
        (SKILLS, {**SKILL, "skill": " "}, "skill must be non-empty"),
        (SKILLS, {**SKILL, "skill": "x" * (256 * 1024 + 1)}, "too large"),
        (SKILLS, {**SKILL, "skill": 5}, "'skill' must be a string"),
        (SKILLS, {**SKILL, "registered_at": "yesterday"}, "not an RFC 3339 time"),
        (SKILLS, {"id": "a", "skill": "b"}, "not an RFC 3339 time"),
        (PROMPTS, {**PROMPT, "function_id": None}, "'function_id' must be a string"),
        (PROMPTS, {**PROMPT, "arguments": "none"}, "'arguments' must be a list"),
    ],
)
def test_a_record_that_does_not_decode_is_reported_with_a_reason(
    kind: RecordKind, value: object, words: str
) -> None:
    parsed = decode(kind, value, "the-key").parsed(kind)
    assert (parsed.skill, parsed.prompt) == (None, None)
    (finding,) = parsed.findings
    assert finding.kind == "undecodable"
    assert words in finding.reason


def test_a_record_without_a_name_goes_by_its_key() -> None:
    assert decode(SKILLS, 7, "somewhere").key == "somewhere"
    assert decode(SKILLS, {"id": ""}, "somewhere").key == "somewhere"


@pytest.mark.parametrize("reserved", ["skills", "skills/index", "index", "directory/skills/index", "iii/x"])
def test_a_record_with_a_reserved_id_is_reported_and_not_served(reserved: str) -> None:
    found = decode(SKILLS, {**SKILL, "id": reserved}, reserved).parsed(SKILLS)

    assert found.skill is None
    assert "reserved" in found.findings[0].reason


@pytest.mark.parametrize(
    "answer", [[1, 2], {"items": [{"value": 1}, {"key": "k"}, 5, {"value": 2}]}, {"value": [1, 2]}]
)
def test_a_listing_comes_in_three_shapes(answer: object) -> None:
    assert values_of(answer) == [1, 2]


@pytest.mark.parametrize("answer", [None, "x", {}, {"value": 1}, {"items": 3}])
def test_a_listing_of_another_shape_is_read_as_empty(answer: object) -> None:
    assert values_of(answer) == []
