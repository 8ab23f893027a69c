"""``iii-directory mcp`` as clients and people start it, and ``/mcp`` of ``iii-directory up``."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from mcp.client.stdio import StdioServerParameters
from tests.mcp.stage import HELLO, session
from tests.support.commands import COMMAND, START_SECONDS, environment, free_port, run, running
from tests.support.directory import directory
from tests.support.engine import WAIT

from iii_directory.cli.client_files import CLIENTS, Launch

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


def test_a_line_that_is_not_a_message_is_skipped(stdio: Stdio) -> None:
    assert stdio.process.stdin is not None
    stdio.process.stdin.write('no json\n{"jsonrpc": "1.0"}\n\n')

    assert stdio.ask(HELLO)["id"] == 1


def test_it_answers_initialize_without_an_engine() -> None:
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


def test_http_serves_the_folder_where_no_engine_is_named(tmp_path: Path) -> None:
    tea = tmp_path / "skills" / "tea" / "SKILL.md"
    tea.parent.mkdir(parents=True)
    tea.write_text("# Tea\n\nHow to make tea.\n", encoding="utf-8")
    with running("mcp", "--http", "--http-port", "0", cwd=tmp_path) as bridge:
        address = bridge.wait_for("MCP at ").split()[2]
        with session(address, "2026") as client:
            assert "iii://tea" in client.uris()

        assert bridge.stop() == 0


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


USERS = {name for name, client in CLIENTS.items() if client.is_users}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "project" / "skills").mkdir(parents=True)
    return tmp_path


def set_up(home: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return run("mcp", *arguments, cwd=home / "project", HOME=str(home), **env)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_printed_configuration_starts_the_bridge(client: str, home: Path) -> None:
    done = set_up(home, "--print-config", client, "--expose", "mail::*")
    command, *arguments = _command(client, done.stdout)

    folder = ["--skills-folder", str(home / "project" / "skills")] if client in USERS else []
    assert done.returncode == 0
    assert command == (COMMAND if client in USERS else "iii-directory")
    assert arguments == ["mcp", *folder, "--expose", "mail::*"]
    assert CLIENTS[client].file in done.stderr
    if client not in USERS:
        assert str(home) not in done.stdout


@pytest.mark.parametrize("client", sorted(USERS))
def test_a_skills_folder_elsewhere_keeps_the_configuration_of_its_project(client: str, home: Path) -> None:
    config = home / "project" / "config.yaml"
    config.write_text("skills_folder: docs/skills\nmcp_tools: all\n")
    skill = home / "project" / "docs" / "skills" / "tea" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("# Tea\n")
    command, *arguments = _command(client, set_up(home, "--print-config", client).stdout)

    assert arguments == ["mcp", "--config", str(config)]
    started = StdioServerParameters(command=command, args=arguments, cwd=home, env=environment())
    with session(started, "2025") as opened:
        assert "iii://tea" in opened.uris()
        assert "directory__diagnostics" in opened.tools()


@pytest.mark.parametrize("client", CLIENTS)
def test_an_address_is_printed_only_where_one_was_given(client: str, home: Path) -> None:
    named = set_up(home, "--print-config", client, "--url", URL).stdout
    served = set_up(home, "--print-config", client, "--http", "--http-port", "4000").stdout

    assert _command(client, named)[2:4] == ["--url", URL]
    found = {"windsurf": "serverUrl", "gemini": "httpUrl"}.get(client, "url")
    entry = _entry(client, served)
    address = entry["args"][-1] if client == "claude-desktop" else entry[found]
    assert address == "http://127.0.0.1:4000/mcp"


def test_an_address_in_the_environment_counts_as_given(home: Path) -> None:
    printed = set_up(home, "--print-config", "cursor", III_URL=URL).stdout

    assert _command("cursor", printed) == ["iii-directory", "mcp", "--url", URL]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_token_is_not_printed_but_its_place_is(client: str, home: Path) -> None:
    started = set_up(home, "--print-config", client, "--url", URL, III_TOKEN="s3cret").stdout
    served = set_up(home, "--print-config", client, "--http", III_TOKEN="s3cret").stdout

    assert "<the engine's token>" in started
    assert "Bearer <the engine's token>" in served
    assert "s3cret" not in started + served


@pytest.mark.parametrize(("client", "start"), [("claude", "claude mcp add"), ("vscode", "code --add-mcp")])
def test_a_clients_own_command_is_printed_too(client: str, start: str, home: Path) -> None:
    assert f"Or run: {start} " in set_up(home, "--print-config", client).stderr


JSON_FILES = (
    "",
    "{}",
    "{\n}\n",
    '{"mcpServers": {}}',
    '{\n  "mcpServers": {\n  }\n}\n',
    '{\n  // mine\n  "other": [1, {"a": "}"}],\n  "mcpServers": {\n    "x": {"y": 1}, // end\n  },\n}\n',
    '{"theme":"dark","servers":{"x":{}},"mcp":{"y":{}},"context_servers":{"z":{}},"mcpServers":{"w":{}}}',
    '{\r\n\t"a": "\\"{",\r\n\t/* no { */ "b": null\r\n}',
)
TOML_FILES = ("", "a = 1\n", "a = 1", "[x]\ny = 2\n\n[mcp_servers.other]\ncommand = 'z'\n\n\n")


@pytest.mark.parametrize("client", CLIENTS)
def test_an_entry_is_put_in_and_taken_out_byte_for_byte(client: str) -> None:
    known = CLIENTS[client]
    entry = known.entry(Launch("iii-directory", ["mcp", "--expose", "a::*"]))
    for before in TOML_FILES if known.is_toml else JSON_FILES:
        after = known.installed(before, entry)
        assert _entry(client, _without_comments(after) if not known.is_toml else after)
        assert known.installed(after, entry) == after
        assert known.uninstalled(after) == before, (before, after)
        # It is the old file with one piece put in.
        places = range(len(before) + 1)
        assert any(after.startswith(before[:at]) and after.endswith(before[at:]) for at in places)
    assert known.uninstalled("" if known.is_toml else "{}") is None


def test_a_file_is_changed_in_its_place_with_its_mode_and_link(home: Path) -> None:
    real = home / "real.json"
    real.write_text('{"mcpServers": {"x": {}}}\n')
    real.chmod(0o640)
    link = home / "project" / ".mcp.json"
    link.symlink_to(real)
    before = real.read_bytes()

    refused = set_up(home, "--install", "claude-code")
    installed = set_up(home, "--install", "claude-code", "--yes")
    after = real.read_bytes()
    removed = set_up(home, "--uninstall", "claude-code", "--yes")

    assert refused.returncode == 1
    assert "--yes" in refused.stderr
    assert '+    "iii-directory": {' in installed.stdout
    assert b"iii-directory" in after
    assert (removed.returncode, real.read_bytes()) == (0, before)
    assert (link.is_symlink(), real.stat().st_mode & 0o777) == (True, 0o640)


def test_a_file_that_was_not_there_is_gone_again(home: Path) -> None:
    set_up(home, "--install", "codex", "--yes")
    written = tomllib.loads((home / ".codex" / "config.toml").read_text())
    set_up(home, "--uninstall", "codex", "--yes")

    assert written["mcp_servers"]["iii-directory"]["command"] == COMMAND
    assert not (home / ".codex" / "config.toml").exists()


@pytest.mark.parametrize(("client", "text"), [("cursor", '{"mcpServers": ['), ("codex", "a = = 1")])
def test_a_file_that_cannot_be_read_is_left_as_it_is(client: str, text: str, home: Path) -> None:
    path = (home if CLIENTS[client].is_users else home / "project") / CLIENTS[client].file
    path.parent.mkdir()
    path.write_text(text)
    done = set_up(home, "--install", client, "--yes")

    assert done.returncode == 1
    assert "was not changed" in done.stderr
    assert path.read_text() == text


def _without_comments(text: str) -> str:
    plain = re.sub(r"// (mine|end)|/\* no { \*/", "", text)
    return re.sub(r",(\s*[\]}])", r"\1", plain)


def _entry(client: str, text: str) -> dict[str, Any]:
    known = CLIENTS[client]
    document = tomllib.loads(text) if known.is_toml else json.loads(text)
    return document[known.section]["iii-directory"]


def _command(client: str, text: str) -> list[str]:
    entry = _entry(client, text)
    return entry["command"] if client == "opencode" else [entry["command"], *entry["args"]]
