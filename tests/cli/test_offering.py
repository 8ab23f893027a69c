"""``skills hide``, ``enable`` and ``show-only``: they edit one table and keep the rest of the file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.support.commands import run

from iii_directory.config import read_document

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """# Settings of the team, please keep the order.
roots:
    -   "one"   # odd, but ours
    -   two

visibility:   # who sees what
  a*: name
  # drafts
  "b": off

# The registry
registry_url: 'https://registry.example'   # quoted
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        (tmp_path / "skills" / name).mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: Use when needed.\n---\n# {name}\n"
        (tmp_path / "skills" / name / "SKILL.md").write_text(text)
    return tmp_path


def table(project: Path) -> dict[str, str]:
    document, problem = read_document(project / "config.yaml")
    assert problem is None
    return document.get("visibility", {})


def listed(project: Path) -> list[str]:
    done = run("skills", "list", "--json", cwd=project, HOME=str(project / "home"))
    return [row["id"] for row in json.loads(done.stdout)["skills"] if row["id"] != "iii-directory"]


def test_a_skill_is_hidden_and_offered_again(project: Path) -> None:
    done = run("skills", "hide", "b", cwd=project)

    assert done.returncode == 0
    assert "wrote" in done.stderr
    assert table(project) == {"b": "manual"}
    assert listed(project) == ["a", "c"]
    assert run("skills", "show", "b", cwd=project).returncode == 0
    run("skills", "enable", "b", cwd=project)
    assert table(project) == {}
    assert listed(project) == ["a", "b", "c"]


def test_a_name_that_no_skill_has_is_said_and_written_all_the_same(project: Path) -> None:
    (project / "skills/a/prompts").mkdir()
    (project / "skills/a/prompts/standup.md").write_text("---\ndescription: What was done.\n---\nSay it.\n")

    done = run("skills", "hide", "standp", "d*", "b", "a/prompts/standup", cwd=project)
    again = run("skills", "hide", "b", cwd=project)

    assert done.stderr.splitlines()[1:] == [
        "iii-directory: no skill here is called 'standp' now. Did you mean: standup?",
        "iii-directory: no skill here is called 'd*' now.",
    ]
    assert again.stderr.count("\n") == 1
    assert set(table(project)) == {"standp", "d*", "b", "a/prompts/standup"}


def test_one_is_shown_alone_and_another_one_beside_it(project: Path) -> None:
    run("skills", "show-only", "c", cwd=project)
    assert listed(project) == ["c"]

    run("skills", "enable", "a", cwd=project)

    assert listed(project) == ["a", "c"]
    assert list(table(project).items()) == [("a", "full"), ("c", "full"), ("*", "manual")]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_rest_of_the_file_stays_byte_for_byte(project: Path, end: str) -> None:
    path = project / "config.yaml"
    path.write_bytes(CONFIG.replace("\n", end).encode())

    assert run("skills", "hide", "c", cwd=project).returncode == 0

    before, after = CONFIG.replace("\n", end), path.read_bytes().decode()
    head, _, rest = before.partition(f"visibility:   # who sees what{end}")
    tail = rest.partition(f'"b": off{end}')[2]
    assert after.startswith(head)
    assert after.endswith(tail)
    assert "# drafts" in after
    assert list(table(project).items()) == [("c", "manual"), ("a*", "name"), ("b", "off")]
    run("skills", "enable", "c", cwd=project)
    assert list(table(project).items()) == [("a*", "name"), ("b", "off")]
    assert path.read_bytes().decode().endswith(tail)


def test_a_file_of_comments_and_a_file_without_a_last_newline_gain_the_table(project: Path) -> None:
    path = project / "config.yaml"
    for text in ("# Only words\n", "# Only words\n# user_roots: true", "user_roots: false"):
        path.write_text(text)

        assert run("skills", "hide", "a", cwd=project).returncode == 0

        assert path.read_text().startswith(text)
        assert table(project) == {"a": "manual"}


def test_a_file_in_json_gains_the_table(project: Path) -> None:
    path = project / "config.yaml"
    path.write_text('{"user_roots": false, "repo_mirrors": {"https://a/": "https://b/"}}')

    assert run("skills", "hide", "a", cwd=project).returncode == 0

    document, _ = read_document(path)
    mirrors = {"https://a/": "https://b/"}
    assert document == {"user_roots": False, "repo_mirrors": mirrors, "visibility": {"a": "manual"}}
    assert run("skills", "enable", "a", cwd=project).returncode == 0
    assert table(project) == {}


def test_a_broken_file_is_left_alone(project: Path) -> None:
    path = project / "config.yaml"
    for text in ("visibility: [", "visibility:\n  a: sometimes\n"):
        path.write_text(text)

        done = run("skills", "hide", "b", "--config", "config.yaml", cwd=project)

        assert done.returncode == 1
        assert "correct it first" in done.stderr
        assert path.read_text() == text


def test_the_doctor_says_why_a_skill_is_not_there(project: Path) -> None:
    run("skills", "hide", "--off", "b", cwd=project)

    why = run("doctor", "--why", "b", cwd=project)

    assert "visibility in the configuration says off" in why.stdout
    run("skills", "hide", "c", cwd=project)
    rules = json.loads(run("doctor", "--why", "c", "--json", cwd=project).stdout)["rules"]
    assert [rule["kind"] for rule in rules] == ["visibility"]
    assert run("skills", "show", "b", cwd=project).returncode == 1
