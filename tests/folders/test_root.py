"""Skills that other tools keep: whole, only read, below the skills folder, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.commands import run
from tests.support.folders import Folder, View

from iii_directory.catalog.folder_source import FolderSource
from iii_directory.catalog.folders import roots_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from iii_directory.catalog.folder_watching import Inotify


@pytest.fixture
def agents(tmp_path: Path) -> Folder:
    return made(tmp_path / ".agents" / "skills")


@pytest.fixture
def claude(tmp_path: Path) -> Folder:
    return made(tmp_path / ".claude" / "skills")


def made(root: Path) -> Folder:
    root.mkdir(parents=True)
    return Folder(root)


@pytest.fixture
def shown(
    skills: Folder, agents: Folder, claude: Folder, watcher: Callable[[], Inotify | None]
) -> Iterator[View]:
    roots = roots_of([agents.root, claude.root], skills.root, watcher=watcher)
    source = FolderSource(skills.root, below=roots, watcher=watcher)
    view = View(source)
    view.refresh()
    yield view
    source.close()


def test_a_directory_with_an_overview_is_shown_whole_and_nothing_else_is(shown: View, agents: Folder) -> None:
    agents.document("pdf/SKILL.md", "pdf")
    agents.document("pdf/forms.md", "forms")
    agents.document("notes/other.md", "other")
    agents.document("readme.md", "readme")

    assert shown.titles() == {"pdf/SKILL.md": "pdf", "pdf/forms.md": "forms"}


def test_a_skill_comes_and_goes_with_its_overview(shown: View, agents: Folder) -> None:
    agents.document("pdf/forms.md", "forms")
    assert shown.titles() == {}

    agents.document("pdf/SKILL.md", "pdf")
    assert shown.titles() == {"pdf/SKILL.md": "pdf", "pdf/forms.md": "forms"}

    (agents.root / "pdf" / "SKILL.md").unlink()
    assert shown.titles() == {}


def test_the_skills_folder_wins_over_the_roots_and_the_first_root_over_the_next(
    shown: View, skills: Folder, agents: Folder, claude: Folder
) -> None:
    claude.document("pdf/SKILL.md", "of claude")
    assert shown.titles() == {"pdf/SKILL.md": "of claude"}

    agents.document("pdf/SKILL.md", "of agents")
    assert shown.titles() == {"pdf/SKILL.md": "of agents"}

    skills.document("pdf/SKILL.md", "ours")
    assert shown.titles() == {"pdf/SKILL.md": "ours"}

    (skills.root / "pdf" / "SKILL.md").unlink()
    (skills.root / "pdf").rmdir()
    assert shown.titles() == {"pdf/SKILL.md": "of agents"}


def test_a_link_to_a_skill_of_another_root_is_silent_and_any_other_is_named(
    shown: View, skills: Folder, agents: Folder, claude: Folder, tmp_path: Path
) -> None:
    agents.document("pdf/SKILL.md", "pdf")
    skills.document("csv/SKILL.md", "csv")
    outside = made(tmp_path / "elsewhere")
    outside.document("x/SKILL.md", "x")
    (claude.root / "pdf").symlink_to("../../.agents/skills/pdf")
    (claude.root / "csv").symlink_to(skills.root / "csv")
    assert shown.titles() == {"pdf/SKILL.md": "pdf", "csv/SKILL.md": "csv"}
    assert [f for f in shown.source.findings if f.kind != "watch"] == []

    (claude.root / "x").symlink_to(outside.root / "x")
    (claude.root / "gone").symlink_to("../../.agents/skills/gone")

    assert shown.titles() == {"pdf/SKILL.md": "pdf", "csv/SKILL.md": "csv"}
    assert sorted((f.subject, f.reason) for f in shown.source.findings if f.kind == "skipped") == [
        (".claude/skills", "the link gone does not lead to a skill of another root"),
        (".claude/skills", "the link x does not lead to a skill of another root"),
    ]


def test_the_skills_folder_named_as_a_root_is_read_once(skills: Folder) -> None:
    assert roots_of([skills.root, skills.root / ".." / skills.root.name], skills.root) == []


def test_skills_in_the_usual_folders_are_served_without_setup(tmp_path: Path) -> None:
    made(tmp_path / ".claude" / "skills").document("pdf/SKILL.md", "Forms")
    made(tmp_path / "more").document("csv/SKILL.md", "Tables")

    assert "pdf" in run("skills", "list", cwd=tmp_path).stdout
    assert "Forms" in run("skills", "show", "pdf", cwd=tmp_path).stdout

    (tmp_path / "config.yaml").write_text("roots: [more]\n")
    listed = run("skills", "list", cwd=tmp_path).stdout
    assert "csv" in listed
    assert "pdf" not in listed


def test_a_usual_root_that_is_a_link_out_of_the_project_is_a_finding_and_not_served(tmp_path: Path) -> None:
    project = tmp_path / "project"
    made(tmp_path / "home").document("secret/SKILL.md", "Secret")
    made(project / "shared").document("pdf/SKILL.md", "Forms")
    for folder in (".claude", ".agents"):
        (project / folder).mkdir()
    (project / ".claude" / "skills").symlink_to("../../home")
    (project / ".agents" / "skills").symlink_to("../shared")

    listed = run("skills", "list", cwd=project).stdout
    assert "pdf" in listed
    assert "secret" not in listed
    examined = run("doctor", cwd=project)
    assert examined.returncode == 1
    assert ".claude/skills" in examined.stdout
    assert "leads out of this project" in examined.stdout
    assert ".agents/skills" not in examined.stdout

    (project / "config.yaml").write_text("roots: [.claude/skills]\n")
    assert "secret" in run("skills", "list", cwd=project).stdout
    assert "leads out" not in run("doctor", cwd=project).stdout


@pytest.mark.parametrize("typed", ["remove", "update", "restore", "diff", "verify"])
def test_a_root_is_never_written(tmp_path: Path, typed: str) -> None:
    root = made(tmp_path / ".claude" / "skills")
    root.document("pdf/SKILL.md", "Forms")
    (tmp_path / "skills").mkdir()

    done = run("skills", typed, "pdf", cwd=tmp_path)

    assert done.returncode == 1
    assert "only what was installed is looked after" in done.stderr
    assert "lies in a root, is its owner's (skills path pdf)" in done.stderr
    assert root.path("pdf/SKILL.md").read_text() == "# Forms\n\nAbout Forms.\n"
    assert list((tmp_path / "skills").iterdir()) == []
