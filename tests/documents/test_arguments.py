"""A prompt's template is filled as the common hosts do it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_directory.documents.model import PromptArgument, rendered
from iii_directory.errors import DirectoryError
from iii_directory.limits import MAX_RENDERED_CHARS

WHO = PromptArgument("who", required=True)
TONE = PromptArgument("tone")


@pytest.mark.parametrize(
    ("template", "arguments", "text"),
    [
        ("for {{who}}", {"who": "Ada"}, "for Ada"),
        ("for {{ who }}, {{tone}}.", {"who": "Ada"}, "for Ada, ."),
        ("$1 and $2", {"tone": "dry", "who": "Ada"}, "Ada and dry"),
        ("all: $ARGUMENTS", {"tone": "dry", "who": "Ada"}, "all: Ada dry"),
        ("all: $ARGUMENTS", {"who": "Ada", "more": 3}, "all: Ada 3"),
        (
            "$3 costs $100, {{other}} {who} $ARGUMENTSX",
            {"who": "Ada"},
            "$3 costs $100, {{other}} {who} $ARGUMENTSX",
        ),
        ("{{who}}", {"who": "{{tone}} $1 $ARGUMENTS"}, "{{tone}} $1 $ARGUMENTS"),
        ("{{who}}", {"who": ["a", 1]}, '["a", 1]'),
        ("{{tone}}|", {"who": "Ada", "tone": None}, "|"),
    ],
)
def test_declared_arguments_take_the_place_of_their_names(
    template: str, arguments: dict[str, object], text: str
) -> None:
    assert rendered("stand-up", template, (WHO, TONE), arguments) == text


def test_a_required_argument_that_is_missing_is_named() -> None:
    with pytest.raises(DirectoryError, match=r"D211 .*'stand-up' needs the argument 'who'"):
        rendered("stand-up", "{{who}}", (WHO, TONE), {"tone": "dry", "who": None})


def test_a_prompt_without_arguments_is_its_template() -> None:
    assert rendered("plain", "$ARGUMENTS {{who}} $1", (), {}) == "$ARGUMENTS {{who}} $1"
    assert rendered("plain", "do $ARGUMENTS", (), {"task": "it"}) == "do it"


@given(st.text(), st.text())
def test_any_template_takes_any_value(template: str, value: str) -> None:
    filled = rendered("p", f"{template}{{{{who}}}}", (WHO,), {"who": value})

    assert filled.endswith(value)


@pytest.mark.parametrize("template", ["{{who}}" * 1_000, "$1 " * 1_000, "$ARGUMENTS " * 1_000])
def test_a_template_does_not_multiply_what_it_is_given_without_end(template: str) -> None:
    with pytest.raises(DirectoryError) as refused:
        rendered("stand-up", template, (WHO,), {"who": "x" * 100_000})

    assert f"longer than {MAX_RENDERED_CHARS} characters" in str(refused.value)
