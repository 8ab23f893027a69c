"""Which functions are tools, and how they are shown."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.mcp.stage import http_bridge, session
from tests.support.engine import WAIT, EngineThread, RawClient
from tests.support.reader import OtherWorker

from iii_directory.documents.uris import GUARDED_PREFIXES
from iii_directory.errors import KINDS
from iii_directory.limits import MAX_TOOL_DESCRIPTION_CHARS
from iii_directory.mcp.exposure import (
    OFFERED,
    exposed,
    input_schema,
    is_internal,
    result_text,
    tool_row,
)
from iii_directory.worker.surfaces import functions_of

ALL = ("*", "*::*", "[a-z]*")


def row(function_id: str, **fields: Any) -> dict[str, Any]:
    return {"function_id": function_id, "namespace": "default", **fields}


def ids(rows: list[dict[str, Any]], *globs: str) -> list[str]:
    return [tool.function_id for tool in exposed(rows, globs, "default")]


def test_without_being_asked_only_the_directorys_functions_are_tools() -> None:
    rows = [row("skill::fetch"), row("mail::send"), row("directory::skills::get"), row("publish")]

    assert ids(rows) == ["directory::skills::get", "skill::fetch"]


@pytest.mark.parametrize(
    ("metadata", "claims"),
    [
        ({"sections": "read-only"}, True),
        ({"sections": "all"}, False),
        ({}, False),
        (None, False),
        ("x", False),
    ],
)
def test_a_fetch_says_it_only_reads_where_its_directory_says_so(metadata: object, claims: bool) -> None:
    (tool,) = exposed([row("skill::fetch", metadata=metadata)], (), "default")

    assert tool_row(tool, {})["annotations"]["readOnlyHint"] is claims


def test_seventy_long_descriptions_and_schemas_make_a_short_list() -> None:
    rows = [row(f"mail::f{number}") for number in range(70)]
    huge = {"type": "object", "properties": {"a": {"description": "x" * 1_000_000}}}
    detail = {"description": "y" * 1_000_000, "request_schema": huge}

    listed = [tool_row(tool, detail) for tool in exposed(rows, ("mail::*",), "default")]

    assert len(str(listed)) < 70 * (MAX_TOOL_DESCRIPTION_CHARS + 500)
    assert all(row["inputSchema"] == {"type": "object"} for row in listed)


def test_a_glob_asks_for_more() -> None:
    rows = [row("mail::send"), row("mail::list"), row("orders::list"), row("Mail::send")]

    assert ids(rows, "mail::*") == ["mail::list", "mail::send"]
    assert ids(rows, "*::list", "Mail::*") == ["Mail::send", "mail::list", "orders::list"]


@pytest.mark.parametrize("prefix", GUARDED_PREFIXES)
def test_an_internal_namespace_is_never_a_tool(prefix: str) -> None:
    assert ids([row(f"{prefix}thing"), row(f" {prefix}thing")], *ALL, f"{prefix}*") == []


def test_a_function_marked_internal_is_never_a_tool() -> None:
    hidden = row("directory::__on_worker_added", metadata={"internal": True})

    assert ids([hidden], *ALL) == []
    assert not is_internal(row("a::b", metadata={"internal": "yes"}))
    assert not is_internal(row("a::b", metadata="internal"))


def test_a_function_of_another_namespace_is_not_a_tool() -> None:
    assert ids([row("mail::send") | {"namespace": "elsewhere"}], *ALL) == []
    assert ids([{"function_id": "mail::send"}], *ALL) == ["mail::send"]


def test_the_same_id_in_two_namespaces_is_one_tool() -> None:
    assert ids([row("mail::send"), row("mail::send") | {"namespace": "other"}], *ALL) == ["mail::send"]


def test_what_is_offered_is_what_the_worker_has() -> None:
    known = {one.id for one in functions_of(frozenset({"v0.2", "v0.4", "v0.5", "v0.8"}))}

    assert set(OFFERED) <= known


def test_search_goes_by_its_short_name_unless_another_function_has_it() -> None:
    names = {one.function_id: one.name for one in exposed([row("directory::search")], (), "default")}
    assert names == {"directory::search": "search"}

    taken = exposed([row("directory::search"), row("search")], ("search",), "default")
    assert {one.function_id: one.name for one in taken} == {
        "directory::search": "directory__search",
        "search": "search",
    }


def test_every_function_that_an_error_sends_an_agent_to_is_a_tool() -> None:
    named = {step.function for kind in KINDS for step in kind.next_steps if step.function}

    assert named <= set(OFFERED)


def test_a_read_may_go_unasked_and_an_install_may_not() -> None:
    assert OFFERED["skill::fetch"].as_annotations() == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert OFFERED["directory::skills::download_from_repo"].as_annotations() == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": True,
        "openWorldHint": True,
    }


WRITES = ["directory::skills::create", "directory::skills::delete", "directory::skills::update"]


@pytest.mark.parametrize("allowed", [True, False])
def test_writing_is_a_destructive_tool_where_the_operator_allows_it(allowed: bool) -> None:
    told = [row(one) | {"metadata": {"allow_writing": allowed}} for one in WRITES]

    assert ids(told) == (WRITES if allowed else [])
    assert ids(told, "directory::*") == (WRITES if allowed else [])
    assert all(one.hints.as_annotations()["destructiveHint"] for one in exposed(told, (), "default"))


def test_a_description_is_cleaned() -> None:
    (tool,) = exposed([row("mail::send")], ["mail::*"], "default")
    shown = tool_row(tool, {"description": "Send\x1b[31m\nmail \u202enow\u200b"})

    assert shown["description"] == "Send[31m mail now"
    for nothing in (7, None, "", "\n"):
        assert tool_row(tool, {"description": nothing})["description"] == "Calls mail::send on the engine."


def test_a_usable_schema_is_the_functions_own() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": True},
        "required": ["a"],
        "$defs": {},
    }

    assert input_schema(schema) is schema


@pytest.mark.parametrize(
    "schema",
    [
        None,
        "object",
        {"type": "string"},
        {"properties": {}},
        {"type": ["object", "null"]},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": 1}},
        {"type": "object", "required": "a"},
        {"type": "object", "required": [1]},
        {"type": "object", "$schema": 1},
    ],
)
def test_a_schema_no_client_could_use_becomes_one_that_takes_any_object(schema: object) -> None:
    assert input_schema(schema) == {"type": "object"}


def test_a_text_is_passed_on_and_anything_else_is_json() -> None:
    assert result_text("# A\n") == "# A\n"
    assert result_text({"a": [1, "é"]}) == '{"a":[1,"é"]}'
    assert result_text(None) == "null"


def test_a_tool_that_means_less_by_default_says_so() -> None:
    function_id = "directory::registry::workers::info"
    (tool,) = exposed([row(function_id)], (), "default")
    schema = next(one.request for one in functions_of(frozenset({"v0.8"})) if one.id == function_id)

    shown = tool_row(tool, {"request_schema": schema})["inputSchema"]["properties"]

    assert (shown["schemas"]["default"], shown["readme"]["default"]) == (False, False)
    assert schema["properties"]["schemas"]["default"] is True
    assert tool_row(tool, {})["inputSchema"] == {"type": "object"}


def test_a_call_has_the_defaults_that_the_tool_tells() -> None:
    with EngineThread() as engine, OtherWorker(engine.url) as other:
        other.offer(
            "directory::registry::workers::info",
            lambda data: [data[key] for key in ("name", "schemas", "readme")],
        )
        with http_bridge(engine.url) as url, session(url, "2026") as client:
            told = client.call("directory__registry__workers__info", name="db", readme=True)

    assert json.loads(told) == ["db", False, True]


TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "baggage": "user=alice"}


@pytest.mark.parametrize("era", ["2025", "2026"])
def test_the_trace_of_a_call_reaches_the_function(era: Any) -> None:
    with (
        EngineThread() as engine,
        RawClient(engine.url) as worker,
        ThreadPoolExecutor() as pool,
        http_bridge(engine.url, expose=["mail::*"]) as url,
        session(url, era) as client,
    ):
        worker.announce("mailer")
        worker.send(type="registerfunction", id="mail::send")
        for meta in (TRACE, {"traceparent": 7}):
            answer = pool.submit(client.ask, "call_tool", "mail__send", {}, meta=meta)
            asked = worker.receive_type("invokefunction")
            named = {"function_id": "mail::send", "invocation_id": asked["invocation_id"]}
            worker.send(type="invocationresult", result="sent", **named)

            assert answer.result(WAIT).content[0].text == "sent"
            assert {key: asked[key] for key in TRACE if key in asked} == (meta if meta is TRACE else {})
