"""Generated bodies: indexes, overviews, descriptions of prompts."""

from __future__ import annotations

from iii_directory.catalog.skill_indexes import registered_prompt_body, worker_overview
from iii_directory.documents.model import Prompt, PromptArgument, Provenance

REGISTERED = Provenance("registered", worker="mail", worker_id="w1")


def test_a_registered_prompt_says_who_renders_it_and_how_to_call_it() -> None:
    arguments = (PromptArgument("to", "Who", required=True), PromptArgument("cc"))

    body = registered_prompt_body(
        Prompt("send", "Sends\nmail.", "", REGISTERED, None, "mail::render", arguments)
    )

    assert body == (
        "# send\n\nSends mail.\n\nThe function `mail::render` renders this prompt.\n\n"
        "- `to` (required) — Who\n- `cc` (optional)\n\n"
        'Render it: `prompts::mcp-get {"name": "send", "arguments": {"to": "…", "cc": "…"}}`\n'
    )


def test_a_prompt_without_arguments_lists_none() -> None:
    body = registered_prompt_body(Prompt("send", "Sends.", "", REGISTERED, None, "mail::render"))

    assert '`prompts::mcp-get {"name": "send", "arguments": {}}`' in body
    assert "- `" not in body


def test_an_overview_of_a_worker_lists_its_functions_in_order() -> None:
    body = worker_overview("iii-http", "Serves\nHTTP.", [("http::b", ""), ("http::a", "Does [a](iii://x).")])

    assert body.startswith(
        "# iii-http\n\nServes HTTP.\n\n## Functions\n\n- `http::a` — Does a.\n- `http::b`\n"
    )
    assert "directory::engine::functions::info" in body


def test_a_worker_the_engine_knows_nothing_of_still_gets_an_overview() -> None:
    assert worker_overview("x", " ", []) == (
        "# x\n\nThis worker ships no documents.\n\nIt has no functions on this engine right now.\n"
    )


def test_an_overview_of_a_worker_with_many_functions_stays_short() -> None:
    body = worker_overview("x", "", [(f"x::f{number:03}", "") for number in range(120)])

    assert body.count("- `x::f") == 50
    assert "- and 70 more: `directory::function-list`" in body
