"""Registering prompts, and rendering them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pytest
from tests.registered.stage import House, unique

if TYPE_CHECKING:
    from collections.abc import Callable

GUARDED = [
    "engine::functions::list",
    "state::set",
    "stream::list",
    "iii.on_functions",
    "iii::internal",
    "mcp::handler",
    "a2a::send",
    "skills::list",
    "prompts::list",
]
ARGUMENTS = [{"name": "to", "description": "Who to greet", "required": True}, {"name": "tone"}]


def register(house: House, name: str, function_id: str = "demo::greet", **fields: Any) -> dict[str, Any]:
    given = {"name": name, "description": "Say hello.", "function_id": function_id, **fields}
    return house.call("prompts::register", given)


def user_message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": {"type": "text", "text": text}}


# What is taken


def test_the_record_in_iii_state_has_the_reference_shape_and_names_the_registrant(house: House) -> None:
    name = unique("greet")
    reply = register(house, name, arguments=ARGUMENTS)
    assert reply.keys() == {"name", "registered_at"}
    assert house.stored(name, "prompts") == {
        "name": name,
        "description": "Say hello.",
        "arguments": [
            {"name": "to", "description": "Who to greet", "required": True},
            {"name": "tone", "required": False},
        ],
        "function_id": "demo::greet",
        "registered_at": reply["registered_at"],
        "worker_id": ANY,
        "worker": house.client.name,
        "seal": ANY,
    }


def test_a_row_of_the_list_counts_the_arguments(house: House) -> None:
    name = unique("greet")
    at = register(house, name, arguments=ARGUMENTS)["registered_at"]
    assert house.prompt_rows()[name] == {
        "name": name,
        "description": "Say hello.",
        "function_id": "demo::greet",
        "arguments": 2,
        "registered_at": at,
        "modified_at": at,
        "source": "registered",
        "provenance": ANY,
    }


def test_mcp_clients_get_the_arguments_without_nulls(house: House) -> None:
    name = unique("greet")
    register(house, name, arguments=ARGUMENTS)
    (row,) = [row for row in house.call("prompts::mcp-list")["prompts"] if row["name"] == name]
    assert row == {
        "name": name,
        "description": "Say hello.",
        "arguments": [
            {"name": "to", "required": True, "description": "Who to greet"},
            {"name": "tone", "required": False},
        ],
        "_meta": ANY,
    }


def test_lists_are_sorted_by_name(house: House) -> None:
    for name in ("b-prompt", "a-prompt", "a_prompt", "a0prompt"):
        register(house, name)
    names = [row["name"] for row in house.call("prompts::mcp-list")["prompts"]]
    assert names == sorted(names)
    assert list(house.prompt_rows()) == names
    assert [row["name"] for row in house.call("directory::prompts::list")["prompts"]] == names


def test_registering_again_replaces_and_refreshes(house: House) -> None:
    name = unique("greet")
    first = register(house, name, arguments=ARGUMENTS)["registered_at"]
    second = register(house, name, description="Say goodbye.")["registered_at"]
    assert second > first
    row = house.prompt_rows()[name]
    assert (row["description"], row["arguments"], row["registered_at"]) == ("Say goodbye.", 0, second)


def test_a_name_may_have_64_characters(house: House) -> None:
    assert register(house, "n" * 64)["name"] == "n" * 64


# What is refused


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": ""}, "D211 invalid_input: name must be non-empty"),
        ({"name": "Greet"}, "lowercase"),
        ({"name": "a/b"}, "lowercase"),
        ({"name": "a::b"}, "lowercase"),
        ({"name": "n" * 65}, "too long"),
        ({"name": None}, "D100 invalid_input: field 'name'"),
        ({"description": "  "}, "D211 invalid_input: description must be non-empty"),
        ({"description": None}, "D100 invalid_input: field 'description'"),
        ({"function_id": ""}, "D211 invalid_input: function_id must be non-empty"),
        ({"function_id": 1}, "D100 invalid_input: field 'function_id'"),
        ({"arguments": "to"}, "D100 invalid_input: field 'arguments'"),
        ({"arguments": [{"name": ""}]}, "D211 invalid_input: argument name must be non-empty"),
        ({"arguments": [{"name": "to"}, {"name": "to"}]}, "duplicate argument name"),
        ({"arguments": [{"name": "to", "required": 1}]}, "arguments[].required"),
    ],
)
def test_a_wrong_field_is_refused_and_nothing_is_written(
    house: House, wrong: dict[str, Any], words: str
) -> None:
    before = house.state("prompts")
    given = {"name": unique("greet"), "description": "Say hello.", "function_id": "demo::greet", **wrong}
    assert words in house.refusal("prompts::register", given)
    assert house.state("prompts") == before


# Removing


def test_unregistering_removes_it_once(house: House) -> None:
    name = unique("greet")
    register(house, name)
    assert house.call("prompts::unregister", name=name) == {"name": name, "removed": True}
    assert house.call("prompts::unregister", name=name) == {"name": name, "removed": False}
    assert name not in house.prompt_rows()
    assert "not found" in house.refusal("prompts::mcp-get", name=name)


@pytest.mark.parametrize(
    ("fields", "words"),
    [({}, "field 'name'"), ({"name": ""}, "name must be non-empty"), ({"name": "A"}, "lowercase")],
)
def test_unregistering_a_bad_name_is_refused(house: House, fields: dict[str, Any], words: str) -> None:
    assert words in house.refusal("prompts::unregister", fields)


# Rendering


@pytest.mark.parametrize(
    ("output", "messages"),
    [
        ("Hello.", [user_message("Hello.")]),
        ("", [user_message("")]),
        ({"content": "Hello."}, [user_message("Hello.")]),
        ({"messages": [{"role": "assistant", "content": "x"}]}, [{"role": "assistant", "content": "x"}]),
        ({"messages": []}, []),
        ({"messages": [user_message("a")], "content": "b"}, [user_message("a")]),
        ({"messages": "none", "content": "b"}, [user_message("b")]),
    ],
)
def test_each_shape_a_handler_may_answer_becomes_messages(
    house: House, output: Any, messages: list[Any]
) -> None:
    name = unique("greet")
    register(house, name, house.client.answer(f"{name}::render", output))
    reply = house.call("prompts::mcp-get", name=name)
    assert reply == {"description": "Say hello.", "messages": messages, "_meta": ANY}


@pytest.mark.parametrize("output", [None, 5, [], {}, {"content": 5}, {"messages": {}}, ["Hello."]])
def test_any_other_shape_is_an_error(house: House, output: Any) -> None:
    name = unique("greet")
    register(house, name, house.client.answer(f"{name}::render", output))
    sentence = house.refusal("prompts::mcp-get", name=name)
    assert sentence.startswith("D212 handler_error: ")
    assert "unsupported shape" in sentence


def test_the_handler_gets_the_arguments_as_given(house: House) -> None:
    name = unique("greet")

    async def render(data: dict[str, Any]) -> str:
        data.pop("_caller_worker_id", None)
        return repr(data)

    house.client.offer(f"{name}::render", render)
    register(house, name, f"{name}::render")
    arguments = {"to": "Ann", "unknown": [1]}
    given = house.call("prompts::mcp-get", name=name, arguments=arguments)["messages"]
    assert given == [user_message(repr(arguments))]
    assert house.call("prompts::mcp-get", name=name)["messages"] == [user_message("{}")]
    assert house.call("prompts::mcp-get", name=name, arguments=None)["messages"] == [user_message("{}")]


def test_arguments_that_are_not_an_object_are_refused(house: House) -> None:
    name = unique("greet")
    register(house, name)
    assert "field 'arguments'" in house.refusal("prompts::mcp-get", name=name, arguments=["Ann"])


def test_a_prompt_may_be_registered_before_its_function_exists(house: House) -> None:
    name = unique("early")
    register(house, name, f"{name}::render")
    sentence = house.refusal("prompts::mcp-get", name=name)
    assert sentence.startswith("D411 not_found: ")
    assert f"{name}::render" in sentence
    house.client.answer(f"{name}::render", "Here now.")
    assert house.call("prompts::mcp-get", name=name)["messages"] == [user_message("Here now.")]


@pytest.mark.parametrize("function_id", GUARDED)
def test_the_guard_speaks_when_it_is_rendered_not_before(house: House, function_id: str) -> None:
    name = unique("guarded")
    register(house, name, function_id)
    sentence = house.refusal("prompts::mcp-get", name=name)
    assert sentence.startswith("D120 forbidden: ")
    assert "internal namespace" in sentence


def test_no_prompt_runs_a_function_of_the_engine_or_one_that_changes_the_skills_folder(
    build: Callable[..., House],
) -> None:
    house = build(allow_writing=True)
    functions = house.call("engine::functions::list", include_internal=True)["functions"]
    of_engine = [row["function_id"] for row in functions if row["worker_name"] != "iii-directory"]
    assert "publish" in of_engine
    own = [row["function_id"] for row in functions if row["worker_name"] == "iii-directory"]
    writing = ("create", "update", "delete", "register", "download")
    writers = [one for one in own if one.endswith(writing) or "download_" in one]
    assert "directory::skills::download_from_repo" in writers
    for function_id in {*of_engine, *writers} - {"demo::greet"}:
        register(house, "any", f" {function_id}")
        said = house.refusal("prompts::mcp-get", name="any", arguments={"topic": "t", "data": "mine"})
        assert said.startswith("D120 forbidden: "), function_id


@pytest.mark.parametrize("prefix", ["engineering", "stateful", "directory", "publisher", "workers"])
def test_a_function_whose_namespace_only_begins_like_a_guarded_one_renders(house: House, prefix: str) -> None:
    name = unique("free")
    register(house, name, house.client.answer(f"{prefix}::{name}", "Free."))
    assert house.call("prompts::mcp-get", name=name)["messages"] == [user_message("Free.")]


def test_a_handler_that_throws_is_one_sentence(house: House) -> None:
    name = unique("throws")

    async def render(data: Any) -> str:
        raise ValueError("no such person")

    house.client.offer(f"{name}::render", render)
    register(house, name, f"{name}::render")
    sentence = house.refusal("prompts::mcp-get", name=name)
    assert sentence.startswith("D410 engine_error: ")
    assert "no such person" in sentence
    assert "Traceback" not in sentence


def test_a_handler_that_never_answers_ends_at_the_timeout(build: Callable[..., House]) -> None:
    house = build(state_timeout_ms=50)
    house.client.offer("slow::render", house.client.hold)
    register(house, "slow", "slow::render")
    assert house.refusal("prompts::mcp-get", name="slow").startswith("D410 engine_error: ")


def test_an_unknown_prompt_is_answered_with_close_names(house: House) -> None:
    register(house, "triage-ticket")
    sentence = house.refusal("prompts::mcp-get", name="triage-tikcet")
    assert sentence.startswith("D210 not_found: ")
    assert "Did you mean: triage-ticket" in sentence


# As a document, and beside files


def test_reading_a_registered_prompt_says_how_to_render_it(house: House) -> None:
    name = unique("greet")
    at = register(house, name, arguments=ARGUMENTS)["registered_at"]
    for door in ("directory::prompts::get", "prompts::get"):
        reply = house.call(door, name=name)
        assert reply.keys() == {"name", "description", "body", "modified_at", "provenance"}
        assert (reply["name"], reply["description"], reply["modified_at"]) == (name, "Say hello.", at)
        for words in (
            "`demo::greet`",
            "`to` (required) — Who to greet",
            "`tone` (optional)",
            "prompts::mcp-get",
        ):
            assert words in reply["body"]


def test_a_prompt_of_the_folder_is_one_user_message_with_its_body(house: House) -> None:
    name = unique("file")
    folder = house.folder / "team" / "prompts"
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name}\ndescription: From a file.\narguments: [who]\n---\nGreet them.\n"
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    reply = house.call("prompts::mcp-get", name=name)
    messages = [user_message("Greet them.\n")]
    assert reply == {"description": "From a file.", "messages": messages, "_meta": ANY}
    (row,) = [row for row in house.call("prompts::mcp-list")["prompts"] if row["name"] == name]
    assert row["arguments"] == [{"name": "who", "required": False}]


def test_with_the_guard_off_any_function_renders(build: Callable[..., House]) -> None:
    house = build(section_guard=False)
    register(house, "open", "state::get")
    given = house.refusal("prompts::mcp-get", name="open", arguments={"scope": "skills", "key": "none"})
    assert "unsupported shape" in given
