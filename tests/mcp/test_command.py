"""``iii-directory mcp`` as clients and people start it, and ``/mcp`` of ``iii-directory up``."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from tests.mcp.stage import HELLO, session
from tests.support.commands import COMMAND, START_SECONDS, environment, free_port, run, running
from tests.support.directory import directory
from tests.support.engine import WAIT

from iii_directory.cli.config_snippets import CLIENTS, Address, Launch, snippet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.engine import EngineThread

URL = "ws://127.0.0.1:50001"


# stdio


class Stdio:
    """The bridge with its pipes in hand."""

    def __init__(self, url: str, *options: str) -> None:
        self.process = subprocess.Popen(
            [COMMAND, "mcp", "--url", url, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            text=True,
        )

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def ended(self) -> tuple[str, str]:
        """What it printed after its last answer, once it is over."""
        return self.process.communicate(timeout=START_SECONDS)


@pytest.fixture
def stdio(engine: EngineThread) -> Iterator[Stdio]:
    started = Stdio(engine.url)
    yield started
    started.close()


def test_only_messages_are_written_to_stdout_and_it_ends_when_the_client_leaves(stdio: Stdio) -> None:
    assert stdio.ask(HELLO)["result"]["serverInfo"]["name"] == "iii-directory"
    assert stdio.ask({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})["id"] == 2

    out, err = stdio.ended()
    assert stdio.process.returncode == 0
    assert out == ""
    assert "connected to the engine" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_though_nothing_comes_on_stdin(stdio: Stdio, number: signal.Signals) -> None:
    stdio.ask(HELLO)
    stdio.process.send_signal(number)

    assert stdio.process.wait(WAIT) == 0
    assert stdio.process.stderr is not None
    assert "Traceback" not in stdio.process.stderr.read()


def test_a_client_that_is_gone_without_a_word_ends_it_quietly(stdio: Stdio) -> None:
    assert stdio.process.stdin is not None
    assert stdio.process.stdout is not None
    stdio.ask(HELLO)
    stdio.process.stdout.close()
    stdio.process.stdin.write('{"jsonrpc": "2.0", "id": 2, "method": "ping"}\n')
    stdio.process.stdin.close()

    assert stdio.process.wait(WAIT) == 0
    assert stdio.process.stderr is not None
    assert "Traceback" not in stdio.process.stderr.read()


def test_a_line_that_is_no_message_is_passed_over(stdio: Stdio) -> None:
    assert stdio.process.stdin is not None
    stdio.process.stdin.write('no json\n{"jsonrpc": "1.0"}\n\n')

    assert stdio.ask(HELLO)["id"] == 1


def test_it_says_hello_though_there_is_no_engine() -> None:
    started = Stdio(f"ws://127.0.0.1:{free_port()}")
    try:
        assert started.ask(HELLO)["result"]["instructions"]
    finally:
        started.close()


# HTTP


def test_http_is_served_until_it_is_stopped(engine: EngineThread, tmp_path: Path) -> None:
    with (
        directory(engine.url, tmp_path),
        running("mcp", "--url", engine.url, "--http", "--http-port", "0") as bridge,
    ):
        address = bridge.wait_for("MCP at ").split()[2]
        for era in ("2025", "2026"):
            with session(address, era) as client:
                assert "iii://skills" in client.uris()

        assert bridge.stop() == 0
        assert bridge.lines[-1] == "stopped"
        assert "Traceback" not in bridge.output


def test_a_port_in_use_is_said_with_its_owner(engine: EngineThread) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("mcp", "--url", engine.url, "--http", "--http-port", str(port))

    assert done.returncode == 1
    assert f"port {port} on 127.0.0.1 is in use" in done.stderr
    assert "--http-port" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_beyond_loopback_needs_a_token(engine: EngineThread) -> None:
    done = run("mcp", "--url", engine.url, "--http", "--http-host", "0.0.0.0", "--http-port", "0")

    assert done.returncode == 1
    assert "needs a token" in done.stderr
    assert "III_TOKEN" in done.stderr


def test_up_serves_mcp_as_well(tmp_path: Path) -> None:
    port, mcp_port = free_port(), free_port()
    with running("up", "--port", str(port), "--in-memory", "--http-port", str(mcp_port), cwd=tmp_path) as up:
        address = up.wait_for("mcp      ").split()[1]
        assert address == f"http://127.0.0.1:{mcp_port}/mcp"
        up.wait_for("Ctrl-C")
        with session(address, "2026") as client:
            assert client.call("skill__fetch", uri="iii://iii-directory")

        assert up.stop() == 0
        assert "Traceback" not in up.output


def test_up_goes_on_where_mcp_cannot_be_served(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        taken_port = str(taken.getsockname()[1])
        with running(
            "up", "--port", str(free_port()), "--in-memory", "--http-port", taken_port, cwd=tmp_path
        ) as up:
            assert "is in use" in up.wait_for("MCP is not served")
            up.wait_for("Ctrl-C")
            assert up.stop() == 0


# What clients need


LAUNCH = Launch("/bin/iii-directory", ["mcp", "--url", URL, "--expose", "mail::*"])


@pytest.mark.parametrize("client", CLIENTS)
def test_the_printed_configuration_starts_the_bridge(client: str) -> None:
    done = run("mcp", "--print-config", client, "--url", URL, "--expose", "mail::*")
    entry = _entry(client, done.stdout)

    assert done.returncode == 0
    assert entry["command"] == COMMAND
    assert entry["args"] == ["mcp", "--url", URL, "--expose", "mail::*"]
    assert "env" not in entry
    assert client.partition("-")[0].removesuffix("claude") in done.stderr.lower()


@pytest.mark.parametrize("client", CLIENTS)
def test_the_printed_configuration_names_the_address(client: str) -> None:
    done = run("mcp", "--print-config", client, "--http", "--http-port", "4000")

    entry = _entry(client, done.stdout)
    found = {"windsurf": "serverUrl", "gemini": "httpUrl"}.get(client, "url")
    address = entry["args"][-1] if client == "claude-desktop" else entry[found]
    assert address == "http://127.0.0.1:4000/mcp"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_token_is_not_printed_but_its_place_is(client: str) -> None:
    started = run("mcp", "--print-config", client, "--url", URL, III_TOKEN="s3cret").stdout
    served = run("mcp", "--print-config", client, "--http", III_TOKEN="s3cret").stdout

    assert _entry(client, started)["env"] == {"III_TOKEN": "<the engine's token>"}
    entry = _entry(client, served)
    headers = entry.get("headers") or entry.get("http_headers")
    if client == "claude-desktop":
        assert entry["args"][-2:] == ["--header", "Authorization: Bearer <the engine's token>"]
    else:
        assert headers == {"Authorization": "Bearer <the engine's token>"}
    assert "s3cret" not in started + served


@pytest.mark.parametrize(
    ("client", "kind"), [("claude", True), ("cursor", False), ("vscode", True), ("codex", False)]
)
def test_clients_that_want_it_are_told_the_kind(client: str, kind: bool) -> None:
    started = _entry(client, snippet(client, LAUNCH).text)
    served = _entry(client, snippet(client, Address("http://127.0.0.1:3117/mcp")).text)

    assert started.get("type") == ("stdio" if kind else None)
    assert served.get("type") == ("http" if kind else None)


def _entry(client: str, text: str) -> dict[str, Any]:
    if client == "codex":
        return tomllib.loads(text)["mcp_servers"]["iii-directory"]
    key = {"vscode": "servers", "zed": "context_servers"}.get(client, "mcpServers")
    return json.loads(text)[key]["iii-directory"]
