"""The doctor looks around the documents too: at the configuration, the folders, programs and packages."""

from __future__ import annotations

import json
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
        ("skills_folder: elsewhere\n", "does not exist"),
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

    rows = [row.split("\t")[:2] for row in done.stdout.splitlines()]
    assert (done.returncode, rows) == (0, [["engine", NOWHERE], ["program", "git"]])


def test_where_all_is_well_only_the_missing_engine_is_named(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "config.yaml").write_text("skills_folder: docs\n", encoding="utf-8")

    done = run("doctor", cwd=tmp_path, III_URL=NOWHERE)

    (row,) = done.stdout.splitlines()
    assert (done.returncode, row.split("\t")[:2]) == (0, ["engine", NOWHERE])
    assert row.endswith(" up")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    skill = tmp_path / "skills" / "brew"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: brew\ndescription: Brews.\n---\nText.\n", encoding="utf-8")
    (skill / "index.md").write_text("The loser.\n", encoding="utf-8")
    (skill / "run.sh").write_text("true\n", encoding="utf-8")
    (skill / "empty.md").write_text("", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("asked", "code", "summary", "rules"),
    [
        ("brew", 0, "'brew' is served from brew/SKILL.md", ["shadowed brew/index.md"]),
        ("skills/brew/run.sh", 0, "'brew/run.sh' is a file of the skill 'brew'", ["file brew/run.sh"]),
        (
            "brew/empty",
            1,
            "'brew' is given instead",
            ["skipped brew/empty.md"],
        ),
        ("brwe", 1, "Did you mean: brew", []),
    ],
)
def test_why_tells_of_one_document_whether_it_is_served_and_every_rule(
    project: Path, asked: str, code: int, summary: str, rules: list[str]
) -> None:
    done = run("doctor", "--why", asked, cwd=project, III_URL=NOWHERE)

    first, *rows = done.stdout.splitlines()
    assert (done.returncode, summary in first) == (code, True), done.stdout
    assert "call directory::" not in done.stdout
    assert [" ".join(row.split("\t")[:2]) for row in rows] == rules
    assert all(len(row.split("\t")) == 4 for row in rows)


def test_why_takes_the_path_of_a_file_on_this_machine(project: Path) -> None:
    done = run(
        "doctor", "--json", "--why", str(project / "skills/brew/SKILL.md"), cwd=project, III_URL=NOWHERE
    )

    assert json.loads(done.stdout)["id"] == "brew"
