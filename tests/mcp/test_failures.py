"""How failures on the engine are told."""

from __future__ import annotations

import pytest

from iii_directory.errors import SKILL_NOT_FOUND, DirectoryError
from iii_directory.mcp.failures import remote_failure, unreachable

INVALID_PARAMS, INTERNAL_ERROR, RESOURCE_NOT_FOUND = -32602, -32603, -32002


def codes(message: str, code: str = "invocation_failed") -> tuple[int, int, int]:
    """For a missing thing, for a missing resource in 2025, and for one in 2026."""
    failure = remote_failure("a::b", code, message)
    return (
        failure.code(about_resource=False, modern=False),
        failure.code(about_resource=True, modern=False),
        failure.code(about_resource=True, modern=True),
    )


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("D110 not_found: no", (INVALID_PARAMS, RESOURCE_NOT_FOUND, INVALID_PARAMS)),
        ("D411 not_found: no", (INVALID_PARAMS, RESOURCE_NOT_FOUND, INVALID_PARAMS)),
        ("D111 invalid_input: no", (INVALID_PARAMS,) * 3),
        ("D120 forbidden: no", (INVALID_PARAMS,) * 3),
        ("D320 registry_error: no", (INTERNAL_ERROR,) * 3),
        ("D500 internal_error: no", (INTERNAL_ERROR,) * 3),
        ("something else", (INTERNAL_ERROR,) * 3),
    ],
)
def test_the_class_of_an_error_decides_its_code(message: str, expected: tuple[int, int, int]) -> None:
    assert codes(message) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("NOT_FOUND", (INVALID_PARAMS, RESOURCE_NOT_FOUND, INVALID_PARAMS)),
        ("INVALID_ARGUMENTS", (INVALID_PARAMS,) * 3),
        ("FORBIDDEN", (INVALID_PARAMS,) * 3),
        ("invocation_failed", (INTERNAL_ERROR,) * 3),
    ],
)
def test_of_a_strangers_error_the_code_decides_and_not_its_words(
    code: str, expected: tuple[int, int, int]
) -> None:
    assert codes("the file was not found", code) == expected


def test_a_sentence_of_the_directory_is_passed_on_as_it_is() -> None:
    sentence = "D110 not_found: skill 'cofee' not found. Did you mean: coffee. Next: call x."

    assert str(remote_failure("a::b", "invocation_failed", sentence)) == sentence


def test_the_next_steps_of_the_directory_name_tools() -> None:
    sentence = str(DirectoryError(SKILL_NOT_FOUND, "skill 'cofee' not found"))

    told = str(remote_failure("a::b", "invocation_failed", sentence))

    assert "Next: call directory__skills__list to see every skill id; or call search with words" in told


def test_of_a_strangers_message_one_clean_bounded_line_is_left() -> None:
    text = str(remote_failure("a::b", "invocation_failed", "Oh\x1b[0m\nno" + "x" * 5000))

    assert text.startswith("Oh[0m no")
    assert len(text) < 2100
    assert str(remote_failure("a::b", "invocation_failed", "\n")) == "'a::b' failed without saying why"


def test_a_missing_function_says_what_to_start() -> None:
    assert "iii-directory serve" in str(remote_failure("skills::resources-list", "function_not_found", ""))
    assert "iii-directory serve" not in str(remote_failure("mail::send", "function_not_found", ""))


def test_a_call_that_takes_too_long_says_so() -> None:
    assert "'mail::send' did not answer in time" in str(remote_failure("mail::send", "TIMEOUT", "x"))


def test_no_engine_is_said_with_its_address_and_what_to_do() -> None:
    text = str(unreachable("ws://127.0.0.1:49134"))

    assert text.startswith("D410 engine_error: no iii engine answers at ws://127.0.0.1:49134.")
    assert "iii-directory up" in text


def test_a_call_cut_off_is_not_said_to_have_failed() -> None:
    assert "whether it ran is not known" in str(remote_failure("mail::send", "connection_lost", "x"))
