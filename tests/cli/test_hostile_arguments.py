"""Whatever is given on the command line, it reads nothing outside and the terminal stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from tests.hostile import HOSTILE, label
from tests.support.folders import Folder

from iii_directory.cli import skills_commands
from iii_directory.text import has_unsafe

if TYPE_CHECKING:
    from pathlib import Path

    import click

CANARY = "canary-93b1e7aa"
NOWHERE = "ws://127.0.0.1:1"
# No argument of a process can hold a NUL.
GIVEN = [text for text in HOSTILE if "\0" not in text]
DOORS: dict[str, tuple[click.Command, list[str]]] = {
    "skills show": (skills_commands.skills, ["show", "--"]),
    "skills show a": (skills_commands.skills, ["show", "a", "--"]),
    "skills files": (skills_commands.skills, ["files", "--"]),
    "skills path": (skills_commands.skills, ["path", "--"]),
    "skills path a": (skills_commands.skills, ["path", "a", "--"]),
    "prompts show": (skills_commands.prompts, ["show", "--"]),
    "skills list --prefix": (skills_commands.skills, ["list", "--prefix"]),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_hostile_argument_reads_nothing_and_is_told_in_one_sentence(
    door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for neighbour in ("outside.md", "skills2/secret.md", "skills.bak/secret.md", "etc/passwd"):
        Folder(tmp_path).write(neighbour, CANARY)
    folder = Folder(tmp_path / "skills")
    folder.document("a.md", "A")
    folder.write(".env", CANARY)
    folder.link("up", tmp_path)
    command, arguments = DOORS[door]
    runner = CliRunner(env={"III_URL": NOWHERE})

    for text in GIVEN:
        result = runner.invoke(command, [*arguments, text])

        said = result.stdout + result.stderr
        assert result.exception is None or isinstance(result.exception, SystemExit), label(text)
        assert result.exit_code in (0, 1), label(text)
        assert CANARY not in said, label(text)
        assert not has_unsafe(result.stderr.replace("\n", "")), label(text)
        if result.exit_code == 1:
            *where, sentence = result.stderr.splitlines()
            # Where a skill lies is never asked of an engine, so there is nothing to say of one.
            assert len(where) == (arguments[0] != "path"), label(text)
            assert all(line.startswith("iii-directory: no engine answers") for line in where), label(text)
            assert sentence.startswith("iii-directory: D"), label(text)
            assert str(tmp_path) not in sentence, label(text)
