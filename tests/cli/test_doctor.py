"""The doctor looks around the documents too: at the configuration, the folders, programs and packages."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from tests.support.commands import run

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE = "ws://127.0.0.1:1"


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["rows", "json"])
@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        ("skill_folder: x\n", "skills_folder"),
        ("skills_folder: [\n", "not valid YAML"),
        ("skills_folder: elsewhere\n", "there is no folder"),
        ("local_skills_folder: mine\n", "local_skills_folder"),
    ],
)
def test_a_wrong_setting_is_found_and_needs_attention(
    tmp_path: Path, configuration: str, said: str, options: tuple[str, ...]
) -> None:
    (tmp_path / "config.yaml").write_text(configuration, encoding="utf-8")

    done = run("doctor", *options, cwd=tmp_path, III_URL=NOWHERE)

    assert done.returncode == 1
    shown = done.stderr if options else done.stdout
    assert said in shown


def test_a_machine_without_git_is_told_what_it_cannot_do(tmp_path: Path) -> None:
    assert shutil.which("git")

    done = run("doctor", cwd=tmp_path, III_URL=NOWHERE, PATH=str(tmp_path))

    assert (done.returncode, done.stdout.split("\t")[:2]) == (0, ["program", "git"])


def test_where_all_is_well_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "config.yaml").write_text("skills_folder: docs\n", encoding="utf-8")

    done = run("doctor", cwd=tmp_path, III_URL=NOWHERE)

    assert (done.returncode, done.stdout) == (0, "")
