"""The manifest and the tests, checked both ways."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.contract.requirements import REQUIREMENTS

HERE = Path(__file__).parent


def marked(path: Path) -> dict[str, set[str]]:
    """Each test function of a module, with the requirements its marker names."""
    text = path.read_text(encoding="utf-8")
    if "@requirement(" not in text and path.parent != HERE:
        return {}
    return {
        node.name: {name for decorator in node.decorator_list for name in _ids(decorator)}
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def _ids(decorator: ast.expr) -> list[str]:
    if not isinstance(decorator, ast.Call) or getattr(decorator.func, "id", "") != "requirement":
        return []
    return [ast.literal_eval(argument) for argument in decorator.args]


def test_every_requirement_has_a_test() -> None:
    shown = {name for path in HERE.parent.rglob("test_*.py") for ids in marked(path).values() for name in ids}

    assert REQUIREMENTS.keys() - shown == set()


def test_every_test_has_a_requirement() -> None:
    tests = {
        f"{path.name}::{test}": ids
        for path in HERE.glob("test_*.py")
        if path != Path(__file__)
        for test, ids in marked(path).items()
    }

    assert [test for test, ids in tests.items() if not ids] == []


def test_every_marker_names_a_requirement() -> None:
    named = {name for path in HERE.parent.rglob("test_*.py") for ids in marked(path).values() for name in ids}

    assert named - REQUIREMENTS.keys() == set()
