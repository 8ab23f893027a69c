"""The official ``mcp`` worker in front of this directory: its calls, as it makes them, and what it passes on.

One conversation was recorded on a real engine, with the worker itself between an MCP client and this
directory: ``data/official_worker.json``. Later versions of the worker pass a request's params on as they
came, and shorten the answers; those calls are written down from its sources. It hands the answers to MCP
clients as they are, so each must be what the protocol wants. It takes "not found" in a failure for a missing
worker, and answers nothing instead.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import (
    CallToolResult,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
)
from tests.registered.stage import House
from tests.support.engine import EngineThread, RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

META = {"_meta": {"progressToken": 7}}
RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "official_worker.json").read_text())
SHAPES: dict[str, type[BaseModel]] = {
    "resources/list": ListResourcesResult,
    "resources/read": ReadResourceResult,
    "resources/templates/list": ListResourceTemplatesResult,
    "prompts/list": ListPromptsResult,
    "prompts/get": GetPromptResult,
}


class OfficialWorker:
    """Its half of the conversation, over the wire."""

    def __init__(self, url: str) -> None:
        self._client = RawClient(url, name="mcp", runtime="rust", version="0.5.9")

    def asked(self, function_id: str, payload: Any) -> Any:
        """What it is answered; it sends no namespace."""
        return self._client.result(function_id, payload)

    def error(self, function_id: str, payload: Any) -> dict[str, str]:
        return self._client.call(function_id, payload)["error"]

    def close(self) -> None:
        self._client.socket.close()


@pytest.fixture
def worker(engine: EngineThread, tmp_path: Path) -> Iterator[OfficialWorker]:
    house = House(engine.url, tmp_path / "skills")
    house.call("skills::register", id="resend", skill="# resend\n\nSends email.")
    house.call("skills::register", id="resend/email", skill="# Email\n\nHow to send one.")
    house.client.answer("resend::compose", {"content": "Write to Ada."})
    house.client.answer("resend::health", {"content": "# Health\n\nok"})
    house.call(
        "prompts::register",
        name="send-email",
        description="Compose an email",
        arguments=[{"name": "to", "description": "Who gets it", "required": True}],
        function_id="resend::compose",
    )
    made = OfficialWorker(engine.url)
    yield made
    made.close()
    house.close()


# What was recorded


@pytest.fixture(scope="module")
def recorded_worker(engine_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfficialWorker]:
    """The worker beside a directory with what it had when the conversation was recorded."""
    set_up, folder = RECORDED["set_up"], tmp_path_factory.mktemp("skills")
    for path, text in set_up["files"].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    house = House(engine_url, folder)
    for call in set_up["calls"]:
        house.call(call["function_id"], call["payload"])
    for function_id, value in set_up["functions"].items():
        house.client.answer(function_id, value)
    made = OfficialWorker(engine_url)
    yield made
    made.close()
    house.close()


@pytest.mark.parametrize(
    "row", RECORDED["conversation"], ids=lambda row: f"{row['method']}-{list(row['payload'].values())[:1]}"
)
def test_every_call_of_the_recorded_conversation_is_answered_as_it_was(
    recorded_worker: OfficialWorker, row: dict[str, Any]
) -> None:
    if "error" in row:
        message = recorded_worker.error(row["function_id"], row["payload"])["message"]
        assert message.partition(". Next: ")[0] == row["error"]
        return
    answer = recorded_worker.asked(row["function_id"], row["payload"])
    assert as_recorded(row, answer) == row["result"]
    if row["method"] in SHAPES:
        SHAPES[row["method"]].model_validate(answer)


def as_recorded(row: dict[str, Any], answer: Any) -> Any:
    """An answer without what the recording leaves out: our own documents, and where documents come from."""
    answer = without_provenance(answer)
    if row["function_id"] == "engine::functions::list":
        (kept,) = row["result"]["functions"]
        (found,) = [one for one in answer["functions"] if one["function_id"] == kept["function_id"]]
        return {"functions": [{key: found[key] for key in kept}]}
    if row["function_id"] == "skills::resources-list":
        return {"resources": [one for one in answer["resources"] if "iii-directory" not in one["uri"]]}
    if row["payload"].get("uri") == "iii://skills":
        (content,) = answer["contents"]
        lines = [line for line in content["text"].splitlines(keepends=True) if "iii-directory" not in line]
        return {"contents": [{**content, "text": "".join(lines)}]}
    return answer


def without_provenance(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {key: without_provenance(value) for key, value in answer.items() if key != "_meta"}
    if isinstance(answer, list):
        return [without_provenance(value) for value in answer]
    if isinstance(answer, str):
        unmarked = answer.replace(
            " Without a mark in parentheses: a file of the operator of this directory.", ""
        )
        return re.sub(r" \(registered by [^)\n]*\)$", "", unmarked, flags=re.MULTILINE)
    return answer


# What is written down from its sources


@pytest.mark.parametrize(
    ("function_id", "payload", "shape"),
    [
        ("skills::resources-list", {}, ListResourcesResult),
        ("skills::resources-list", META, ListResourcesResult),
        ("skills::resources-read", {"uri": "iii://skills"}, ReadResourceResult),
        ("skills::resources-read", {"uri": "iii://resend", **META}, ReadResourceResult),
        ("skills::resources-read", {"uri": "iii://resend/email"}, ReadResourceResult),
        ("skills::resources-read", {"uri": "iii://fn/resend/health"}, ReadResourceResult),
        ("skills::resources-templates", {}, ListResourceTemplatesResult),
        ("skills::resources-templates", META, ListResourceTemplatesResult),
        ("prompts::mcp-list", {}, ListPromptsResult),
        ("prompts::mcp-list", META, ListPromptsResult),
        ("prompts::mcp-get", {"name": "send-email", "arguments": {"to": "Ada"}}, GetPromptResult),
        ("prompts::mcp-get", {"name": "send-email", "arguments": {"to": "Ada"}, **META}, GetPromptResult),
    ],
)
def test_what_the_worker_passes_on_is_what_mcp_clients_take(
    worker: OfficialWorker, function_id: str, payload: dict[str, Any], shape: type[BaseModel]
) -> None:
    shape.model_validate(worker.asked(function_id, payload))


def test_the_list_that_it_shortens_keeps_the_index_and_the_top_of_every_tree(worker: OfficialWorker) -> None:
    listed = worker.asked("skills::resources-list", {})["resources"]
    # It leaves out every address with a path behind its first segment.
    shown = {row["uri"] for row in listed if row["uri"].removeprefix("iii://").count("/") == 0}
    assert {"iii://skills", "iii://resend"} <= shown


def test_the_index_that_it_shortens_still_names_the_top_of_every_tree(worker: OfficialWorker) -> None:
    (content,) = worker.asked("skills::resources-read", {"uri": "iii://skills"})["contents"]
    # It drops every line with an address that has a path behind its first segment.
    kept = [line for line in content["text"].splitlines() if "/" not in line.partition("iii://")[2]]
    assert any("(iii://resend)" in line for line in kept)


def test_a_read_answers_the_address_that_was_asked_for_with_its_text(worker: OfficialWorker) -> None:
    (content,) = worker.asked("skills::resources-read", {"uri": "iii://resend/email"})["contents"]
    assert (content["uri"], content["mimeType"]) == ("iii://resend/email", "text/markdown")
    assert content["text"] == "# Email\n\nHow to send one."


def test_a_prompt_is_one_message_of_the_user(worker: OfficialWorker) -> None:
    answer = worker.asked("prompts::mcp-get", {"name": "send-email", "arguments": {"to": "Ada"}})
    assert answer["description"] == "Compose an email"
    assert answer["messages"] == [{"role": "user", "content": {"type": "text", "text": "Write to Ada."}}]


def test_the_tool_that_it_offers_for_addresses_answers_text(worker: OfficialWorker) -> None:
    names = {row["function_id"] for row in worker.asked("engine::functions::list", {})["functions"]}
    assert "skill::fetch" in names
    text = worker.asked("skill::fetch", {"uris": ["iii://resend", "iii://fn/resend/health"]})
    assert (
        text
        == "# iii://resend\n\n# resend\n\nSends email.\n\n---\n\n# iii://fn/resend/health\n\n# Health\n\nok"
    )
    # A string becomes the text of the tool's result, anything else its JSON.
    CallToolResult.model_validate({"content": [{"type": "text", "text": text}], "isError": False})


@pytest.mark.parametrize(
    ("function_id", "payload"),
    [
        ("skills::resources-read", {"uri": "iii://nothing/there"}),
        ("prompts::mcp-get", {"name": "nothing"}),
    ],
)
def test_what_is_not_there_is_said_in_the_words_that_the_worker_knows(
    worker: OfficialWorker, function_id: str, payload: dict[str, Any]
) -> None:
    error = worker.error(function_id, payload)
    assert "not found" in error["message"]
    assert "Next: " in error["message"]
    assert json.dumps(error)
