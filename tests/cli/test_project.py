"""Which project a command works for, and the user's own skills, with a home folder of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.commands import run

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Command = Callable[..., subprocess.CompletedProcess[str]]


def put_skill(folder: Path, name: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: Use when needed.\n---\n# {name}\n"
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def command(home: Path) -> Command:
    def typed(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
        return run(
            *words, cwd=cwd, **{"HOME": str(home), "XDG_DATA_HOME": "", "XDG_RUNTIME_DIR": str(home)} | env
        )

    return typed


def ids(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["skills"]
    return [row["id"] for row in rows if row["id"] != "iii-directory"]


@pytest.mark.parametrize("sign", ["config", "data", "skills", ".agents/skills", ".claude/skills"])
def test_the_project_is_found_from_a_folder_below_it(home: Path, command: Command, sign: str) -> None:
    project, deep = home / "project", home / "project/src/deep"
    deep.mkdir(parents=True)
    if sign == "config":
        (project / "config.yaml").write_text("skills_folder: texts\n")
    elif sign == "data":
        (project / ".iii-directory").mkdir()
    else:
        put_skill(project / sign, "there")

    made = command("skills", "new", "mine", cwd=deep)

    folder = project / ("texts" if sign == "config" else "skills")
    assert f"wrote {folder}/mine/SKILL.md" in made.stderr
    assert "mine" in ids(command("skills", "list", "--json", cwd=deep))
    assert not (deep / "skills").exists()


def test_a_config_and_a_skills_folder_of_other_programs_are_not_a_project(
    home: Path, command: Command
) -> None:
    project, deep = home / "project", home / "project/deep"
    deep.mkdir(parents=True)
    (project / "config.yaml").write_text("theme: dark\n")
    (project / "skills").mkdir()
    (project / "skills/notes.txt").write_text("x")

    command("skills", "new", "mine", cwd=deep)

    assert (deep / "skills/mine/SKILL.md").is_file()


def test_nothing_above_the_home_folder_is_looked_at(tmp_path: Path, home: Path, command: Command) -> None:
    put_skill(tmp_path / "skills", "above")
    put_skill(home / ".claude/skills", "of-user")
    deep = home / "deep"
    deep.mkdir()

    command("skills", "new", "mine", cwd=deep)

    assert (deep / "skills/mine/SKILL.md").is_file()
    assert ids(command("skills", "list", "--json", cwd=deep)) == ["mine", "of-user"]


def test_options_and_the_variable_choose_another_project(home: Path, command: Command) -> None:
    for name in ("a", "b"):
        put_skill(home / name / "skills", f"of-{name}")
    (home / "b/config.yaml").write_text("skills_folder: skills\n")
    here = home / "a"

    assert ids(command("skills", "list", "--json", cwd=here)) == ["of-a"]
    assert ids(command("skills", "list", "--json", cwd=here, III_DIRECTORY_HOME=str(home / "b"))) == ["of-b"]
    assert ids(command("skills", "list", "--json", "--config", "../b/config.yaml", cwd=here)) == ["of-b"]
    assert ids(command("skills", "list", "--json", "--skills-folder", "../b/skills", cwd=here)) == ["of-b"]


def test_the_users_skills_are_read_in_every_project_below_its_own(home: Path, command: Command) -> None:
    project = home / "project"
    put_skill(project / "skills", "both")
    put_skill(home / ".agents/skills", "both")
    put_skill(home / ".agents/skills", "of-agents")
    put_skill(home / ".claude/skills", "of-claude")

    listed = json.loads(command("skills", "list", "--json", cwd=project).stdout)["skills"]

    roots = {row["id"]: row.get("root") for row in listed}
    assert roots["both"] == "skills"
    assert roots["of-agents"] == ".agents/skills"
    assert roots["of-claude"] == ".claude/skills"
    (project / "config.yaml").write_text("user_roots: false\n")
    assert ids(command("skills", "list", "--json", cwd=project)) == ["both"]


def test_skills_of_the_user_are_installed_once_and_read_everywhere(home: Path, command: Command) -> None:
    for name in ("a", "b"):
        put_skill(home / name / "skills", f"of-{name}")
    put_skill(home / "source", "shared")

    added = command("skills", "add", "-g", "../source/shared", cwd=home / "a")

    folder = home / ".local/share/iii-directory/skills"
    assert added.returncode == 0
    assert str(folder) in added.stderr
    assert (folder / "skills.lock.json").is_file()
    assert ids(command("skills", "list", "--json", cwd=home / "b")) == ["of-b", "shared"]
    assert ids(command("skills", "list", "-g", "--json", cwd=home / "b")) == ["shared"]
    assert command("skills", "verify", "-g", cwd=home / "b").returncode == 0
    assert command("skills", "remove", "-g", "shared", cwd=home / "b").returncode == 0
    assert ids(command("skills", "list", "--json", cwd=home / "a")) == ["of-a"]


@pytest.mark.parametrize("words", [("skills", "list"), ("search", "needed"), ("skills", "show", "of-a")])
def test_no_command_speaks_of_an_engine_that_was_not_asked_for(
    home: Path, command: Command, words: tuple[str, ...]
) -> None:
    put_skill(home / "a/skills", "of-a")

    quiet, told = command(*words, cwd=home / "a"), command(*words, "--verbose", cwd=home / "a")

    assert "engine" not in quiet.stderr
    assert f"this is read from {home}/a/skills" in told.stderr
    assert json.loads(command(*words, "--json", cwd=home / "a").stdout)["answered_by"] == f"{home}/a/skills"


def test_what_is_missing_may_be_registered_and_that_is_said(home: Path, command: Command) -> None:
    put_skill(home / "a/skills", "of-a")

    done = command("skills", "show", "nothing-like-it", cwd=home / "a")

    assert done.returncode == 1
    assert "Documents that running workers register are not searched here." in done.stderr


def test_a_skill_is_installed_to_hosts_kept_current_there_and_removed_with_them(
    home: Path, command: Command
) -> None:
    project, source = home / "project", home / "source"
    put_skill(source, "pdf")
    put_skill(project / ".claude/skills", "theirs")

    added = command("skills", "add", "../source/pdf", "--to", "claude-code", "--to", "windsurf", cwd=project)

    linked, copied = project / ".claude/skills/pdf", project / ".windsurf/skills/pdf"
    assert added.returncode == 0, added.stderr
    assert str(linked.readlink()) == "../../skills/pdf"
    assert (copied / "SKILL.md").is_file()
    assert ids(command("skills", "list", "--json", cwd=project)) == ["pdf", "theirs"]
    (source / "pdf/SKILL.md").write_text("---\nname: pdf\ndescription: Use when new.\n---\n# New\n")
    assert command("skills", "update", cwd=project).returncode == 0
    assert (linked / "SKILL.md").read_text() == (copied / "SKILL.md").read_text()
    assert "# New" in (copied / "SKILL.md").read_text()
    assert command("skills", "remove", "pdf", cwd=project).returncode == 0
    assert not linked.is_symlink()
    assert not (project / ".windsurf").exists()
    assert (project / ".claude/skills/theirs/SKILL.md").is_file()


@pytest.mark.parametrize(("edited", "stays"), [("SKILL.md", True), ("notes.md", False)])
def test_a_removed_skill_is_linked_on_only_while_its_edited_overview_stays(
    home: Path, command: Command, edited: str, stays: bool
) -> None:
    project, source = home / "project", home / "source"
    put_skill(source, "pdf")
    put_skill(project / "skills", "own")
    (source / "pdf/notes.md").write_text("# Notes\n")
    command("skills", "add", "../source/pdf", "--to", "claude-code", cwd=project)
    (project / "skills/pdf" / edited).write_text("# Mine\n")

    done = command("skills", "remove", "pdf", cwd=project)

    assert done.returncode == 0
    assert "pdf: the edited files that stay are yours now" in done.stderr
    assert (project / "skills/pdf" / edited).read_text() == "# Mine\n"
    assert (project / ".claude/skills/pdf").is_symlink() == stays


def test_what_is_there_already_is_linked_and_unlinked_and_nothing_else(home: Path, command: Command) -> None:
    project = home / "project"
    put_skill(project / "skills", "pdf")
    put_skill(project / "skills", "docx")
    put_skill(project / ".gemini/skills", "docx")

    done = command("skills", "link", "--to", "gemini", "--to", "agents", "--json", cwd=project)

    outcomes = {
        row["place"].removeprefix(f"{project}/"): row["outcome"] for row in json.loads(done.stdout)["places"]
    }
    assert done.returncode == 1
    assert outcomes == {
        ".gemini/skills/docx": "refused",
        ".agents/skills/docx": "linked",
        ".gemini/skills/pdf": "linked",
        ".agents/skills/pdf": "linked",
    }
    assert command("skills", "unlink", cwd=project).returncode == 0
    assert not (project / ".agents").exists()
    assert [path.name for path in (project / ".gemini/skills").iterdir()] == ["docx"]
    assert command("skills", "link", "--to", "cluade-code", cwd=project).returncode == 2
