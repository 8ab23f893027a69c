"""Print the figures that describe the size and readability of the source, beside their goals.

``make measure`` measures ``src``; ``make measure ARGS=DIR`` another tree, to compare two commits;
``make measure ARGS=packages`` each package.
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
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

SOURCE: Final = Path(__file__).parents[1] / "src"
# Phrases that a newcomer has to decode, counted in comments and string literals.
PHRASES = re.compile(
    r"\b(?:is|are|was|were) (?:no|none)\b(?! longer)"
    r"|\b(?:[Ww]hoever|[Ss]omebody|[Nn]obody)\b"
    r"|^\s*[rf]*\"\"\"The same\b"
)
# What was built after the goal for lines was set, in two tables. First the modules that hold nothing else; a
# module that was merged into another is taken off this list.
NEW_FEATURES: Final = {
    "page": "the web page",
    "cli/open_page.py": "the web page",
    "search/meaning.py": "search by word vectors",
    "search/kept_index.py": "the search index on disk",
    "catalog/skill_manifests.py": "Skills over MCP",
    "mcp/default_tools.py": "the five tools for MCP clients",
    "install/unpack.py": "archives of sites",
    "documents/facts.py": "facts of skills",
    "catalog/origins.py": "provenance and visibility",
    "install/hosts.py": "links into the folders of hosts",
    "cli/linking.py": "links into the folders of hosts",
    "cli/exporting.py": "export of skills",
    "cli/offering.py": "commands for visibility",
    "cli/inventory.py": "facts of skills",
    "cli/client_files.py": "connecting MCP clients",
    "worker/usage.py": "usage counts and metrics",
}

# Second the lines that the commits of these features added to other modules, less those they removed there:
# `git show --numstat` of each, so later changes of the same lines do not count.
SHARED_LINES: Final = {
    "Skills over MCP, the well-known address": 572,
    "the five tools for MCP clients": 239,
    "facts of skills": 195,
    "skills of the project and of the user": 585,
    "the web page": 67,
    "usage counts, metrics and probes": 143,
    "provenance": 636,
    "visibility": 100,
    "plans and updates by content": 287,
    "archives of sites": 33,
    "links into the folders of hosts": 162,
    "bounds of what callers write": 156,
    "search by word vectors": -262,
    "connecting MCP clients": -76,
}

GOALS: Final = {
    "lines": "",
    "lines without modules of new features": "",
    "lines without new features": "<= 35500",
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
        self.lines += source.count("\n")
        for node in ast.walk(ast.parse(source)):
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
        comment_lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                comment_lines.add(token.start[0])
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                self.phrases += len(PHRASES.findall(token.string))
        self.comments += len(comment_lines)


def figures(root: Path, files: Iterable[Path] | None = None) -> dict[str, float]:
    """Measure every Python file below ``root``, or only some of them."""
    totals = Totals()
    files = sorted(root.rglob("*.py") if files is None else files)
    modules = [one for one in files if one.name != "__init__.py"]
    new = 0
    for one in files:
        source = one.read_text()
        totals.add(source)
        if one.name != "__init__.py":
            totals.module_lines.append(source.count("\n"))
        below_package = one.relative_to(root).parts[1:]
        if "/".join(below_package) in NEW_FEATURES or below_package[:1] == ("page",):
            new += source.count("\n")
    functions = sum(totals.functions.values())
    used_once = sum(
        1
        for name, defined in totals.functions.items()
        if name.startswith("_") and not name.startswith("__") and defined == 1 and totals.names[name] == 1
    )
    return {
        "lines": totals.lines,
        "lines without modules of new features": totals.lines - new,
        "lines without new features": totals.lines - new - sum(SHARED_LINES.values()),
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


def _repeated(names: Counter[str]) -> int:
    return sum(1 for count in names.values() if count > 1)


def print_packages(root: Path) -> None:
    """Print one line for each package."""
    shown = (
        "lines",
        "modules",
        *(name for name in GOALS if "%" in name or "1,000" in name or "phrases" in name),
    )
    for package in sorted(one.parent for one in root.glob("*/*/__init__.py")):
        found = figures(root, package.rglob("*.py"))
        print(f"{package.name:<16}" + "  ".join(f"{found[name]:>6} {name}" for name in shown))


if __name__ == "__main__":
    wanted = [one for one in sys.argv[1:] if one != "packages"]
    tree = Path(wanted[0]) if wanted else SOURCE
    if "packages" in sys.argv[1:]:
        print_packages(tree)
    else:
        for what, value in figures(tree).items():
            print(f"{what:<40}{value:>10}   {GOALS[what]}")
