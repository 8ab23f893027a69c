"""Twelve things an agent was asked to do, each with one search and one read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pytest
from tests.search.corpora import read_yaml
from tests.support.directory import Client, client, directory
from tests.support.engine import EngineThread, RawClient

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


class Task(NamedTuple):
    request: str
    kind: str
    wanted: str
    reads: str
    """What the document or detail says that helps."""


TASKS = (
    Task("make a PowerPoint", "skill", "office/pptx", "pptxgenjs"),
    Task("which function sends an e-mail", "function", "mailer::send", "attachments"),
    Task("what does worker mailer offer", "worker", "mailer", "mailer::draft"),
    Task("which skill covers code review", "skill", "engineering/code-review", "Severity"),
    Task("fill in a PDF form", "skill", "office/pdf", "fillable fields"),
    Task("edit an Excel file", "skill", "office/xlsx", "openpyxl"),
    Task("React re-renders too often", "skill", "web/react-best-practices", "useMemo"),
    Task("stream the Claude API in Python", "skill", "ai/claude-api", "client.messages.stream"),
    Task("a flaky test", "skill", "engineering/systematic-debugging", "Replace sleeps"),
    Task("deploy to Vercel from CI with a token", "skill", "web/deploy-to-vercel", "VERCEL_TOKEN"),
    Task("which slash-command writes mail", "prompt", "write-mail", "Dear"),
    Task("start the brainstorming companion", "skill", "ai/brainstorming", "start-server.sh"),
)


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Generator[Client]:
    folder = tmp_path_factory.mktemp("skills")
    for row in read_yaml("skills.yaml"):
        name = f"{row['id']}.md" if "group" in row else f"{row['id']}/SKILL.md"
        put(folder / name, row)
    prompt = "---\ndescription: Write a mail in the style of the house.\n---\nDear $1, …\n"
    (folder / "mailer" / "prompts").mkdir(parents=True)
    (folder / "mailer" / "prompts" / "write-mail.md").write_text(prompt, encoding="utf-8")
    with (
        EngineThread() as engine,
        directory(engine.url, folder),
        RawClient(engine.url, name="mailer") as worker,
    ):
        for row in read_yaml("functions.yaml"):
            properties = {name: {"type": "string"} for name in row["arguments"]}
            schema = {"type": "object", "properties": properties}
            worker.send(
                type="registerfunction", id=row["id"], description=row["description"], request_format=schema
            )
        worker.result("engine::functions::info", {"function_id": "mailer::send"})
        with client(engine.url) as connected:
            yield connected


def put(path: Path, row: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {key: row[key] for key in ("title", "description") if row.get(key)}
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in head.items())
    path.write_text(f"---\n{lines}---\n{row['body']}", encoding="utf-8")


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.request)
def test_a_task_takes_one_search_and_one_read(caller: Client, task: Task) -> None:
    reply = caller.call("directory::search", query=task.request)

    (result,) = reply["results"]
    assert result["fits"]
    (hit,) = [
        hit
        for section in result["sections"]
        if section["kind"] == task.kind
        for hit in section["hits"]
        if hit["id"] == task.wanted
    ]
    read = caller.call(hit["read"]["function"], hit["read"]["payload"])
    assert task.reads in json.dumps(read)
    assert len(orjson.dumps(result)) <= 1500
