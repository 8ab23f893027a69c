"""What others publish to look at MCP servers with: the inspector's command line and the conformance suite."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.mcp.stage import command, http_bridge
from tests.sdk.installation import NODE, install_node
from tests.support.commands import environment
from tests.support.reader import OtherWorker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.reader import Reader

RUN_SECONDS = 100
LOCK = Path(__file__).parent / "node" / "package-lock.json"


@pytest.fixture(scope="module")
def packages() -> Path:
    """Where the published packages are installed; from npm, once."""
    return install_node(lock=LOCK, name="node-mcp") / "node_modules" / ".bin"


def run_node(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program for node with a home of its own, since they like to write there."""
    path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(NODE), *arguments],
        env=environment(HOME=str(home), PATH=path, MCP_CATALOG_PATH=str(home / "catalog.json")),
        capture_output=True,
        text=True,
        check=False,
        timeout=RUN_SECONDS,
        stdin=subprocess.DEVNULL,
    )


# The inspector


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, engine_url: str) -> Iterator[list[str]]:
    """How the inspector is told where the server is."""
    if request.param == "http":
        with http_bridge(engine_url) as url:
            yield [url]
    else:
        started = command(engine_url)
        yield [started.command, *started.args]


def inspected(packages: Path, home: Path, target: list[str], *arguments: str) -> Any:
    done = run_node(home, str(packages / "mcp-inspector"), "--cli", *target, *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.usefixtures("worker")
def test_the_inspector_lists_and_reads_the_same(packages: Path, tmp_path: Path, target: list[str]) -> None:
    listed = inspected(packages, tmp_path, target, "--method", "resources/list")
    read = inspected(packages, tmp_path, target, "--method", "resources/read", "--uri", "iii://coffee")

    assert {"iii://skills", "iii://coffee", "iii://weather"} <= {row["uri"] for row in listed["resources"]}
    assert read["contents"][0]["text"].startswith("# Coffee")


@pytest.mark.usefixtures("worker")
def test_the_inspector_finds_no_fault_with_the_schemas_of_the_tools(
    packages: Path, tmp_path: Path, bridge_url: str
) -> None:
    done = run_node(
        tmp_path, str(packages / "mcp-inspector"), "--cli", bridge_url, "--method", "tools/list", "--strict"
    )

    assert done.returncode == 0, done.stderr
    assert "skill__fetch" in {tool["name"] for tool in json.loads(done.stdout)["tools"]}


@pytest.mark.usefixtures("worker")
def test_the_inspector_renders_a_prompt_and_calls_a_tool(
    packages: Path, tmp_path: Path, bridge_url: str
) -> None:
    prompt = ("--method", "prompts/get", "--prompt-name", "greet", "--prompt-args", "name=Ada")
    tool = ("--method", "tools/call", "--tool-name", "skill__fetch", "--tool-arg", "uri=iii://coffee")

    rendered = inspected(packages, tmp_path, [bridge_url], *prompt)
    fetched = inspected(packages, tmp_path, [bridge_url], *tool)
    assert rendered["messages"][0]["content"]["text"] == "Hello Ada!"
    assert fetched["content"][0]["text"].startswith("# iii://coffee")


# The conformance suite


TEXT_ONLY = "a tool answers what its function answered, as text"
NOT_OURS = "it reads an address of its own scheme, and ours is iii://"
NEVER_ASKS = "the server asks nothing of its client"
DOES_NOT_APPLY = {
    "logging-set-level": "the protocol retired logging; the bridge logs to stderr",
    "tools-call-with-logging": "the protocol retired logging; the bridge logs to stderr",
    "tools-call-image": TEXT_ONLY,
    "tools-call-audio": TEXT_ONLY,
    "tools-call-embedded-resource": TEXT_ONLY,
    "tools-call-mixed-content": TEXT_ONLY,
    "tools-call-sampling": NEVER_ASKS,
    "tools-call-elicitation": NEVER_ASKS,
    "elicitation-sep1034-defaults": NEVER_ASKS,
    "elicitation-sep1330-enums": NEVER_ASKS,
    "resources-read-text": NOT_OURS,
    "resources-read-binary": NOT_OURS,
    "resources-templates-read": NOT_OURS,
    "resources-subscribe": "changes of a single document are not announced, so they are not promised",
    "resources-unsubscribe": "changes of a single document are not announced, so they are not promised",
    "server-sse-polling": "streams are not resumed; it passes without looking at anything",
}
APPLIES = (
    "server-initialize",
    "ping",
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "resources-list",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "dns-rebinding-protection",
)
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


class Examples:
    """The functions and prompts that the suite asks for by name."""

    def __init__(self, worker: OtherWorker, directory: Reader) -> None:
        self._worker = worker
        self._directory = directory

    def register(self) -> None:
        worker = self._worker
        worker.offer("test_simple_text", lambda _: "This is a simple text response for testing.")
        worker.offer("test_error_handling", self._fail)
        worker.offer("test_tool_with_progress", self._take_a_while)
        worker.sdk.register_function("json_schema_2020_12_tool", self._take_a_while, request_format=SCHEMA)
        self._prompt("test_simple_prompt", lambda _: "This is a simple prompt for testing.")
        self._prompt(
            "test_prompt_with_arguments", lambda given: f"{given['arg1']}, {given['arg2']}", "arg1", "arg2"
        )
        self._prompt("test_prompt_with_image", lambda _: _messages(IMAGE))
        self._prompt(
            "test_prompt_with_embedded_resource", lambda given: _messages(_resource(given)), "resourceUri"
        )

    def _prompt(self, name: str, answer: Any, *arguments: str) -> None:
        function_id = f"prompt::{name}"
        self._worker.offer(function_id, answer)
        self._directory.call(
            "prompts::register",
            name=name,
            description="For the suite.",
            function_id=function_id,
            arguments=[{"name": argument, "required": True} for argument in arguments],
        )

    def _fail(self, _: dict[str, Any]) -> None:
        raise RuntimeError("This tool intentionally returns an error for testing")

    async def _take_a_while(self, _: dict[str, Any]) -> str:
        await asyncio.sleep(0.2)
        return "done"


IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def _resource(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "resource",
        "resource": {"uri": given["resourceUri"], "mimeType": "text/plain", "text": "hi"},
    }


def _messages(content: dict[str, Any]) -> dict[str, Any]:
    text = {"type": "text", "text": "Look at this."}
    return {"messages": [{"role": "user", "content": content}, {"role": "user", "content": text}]}


@pytest.fixture(scope="module")
def results(
    packages: Path, engine_url: str, directory: Reader, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """What the suite found, by scenario."""
    home = tmp_path_factory.mktemp("conformance")
    with (
        pytest.MonkeyPatch.context() as patch,
        OtherWorker(engine_url, "conformance") as worker,
        http_bridge(engine_url, expose=["test_*", "json_schema_*"]) as url,
    ):
        patch.setattr("iii_directory.mcp.handlers.MCP_PROGRESS_SECONDS", 0.02)
        Examples(worker, directory).register()
        program = str(packages / "conformance")
        run_node(home, program, "server", "--url", url, "--suite", "all", "-o", str(home))
        yield {_scenario(found): json.loads(found.read_text("utf-8")) for found in home.glob("*/checks.json")}


def _scenario(found: Path) -> str:
    """The name in a folder called ``server-<name>-<time>``."""
    named = re.fullmatch(r"server-(.+?)-\d{4}-\d\d-\d\dT.*", found.parent.name)
    assert named is not None
    return named[1]


def test_every_scenario_is_either_passed_or_named_with_a_reason(results: dict[str, Any]) -> None:
    assert set(results) == {*APPLIES, *DOES_NOT_APPLY}


@pytest.mark.parametrize("scenario", APPLIES)
def test_the_conformance_suite_is_content(results: dict[str, list[dict[str, Any]]], scenario: str) -> None:
    checks = results[scenario]

    assert [check["status"] for check in checks] == ["SUCCESS"] * len(checks), checks
    assert checks
