"""The front door: help, version, manifest, and finding the command."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from tests.contract.requirements import requirement
from tests.support.commands import COMMAND, environment, free_port, run, with_ctrl_c_at_import
from tests.support.terminal import at_a_terminal

from iii_directory import __version__
from iii_directory.cli.command_help import EXAMPLES, SECTIONS
from iii_directory.cli.main import COMMANDS, command_of

if TYPE_CHECKING:
    from tests.support.engine import EngineThread

SLOW = ("iii", "asyncio", "click", "yaml", "httpx2", "websockets", "rich", "mcp", "pydantic")


@pytest.mark.parametrize("flag", ["--help", "--version", "--manifest"])
def test_a_quick_answer_imports_nothing_slow(flag: str) -> None:
    program = (
        "import sys; sys.argv[1:] = [sys.argv[1]]\n"
        "from iii_directory.cli.main import main\n"
        "main()\n"
        f"print([name for name in {SLOW!r} if name in sys.modules], file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, flag], capture_output=True, text=True, check=True, timeout=30
    )

    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
@requirement("cli.flags")
def test_every_command_is_in_the_help_and_has_a_help_of_its_own(name: str) -> None:
    own = run(name, "--help")

    assert f"  {name} " in run("--help").stdout
    assert own.returncode == 0
    assert own.stdout.startswith(f"Usage: iii-directory {name}")


def every_command() -> list[tuple[str, click.Command]]:
    """The words of each command, and the command."""
    found: list[tuple[str, click.Command]] = []
    for name in COMMANDS:
        command = command_of(name)
        below = command.commands.items() if isinstance(command, click.Group) else ()
        found += [(name, command), *((f"{name} {word}", one) for word, one in below)]
    return found


ALL_WORDS = [words for words, _ in every_command()]


@pytest.mark.parametrize("words", ["skills", "skills add", "trigger", "up"])
def test_help_is_had_in_every_way_people_ask_for_it(words: str) -> None:
    own = run(*words.split(), "--help")

    assert run(*words.split(), "-h").stdout == run("help", *words.split()).stdout == own.stdout
    assert own.stdout.startswith(f"Usage: iii-directory {words}")
    assert "Examples:\n    iii-directory" in own.stdout


def test_every_command_has_examples_that_it_understands() -> None:
    assert set(EXAMPLES) == set(ALL_WORDS)
    commands = dict(every_command())
    for lines in EXAMPLES.values():
        for line in lines:
            name, *rest = shlex.split(line)
            command = commands[name]
            if isinstance(command, click.Group):
                command = commands[f"{name} {rest.pop(0)}"]
            # Only reads the words; the command is not run.
            command.make_context(line, rest)


@pytest.mark.parametrize("command", ["skills list", "config show"])
def test_the_configuration_may_be_named_before_the_command(command: str, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("registry_url: https://registry.example\n", encoding="utf-8")

    before = run("--config", "my.yaml", *command.split(), cwd=tmp_path)
    after = run(*command.split(), "--config", "my.yaml", cwd=tmp_path)

    assert before.returncode == 0
    assert before.stdout == after.stdout


def test_no_help_cuts_a_summary_short() -> None:
    for group in ("skills", "prompts", "registry", "config"):
        assert "..." not in run(group, "--help").stdout.split("Options:")[1]


def test_every_command_of_a_divided_group_stands_under_one_heading() -> None:
    commands = dict(every_command())
    for name, sections in SECTIONS.items():
        group = commands[name]
        assert isinstance(group, click.Group)
        assert sorted(word for words in sections.values() for word in words) == sorted(group.commands)


def test_help_fits_the_terminal(tmp_path: Path) -> None:
    for words in (["--help"], ["skills", "--help"]):
        with at_a_terminal(*words, cwd=tmp_path, columns=80) as terminal:
            assert terminal.end() == 0
        assert max(map(len, terminal.screen.split("\n"))) <= 80


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("skills instal pdf", "Did you mean: iii-directory skills add?"),
        ("skills search pdf", "Did you mean: iii-directory search?"),
        ("skills uninstall pdf", "Did you mean: iii-directory skills remove?"),
        ("skills shwo pdf", "Did you mean: iii-directory skills show?"),
        ("skills lst", "Did you mean: iii-directory skills list?"),
        ("lst", "Did you mean: skills list?"),
        ("prompts lits", "Did you mean: iii-directory prompts list?"),
        ("install pdf", "Did you mean: skills add?"),
        ("start", "Did you mean: up?"),
        ("help serv", "Did you mean: serve?"),
    ],
)
def test_a_wrong_word_leads_to_the_right_one(typed: str, hint: str) -> None:
    done = run(*typed.split())

    assert done.returncode == 2
    assert hint in done.stderr


@requirement("cli.flags")
def test_the_version_is_printed() -> None:
    assert run("--version").stdout == run("-V").stdout == f"iii-directory {__version__}\n"


def test_the_name_alone_shows_the_help_where_no_engine_answers(tmp_path: Path) -> None:
    url = f"ws://127.0.0.1:{free_port()}"
    with at_a_terminal(cwd=tmp_path, III_URL=url) as terminal:
        assert terminal.end() == 0

    assert "Start with: iii-directory up" in terminal.screen


def test_the_name_alone_serves_where_an_engine_answers(tmp_path: Path, engine: EngineThread) -> None:
    with at_a_terminal(cwd=tmp_path, III_URL=engine.url) as terminal:
        terminal.wait_for("Ctrl-C stops it")
        terminal.press("\x03")
        assert terminal.end() == 0


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [COMMAND, "skills", "list", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=environment(III_URL="ws://127.0.0.1:1"),
            text=True,
            check=False,
            timeout=30,
        )

    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == [
        "iii-directory: the output cannot be written: No space left on device"
    ]


@pytest.mark.parametrize(
    ("typed", "module"),
    [
        ("skills list", "click"),
        ("skills list", "iii_directory.cli.skills_commands"),
        ("up --in-memory", "iii_directory.cli.up"),
        ("trigger a::b", "websockets.sync.client"),
    ],
)
def test_ctrl_c_while_something_is_imported_is_the_end_and_nothing_else(
    typed: str, module: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        with_ctrl_c_at_import(module, *typed.split()),
        cwd=tmp_path,
        env=environment(III_URL=f"ws://127.0.0.1:{free_port()}"),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )

    assert (done.returncode, done.stderr.strip()) == (130, "")


@requirement("cli.flags")
def test_the_manifest_describes_the_worker_without_an_engine() -> None:
    done = run("--manifest", "--url", "ws://127.0.0.1:1")

    manifest = json.loads(done.stdout)
    assert done.returncode == 0
    assert set(manifest) == {"name", "version", "description", "default_config", "supported_targets"}
    assert manifest["name"] == "iii-directory"
    assert manifest["default_config"]["download_timeout_ms"] == 60_000


def test_an_unknown_command_suggests_a_close_one() -> None:
    done = run("triger")

    assert done.returncode == 2
    assert done.stderr == (
        "iii-directory: there is no command 'triger'. Did you mean: trigger? See iii-directory --help.\n"
    )


def test_an_unknown_option_is_a_sentence_and_not_a_trace() -> None:
    done = run("--frobnicate")

    assert done.returncode == 2
    assert "--frobnicate" in done.stderr
    assert "Traceback" not in done.stderr
