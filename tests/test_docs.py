"""The reference is what the tables of the code say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from docs.generate import REFERENCE, pages

from iii_directory.worker.surfaces import FUNCTIONS

if TYPE_CHECKING:
    from iii_directory.worker.surfaces.schema import FunctionRow

PAGES = pages()


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
