"""Twelve tasks of an agent, through MCP alone: how many calls and tokens each takes, and that it gets done.

The skills are written for the tests, each about as long as the public skill that the task was first tried
with in a review; ``REVIEW`` has what it took then, with 3,418 tokens of tools before every task.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from mcp.client.stdio import StdioServerParameters
from tests.mcp.stage import Session, session
from tests.support.commands import environment, free_port, running
from tests.support.reader import OtherWorker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOOLS_THEN = 3_418
REVIEW = {
    "fill in a PDF form": (5, 7_269),
    "send an e-mail": (2, 729),
    "review my React code": (2, 2_461),
    "make a Word document with a table of contents": (3, 9_002),
    "debug a flaky test": (2, 3_090),
    "write a new skill": (2, 8_881),
    "slash-command for a stand-up": (2, 384),
    "edit an Excel spreadsheet with a pivot table": (2, 3_399),
    "stream the Claude API in Python": (4, 25_631),
    "React component re-renders too often": (2, 1_065),
    "deploy to Vercel from CI with a token": (2, 3_331),
    "start the brainstorming companion": (3, 5_679),
}
"""Calls and tokens of each task in the review."""
SKILLS = {
    "pdf": ("Fill in PDF forms, extract text and merge files.", 2_000),
    "react-review": ("Review React code for performance and correctness.", 1_850),
    "docx": ("Make and edit Word documents, with a table of contents.", 5_100),
    "systematic-debugging": ("Debug a failing or flaky test step by step.", 2_490),
    "skill-creator": ("Write a new skill and check it.", 8_280),
    "xlsx": ("Edit Excel spreadsheets: formulas and pivot tables.", 2_800),
    "claude-api": ("Build programs on the Claude API.", 18_000),
    "deploy-vercel": ("Deploy to Vercel from CI with a token.", 2_730),
    "brainstorming": ("Start the brainstorming companion and explore an idea.", 3_300),
}
PAGES = {
    "pdf/forms.md": ("Fill PDF forms", 3_000),
    "claude-api/python/streaming.md": ("Stream the Claude API in Python", 1_650),
    "react-review/rerenders.md": ("When a React component re-renders too often", 450),
}
SCRIPTS = {
    "pdf/scripts/fill.py": "print('form filled')\n",
    "docx/scripts/pack.py": "print('document packed')\n",
    "brainstorming/scripts/start.py": "print('companion started')\n",
}


def _text(title: str, size: int) -> str:
    return f"# {title}\n\n" + "One step follows the other until it is done. " * (size * 4 // 45) + "\n"


@dataclass
class Agent:
    """Counts what a model would have to read and write."""

    client: Session
    calls: int = 0
    chars: int = 0

    def ask(self, tool: str, **arguments: Any) -> str:
        result = self.client.ask("call_tool", tool, arguments)
        whole = result.model_dump(by_alias=True, exclude_none=True, mode="json")
        self.calls += 1
        self.chars += len(json.dumps(arguments)) + len(json.dumps(whole["content"], ensure_ascii=False))
        self.chars += len(json.dumps(whole.get("structuredContent", ""), ensure_ascii=False))
        assert not result.is_error, result.content[0].text
        return result.content[0].text

    def find(self, query: str, kind: str, wanted: str) -> str:
        """The line of the first hit of a kind, which must be the one that is wanted."""
        found = self.ask("search", query=query)
        hits = [line for line in found.splitlines() if line.startswith(f"- {kind} ")]
        assert hits, found
        assert hits[0].split()[2] == wanted, found
        return hits[0]

    def run(self, hit: str, script: str) -> str:
        place = hit.rpartition("Lies at ")[2]
        done = subprocess.run(
            [sys.executable, f"{place}/{script}"], capture_output=True, text=True, check=True
        )
        return done.stdout


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    home = tmp_path_factory.mktemp("tasks")
    for name, (said, size) in SKILLS.items():
        folder = home / "skills" / name
        folder.mkdir(parents=True)
        head = f"---\nname: {name}\ndescription: {said}\n---\n"
        (folder / "SKILL.md").write_text(head + _text(name, size))
    files = {path: _text(title, size) for path, (title, size) in PAGES.items()} | SCRIPTS
    files["standup/prompts/standup.md"] = "---\ndescription: Write a stand-up\n---\nWhat did I do?\n"
    for path, text in files.items():
        place: Path = home / "skills" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    (home / "config.yaml").write_text("mcp_calls: all\nuser_roots: false\n")
    port = str(free_port())
    with running("up", "--port", port, "--http-port", "0", "--in-memory", cwd=home) as up:
        up.wait_for("Ctrl-C")
        with OtherWorker(f"ws://127.0.0.1:{port}", "mailer") as worker:
            worker.offer("mailer::send-email", lambda data: f"sent to {data['to']}")
            started = StdioServerParameters(
                command=sys.executable, args=["-m", "iii_directory", "mcp"], cwd=home, env=environment()
            )
            with session(started, "2025") as opened:
                yield opened


READING = {
    "fill in a PDF form": ("pdf/forms", ["pdf", "pdf/forms"]),
    "review my React code": ("react-review", ["react-review"]),
    "make a Word document with a table of contents": ("docx", ["docx"]),
    "debug a flaky test": ("systematic-debugging", ["systematic-debugging"]),
    "write a new skill": ("skill-creator", ["skill-creator"]),
    "edit an Excel spreadsheet with a pivot table": ("xlsx", ["xlsx"]),
    "stream the Claude API in Python": ("claude-api/python/streaming", ["claude-api/python/streaming"]),
    "React component re-renders too often": ("react-review/rerenders", ["react-review/rerenders"]),
    "deploy to Vercel from CI with a token": ("deploy-vercel", ["deploy-vercel"]),
    "start the brainstorming companion": ("brainstorming", ["brainstorming"]),
}
"""What must be found first, and what is then read, all in one call."""
RUNNING = {
    "fill in a PDF form": ("scripts/fill.py", "form filled\n"),
    "make a Word document with a table of contents": ("scripts/pack.py", "document packed\n"),
    "start the brainstorming companion": ("scripts/start.py", "companion started\n"),
}
"""The script that the task needs, and what it prints."""


def _task(agent: Agent, task: str) -> None:
    if task == "send an e-mail":
        assert agent.find("send an email", "function", "mailer::send-email").endswith("callable: true")
        payload = {"to": "Ada"}
        answer = agent.ask("directory__function__call", function_id="mailer::send-email", payload=payload)
        assert answer == "sent to Ada"
        return
    if task == "slash-command for a stand-up":
        agent.find("write a stand-up", "prompt", "standup")
        assert agent.client.ask("get_prompt", "standup").messages
        return
    wanted, uris = READING[task]
    hit = agent.find(task, "skill", wanted)
    assert "One step follows" in agent.ask("skill__fetch", uris=uris)
    if task in RUNNING:
        script, printed = RUNNING[task]
        assert agent.run(hit, script) == printed


def test_twelve_tasks_take_half_the_tokens_and_no_more_calls(client: Session) -> None:
    listing = client.ask("list_tools").model_dump(by_alias=True, exclude_none=True, mode="json")
    tools = len(json.dumps(listing)) // 4
    shares: list[float] = []
    for task, (calls_then, tokens_then) in REVIEW.items():
        agent = Agent(client)
        _task(agent, task)
        tokens = agent.chars // 4
        shares.append((tools + tokens) / (TOOLS_THEN + tokens_then))
        print(f"{task}: {agent.calls} calls, {tokens} tokens (was {calls_then}, {tokens_then})")
        assert agent.calls <= calls_then
    print(f"tools {tools} tokens (was {TOOLS_THEN}); median share {statistics.median(shares):.2f}")
    assert statistics.median(shares) <= 0.5
