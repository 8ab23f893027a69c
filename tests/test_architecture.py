"""What may import what, and whether ARCHITECTURE.md draws it truly."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "iii_directory"
# Modules that touch the world: files, sockets, processes, clocks, random numbers.
OUTSIDE = {
    *(
        "asyncio",
        "concurrent",
        "ctypes",
        "fcntl",
        "http",
        "httpx2",
        "iii",
        "multiprocessing",
        "os",
        "pathlib",
    ),
    *("random", "secrets", "select", "selectors", "shutil", "signal", "socket", "sqlite3", "subprocess"),
    *("tempfile", "threading", "time", "uuid", "websockets"),
}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py")) if module_name(path)}


@cache
def syntax(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


# A module that touches nothing says so in its docstring, and is held to it.
PURE = {name for name in MODULES if re.search(r"\bPure[.:]", ast.get_docstring(syntax(name)) or "")}


@cache
def runtime_imports(name: str) -> frozenset[str]:
    """Return what a module imports when it runs, without its type-checking blocks."""
    found: set[str] = set()
    stack: list[ast.AST] = [syntax(name)]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            stack.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        stack.extend(ast.iter_child_nodes(node))
    return frozenset(found)


def ours(name: str) -> set[str]:
    """Return the modules of this package that a module imports when it runs."""
    prefix = "iii_directory."
    return {one[len(prefix) :] for one in runtime_imports(name) if one.startswith(prefix)} & set(MODULES)


def package(name: str) -> str:
    return name.split(".", maxsplit=1)[0]


def layers() -> list[list[str]]:
    """Read the rows of the picture in ARCHITECTURE.md, from the top."""
    picture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```text", 1)[1].split("```", 1)[0]
    return [line.split() for line in picture.strip("\n").splitlines()]


def users_of(*libraries: str) -> set[str]:
    return {name for name in MODULES if {one.split(".")[0] for one in runtime_imports(name)} & set(libraries)}


def test_the_picture_shows_every_package_once() -> None:
    drawn = [name for row in layers() for name in row]

    assert sorted(drawn) == sorted({package(name) for name in MODULES})


def test_imports_point_down_in_the_picture() -> None:
    """A package imports only what stands below it, or further right in its row, so no cycle is possible."""
    place = {name: at for at, name in enumerate(name for row in layers() for name in row)}

    upward = [
        f"{name} imports {other}"
        for name in MODULES
        for other in ours(name)
        if package(other) != package(name) and place[package(other)] <= place[package(name)]
    ]

    assert not upward


def test_the_picture_has_seven_rows_and_at_most_fifteen_packages() -> None:
    assert len(layers()) <= 7
    assert len({path.parent.name for path in SOURCE.glob("*/__init__.py")}) <= 15


def test_a_file_name_and_a_class_name_occur_once() -> None:
    files = Counter(path.name for path in MODULES.values() if path.name != "__init__.py")
    classes = Counter(
        node.name for name in MODULES for node in ast.walk(syntax(name)) if isinstance(node, ast.ClassDef)
    )

    assert {name for name, count in (files + classes).items() if count > 1} == set()


def test_a_pure_module_imports_neither_the_outside_nor_an_impure_module() -> None:
    outside = [
        f"{name} imports {one}" for name in PURE for one in runtime_imports(name) if package(one) in OUTSIDE
    ]
    impure = [
        f"{name} imports {other}"
        for name in PURE
        for other in ours(name) - PURE
        # The __init__ of a package holds nothing but a sentence, unless it is a module in its own right.
        if MODULES[other].name != "__init__.py" or len(syntax(other).body) > 1
    ]

    assert not outside + impure


def test_only_the_publish_helper_imports_the_engine_sdk() -> None:
    assert users_of("iii") <= {"publish"}


def test_only_the_mcp_package_imports_the_mcp_sdk() -> None:
    users = users_of("mcp", "mcp_types")

    assert users
    assert {package(name) for name in users} == {"mcp"}


def test_one_module_runs_the_http_server() -> None:
    assert users_of("uvicorn", "http.server", "socketserver") == {"wire.http_server"}


def test_every_maximum_is_defined_in_limits() -> None:
    elsewhere = [
        f"{name}.{target.id}"
        for name in set(MODULES) - {"limits"}
        for node in ast.walk(syntax(name))
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id.lstrip("_").startswith("MAX_")
    ]

    assert not elsewhere
