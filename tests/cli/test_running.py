"""The commands that go on until they are stopped."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.contract.requirements import requirement
from tests.support.commands import COMMAND, free_port, run, running, running_program
from tests.support.engine import EngineThread, RawClient
from tests.support.reader import until

from iii_directory.bus.client import RemoteError, call_function


def ask(url: str, *arguments: str) -> object:
    done = run("trigger", *arguments, "--url", url)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@requirement("cli.signals")
def test_up_runs_engine_and_worker_and_says_what_to_type_next(tmp_path: Path) -> None:
    (tmp_path / "skills" / "coffee").mkdir(parents=True)
    (tmp_path / "skills" / "coffee" / "SKILL.md").write_text("# coffee\n\nHot.\n", encoding="utf-8")
    url = f"ws://127.0.0.1:{free_port()}"

    with running("up", "--url", url, cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")
        skill = ask(url, "directory::skills::get", "id=Coffee.md")
        code = up.stop(signal.SIGINT)

    assert isinstance(skill, dict)
    assert skill["body"] == "# coffee\n\nHot.\n"
    assert f"engine   {url} (embedded, state in .iii-directory)" in up.output
    assert f"iii-directory skills index --url {url}" in up.output
    assert code == 0
    assert "Traceback" not in up.output
    assert (tmp_path / ".iii-directory" / "engine.db").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_what_an_engine_keeps_in_a_project_is_not_added_to_git(tmp_path: Path) -> None:
    git = ("git", "-C", str(tmp_path))
    subprocess.run([*git, "init", "--quiet"], check=True)

    with running("engine", "--port", str(free_port()), "--token", "auto", cwd=tmp_path) as engine:
        engine.wait_for("engine at")
        subprocess.run([*git, "add", "--all"], check=True)
        added = subprocess.run([*git, "ls-files"], check=True, capture_output=True, text=True).stdout

    assert (tmp_path / ".iii-directory" / "token").exists()
    assert added == ""


def test_a_folder_with_other_things_in_it_is_not_hidden_from_git(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("mine\n", encoding="utf-8")

    with running("engine", "--port", str(free_port()), "--data", str(tmp_path), cwd=tmp_path) as engine:
        engine.wait_for("engine at")

    assert not (tmp_path / ".gitignore").exists()


def test_up_joins_an_engine_that_answers(tmp_path: Path, engine: EngineThread) -> None:
    with running("up", "--url", engine.url, cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")
        index = ask(engine.url, "directory::skills::index")
        code = up.stop()

    assert isinstance(index, dict)
    assert index["workers_count"] == 1
    assert f"{engine.url} (already there)" in up.output
    assert code == 0
    # The state is the other engine's; only what finds a running directory may be kept here.
    assert not (tmp_path / ".iii-directory" / "engine.db").exists()


def test_up_refuses_a_port_where_something_else_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        # It accepts and says nothing, which no engine does.
        done = run("engine", "--port", str(port), "--in-memory", cwd=tmp_path)

    assert done.returncode == 1
    assert done.stderr.startswith(f"iii-directory: port {port} on 127.0.0.1 is in use by ")
    assert f"(pid {os.getpid()})" in done.stderr


def test_the_engine_alone_keeps_state_across_restarts(tmp_path: Path) -> None:
    port = str(free_port())
    url = f"ws://127.0.0.1:{port}"
    for _ in range(2):
        with running("engine", "--port", port, "--data", "kept", cwd=tmp_path) as engine:
            engine.wait_for(f"engine at {url}")
            ask(url, "state::update", "scope=s", "key=k", 'ops=[{"type":"increment","path":"n","by":1}]')
            assert engine.stop() == 0

    with running("engine", "--port", port, "--data", "kept", cwd=tmp_path) as engine:
        engine.wait_for(f"engine at {url}")
        assert ask(url, "state::get", "scope=s", "key=k") == {"n": 2}


def test_listening_beyond_loopback_needs_a_token(tmp_path: Path) -> None:
    done = run("engine", "--host", "0.0.0.0", "--port", "0", "--in-memory", cwd=tmp_path)

    assert done.returncode == 2
    assert "needs a token" in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_data_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)

    done = run("engine", "--port", "0", "--data", str(closed), cwd=tmp_path)

    assert done.returncode == 1
    assert str(closed) in done.stderr


def test_a_data_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("", encoding="utf-8")

    done = run("engine", "--port", "0", "--data", "plain/below", cwd=tmp_path)

    assert done.returncode == 1
    assert "the data directory plain/below cannot be made" in done.stderr


def test_a_corrupt_database_is_set_aside_and_named(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "engine.db").write_bytes(b"this is no database, and it is long enough to be looked at" * 20)

    with running("engine", "--port", str(free_port()), cwd=tmp_path) as engine:
        engine.wait_for("engine at")
        engine.stop()

    kept = [path for path in data.iterdir() if "corrupt" in path.name]
    assert len(kept) == 1
    assert kept[0].read_bytes().startswith(b"this is no database")
    assert kept[0].name in engine.output


@requirement("cli.signals", "cli.flags")
def test_the_worker_alone_waits_for_an_engine_and_joins_it(tmp_path: Path) -> None:
    port = free_port()

    with running("--url", f"ws://127.0.0.1:{port}", cwd=tmp_path) as worker:
        worker.wait_for("worker iii-directory")
        with EngineThread(port=port) as engine:
            worker.wait_for("connected to the engine")
            assert isinstance(ask(engine.url, "directory::diagnostics"), dict)
        assert worker.stop() == 0

    assert "Traceback" not in worker.output


def limited(*limits: str) -> list[str]:
    """A shell that sets limits of its own before it becomes the command."""
    return ["sh", "-c", f'ulimit {" && ulimit ".join(limits)} && exec "$0" "$@"', COMMAND]


@pytest.mark.parametrize("command", ["up", "engine"])
def test_the_soft_limit_on_files_is_raised_at_the_start(tmp_path: Path, command: str) -> None:
    start = [*limited("-S -n 256", "-H -n 4096"), command, "--in-memory", "--port", str(free_port())]
    with running_program(*start, cwd=tmp_path) as engine:
        engine.wait_for("Ctrl-C")
        limits = Path(f"/proc/{engine.process.pid}/limits").read_text(encoding="ascii")

    assert re.search(r"^Max open files +4096 +4096", limits, re.MULTILINE)


def test_more_clients_than_files_are_turned_away_while_the_others_are_served(tmp_path: Path) -> None:
    port = free_port()
    start = [*limited("-n 320"), "engine", "--in-memory", "--port", str(port)]
    with running_program(*start, cwd=tmp_path) as engine, contextlib.ExitStack() as clients:
        engine.wait_for("Ctrl-C")
        first = clients.enter_context(RawClient(f"ws://127.0.0.1:{port}"))
        for _ in range(400):
            clients.enter_context(socket.create_connection(("127.0.0.1", port)))

        assert first.result("engine::health::check")["status"] == "healthy"
        engine.wait_for("connections, which is all there is room for")
    assert "Traceback" not in engine.output
    assert len(engine.lines) < 10


@requirement("config.defaults")
def test_a_broken_configuration_is_a_warning_and_defaults(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("skills_folder: [\n", encoding="utf-8")
    url = f"ws://127.0.0.1:{free_port()}"

    with running("up", "--url", url, "--in-memory", cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")
        up.stop()

    assert "config.yaml cannot be used: it is not valid YAML (line 2); defaults are used" in up.output


@pytest.mark.parametrize("command", ["up", "engine"])
def test_configuration_values_see_the_variables_the_operator_lists_and_no_others(
    tmp_path: Path, command: str
) -> None:
    (tmp_path / "config.yaml").write_text("configuration_env: [LISTED, NOT_THERE]\n", encoding="utf-8")
    secrets = {"LISTED": "open", "UNLISTED": "shut", "III_TOKEN": "a-token-of-twenty-letters"}
    port = str(free_port())
    url = f"ws://127.0.0.1:{port}"

    with running(command, "--in-memory", "--port", port, cwd=tmp_path, **secrets) as engine:
        engine.wait_for("Ctrl-C")
        assert configured(url, "LISTED", secrets["III_TOKEN"]) == "open"
        for name in ("UNLISTED", "III_TOKEN", "PATH", "NOT_THERE"):
            with pytest.raises(RemoteError, match=f"needs {name}, which is not set here"):
                configured(url, name, secrets["III_TOKEN"])


def configured(url: str, variable: str, token: str) -> object:
    """Return the message for a user whose engine fills in a variable."""
    entry = {"id": "x", "name": "x", "description": "x", "schema": True, "initial_value": f"${{{variable}}}"}
    call_function(url, "configuration::register", entry, token=token)
    return call_function(url, "configuration::get", {"id": "x"}, token=token)["value"]


def test_the_token_cannot_be_listed(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("configuration_env: [III_TOKEN]\n", encoding="utf-8")
    with running("engine", "--in-memory", "--port", str(free_port()), cwd=tmp_path) as engine:
        engine.wait_for("'configuration_env' must be a list without III_TOKEN")


@pytest.mark.parametrize(
    "arguments", [["engine", "--token", "short"], ["engine", "--host", "0.0.0.0", "--token", "x" * 15]]
)
def test_a_token_that_can_be_guessed_is_refused(tmp_path: Path, arguments: list[str]) -> None:
    done = run(*arguments, "--in-memory", "--port", "0", cwd=tmp_path)

    assert done.returncode == 2
    assert "a token has at least 16 characters" in done.stderr
    assert "Traceback" not in done.stderr


def test_diagnostics_and_doctor_name_the_file_of_state_that_was_set_aside(tmp_path: Path) -> None:
    data = tmp_path / "kept"
    data.mkdir()
    (data / "engine.db").write_text("no database " * 1000, encoding="utf-8")
    url = f"ws://127.0.0.1:{free_port()}"
    with running("up", "--url", url, "--data", str(data), cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")
        findings = call_function(url, "directory::diagnostics", {})["findings"]
        doctor = run("doctor", "--url", url, cwd=tmp_path)
    kept = next(path.name for path in data.iterdir() if ".corrupt-" in path.name)

    assert [row["subject"] for row in findings if kept in row["reason"]] == ["iii-state"]
    assert kept in doctor.stdout.replace("\n", "")


@pytest.mark.parametrize("command", ["up", "serve"])
def test_a_file_of_state_that_is_set_aside_meanwhile_is_named_at_once(tmp_path: Path, command: str) -> None:
    data, port = tmp_path / "kept", str(free_port())
    url = f"ws://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        if command == "serve":
            engine = stack.enter_context(running("engine", "--port", port, "--data", str(data), cwd=tmp_path))
            engine.wait_for("Ctrl-C")
            joined = stack.enter_context(running("serve", "--url", url, cwd=tmp_path))
            joined.wait_for("connected to the engine")
        else:
            up = running("up", "--port", port, "--data", str(data), "--http-port", "0", cwd=tmp_path)
            stack.enter_context(up).wait_for("Ctrl-C")
        until(lambda: "error" not in trigger(url, "directory::diagnostics"), "the directory answers")
        assert trigger(url, "directory::diagnostics")["result"]["findings"] == []
        (data / "engine.db").unlink()
        (data / "engine.db").write_bytes(b"something else")
        call_function(url, "state::set", {"scope": "s", "key": "k", "value": 1})
        findings = trigger(url, "directory::diagnostics")["result"]["findings"]
    # Its log is kept beside it.
    kept = min((path.name for path in data.iterdir() if ".corrupt-" in path.name), key=len)

    assert [row["subject"] for row in findings if kept in row["reason"]] == ["iii-state"]


def trigger(url: str, function_id: str) -> dict[str, Any]:
    with RawClient(url) as client:
        return client.call(function_id)


@pytest.mark.parametrize("joined", [False, True], ids=["up", "serve"])
def test_a_hangup_has_the_settings_read_again_and_stops_nothing(
    tmp_path: Path, engine: EngineThread, joined: bool
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("allow_writing: false\n")
    url = engine.url if joined else f"ws://127.0.0.1:{free_port()}"
    command = ("serve", "--url", url) if joined else ("up", "--url", url, "--http-port", "0")
    with running(*command, cwd=tmp_path) as started:
        started.wait_for("Ctrl-C")
        config.write_text("allow_writing: true\n")

        started.process.send_signal(signal.SIGHUP)

        started.wait_for("settings changed: allow_writing")
        assert started.stop(signal.SIGTERM) == 0
