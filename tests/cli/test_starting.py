"""The first minute: what `up`, `serve` and `status` say, two projects on one machine, and Ctrl-C."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from http.server import HTTPServer, SimpleHTTPRequestHandler
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from tests.support.commands import (
    COMMAND,
    Running,
    environment,
    free_port,
    run,
    running,
    running_program,
    with_ctrl_c_at_import,
    with_usual_port,
)
from tests.support.engine import WAIT, EngineThread
from tests.support.folders import Folder
from tests.support.terminal import at_a_terminal

if TYPE_CHECKING:
    from pathlib import Path

BARE_PATH = "/usr/bin:/bin"


@pytest.fixture(autouse=True)
def _own_machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What else runs on this machine is not seen, and does not see us."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))


def project(path: Path, skill: str) -> Path:
    Folder(path / "skills").document(f"{skill}/SKILL.md", skill)
    return path


def answers(usual_port: int, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        with_usual_port(usual_port, *arguments),
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT * 3,
    )


def banner(up: Running) -> dict[str, str]:
    """What `up` says runs where."""
    up.wait_for("Ctrl-C stops")
    rows = (line.split(maxsplit=1) for line in up.lines)
    return {
        row[0]: row[1] for row in rows if len(row) == 2 and row[0] in ("engine", "worker", "folder", "mcp")
    }


def test_the_first_hint_is_a_command_that_exists(tmp_path: Path) -> None:
    port = str(free_port())
    with running("up", "--port", port, "--in-memory", cwd=tmp_path, PATH=BARE_PATH) as up:
        up.wait_for("Ctrl-C")
        hint = up.lines[up.lines.index("Try in another terminal:") + 1]
        done = subprocess.run(
            shlex.split(hint),
            cwd=tmp_path,
            env=environment(PATH=BARE_PATH),
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT * 3,
        )

    assert done.returncode == 0, done.stderr
    assert "iii-directory\t" in done.stdout


def test_up_says_once_that_it_is_connected_and_last_how_it_is_stopped(tmp_path: Path) -> None:
    with running("up", "--port", str(free_port()), "--in-memory", cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")
        assert up.stop(signal.SIGINT) == 0

    connected = [line for line in up.lines if "connected" in line]
    assert len(connected) == 1
    assert up.lines.index(connected[0]) < up.lines.index(next(x for x in up.lines if x.startswith("engine ")))
    assert up.lines[-2:] == ["Ctrl-C stops everything.", "stopping"]


def test_two_projects_on_one_machine_do_not_mix(tmp_path: Path) -> None:
    first, second = project(tmp_path / "a", "alpha"), project(tmp_path / "b", "beta")
    port = free_port()

    with running_program(*with_usual_port(port, "up"), cwd=first) as up_first:
        of_first = banner(up_first)
        with running_program(*with_usual_port(port, "up"), cwd=second) as up_second:
            of_second = banner(up_second)
            listed = {
                place.name: answers(port, "skills", "list", cwd=place).stdout for place in (first, second)
            }
            state = json.loads(answers(port, "status", "--json", cwd=second).stdout)

    assert of_first["engine"].startswith(f"ws://127.0.0.1:{port} ")
    assert of_second["folder"] == str(second / "skills")
    up_second.wait_for(f"the directory of {first} (pid ")
    assert "alpha" in listed["a"]
    assert "beta" not in listed["a"]
    assert "beta" in listed["b"]
    assert "alpha" not in listed["b"]
    assert of_second["engine"].startswith(f"{state['url']} ")
    assert {run["home"] for run in state["runs"]} == {str(first), str(second)}


def test_a_folder_sees_its_own_skills_while_the_directory_of_another_runs(tmp_path: Path) -> None:
    first, other = project(tmp_path / "a", "alpha"), project(tmp_path / "b", "beta")
    port = free_port()

    with running_program(*with_usual_port(port, "up"), cwd=first) as up:
        banner(up)
        listed = answers(port, "skills", "list", cwd=other)
        told = answers(port, "skills", "list", "--verbose", cwd=other)
        state = answers(port, "status", cwd=other)

    assert "beta" in listed.stdout
    assert "alpha" not in listed.stdout
    assert listed.stderr == ""
    assert f"is that of {first}; this is read from {other / 'skills'}" in told.stderr
    assert f"the directory of {first}, which is not this folder, answers" in state.stderr
    assert str(first / "skills") in state.stdout


def test_the_same_folder_is_not_run_twice(tmp_path: Path) -> None:
    port = free_port()
    with running_program(*with_usual_port(port, "up"), cwd=tmp_path) as up:
        banner(up)
        again = answers(port, "up", cwd=tmp_path)

    assert again.returncode == 1
    assert again.stderr == (
        f"iii-directory: the directory of {tmp_path} runs already, at ws://127.0.0.1:{port} "
        f"(pid {up.process.pid}); stop it first, or pass --port to run another beside it\n"
    )


def test_up_at_the_address_of_another_directory_says_that_it_waits(tmp_path: Path) -> None:
    first, second = project(tmp_path / "a", "alpha"), project(tmp_path / "b", "beta")
    url = f"ws://127.0.0.1:{free_port()}"

    with running("up", "--url", url, cwd=first) as one:
        banner(one)
        with running("up", "--url", url, cwd=second) as two:
            shown = banner(two)
            code = two.stop(signal.SIGINT)

    assert shown["worker"] == f"waits until the directory of {first} (pid {one.process.pid}) leaves"
    assert "mcp" not in shown
    two.wait_for("Ctrl-C stops the worker")
    assert code == 0


def test_a_directory_that_was_killed_disappears_from_the_status(tmp_path: Path) -> None:
    with running("up", "--port", str(free_port()), "--in-memory", cwd=tmp_path) as up:
        banner(up)
        up.process.kill()
        up.process.wait(WAIT)

    done = run("status", "--json", "--url", "ws://127.0.0.1:1", cwd=tmp_path)

    assert done.returncode == 1
    assert json.loads(done.stdout) == {"url": "ws://127.0.0.1:1", "state": "nothing", "runs": []}
    assert "start a directory: " in done.stderr


def test_status_tells_an_engine_without_a_directory(tmp_path: Path, engine: EngineThread) -> None:
    done = run("status", "--url", engine.url, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"iii-directory: the engine at {engine.url} has no directory; start one")


def test_status_shows_an_engine_without_a_directory(tmp_path: Path) -> None:
    here, other = project(tmp_path / "a", "alpha"), project(tmp_path / "b", "beta")
    port = free_port()
    url = f"ws://127.0.0.1:{port}"

    with running("engine", "--port", str(port), cwd=here) as engine:
        engine.wait_for("Ctrl-C")
        alone = answers(port, "status", cwd=other)
        [run] = json.loads(answers(port, "status", "--json", cwd=other).stdout)["runs"]
        with running_program(*with_usual_port(port, "up"), cwd=other) as up:
            joined = banner(up)
            listed = answers(port, "skills", "list", cwd=other)
            state = answers(port, "status", cwd=other)

    assert alone.stdout == f"{url}\t(an engine alone)\t\t{engine.process.pid}\n"
    assert f"the engine at {url} has no directory" in alone.stderr
    assert (run["url"], run["home"], run["skills_folder"]) == (url, str(here), None)
    assert run["data"] == str(here / ".iii-directory")
    assert joined["engine"] == f"{url} (already there)"
    assert "beta" in listed.stdout
    assert listed.stderr == ""
    assert f"the directory of {other} answers at {url}" in state.stderr


def test_up_joins_the_engine_that_runs_alone_for_its_folder(tmp_path: Path) -> None:
    port = free_port()
    with running("engine", "--port", str(port), cwd=tmp_path) as engine:
        engine.wait_for("Ctrl-C")
        with running_program(*with_usual_port(port, "up"), cwd=tmp_path) as up:
            assert banner(up)["engine"] == f"ws://127.0.0.1:{port} (already there)"


# Where state is kept


def test_an_older_data_folder_goes_on_being_used(tmp_path: Path) -> None:
    port = str(free_port())
    for options in (("--data", "data"), ()):
        with running("up", "--port", port, *options, cwd=tmp_path) as up:
            assert banner(up)["engine"].endswith("state in data)")
            up.stop()

    assert not (tmp_path / ".iii-directory").exists()


def test_state_stays_out_of_a_skills_folder(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("skills_folder: .\n")

    with running("up", "--port", str(free_port()), cwd=tmp_path) as up:
        assert banner(up)["engine"].endswith("state in data)")


def test_state_in_use_names_who_has_it_and_the_way_out(tmp_path: Path) -> None:
    with running("up", "--port", str(free_port()), cwd=tmp_path) as up:
        banner(up)
        done = run("engine", "--port", str(free_port()), cwd=tmp_path)

    assert done.returncode == 1
    assert f"is in use by another engine (pid {up.process.pid}, at ws://" in done.stderr
    assert "pass --data" in done.stderr


# Serving others


def test_up_beyond_loopback_needs_a_token_and_then_asks_for_it(tmp_path: Path) -> None:
    port = free_port()
    for option in ("--host", "--http-host"):
        refused = run("up", option, "0.0.0.0", "--port", str(port), "--in-memory", cwd=tmp_path)
        assert refused.returncode == 2
        assert "needs a token" in refused.stderr

    served = ("--host", "0.0.0.0", "--http-host", "0.0.0.0", "--http-port", "0")
    with running(
        "up", *served, "--port", str(port), "--in-memory", cwd=tmp_path, III_TOKEN="a-token-of-twenty-letters"
    ) as up:
        shown = banner(up)
        url = f"ws://127.0.0.1:{port}"
        without = run("trigger", "directory::skills::index", "--url", url, cwd=tmp_path)
        given = run(
            "trigger",
            "directory::skills::index",
            "--url",
            url,
            cwd=tmp_path,
            III_TOKEN="a-token-of-twenty-letters",
        )

    assert shown["engine"].startswith(f"ws://0.0.0.0:{port} ")
    assert shown["mcp"].startswith("http://0.0.0.0:")
    assert "asks for a token" in without.stderr
    assert given.returncode == 0


# Waiting, and Ctrl-C


def test_serve_says_what_it_waits_for(tmp_path: Path) -> None:
    url = f"ws://127.0.0.1:{free_port()}"
    with running("serve", "--url", url, cwd=tmp_path) as serve:
        line = serve.wait_for("waiting for an engine")
        assert serve.stop(signal.SIGINT) == 0

    assert line.startswith(f"waiting for an engine at {url}; start one: ")


def test_serve_says_that_something_else_is_there(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with running("serve", "--url", f"ws://127.0.0.1:{server.server_port}", cwd=tmp_path) as serve:
            line = serve.wait_for("what listens at")
            serve.stop()
        server.shutdown()

    assert f"what listens at ws://127.0.0.1:{server.server_port} " in line


def test_a_host_that_does_not_exist_is_said_to_be_none(tmp_path: Path) -> None:
    done = run("up", "--url", "ws://example.invalid:23311", cwd=tmp_path)

    assert done.returncode == 1
    assert done.stderr.startswith("iii-directory: no iii engine answers at ws://example.invalid:23311: ")


def test_ctrl_c_ends_up_while_it_still_asks_who_is_there(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"ws://127.0.0.1:{silent.getsockname()[1]}"
        with at_a_terminal("up", "--url", url, cwd=tmp_path) as terminal:
            silent.settimeout(WAIT * 3)
            connection, _ = silent.accept()
            terminal.press("\x03")
            assert terminal.end() == 130
            connection.close()

    assert "Traceback" not in terminal.screen
    assert "stopping" not in terminal.screen


@pytest.mark.parametrize("module", ["iii_directory.bus.client", "iii_directory.worker.directory_worker"])
def test_ctrl_c_while_up_starts_is_the_end(tmp_path: Path, module: str, engine: EngineThread) -> None:
    done = subprocess.run(
        with_ctrl_c_at_import(module, "up", "--url", engine.url),
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT * 3,
    )

    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")


def test_the_hint_of_a_module_run_is_a_command_too(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "iii_directory", "status", "--url", "ws://127.0.0.1:1"],
        cwd=tmp_path,
        env=environment(PATH=BARE_PATH),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT * 3,
    )

    assert done.stderr.rstrip().endswith(f"start a directory: {sys.executable} -m iii_directory up")
    assert os.access(COMMAND, os.X_OK)


# What answers, says what it has imported by then, and ends.
FIRST_ANSWER = """
import sys
others = set(sys.modules)  # such as what counts the lines that are run
from pathlib import Path
import iii_directory.cli.engine_commands
from iii_directory.cli.common import settings_from
from iii_directory.worker import directory_worker
from iii_directory.worker.directory_worker import DirectoryWorker
directory_worker.AFTER_START_SECONDS = 600  # however slow this machine is
worker = DirectoryWorker.join(settings_from(Path(sys.argv[2])), sys.argv[1])
assert worker.wait_ready(30)
print(*(set(sys.modules) - others))
worker.stop()
"""
LATER = {
    *("httpx2", "iii", "jsonschema", "mcp", "pydantic", "rapidfuzz", "rich", "sqlite3", "yaml"),
    *("websockets.asyncio", "websockets.sync", "iii_directory.engine.server"),
    *("iii_directory.documents.skill_check", "iii_directory.worker.served_skills"),
    *("iii_directory.install.git", "iii_directory.install.upkeep", "difflib", "iii_directory.mcp.exposure"),
    *(
        "iii_directory.install.service",
        "iii_directory.registry.registry_client",
        "iii_directory.search.index",
    ),
}
"""What takes long to import, and what the first answer does not need."""


def test_a_worker_answers_before_it_imports_what_it_does_not_need_yet(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"skills_folder: {tmp_path}/skills\n", encoding="utf-8")
    with EngineThread() as engine:
        done = subprocess.run(
            (sys.executable, "-c", FIRST_ANSWER, engine.url, str(config)),
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
            timeout=WAIT * 3,
        )

    assert LATER & set(done.stdout.split()) == set()
