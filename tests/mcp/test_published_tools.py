"""What others publish to look at MCP servers with: the inspector's command line and the conformance suite."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from tests.mcp.stage import command, http_bridge, published_packages
from tests.sdk.installation import NODE
from tests.support.commands import environment
from tests.support.reader import OtherWorker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.reader import Reader

RUN_SECONDS = 100


@pytest.fixture(scope="module")
def packages() -> Path:
    """Where the published packages are installed; from npm, once."""
    return published_packages() / ".bin"


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


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_verifies_every_listed_skill(
    packages: Path, tmp_path: Path, bridge_url: str, era: str
) -> None:
    options = ("--method", "skills/list", "--verify", "--require-digests", "--protocol-era", era)
    done = run_node(tmp_path, str(packages / "mcp-inspector"), "--cli", bridge_url, *options)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "skill://coffee/SKILL.md" in done.stdout


# The conformance suite


LEGACY, MODERN = "2025-11-25", "2026-07-28"
SKILLS = ("sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory")
SHOWN: dict[tuple[str, str], int] = {
    **{(MODERN, scenario): count for scenario, count in zip(SKILLS, (32, 6, 7), strict=True)},
    **{(LEGACY, scenario): count for scenario, count in zip(SKILLS, (30, 6, 7), strict=True)},
    (MODERN, "server-stateless"): 24,
    (MODERN, "caching"): 8,
    (MODERN, "http-header-validation"): 14,
    (MODERN, "dns-rebinding-protection"): 2,
    (MODERN, "sep-2164-resource-not-found"): 4,
    (MODERN, "resources-list"): 2,
    (MODERN, "prompts-list"): 2,
    (MODERN, "tools-list"): 4,
    (MODERN, "completion-complete"): 2,
    (MODERN, "json-schema-2020-12"): 8,
    (LEGACY, "server-initialize"): 3,
    (LEGACY, "ping"): 2,
    (LEGACY, "dns-rebinding-protection"): 2,
    (LEGACY, "completion-complete"): 2,
    (LEGACY, "resources-list"): 2,
    (LEGACY, "resources-subscribe"): 2,
    (LEGACY, "resources-unsubscribe"): 2,
    (LEGACY, "tools-list"): 3,
    (LEGACY, "tools-call-simple-text"): 2,
    (LEGACY, "tools-call-error"): 2,
    (LEGACY, "tools-call-with-progress"): 2,
    (LEGACY, "json-schema-2020-12"): 8,
    (LEGACY, "server-sse-multiple-streams"): 2,
    (LEGACY, "prompts-list"): 2,
    (LEGACY, "prompts-get-simple"): 2,
    (LEGACY, "prompts-get-with-args"): 2,
    (LEGACY, "prompts-get-embedded-resource"): 2,
    (LEGACY, "prompts-get-with-image"): 2,
}
"""How many checks of a scenario must be a SUCCESS. The suite exits 0 where everything is skipped."""
OTHERS = {
    (LEGACY, SKILLS[0]): {"sep-2640-skills-list-cache-attributes", "sep-2640-skills-get-cache-attributes"},
    # These want tools that ask the client something, or that log, and the bridge has none.
    (MODERN, "server-stateless"): {
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
        "sep-2575-server-sends-prompts-list-changed-on-subscription",
        "sep-2575-server-sends-tools-list-changed-on-subscription",
    },
}
"""The checks of a scenario that are not shown."""
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "allOf": [{"anyOf": [{"required": ["name"]}, {"required": ["address"]}]}],
    "if": {"required": ["name"]},
    "then": {"properties": {"name": {"minLength": 1}}},
    "else": {"required": ["address"]},
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


ALPHA = """---
name: alpha
description: Does alpha. Use it for alpha.
metadata:
  version: 012
  since: 2026-01-01
---
# Alpha
"""


@pytest.fixture(scope="module")
def conforming(engine_url: str, directory: Reader) -> Iterator[str]:
    """A bridge whose directory has the functions and prompts that the suite asks for."""
    # The suite looks at the folders of the first skill.
    directory.skills.write("alpha/SKILL.md", ALPHA)
    directory.skills.write("alpha/scripts/go.sh", "#!/bin/sh\necho go\n")
    with (
        pytest.MonkeyPatch.context() as patch,
        OtherWorker(engine_url, "conformance") as worker,
        http_bridge(engine_url, expose=["test_*", "json_schema_*"]) as url,
    ):
        patch.setattr("iii_directory.mcp.request_handlers.MCP_PROGRESS_SECONDS", 0.02)
        Examples(worker, directory).register()
        yield url


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(("version", "scenario"), SHOWN)
def test_the_conformance_suite_shows_every_check(
    packages: Path, conforming: str, tmp_path: Path, version: str, scenario: str
) -> None:
    options = ("--url", conforming, "--scenario", scenario, "--spec-version", version, "--force")
    run_node(tmp_path, str(packages / "conformance"), "server", *options, "-o", str(tmp_path))
    (found,) = tmp_path.glob("*/checks.json")
    checks = json.loads(found.read_text("utf-8"))

    others = [check for check in checks if check["status"] != "SUCCESS"]
    assert {check["id"] for check in others} == OTHERS.get((version, scenario), set()), others
    assert len(checks) - len(others) == SHOWN[version, scenario]
