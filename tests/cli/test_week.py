"""A new user's week: install, link, hide, update with new facts, merge, check, publish and remove."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.commands import run
from tests.support.git import commit, make_repo

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path


def skill(name: str, more: str = "") -> bytes:
    text = f"---\nname: {name}\ndescription: Helps with {name}. Use when {name} is asked for.\n---\n"
    return f"{text}# {name}\n\none\n\ntwo\n\nthree\n{more}".encode()


def test_a_new_users_week(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "home/project"
    project.mkdir(parents=True)
    settings = {"repo_mirrors": {"https://github.com/": f"{tmp_path}/mirror/"}, "allow_file_repos": True}
    (project / "config.yaml").write_text(json.dumps(settings))
    repo = tmp_path / "mirror/team/skills"
    make_repo(repo, {f"skills/{name}/SKILL.md": skill(name) for name in ("pdf", "mail", "tests")})
    deep = project / "src/deep"
    deep.mkdir(parents=True)

    def typed(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = run(*words, cwd=deep, HOME=str(home), XDG_RUNTIME_DIR=str(home), XDG_DATA_HOME="")
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done

    def listed() -> list[str]:
        rows = json.loads(typed("skills", "list", "--json").stdout)["skills"]
        return [row["id"] for row in rows if row["id"] != "iii-directory"]

    # Monday: install everything, and put it where two hosts look.
    added = typed("skills", "add", "team/skills", "--all", "--to", "claude-code", "--to", "vscode")
    assert f"wrote to {project}/skills" in added.stderr
    assert listed() == ["mail", "pdf", "tests"]
    linked, copied = project / ".claude/skills/pdf", project / ".github/skills/pdf"
    assert linked.is_symlink()
    assert copied.is_dir()

    # Tuesday: one of them is in the way.
    typed("skills", "hide", "mail")
    assert listed() == ["pdf", "tests"]
    assert "# mail" in typed("skills", "show", "mail").stdout
    assert "says manual" in typed("doctor", "--why", "mail").stdout

    # Wednesday: the team changed one skill, which now runs a script.
    news = {
        "skills/pdf/SKILL.md": skill("pdf", "Run scripts/go.py.\n"),
        "skills/pdf/scripts/go.py": b"import os\n",
    }
    commit(repo, news)
    outdated = typed("skills", "outdated", "--facts", code=1)
    assert outdated.stdout.startswith("pdf\toutdated\t")
    assert "pdf: new scripts: scripts/go.py (python)" in outdated.stderr
    assert "2 others are current" in outdated.stderr
    updated = typed("skills", "update", "team/skills")
    assert "pdf: new scripts: scripts/go.py (python)" in updated.stderr
    assert (linked / "scripts/go.py").is_file()
    assert (copied / "scripts/go.py").is_file()
    assert json.loads(typed("skills", "facts", "pdf", "--json").stdout)["facts"]["scripts"]

    # Thursday: an edit of one's own, and another one of the team's, become one file.
    mine = project / "skills/tests/SKILL.md"
    mine.write_text(mine.read_text().replace("one\n", "my one\n"))
    commit(repo, {"skills/tests/SKILL.md": skill("tests", "four\n")})
    assert "+four" in typed("skills", "diff", "--upstream").stdout
    typed("skills", "update", "--merge")
    assert "my one\n" in mine.read_text()
    assert "four\n" in mine.read_text()

    # Friday: a skill of one's own is written, checked, published and installed by another user.
    typed("skills", "new", "release-notes")
    assert "its description is a placeholder" in typed("skills", "check").stdout
    own = project / "skills/release-notes"
    own.joinpath("SKILL.md").write_bytes(skill("release-notes"))
    own.joinpath("evals/search.yaml").write_text("cases:\n  - request: write release notes\n")
    assert typed("skills", "check", str(own)).stdout == ""
    worker = tmp_path / "worker"
    (worker / "skills").mkdir(parents=True)
    (worker / "worker.yaml").write_text("name: notes\ndescription: Notes.\n")
    (worker / "skills/SKILL.md").write_bytes(own.joinpath("SKILL.md").read_bytes())
    typed("registry", "add", str(worker), "--registry", str(tmp_path / "registry"), "--version", "1.0.0")

    # And everything of the team goes again, from the hosts too.
    typed("skills", "enable", "mail")
    typed("skills", "remove", "team/skills", "--force")
    assert listed() == ["release-notes"]
    assert not (project / ".claude").exists()
    assert not (project / ".github").exists()
