"""What a newcomer asked and was answered wrongly: now right at first place, or honestly that nothing fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.search.corpora import lines, read_yaml

from iii_directory.cli.source import loaded
from iii_directory.config import Settings
from iii_directory.search.kept_index import search_documents

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from iii_directory.catalog.view import CatalogueView

SUPERPOWERS = [
    "brainstorming",
    "dispatching-parallel-agents",
    "executing-plans",
    "finishing-a-development-branch",
    "receiving-code-review",
    "requesting-code-review",
    "subagent-driven-development",
    "systematic-debugging",
    "test-driven-development",
    "using-git-worktrees",
    "using-superpowers",
    "verification-before-completion",
    "writing-plans",
    "writing-skills",
]
QUESTIONS = read_yaml("newcomer.yaml")["questions"]


def write(folder: Path, name: str, description: str, body: str = "") -> None:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    said = description.replace(": ", ", ").replace('"', "'")
    path.write_text(f'---\nname: {name}\ndescription: "{said}"\n---\n# {name}\n\n{body}\n', encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 38 skills; the manual of this package is there as well."""
    root = tmp_path_factory.mktemp("skills")
    for name, description in read_yaml("newcomer.yaml")["skills"].items():
        write(root, name, description)
    for row in lines("public_skills.jsonl"):
        if row["id"] in SUPERPOWERS:
            write(root, row["id"], row["description"], row["words"])
    return root


@pytest.fixture(scope="module")
def view(folder: Path) -> Generator[CatalogueView]:
    with loaded(Settings(skills_folder=folder)) as found:
        yield found


def answer(view: CatalogueView, question: str) -> dict[str, Any]:
    (result,) = search_documents(view, {"query": question})["results"]
    return result


@pytest.mark.parametrize(
    ("question", "expected"), [pytest.param(row["ask"], row["expect"], id=row["ask"]) for row in QUESTIONS]
)
def test_the_first_hit_is_right_or_the_answer_says_that_nothing_fits(
    view: CatalogueView, question: str, expected: list[str]
) -> None:
    result = answer(view, question)

    if result["fits"]:
        assert result["sections"][0]["hits"][0]["id"] in expected
    assert result["fits"] or not result["sections"]


def test_most_of_what_can_be_answered_is_answered(view: CatalogueView) -> None:
    answerable = [row["ask"] for row in QUESTIONS if row["expect"]]

    assert sum(answer(view, question)["fits"] for question in answerable) >= 0.8 * len(answerable)


def test_skills_that_mail_come_before_the_manual_that_mentions_it(tmp_path: Path) -> None:
    write(tmp_path, "resend", "Sends email through an API.")
    write(tmp_path, "mailer", "Send mail to people from templates.")
    with loaded(Settings(skills_folder=tmp_path)) as view:
        rows = answer(view, "send mail")["sections"][0]["hits"]

    assert [row["id"] for row in rows[:2]] == ["mailer", "resend"]
