"""What SECURITY.md and docs/hazards.md promise names its test, and the test is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
HAZARDS = (ROOT / "docs" / "hazards.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE + HAZARDS)))


@cache
def functions_of(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_test_that_a_page_names_exists(path: str, name: str) -> None:
    assert name in functions_of(path)


@pytest.mark.parametrize("word", ["installed", "registered", "acknowledged", "removed"])
def test_a_word_that_is_a_guarantee_has_a_test(word: str) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| **{word}** |"))

    assert "`tests/" in row


def test_every_finding_has_a_row_with_a_test() -> None:
    rows = re.findall(r"^\| ([HML]\d+) \| [^|]+ \| `tests/.*` \|$", HAZARDS, re.MULTILINE)

    assert rows == [
        f"{kind}{n}" for kind, most in (("H", 6), ("M", 13), ("L", 9)) for n in range(1, most + 1)
    ]


def test_every_hazard_has_a_row_with_a_test_and_a_number() -> None:
    rows = [line.strip("| ").split(" | ") for line in HAZARDS.splitlines() if re.match(r"\| \d+ \|", line)]

    assert [int(row[0]) for row in rows] == list(range(1, 29))
    assert all(len(row) == 4 and "`tests/" in row[2] and row[3] for row in rows)
