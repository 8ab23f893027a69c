"""§5 and §6: prompts of the folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.contract.requirements import requirement

if TYPE_CHECKING:
    from tests.support.reader import Reader


@pytest.fixture
def desk(directory: Reader) -> Reader:
    """A directory with two prompts."""
    directory.skills.write(
        "resend/prompts/send-email.md",
        "---\ndescription: Compose an email\narguments:\n  - name: to\n    required: true\n"
        "  - name: subject\n---\nWrite to {{to}}.\n",
    )
    directory.skills.write("git/prompts/triage.md", "---\ndescription: Sort issues\n---\nSort them.\n")
    return directory


@requirement("prompts.list")
def test_prompts_are_listed_by_name(desk: Reader) -> None:
    rows = desk.call("directory::prompts::list")["prompts"]

    assert [(row["name"], row["description"]) for row in rows] == [
        ("send-email", "Compose an email"),
        ("triage", "Sort issues"),
    ]
    assert {key for row in rows for key in row} == {"name", "description", "modified_at", "provenance"}


@requirement("shared.prompts-list")
def test_the_shared_list_has_the_fields_of_both_generations(desk: Reader) -> None:
    rows = desk.call("prompts::list")["prompts"]

    assert rows[0] == {
        "name": "send-email",
        "description": "Compose an email",
        "function_id": None,
        "arguments": 2,
        "registered_at": rows[0]["modified_at"],
        "modified_at": rows[0]["modified_at"],
        "source": "folder",
        "provenance": {"kind": "file", "root": "skills"},
    }
    assert [row["arguments"] for row in rows] == [2, 0]


@pytest.mark.parametrize("function", ["directory::prompts::get", "prompts::get"])
@requirement("prompts.get")
def test_a_prompt_is_read_as_plain_fields(desk: Reader, function: str) -> None:
    reply = desk.call(function, name="send-email")

    assert reply == {
        "name": "send-email",
        "description": "Compose an email",
        "body": "Write to {{to}}.\n",
        "modified_at": desk.call("directory::prompts::list")["prompts"][0]["modified_at"],
        "provenance": {"kind": "file", "root": "skills"},
    }


@pytest.mark.parametrize("function", ["directory::prompts::get", "prompts::get"])
@requirement("prompts.miss", "errors.codes")
def test_a_miss_names_close_prompts_and_nothing_unrelated(desk: Reader, function: str) -> None:
    close = desk.refusal(function, name="send-emial")
    far = desk.refusal(function, name="weather")

    assert close.startswith("D210 not_found: prompt 'send-emial' not found. Did you mean: send-email.")
    assert "triage" not in close
    assert far.startswith("D210 not_found: prompt 'weather' not found.")
    assert "Did you mean" not in far
    for sentence in (close, far):
        assert "Next: call directory::prompts::list" in sentence


@requirement("prompts.get", "folder.fresh")
def test_an_edited_or_deleted_prompt_is_seen_by_the_next_read(desk: Reader) -> None:
    desk.skills.write("git/prompts/triage.md", "---\ndescription: Sort it\n---\nSort this.\n")
    assert desk.call("directory::prompts::get", name="triage")["body"] == "Sort this.\n"

    desk.skills.remove("git/prompts/triage.md")
    assert desk.refusal("directory::prompts::get", name="triage").startswith("D210 ")


def message(desk: Reader, name: str, **arguments: object) -> str:
    """The one message that a prompt renders to."""
    (only,) = desk.call("prompts::mcp-get", name=name, arguments=arguments)["messages"]
    assert (only["role"], only["content"]["type"]) == ("user", "text")
    return only["content"]["text"]


@requirement("prompts.arguments")
def test_declared_arguments_take_their_places_in_a_prompt_of_the_folder(desk: Reader) -> None:
    desk.skills.write(
        "git/prompts/fix.md",
        "---\ndescription: Fix it\narguments:\n  - name: issue\n    required: true\n  - name: how\n---\n"
        "Fix {{issue}} ($1) {{ how }}, all of it: $ARGUMENTS. Not {{other}}, $3 or {issue}.\n",
    )

    assert message(desk, "send-email", to="Ada {{subject}}") == "Write to Ada {{subject}}.\n"
    assert message(desk, "fix", issue="#7", how="soon") == (
        "Fix #7 (#7) soon, all of it: #7 soon. Not {{other}}, $3 or {issue}.\n"
    )
    assert message(desk, "fix", issue=7) == "Fix 7 (7) , all of it: 7. Not {{other}}, $3 or {issue}.\n"
    assert message(desk, "triage") == "Sort them.\n"


@requirement("prompts.arguments")
def test_a_required_argument_that_is_missing_is_an_error_that_names_it(desk: Reader) -> None:
    for arguments in ({}, {"subject": "x"}, {"to": None}):
        sentence = desk.refusal("prompts::mcp-get", name="send-email", arguments=arguments)
        assert "prompt 'send-email' needs the argument 'to'" in sentence
        assert "Next: call prompts::mcp-get with the argument in 'arguments'" in sentence
    # Reading the template needs none.
    assert desk.call("directory::prompts::get", name="send-email")["body"] == "Write to {{to}}.\n"
