"""The reference is what the tables of the code say."""

from __future__ import annotations

import pytest
from docs.generate import REFERENCE, pages

PAGES = pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == PAGES[name], "run `make docs`"


def test_every_page_of_the_reference_is_generated() -> None:
    assert {path.name for path in REFERENCE.iterdir()} == set(PAGES)
