"""§4: the batched read under its three names, and sections that functions write."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.requirements import requirement

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.reader import OtherWorker, Reader

FETCHES = ("skills::fetch_skill", "skill::fetch", "directory::skills::fetch-skill")
GUARDED = ("engine", "state", "stream", "iii", "mcp", "a2a", "skills", "prompts")


@pytest.fixture(params=FETCHES)
def fetch(request: pytest.FixtureRequest) -> str:
    """Each of the three names."""
    return request.param


@requirement("fetch.sections", "fetch.uris-win", "fetch.bare-path")
def test_documents_are_joined_under_their_addresses(directory: Reader, fetch: str) -> None:
    directory.skills.write("a.md", "# A\n\nText. \n\n\n")
    directory.skills.write("b/c.md", "# C")

    one = directory.call(fetch, uri="iii://a")
    several = directory.call(fetch, uri="iii://nope", uris=["iii://b/c", " ", "a", "", " b/c "])

    assert one == "# iii://a\n\n# A\n\nText."
    assert several == "\n\n---\n\n".join(
        ["# iii://b/c\n\n# C", "# iii://a\n\n# A\n\nText.", "# iii://b/c\n\n# C"]
    )
    assert directory.call(fetch, uri="a", uris=[]) == one
    assert directory.call(fetch, uri="skills").startswith("# iii://skills\n\n# Skills\n")


@requirement("fetch.nothing-left", "messages.fragments")
def test_nothing_to_read_is_said(directory: Reader, fetch: str) -> None:
    directory.skills.document("a.md", "A")

    empty: list[dict[str, Any]] = [
        {},
        {"uri": ""},
        {"uri": " \t"},
        {"uris": []},
        {"uris": ["", " "]},
        {"uri": "a", "uris": ["", " "]},
    ]
    for payload in empty:
        sentence = directory.refusal(fetch, **payload)
        assert sentence.startswith("D111 invalid_input: "), payload
        assert "Provide uri" in sentence, payload


@requirement("fetch.other-scheme", "fetch.one-failure")
def test_another_scheme_is_refused_before_anything_is_read(
    directory: Reader, other: OtherWorker, fetch: str
) -> None:
    called: list[Any] = []
    other.offer("probe::run", called.append)

    sentence = directory.refusal(fetch, uris=["iii://fn/probe/run", "https://example.com/x"])

    assert sentence.startswith("D111 invalid_input: ")
    assert "https://example.com/x" in sentence
    assert called == []


@requirement("fetch.one-failure")
def test_one_failure_fails_the_call_and_names_its_address(directory: Reader, fetch: str) -> None:
    directory.skills.document("a.md", "A")

    missing = directory.refusal(fetch, uris=["a", "iii://gone", "a"])
    malformed = directory.refusal(fetch, uris=["a", "iii://bad name"])

    assert missing.startswith("D110 not_found: ")
    assert "iii://gone" in missing
    assert malformed.startswith("D111 ")
    assert "iii://bad name" in malformed


@requirement("fetch.concurrent")
def test_reads_run_at_the_same_time_and_keep_their_order(directory: Reader, other: OtherWorker) -> None:
    arrived: list[str] = []
    both_in: asyncio.Event | None = None

    async def meet(name: str) -> str:
        # Each answers only when the other was asked too: one after the other would never end.
        nonlocal both_in
        both_in = both_in or asyncio.Event()
        arrived.append(name)
        if len(arrived) == 2:
            both_in.set()
        await asyncio.wait_for(both_in.wait(), 5)
        return name

    other.offer("meet::first", lambda _: meet("first"))
    other.offer("meet::second", lambda _: meet("second"))

    text = directory.call("skill::fetch", uris=["fn/meet/second", "fn/meet/first"])

    assert text == "# iii://fn/meet/second\n\nsecond\n\n---\n\n# iii://fn/meet/first\n\nfirst"


@requirement("sections.markdown", "sections.json", "uris.section")
def test_what_a_function_answers_is_served_by_its_shape(directory: Reader, other: OtherWorker) -> None:
    answers: dict[str, Any] = {
        "text": "# Plain ü",
        "content": {"content": "# Content", "more": 1},
        "data": {"a": "x", "ü": [1, {"b": None}]},
        "other-content": {"content": 7},
        "list": [1, 2],
        "nothing": None,
        "number": 7,
    }
    for name, answer in answers.items():
        other.offer(f"shape::{name}", lambda _, answer=answer: answer)

    contents = {name: directory.read_uri(f"iii://fn/shape/{name}") for name in answers}

    assert contents["text"]["mimeType"] == contents["content"]["mimeType"] == "text/markdown"
    assert contents["text"]["text"] == "# Plain ü"
    assert contents["content"]["text"] == "# Content"
    for name in ("data", "other-content", "list", "nothing", "number"):
        assert contents[name]["mimeType"] == "application/json"
        assert contents[name]["text"] == json.dumps(answers[name], indent=2, ensure_ascii=False)
    assert directory.call("skill::fetch", uri="iii://fn/shape/data") == (
        '# iii://fn/shape/data\n\n{\n  "a": "x",\n  "ü": [\n    1,\n    {\n      "b": null\n    }\n  ]\n}'
    )


@requirement("sections.timeout")
def test_a_section_that_takes_too_long_is_given_up(start: Callable[..., Reader], other: OtherWorker) -> None:
    directory = start(state_timeout_ms=50)
    other.offer("slow::run", lambda _: asyncio.sleep(5))

    sentence = directory.refusal("skill::fetch", uri="iii://fn/slow/run")

    assert sentence.startswith("D410 engine_error: ")
    assert "slow::run" in sentence


@requirement("sections.failure", "errors.codes")
def test_a_section_that_fails_is_one_sentence(directory: Reader, other: OtherWorker) -> None:
    def explode(_: Any) -> None:
        raise RuntimeError("kaboom")

    other.offer("broken::run", explode)

    failed = directory.failure("skills::resources-read", uri="iii://fn/broken/run")
    missing = directory.failure("skills::resources-read", uri="iii://fn/nobody/home")

    assert failed.message.startswith("D410 engine_error: function 'broken::run' failed")
    assert missing.message.startswith("D411 not_found: function 'nobody::home' not found")
    for error in (failed, missing):
        assert "\n" not in error.message
        assert "Traceback" not in error.message
        assert 'File "' not in (error.stacktrace or "")


@requirement("guard.on", "messages.fragments")
def test_internal_functions_cannot_back_a_section(directory: Reader, fetch: str) -> None:
    for namespace in GUARDED:
        sentence = directory.refusal(fetch, uri=f"iii://fn/{namespace}/anything")
        assert sentence.startswith("D120 forbidden: "), namespace
        assert "internal namespace" in sentence
    # Only whole namespaces are guarded.
    assert directory.refusal(fetch, uri="iii://fn/statement/run").startswith("D411 ")


@requirement("guard.off")
def test_without_the_guard_a_section_may_call_anything(start: Callable[..., Reader]) -> None:
    directory = start(section_guard=False)

    content = directory.read_uri("iii://fn/engine/workers/list")

    assert content["mimeType"] == "application/json"
    assert "iii-directory" in content["text"]
