"""The README's examples, run as printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.commands import START_SECONDS, environment, free_port, running
from tests.support.markdown import code_blocks

from iii_directory.cli.main import COMMANDS
from iii_directory.config import DEFAULT_URL, default_document

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


@pytest.fixture
def newcomer(tmp_path: Path) -> Generator[tuple[Path, str]]:
    """A folder with the directory running in it, and the engine's address."""
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    url = f"ws://127.0.0.1:{free_port()}"
    with running("up", "--url", url, cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")
        yield tmp_path, url


def test_the_first_success_works_as_printed(newcomer: tuple[Path, str]) -> None:
    folder, url = newcomer
    first, mistake = (block for block in code_blocks(README, "sh") if ".venv/bin" in block)

    def shell(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-e", "-c", text],
            cwd=folder,
            env=environment(III_URL=url),
            capture_output=True,
            text=True,
            check=False,
            timeout=START_SECONDS,
        )

    done = shell(first)
    assert done.returncode == 0, done.stderr
    assert "How to order coffee on this floor." in done.stdout
    assert "[`coffee`](iii://coffee)" in done.stdout

    wrong = shell(mistake)
    expected = next(block for block in code_blocks(README, "text") if block.startswith("D110")).split(" …")[0]
    assert wrong.returncode == 1
    assert expected in wrong.stderr


def test_the_python_example_prints_the_index(newcomer: tuple[Path, str]) -> None:
    folder, url = newcomer
    (example,) = code_blocks(README, "python")

    done = subprocess.run(
        [sys.executable, "-c", example.replace(DEFAULT_URL, url)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=START_SECONDS,
    )

    assert done.stdout.startswith("# Skills index")


def test_every_command_is_in_the_guide_and_every_setting_in_the_reference() -> None:
    commands = (ROOT / "docs" / "guide" / "commands.md").read_text(encoding="utf-8")
    settings = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"`iii-directory {name}" in commands, name
    for key in default_document():
        assert f"`{key}" in settings, key


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    commands = next(block for block in code_blocks(README, "sh") if "make run" in block)
    for line in commands.splitlines():
        target = line.split()[1]
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
