"""Words for people: errors name commands, what was named must be there, shells complete, Ctrl-C ends."""

from __future__ import annotations

import shutil
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.support.commands import COMMAND, environment, run
from tests.support.engine import WAIT
from tests.support.folders import Folder
from tests.support.terminal import at_a_terminal

from iii_directory.cli.common import as_command
from iii_directory.errors import KINDS, DirectoryError, Step, error_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.engine import EngineThread

NOWHERE = "ws://127.0.0.1:1"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = Folder(tmp_path / "skills")
    folder.document("coffee/SKILL.md", "coffee")
    folder.document("coffee/machines.md", "machines")
    folder.write("coffee/prompts/order.md", "---\ndescription: Order\n---\nOrder.\n")
    return tmp_path


def test_a_wrong_id_leads_to_a_command_and_not_to_a_function(place: Path) -> None:
    done = run("skills", "show", "cofee", cwd=place, III_URL=NOWHERE)

    assert "Did you mean: coffee. Next: run " in done.stderr
    assert "iii-directory skills list" in done.stderr
    assert "::" not in done.stderr.splitlines()[-1]


def test_no_next_step_of_an_error_tells_a_person_to_call_a_function() -> None:
    for kind in KINDS:
        for step in kind.next_steps:
            shown = as_command(step)
            assert "call directory::" not in shown
            assert ("directory::" in shown) == ("trigger directory::" in shown)


@pytest.mark.parametrize(
    "step",
    [
        *(step for kind in KINDS for step in kind.next_steps),
        Step("to read it", "directory::skills::file", {"id": "a", "path": 'x; y {z} "q".txt'}),
        Step("with raw: {not json", "directory::skills::get"),
        Step("call nobody"),
    ],
)
def test_a_next_step_survives_the_way_over_an_engine(step: Step) -> None:
    error = DirectoryError(KINDS[0], "something is wrong", next_steps=(step, step))
    told = error_of(error.data())
    assert told is not None
    assert told.next_steps == (step, step)
    assert told.sentence(as_command) == error.sentence(as_command)


@pytest.mark.parametrize(
    "typed", ["skills list", "skills verify", "prompts list", "doctor", "up", "serve", "engine"]
)
def test_a_configuration_that_was_named_must_be_there(typed: str, tmp_path: Path) -> None:
    done = run(*typed.split(), "--config", "nope.yaml", cwd=tmp_path, III_URL=NOWHERE)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith("iii-directory: nope.yaml does not exist; ")


def test_what_cannot_be_removed_is_said_on_stderr(place: Path) -> None:
    done = run("skills", "remove", "coffee", cwd=place)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("iii-directory: coffee: ")
    assert "directory::" not in done.stderr


# Completion


def completed(place: Path, *typed: str) -> list[str]:
    """Return what a shell is told when a user presses the tab key after these words."""
    done = subprocess.run(
        [COMMAND],
        cwd=place,
        env=environment(
            _III_DIRECTORY_COMPLETE="bash_complete",
            COMP_WORDS=" ".join(("iii-directory", *typed)),
            COMP_CWORD=str(len(typed)),
            III_URL=NOWHERE,
        ),
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT * 3,
    )
    assert done.stderr == ""
    return [line.split(",", 1)[1] for line in done.stdout.splitlines() if line]


def test_commands_options_ids_and_names_are_completed(place: Path) -> None:
    assert completed(place, "sk") == ["skills"]
    assert completed(place, "skills", "sh") == ["show", "show-only"]
    assert completed(place, "up", "--skills") == ["--skills-folder"]
    assert completed(place, "skills", "show", "cof") == ["coffee", "coffee/machines"]
    assert completed(place, "skills", "show", "coffee", "m") == ["machines.md"]
    assert completed(place, "skills", "path", "coffee", "prompts/") == ["prompts/order.md"]
    assert completed(place, "skills", "path", "nope", "") == []
    assert completed(place, "skills", "budget", "--host", "codex-") == ["codex-2-percent"]
    assert completed(place, "prompts", "show", "") == ["order"]
    assert completed(place, "trigger", "dir") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_asks_the_command(shell: str, place: Path) -> None:
    script = run("completion", shell).stdout

    assert "_III_DIRECTORY_COMPLETE" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=WAIT)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("line", "added"),
    [
        ("skills show cof", ["coffee", "coffee/machines"]),
        ("skills show ", ["coffee", "coffee/machines", "iii-directory"]),
        ("skills verify t", ["tea"]),
        # A word ends at a colon for bash, so only what comes behind the last one is put in.
        ("trigger state::g", ["get"]),
        ("trigger state:", [":delete", ":get"]),
        ("trigger stat", ["state::delete", "state::get"]),
    ],
)
def test_bash_completes_with_the_script(
    place: Path, engine: EngineThread, line: str, added: list[str]
) -> None:
    Folder(place / "elsewhere").document("tea/SKILL.md", "tea")
    assert run("skills", "add", str(place / "elsewhere"), "--all", cwd=place).returncode == 0
    program = (
        f'eval "$({COMMAND} completion bash)"\n'
        f"COMP_LINE='iii-directory {line}'; COMP_POINT=${{#COMP_LINE}}\n"
        f"_iii_directory_completion {COMMAND}\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )

    done = subprocess.run(
        ["bash", "-c", program],
        cwd=place,
        env=environment(III_URL=engine.url if "trigger" in line else NOWHERE),
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT * 3,
    )

    assert set(added) <= set(done.stdout.split())


# Ctrl-C


def test_ctrl_c_ends_an_install_from_a_git_host_that_says_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        repository = f"https://127.0.0.1:{silent.getsockname()[1]}/some/skills"
        with at_a_terminal("skills", "add", repository, "--skill", "pdf", cwd=tmp_path) as terminal:
            silent.settimeout(WAIT * 3)
            with silent.accept()[0] as connection:
                terminal.press("\x03")
                assert terminal.end() == 130
                # git has gone too: it was what kept the connection.
                connection.settimeout(WAIT)
                while connection.recv(65536):
                    pass

    assert "Traceback" not in terminal.screen
