"""Print the figures that describe the size and readability of the source, beside their goals.

``make measure`` measures ``src``; ``make measure ARGS=DIR`` another tree, to compare two commits.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import sys
import tokenize
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Phrases that a newcomer has to decode, counted in comments and string literals.
PHRASES = re.compile(
    r"\b(?:is|are|was|were) (?:no|none)\b(?! longer)"
    r"|\b(?:[Ww]hoever|[Ss]omebody|[Nn]obody)\b"
    r"|^\s*[rf]*\"\"\"The same\b"
)

GOALS = {
    "lines": "<= 35500",
    "modules": "<= 160",
    "packages": "<= 15",
    "median lines of a module": ">= 190",
    "functions per 1,000 lines": "<= 60",
    "private functions used once, %": "<= 14",
    "import lines, %": "<= 7",
    "file names that occur twice": "<= 3",
    "class names that occur twice": "<= 2",
    "comment lines, %": ">= 2.5",
    "phrases to decode": "<= 30",
}


@dataclass
class Totals:
    """Counts summed over all modules."""

    lines: int = 0
    imports: int = 0
    comments: int = 0
    phrases: int = 0
    module_lines: list[int] = field(default_factory=list[int])
    functions: Counter[str] = field(default_factory=Counter[str])
    names: Counter[str] = field(default_factory=Counter[str])
    classes: Counter[str] = field(default_factory=Counter[str])

    def add(self, source: str) -> None:
        """Count one module."""
        tree = ast.parse(source)
        lines = source.count("\n")
        self.lines += lines
        for node in ast.walk(tree):
            self._add_node(node)
        comment_lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                comment_lines.add(token.start[0])
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                self.phrases += len(PHRASES.findall(token.string))
        self.comments += len(comment_lines)

    def _add_node(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.functions[node.name] += 1
        elif isinstance(node, ast.ClassDef):
            self.classes[node.name] += 1
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self.imports += (node.end_lineno or node.lineno) - node.lineno + 1
        elif isinstance(node, ast.Name):
            self.names[node.id] += 1
        elif isinstance(node, ast.Attribute):
            self.names[node.attr] += 1


def figures(root: Path) -> dict[str, float]:
    """Measure every Python file below ``root``."""
    totals = Totals()
    files = sorted(root.rglob("*.py"))
    modules = [one for one in files if one.name != "__init__.py"]
    for one in files:
        source = one.read_text()
        totals.add(source)
        if one.name != "__init__.py":
            totals.module_lines.append(source.count("\n"))
    functions = sum(totals.functions.values())
    used_once = sum(
        1
        for name, defined in totals.functions.items()
        if name.startswith("_") and not name.startswith("__") and defined == 1 and totals.names[name] == 1
    )
    return {
        "lines": totals.lines,
        "modules": len(modules),
        "packages": len(list(root.glob("*/*/__init__.py"))),
        "median lines of a module": statistics.median(totals.module_lines),
        "functions per 1,000 lines": round(1000 * functions / totals.lines, 1),
        "private functions used once, %": round(100 * used_once / functions, 1),
        "import lines, %": round(100 * totals.imports / totals.lines, 1),
        "file names that occur twice": _repeated(Counter(one.name for one in modules)),
        "class names that occur twice": _repeated(totals.classes),
        "comment lines, %": round(100 * totals.comments / totals.lines, 1),
        "phrases to decode": totals.phrases,
    }


def _repeated(names: Counter[Any]) -> int:
    return sum(1 for count in names.values() if count > 1)


if __name__ == "__main__":
    for what, value in figures(Path(sys.argv[1] if len(sys.argv) > 1 else "src")).items():
        print(f"{what:<34}{value:>10}   {GOALS[what]}")
