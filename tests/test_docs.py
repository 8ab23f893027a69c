"""The reference is what the tables of the code say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from docs.generate import REFERENCE, pages, public_limits

from iii_directory import limits
from iii_directory.errors import KINDS
from iii_directory.worker.surfaces import FUNCTIONS

if TYPE_CHECKING:
    from iii_directory.worker.surfaces.declare import FunctionRow

PAGES = pages()
ROOT = Path(__file__).parent.parent
WRITTEN = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md"]


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == PAGES[name], "run `make docs`"


def test_every_page_of_the_reference_is_generated() -> None:
    assert {path.name for path in REFERENCE.iterdir()} == set(PAGES)


HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_says_nothing_twice_and_links_to_what_it_has(name: str) -> None:
    headings = HEADING.findall(PAGES[name])
    anchors = {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}

    assert len(headings) == len(set(headings))
    assert set(re.findall(r"\]\(#([^)]*)\)", PAGES[name])) <= anchors


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row.id)
def test_every_function_is_on_its_page_with_an_example(row: FunctionRow) -> None:
    section = PAGES["functions.md"].split(f"### `{row.id}`\n", 1)[1].split("\n### ", 1)[0]

    assert f"iii-directory trigger {row.id} --json " in section


def test_every_limit_of_the_reference_has_a_reason_and_a_unit() -> None:
    found = dict(public_limits())

    assert len(found) > 40
    assert [name for name, reason in found.items() if len(reason) < 20] == []
    assert "| 256 KiB |" in PAGES["limits.md"]
    assert "| 30 s |" in PAGES["limits.md"]


def test_every_limit_is_in_the_reference_or_marked_as_inner() -> None:
    text = Path(limits.__file__).read_text(encoding="utf-8")
    inner = [
        name
        for group in re.findall(r"^# Inner: (?:.*\n)(?:# .*\n)*((?:[A-Z].*\n)+)", text, re.MULTILINE)
        for name in re.findall(r"^([A-Z_]+):", group, re.MULTILINE)
    ]
    every = {
        name for name, value in vars(limits).items() if name.isupper() and isinstance(value, (int, float))
    }

    assert dict(public_limits()).keys() | set(inner) | {"KIB", "MIB"} == every


def test_every_error_is_explained_and_has_a_code_of_its_own() -> None:
    rows = [row for row in PAGES["errors.md"].splitlines() if row.startswith("| D")]

    assert len(rows) == len({row.split("|")[1] for row in rows}) == len(KINDS) > 15
    assert all(len(kind.meaning) > 20 for kind in KINDS)


def test_the_recipes_end_with_tests_that_exist() -> None:
    root = REFERENCE.parent.parent
    recipes = (root / "docs" / "adding.md").read_text(encoding="utf-8")
    sections = recipes.split("\n## ")[1:]
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", recipes)

    assert [section.split("\n")[0] for section in sections if "\nFails if you forget" not in section] == []
    for path, test in named:
        assert f"def {test}" in (root / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_to_a_file_of_ours_leads_to_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), target


def test_the_answers_for_new_contributors_name_files_and_names_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Ten questions", 1)[1]
    table = text.split("\n## ", 1)[0]
    named = re.findall(r"`([a-z_/]+(?:\.py|/))(?::(\w+))?`", table)

    assert table.count("\n| ") == 11
    assert len(named) > 20
    for path, name in named:
        place = ROOT / "src" / "iii_directory" / path
        assert place.exists(), path
        if name:
            defined = rf"^(?:class |def |async def ){name}\b|^{name}\b[^=\n]*="
            assert re.search(defined, place.read_text(encoding="utf-8"), re.MULTILINE), f"{path}:{name}"
