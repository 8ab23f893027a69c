"""``search`` and ``skills eval``: the same answers from an engine and straight from the folder."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result
from tests.support.directory import directory
from tests.support.engine import EngineThread
from tests.support.folders import Folder
from tests.support.terminal import is_harmless, on_a_terminal

from iii_directory.cli import search_commands, skills_commands
from iii_directory.cli.search_commands import marked, matched_words

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE = "ws://127.0.0.1:1"
CASES = """cases:
  - {request: edit an excel file, expect: xlsx}
  - {request: bates numbering, expect: pdf}
  - {request: knit a scarf, expect: nothing}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = Folder(tmp_path / "skills")
    folder.write(
        "pdf/SKILL.md",
        "---\ndescription: Fill in forms and merge PDF files.\n---\n# PDF\n\nBates numbering.\n",
    )
    folder.write("xlsx/SKILL.md", "---\ndescription: Edit spreadsheets.\n---\n# Sheets\n\nCells.\n")
    (tmp_path / "config.yaml").write_text("skills_folder: skills\n", encoding="utf-8")
    return tmp_path


def invoke(place: Path, *words: str, url: str = NOWHERE) -> Result:
    config = ["--config", str(place / "config.yaml")]
    if words[0] == "search":
        return CliRunner().invoke(search_commands.command, [*words[1:], *config], env={"III_URL": url})
    return CliRunner().invoke(skills_commands.skills, [*words[1:], *config])


def test_a_search_prints_a_line_for_each_hit_with_its_reason(place: Path) -> None:
    done = invoke(place, "search", "fill", "in", "a", "form")

    assert done.exit_code == 0
    assert done.stdout.splitlines()[0].split("\t") == [
        "skill",
        "pdf",
        "Fill in forms and merge PDF files.",
        "fill, form→forms (description)",
        "file",
    ]


def test_the_folder_and_an_engine_give_the_same_hits(place: Path) -> None:
    offline = json.loads(invoke(place, "search", "excel", "--json").stdout)
    with EngineThread() as engine, directory(engine.url, place / "skills"):
        online = json.loads(
            invoke(place, "search", "excel", "--kind", "skill", "--json", url=engine.url).stdout
        )

    assert online["results"] == offline["results"]


def test_a_search_without_hits_says_so_and_does_not_fail(place: Path) -> None:
    done = invoke(place, "search", "knit", "a", "scarf")

    assert done.exit_code == 0
    assert "nothing fits" in done.stderr


def test_a_misspelt_word_is_said(place: Path) -> None:
    assert "mergge was taken for merge" in invoke(place, "search", "mergge").stderr


def test_an_unknown_kind_is_wrong_usage(place: Path) -> None:
    assert invoke(place, "search", "x", "--kind", "cat").exit_code == 2


def test_matched_words_are_bold_on_a_terminal(place: Path) -> None:
    shown = on_a_terminal("search", "fill", "form", cwd=place, III_URL=NOWHERE)

    assert "\x1b[1mFill\x1b[0m" in shown
    assert re.search(r"\x1b\[1mforms\x1b\[0m", shown)


def test_no_escape_codes_reach_a_terminal_that_wants_none(place: Path) -> None:
    asked = ("search", "fill", "form")

    for shown in (
        on_a_terminal(*asked, cwd=place, III_URL=NOWHERE, NO_COLOR="1"),
        on_a_terminal(*asked, cwd=place, III_URL=NOWHERE, TERM="dumb"),
    ):
        assert "forms" in shown
        assert "\x1b" not in shown


def test_what_acts_on_a_terminal_is_harmless_in_a_marked_line() -> None:
    assert is_harmless(marked("resize \x1b[2J\x9b31m image", ["resize", "image"]).plain)


def test_the_words_of_a_document_are_taken_from_a_reason() -> None:
    assert matched_words("photo→image, resize (name); bucket (body)") == ["image", "resize", "bucket"]
    assert matched_words("exact id") == ["exact id"]


def test_skills_that_are_found_pass(place: Path) -> None:
    (place / "cases.yaml").write_text(CASES, encoding="utf-8")

    done = invoke(place, "skills", "eval", str(place / "cases.yaml"))

    assert done.exit_code == 0, done.output
    assert "3 of 3 found" in done.stderr


def test_a_skill_that_is_not_found_fails_and_says_what_won_and_why(place: Path) -> None:
    Folder(place / "skills").write("xlsx/evals/search.yaml", "cases:\n  - request: merge files\n")

    done = invoke(place, "skills", "eval", "xlsx")

    assert done.exit_code == 1
    assert done.stdout.splitlines() == ["merge files\txlsx\t-\tpdf\tmerge, files (description)"]


def test_confusions_say_what_was_returned_instead_and_for_which_requests(place: Path) -> None:
    (place / "cases.yaml").write_text(
        "cases:\n"
        "  - {request: merge files, expect: xlsx}\n"
        "  - {request: fill in forms, expect: xlsx}\n"
        "  - {request: knit a scarf, expect: pdf}\n"
        "  - {request: edit spreadsheets, expect: nothing}\n"
        "  - {request: edit spreadsheets, expect: xlsx}\n",
        encoding="utf-8",
    )

    shown = invoke(place, "skills", "eval", str(place / "cases.yaml"))
    told = json.loads(invoke(place, "skills", "eval", str(place / "cases.yaml"), "--json").stdout)

    assert "pdf was returned instead of xlsx for 'merge files', 'fill in forms'" in shown.stderr
    assert told["confusions"] == [
        {"expected": "xlsx", "returned": "pdf", "requests": ["merge files", "fill in forms"]},
        {"expected": "nothing", "returned": "xlsx", "requests": ["edit spreadsheets"]},
        {"expected": "pdf", "returned": "nothing", "requests": ["knit a scarf"]},
    ]


def test_skills_with_the_same_description_are_reported_as_indistinguishable(place: Path) -> None:
    Folder(place / "skills").write(
        "sheets/SKILL.md", "---\ndescription: Edit spreadsheets.\n---\n# Two\n\nCells.\n"
    )
    (place / "cases.yaml").write_text(CASES, encoding="utf-8")

    done = invoke(place, "skills", "eval", "xlsx", str(place / "cases.yaml"))

    assert "the description of xlsx is also that of sheets: edit, spreadsheets (description)" in done.stderr


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("cases: []\n", "it has no list called cases"),
        ("cases:\n  - expect: pdf\n", "case 1 has no request"),
        ("cases:\n  - request: a form\n", "case 1 does not say what to expect"),
        ("cases: [\n", "cannot be used"),
    ],
)
def test_a_file_without_valid_cases_is_refused_in_one_sentence(
    place: Path, content: str, problem: str
) -> None:
    (place / "cases.yaml").write_text(content, encoding="utf-8")

    done = invoke(place, "skills", "eval", str(place / "cases.yaml"))

    assert done.exit_code == 1
    assert problem in done.stderr


def test_a_missing_file_of_cases_says_where_it_was_looked_for(place: Path) -> None:
    done = invoke(place, "skills", "eval", "pdf")

    assert done.exit_code == 1
    assert "evals/search.yaml" in done.stderr
