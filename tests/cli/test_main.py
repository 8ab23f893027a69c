"""The front door: help, version, manifest, and finding the command."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.contract.requirements import requirement
from tests.support.commands import run

from iii_directory import __version__
from iii_directory.cli.main import COMMANDS

SLOW = ("iii", "asyncio", "click", "yaml", "httpx", "websockets", "rich", "mcp", "pydantic")


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


@requirement("cli.flags")
def test_the_version_is_printed() -> None:
    assert run("--version").stdout == f"iii-directory {__version__}\n"


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
