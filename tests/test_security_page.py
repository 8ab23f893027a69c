"""What SECURITY.md promises names its test, and the test is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_test_that_the_page_names_exists(path: str, name: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))

    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, functions)}


@pytest.mark.parametrize("word", ["installed", "registered", "acknowledged", "removed"])
def test_a_word_that_is_a_guarantee_has_a_test(word: str) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| **{word}** |"))

    assert "`tests/" in row
