"""The answer to ``initialize`` that is given before the SDK is there: the very one that the SDK gives."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import httpx2
import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from tests.mcp.stage import HELLO, http_bridge
from tests.support.engine import WAIT, EngineThread

from iii_directory.mcp.hello import VERSIONS, answer_to


def hello(**params: Any) -> dict[str, Any]:
    return {**HELLO, "params": {**HELLO["params"], **params}}


def answer_of_the_sdk(url: str, request: dict[str, Any]) -> dict[str, Any]:
    """Over HTTP there is no answer before the SDK's."""
    headers = {"Accept": "application/json, text/event-stream"}
    answer = httpx2.post(url, json=request, headers=headers, timeout=WAIT)
    (data,) = [line for line in answer.text.splitlines() if line.startswith("data: {")]
    return json.loads(data.removeprefix("data: "))


def test_it_is_the_answer_of_the_sdk_in_every_version() -> None:
    assert VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS
    with EngineThread() as engine, http_bridge(engine.url) as url:
        for version in VERSIONS:
            request = hello(protocolVersion=version)
            assert answer_to(json.dumps(request)) == answer_of_the_sdk(url, request)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "\n",
        "no json",
        "[" * 100_000,
        "7",
        json.dumps([HELLO]),
        json.dumps({**HELLO, "method": "tools/list"}),
        json.dumps({**HELLO, "id": None}),
        json.dumps({**HELLO, "jsonrpc": "1.0"}),
        json.dumps({**HELLO, "params": None}),
        json.dumps(hello(protocolVersion="2026-07-28")),
        json.dumps(hello(protocolVersion=["2025-11-25"])),
        json.dumps(hello(clientInfo={"name": "nameless"})),
        json.dumps(hello(capabilities=None)),
        json.dumps(hello(capabilities={"roots": True})),
    ],
)
def test_anything_else_is_left_to_the_sdk(line: str) -> None:
    assert answer_to(line) is None


def test_nothing_slow_is_imported_before_the_first_answer() -> None:
    program = "import sys, iii_directory.cli.mcp_commands, iii_directory.mcp.hello; print(*sys.modules)"
    done = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, check=True)

    assert {"mcp", "mcp_types", "pydantic", "starlette", "uvicorn", "anyio"} & set(
        done.stdout.split()
    ) == set()
