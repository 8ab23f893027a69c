"""Sections: documents that a function writes when they are read, and fetching them with others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.registered.stage import House, unique

if TYPE_CHECKING:
    from collections.abc import Callable

MARKDOWN, JSON = "text/markdown", "application/json"


def section(house: House, output: Any) -> str:
    """The URI of a section that answers this."""
    worker = unique("worker")
    house.client.answer(f"{worker}::live::status", output)
    return f"iii://fn/{worker}/live/status"


@pytest.mark.parametrize(
    ("output", "mime_type", "text"),
    [
        ("# Live\n", MARKDOWN, "# Live\n"),
        ("", MARKDOWN, ""),
        ({"content": "# Live"}, MARKDOWN, "# Live"),
        ({"content": "# Live", "more": 1}, MARKDOWN, "# Live"),
        ({"content": 5}, JSON, '{\n  "content": 5\n}'),
        ({"ok": "✓"}, JSON, '{\n  "ok": "✓"\n}'),
        ([1, "a"], JSON, '[\n  1,\n  "a"\n]'),
        (7, JSON, "7"),
        (None, JSON, "null"),
    ],
)
def test_what_a_function_answers_becomes_a_document(
    house: House, output: Any, mime_type: str, text: str
) -> None:
    uri = section(house, output)
    assert house.read(uri) == {"uri": uri, "mimeType": mime_type, "text": text}


@pytest.mark.parametrize("path", ["one", "two/parts", "a/b/c/d/e"])
def test_slashes_of_the_path_are_the_colons_of_the_function(house: House, path: str) -> None:
    root = unique("fn")
    house.client.answer(f"{root}/{path}".replace("/", "::"), "here")
    assert house.read(f"iii://fn/{root}/{path}")["text"] == "here"


def test_the_function_is_called_with_an_empty_object(house: House) -> None:
    worker = unique("worker")

    async def status(data: dict[str, Any]) -> dict[str, Any]:
        data.pop("_caller_worker_id", None)
        return {"given": data}

    house.client.offer(f"{worker}::status", status)
    assert house.read(f"iii://fn/{worker}/status")["text"] == '{\n  "given": {}\n}'


@pytest.mark.parametrize(
    "uri",
    [
        "iii://fn/engine/functions/list",
        "iii://fn/state/set",
        "iii://fn/stream/list",
        "iii://fn/iii/internal",
        "iii://fn/mcp/handler",
        "iii://fn/a2a/send",
        "iii://fn/skills/list",
        "iii://fn/prompts/list",
    ],
)
def test_an_internal_namespace_cannot_back_a_section(house: House, uri: str) -> None:
    for function_id in ("skills::resources-read", "skill::fetch"):
        sentence = house.refusal(function_id, uri=uri)
        assert sentence.startswith("D120 forbidden: ")
        assert "internal namespace" in sentence


def test_a_function_with_a_dot_is_not_reachable(house: House) -> None:
    assert "lowercase" in house.refusal("skills::resources-read", uri="iii://fn/iii.on_foo")


@pytest.mark.parametrize("namespace", ["engines", "statement", "directory-x"])
def test_a_namespace_that_only_begins_like_a_guarded_one_is_open(house: House, namespace: str) -> None:
    name = unique("x")
    house.client.answer(f"{namespace}::{name}", "open")
    assert house.read(f"iii://fn/{namespace}/{name}")["text"] == "open"


def test_with_the_guard_off_every_function_is_a_section(build: Callable[..., House]) -> None:
    house = build(section_guard=False)
    assert '"skills"' in house.read("iii://fn/skills/list")["text"]


def test_a_function_that_is_not_there_is_not_found(house: House) -> None:
    sentence = house.refusal("skills::resources-read", uri="iii://fn/nobody/nothing")
    assert sentence.startswith("D411 not_found: ")
    assert "nobody::nothing" in sentence
    assert "not found" in sentence


def test_a_function_that_never_answers_ends_at_the_timeout(build: Callable[..., House]) -> None:
    house = build(state_timeout_ms=50)
    house.client.offer("slow::status", house.client.hold)
    sentence = house.refusal("skills::resources-read", uri="iii://fn/slow/status")
    assert sentence.startswith("D410 engine_error: ")


# Fetching


def test_one_uri_is_one_section(house: House) -> None:
    uri = section(house, "# Live \n\n")
    assert house.call("skill::fetch", uri=uri) == f"# {uri}\n\n# Live"


def test_many_are_joined_in_order(house: House) -> None:
    skill_id = unique("demo")
    house.call("skills::register", id=skill_id, skill="# Stored\n")
    live, data = section(house, "# Live"), section(house, {"a": 1})
    text = house.call("skill::fetch", uris=[live, f"iii://{skill_id}", data, skill_id], uri="iii://skills")
    assert text == "\n\n---\n\n".join(
        (
            f"# {live}\n\n# Live",
            f"# iii://{skill_id}\n\n# Stored",
            f'# {data}\n\n{{\n  "a": 1\n}}',
            f"# iii://{skill_id}\n\n# Stored",
        )
    )


def test_sections_are_read_at_the_same_time_and_keep_their_order(house: House) -> None:
    worker, entered = unique("worker"), asyncio.Event()

    async def first(data: Any) -> str:
        await entered.wait()
        return "first"

    async def second(data: Any) -> str:
        entered.set()
        return "second"

    house.client.offer(f"{worker}::first", first)
    house.client.offer(f"{worker}::second", second)
    uris = [f"iii://fn/{worker}/first", f"iii://fn/{worker}/second"]
    text = house.call("skill::fetch", uris=uris)
    assert text == f"# {uris[0]}\n\nfirst\n\n---\n\n# {uris[1]}\n\nsecond"


def test_blank_uris_are_dropped(house: House) -> None:
    uri = section(house, "here")
    assert house.call("skill::fetch", uris=["", f"  {uri} ", "\n"]) == f"# {uri}\n\nhere"
    assert house.call("skill::fetch", uris=[], uri=uri) == f"# {uri}\n\nhere"


@pytest.mark.parametrize("fields", [{}, {"uri": " "}, {"uris": []}, {"uris": ["", " "]}, {"uri": None}])
def test_nothing_to_fetch_is_refused(house: House, fields: dict[str, Any]) -> None:
    sentence = house.refusal("skill::fetch", fields)
    assert sentence.startswith("D111 invalid_input: ")
    assert "Provide uri" in sentence


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("https://example.org/x", "iii://"),
        ("III://demo", "iii://"),
        ("iii://fn", "missing a function path"),
        ("iii://fn/", "missing a function path"),
        ("iii://a//b", "empty segment"),
        ("iii://a/", "empty segment"),
        ("iii://fn/a//b", "empty segment"),
        ("iii://Demo", "lowercase"),
        ("iii://no-such-thing-anywhere", "not found"),
        ("iii://demo/worker::fn", "iii://fn/worker/fn"),
    ],
)
def test_a_bad_uri_fails_the_call_in_words(house: House, uri: str, words: str) -> None:
    assert words in house.refusal("skill::fetch", uri=uri)
    assert words in house.refusal("skills::resources-read", uri=uri)


def test_one_bad_uri_fails_a_fetch_of_many_and_is_named(house: House) -> None:
    uri = section(house, "here")
    sentence = house.refusal("skill::fetch", uris=[uri, "iii://missing-one"])
    assert "missing-one" in sentence
    assert "not found" in sentence


def test_another_scheme_is_refused_before_anything_is_read(house: House) -> None:
    worker, calls = unique("worker"), list[Any]()

    async def count(data: Any) -> str:
        calls.append(data)
        return "read"

    house.client.offer(f"{worker}::count", count)
    house.refusal("skill::fetch", uris=[f"iii://fn/{worker}/count", "https://example.org"])
    assert calls == []
