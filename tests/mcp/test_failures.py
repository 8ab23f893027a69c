"""How failures on the engine are told."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import pytest

from iii_directory.bus.seam import CallError
from iii_directory.errors import KINDS, SKILL_NOT_FOUND, DirectoryError, ErrorKind
from iii_directory.mcp import upstream
from iii_directory.mcp.default_tools import BY_FUNCTION, ClientView
from iii_directory.mcp.request_handlers import Tools
from iii_directory.mcp.upstream import BridgeError, unreachable

INVALID_PARAMS, INTERNAL_ERROR, RESOURCE_NOT_FOUND = -32602, -32603, -32002


def remote_failure(function_id: str, code: str, message: str, data: object = None) -> BridgeError:
    return upstream.remote_failure(function_id, CallError(code, message, data=data))


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
    error = DirectoryError(SKILL_NOT_FOUND, "skill 'cofee' not found", did_you_mean=["coffee"])

    names = {"directory::skills::list": "directory__skills__list", "directory::search": "search"}
    failure = remote_failure("a::b", "invocation_failed", str(error), error.data())
    told = failure.told(ClientView(tools=names))

    assert told.startswith("D110 not_found: skill 'cofee' not found. Did you mean: coffee. Next: ")
    assert "Next: call directory__skills__list to see every skill id; or call search with words" in told


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_a_next_step_never_names_a_tool_that_the_client_does_not_see(kind: ErrorKind) -> None:
    small = {one: tool.name for one, tool in BY_FUNCTION.items()}
    error = DirectoryError(kind, "it went wrong")
    told = remote_failure("a::b", "invocation_failed", str(error), error.data()).told(ClientView(tools=small))

    assert "::" not in told
    assert set(re.findall(r"call (\w+__\w+|search)", told)) <= set(small.values())


def test_a_sentence_without_data_is_not_rewritten() -> None:
    sentence = str(DirectoryError(SKILL_NOT_FOUND, "skill 'cofee' not found"))

    assert str(remote_failure("a::b", "invocation_failed", sentence)) == sentence


@pytest.mark.parametrize(
    "data",
    [
        None,
        "D110",
        {"code": "D999", "problem": "no"},
        {"code": "D110", "problem": 7},
        {"code": "D110", "problem": "no", "did_you_mean": [7]},
        {"code": "D110", "problem": "no", "next_steps": "later"},
    ],
)
def test_data_that_is_not_an_error_s_leaves_the_sentence(data: object) -> None:
    assert str(remote_failure("a::b", "invocation_failed", "a sentence", data)) == "a sentence"


def test_a_next_step_in_another_shape_is_left_out() -> None:
    steps = [{"words": "do this", "function": "", "payload": None}, {"words": 7}, "later"]

    told = remote_failure(
        "a::b", "x", "", {"code": "D110", "problem": "no", "did_you_mean": [], "next_steps": steps}
    )

    assert str(told) == "D110 not_found: no. Next: do this."


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


def test_a_step_that_names_a_function_of_a_directory_that_was_just_arriving_is_told() -> None:
    """An event may come when only some of a directory's functions are registered."""
    functions = [{"function_id": one} for one in BY_FUNCTION]

    async def call(*_: object, **__: object) -> object:
        return {"functions": functions}

    upstream: Any = SimpleNamespace(namespace="default", missing=set(), call=call)
    tools = Tools(upstream, ())
    list(tools.changes({"functions": functions[:1]}))
    failure = BridgeError(DirectoryError(SKILL_NOT_FOUND, "skill 'cofee' not found"))

    assert "Next: call directory__skills__list to see every skill id" in asyncio.run(tools.told(failure))
