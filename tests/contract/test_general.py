"""§1: one catalogue behind every door, and what holds for every function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.places import embedded_only
from tests.contract.requirements import requirement
from tests.support.engine import RawClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.reader import Reader

FETCHES = ("skills::fetch_skill", "skill::fetch", "directory::skills::fetch-skill")
READING = {
    "v0.2": {
        "skills::resources-list",
        "skills::resources-read",
        "skills::resources-templates",
        "skills::list",
        "skills::fetch_skill",
        "skill::fetch",
        "prompts::list",
    },
    "v0.4": {"skills::list", "skills::fetch_skill", "skill::fetch", "prompts::list", "prompts::get"},
    "v0.5": {"directory::skills::fetch-skill"},
    "v0.8": {
        "directory::skills::get",
        "directory::skills::list",
        "directory::skills::index",
        "directory::prompts::list",
        "directory::prompts::get",
    },
}
ALWAYS = {
    "directory::diagnostics",
    "directory::skills::explain",
    "directory::skills::files",
    "directory::skills::file",
}
EVERY = ALWAYS.union(*READING.values())


def registered(directory: Reader) -> set[str]:
    rows = directory.call("engine::functions::list", worker="iii-directory", include_internal=True)
    return {row["function_id"] for row in rows["functions"]}


@requirement("catalogue.one")
def test_a_document_is_found_through_the_doors_of_every_generation(directory: Reader) -> None:
    directory.skills.write("db/query.md", "# Query\n\nHow to query.\n")

    assert directory.body("db/query") == "# Query\n\nHow to query.\n"
    assert "db/query" in directory.ids()
    assert "db/query" in {row["id"] for row in directory.call("skills::list")["skills"]}
    assert "iii://db/query" in {row["uri"] for row in directory.call("skills::resources-list")["resources"]}
    assert directory.read_uri("iii://db/query")["text"] == "# Query\n\nHow to query.\n"
    for function in FETCHES:
        assert (
            directory.call(function, uri="iii://db/query") == "# iii://db/query\n\n# Query\n\nHow to query."
        )


OTHERS = {
    "skills::register",
    "skills::unregister",
    "prompts::register",
    "prompts::unregister",
    "prompts::mcp-list",
    "prompts::mcp-get",
    "skills::download",
    "directory::function-list",
    "directory::function-info",
    "directory::trigger-list",
    "directory::trigger-info",
    "directory::registered-trigger-list",
    "directory::registered-trigger-info",
    "directory::worker-list",
    "directory::worker-info",
    "registry::worker-list",
    "registry::worker-info",
    "directory::skills::download",
    "directory::skills::download_from_registry",
    "directory::skills::download_from_repo",
    "directory::registry::workers::list",
    "directory::registry::workers::info",
    "directory::engine::functions::info",
    "directory::__on_worker_added",
}


@requirement("catalogue.functions", "surfaces.all-by-default")
def test_every_function_of_every_generation_is_registered_by_default(directory: Reader) -> None:
    assert len((EVERY | OTHERS) - ALWAYS) == 38
    assert (EVERY | OTHERS) - registered(directory) == set()


@pytest.mark.parametrize("generation", READING)
@requirement("surfaces.switch-off")
def test_a_generation_alone_brings_its_own_functions(start: Callable[..., Reader], generation: str) -> None:
    directory = start(surfaces=(generation,))

    assert registered(directory) & EVERY == READING[generation] | ALWAYS


@requirement("payload.caller-and-unknown-fields")
def test_unknown_fields_are_ignored(directory: Reader) -> None:
    directory.skills.document("db.md", "DB")

    answer = directory.call("directory::skills::get", id="db", _caller_worker_id="x", verbose=[1])

    assert answer["title"] == "DB"


@embedded_only
@pytest.mark.parametrize("message", [{"data": None}, {}], ids=["null", "missing"])
@requirement("payload.none")
def test_no_payload_is_an_empty_one(directory: Reader, message: dict[str, Any]) -> None:
    with RawClient(directory.url) as client:
        for function in ("directory::skills::list", "skills::resources-list", "directory::prompts::list"):
            client.send(type="invokefunction", function_id=function, invocation_id=WELL_KNOWN, **message)
            reply = client.receive_type("invocationresult")
            assert "error" not in reply
            assert isinstance(reply["result"], dict)


WELL_KNOWN = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


WRONG_TYPES: list[tuple[str, dict[str, Any], str, str]] = [
    ("directory::skills::get", {"id": 7}, "id", "a string"),
    ("directory::skills::get", {"id": None}, "id", "a string"),
    ("directory::skills::list", {"search": []}, "search", "a string"),
    ("directory::skills::list", {"prefix": 1}, "prefix", "a string"),
    ("directory::skills::list", {"type": {}}, "type", "a string"),
    ("directory::skills::list", {"include_description": "no"}, "include_description", "true or false"),
    ("directory::prompts::get", {"name": True}, "name", "a string"),
    ("prompts::get", {"name": []}, "name", "a string"),
    ("skills::resources-read", {"uri": 1.5}, "uri", "a string"),
    ("skill::fetch", {"uri": {}}, "uri", "a string"),
    ("skill::fetch", {"uris": "iii://skills"}, "uris", "a list of strings"),
    ("directory::skills::fetch-skill", {"uris": ["a", 1]}, "uris", "a list of strings"),
]


@requirement("payload.wrong-type")
def test_a_wrong_type_is_named_with_what_was_expected(directory: Reader) -> None:
    for function, payload, field, expected in WRONG_TYPES:
        sentence = directory.refusal(function, **payload)
        assert sentence.startswith(f"D100 invalid_input: field '{field}' must be "), (function, payload)
        assert expected in sentence, (function, payload)


REQUIRED = {
    "directory::skills::get": "id",
    "directory::prompts::get": "name",
    "prompts::get": "name",
    "skills::resources-read": "uri",
}


@requirement("payload.missing-field")
def test_a_missing_field_is_named_with_what_was_expected(directory: Reader) -> None:
    for function, field in REQUIRED.items():
        sentence = directory.refusal(function)
        assert sentence.startswith(f"D100 invalid_input: field '{field}' must be given, as a string")


@pytest.mark.parametrize("data", ["text", 7, [1]], ids=["text", "number", "list"])
@requirement("payload.wrong-type")
def test_a_payload_that_is_not_an_object_is_refused(directory: Reader, data: object) -> None:
    with RawClient(directory.url) as client:
        reply = client.call("directory::skills::list", data)

    assert reply["error"]["message"].startswith("D100 invalid_input: the payload must be an object")


@requirement("functions.described")
def test_every_function_says_what_it_is_for_and_what_it_takes_and_answers(directory: Reader) -> None:
    for function in EVERY:
        info = directory.call("engine::functions::info", function_id=function)

        assert len(info["description"]) > 40, function
        assert info["request_schema"]["type"] == "object", function
        if function != "skill::fetch":
            assert info["response_schema"]["type"] in ("object", "string"), function


@requirement("skill-fetch.no-response-schema", "skill-fetch.exposed")
def test_skill_fetch_is_made_for_bridges(directory: Reader) -> None:
    info = directory.call("engine::functions::info", function_id="skill::fetch")

    assert info.get("response_schema") is None
    assert "uri" in info["description"].split()
    assert "uris" in info["description"].split()
    assert info["metadata"]["mcp.expose"] is True
    assert info["metadata"]["mcp"] == {"expose": True}
