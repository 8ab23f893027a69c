"""What may import what, and whether the picture of it is true."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "iii_directory"
# From the ground up. A package imports only what stands in a row below its own, or itself.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("limits", "shapes"),
    ("text", "suggest"),
    ("errors",),
    ("documents", "disk", "access"),
    ("lockfile", "config", "exposure"),
    ("folders", "registry"),
    ("catalog", "install", "engine", "search"),
    ("registry_server", "bus", "authoring"),
    ("worker", "mcp", "publish"),
    ("cli",),
    ("__main__",),
)
LEVEL = {name: level for level, row in enumerate(LAYERS) for name in row}
# What touches the world: files, sockets, processes, clocks, chance.
OUTSIDE = {
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
    "random",
    "secrets",
    "select",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
    "websockets",
}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py")) if module_name(path)}


def docstring(name: str) -> str:
    return ast.get_docstring(ast.parse(MODULES[name].read_text(encoding="utf-8"))) or ""


# A module that touches nothing says so, and is held to it.
PURE = tuple(name for name in MODULES if re.search(r"\bPure[.:]", docstring(name)))


def runtime_imports(path: Path) -> set[str]:
    """What a module imports when it runs: type-checking blocks are left out."""
    found: set[str] = set()
    stack: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
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
    return found


def ours(name: str) -> set[str]:
    """The modules of this package that a module imports when it runs."""
    prefix = "iii_directory."
    found = {module[len(prefix) :] for module in runtime_imports(MODULES[name]) if module.startswith(prefix)}
    return found & set(MODULES)


def package(name: str) -> str:
    return name.split(".", maxsplit=1)[0]


def test_every_package_stands_on_one_layer() -> None:
    assert {package(name) for name in MODULES} == set(LEVEL)


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_down(name: str) -> None:
    mine = package(name)

    up = {other for other in ours(name) if package(other) != mine and LEVEL[package(other)] >= LEVEL[mine]}

    assert not up


@pytest.mark.parametrize("name", PURE)
def test_a_pure_module_does_not_reach_for_the_outside(name: str) -> None:
    imported = runtime_imports(MODULES[name])

    assert not {module for module in imported if module.split(".")[0] in OUTSIDE}


@pytest.mark.parametrize("name", PURE)
def test_a_pure_module_imports_only_pure_modules_of_ours(name: str) -> None:
    # A package's own __init__ holds nothing but a sentence, unless it is a module in its own right.
    impure = {module for module in ours(name) if module not in PURE and not is_empty_package(module)}

    assert not impure


def is_empty_package(name: str) -> bool:
    path = MODULES[name]
    return path.name == "__init__.py" and len(ast.parse(path.read_text(encoding="utf-8")).body) <= 1


def test_only_the_publish_helper_knows_the_sdk() -> None:
    knowing = {
        name
        for name, path in MODULES.items()
        if any(module == "iii" or module.startswith("iii.") for module in runtime_imports(path))
    }

    assert knowing <= {"publish"}


def test_only_the_bridge_knows_the_sdk_for_mcp() -> None:
    knowing = {
        name
        for name, path in MODULES.items()
        if any(module.split(".")[0] in ("mcp", "mcp_types", "uvicorn") for module in runtime_imports(path))
    }

    assert knowing
    assert all(name.startswith("mcp.") for name in knowing)


@pytest.mark.parametrize("name", sorted(set(MODULES) - {"limits"}))
def test_only_the_limits_define_a_maximum(name: str) -> None:
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    assigned = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }

    assert not {one for one in assigned if one.lstrip("_").startswith("MAX_")}


def test_no_package_is_part_of_a_cycle() -> None:
    uses = {
        name: {package(other) for m in MODULES if package(m) == name for other in ours(m)} for name in LEVEL
    }

    for name in LEVEL:
        for path in walks(uses, [name]):
            assert len(path) == 1 or path[-1] != name, " -> ".join(path)


def walks(uses: dict[str, set[str]], path: list[str]) -> list[list[str]]:
    """Every way to go on from where a path ends, until it comes back to where it began."""
    found = [path]
    seen = {path[0]}
    waiting = [path]
    while waiting:
        current = waiting.pop()
        for following in uses[current[-1]] - {current[-1]}:
            longer = [*current, following]
            found.append(longer)
            if following not in seen:
                seen.add(following)
                waiting.append(longer)
    return found


def test_the_picture_shows_the_layers_as_they_are() -> None:
    picture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```text", 1)[1].split("```", 1)[0]
    drawn = [tuple(line.split("|")[0].split()) for line in picture.strip("\n").splitlines()]
    rows = [row for row in drawn if row]

    assert [set(row) for row in rows] == [set(row) for row in reversed(LAYERS)]
    assert all(upper != lower for upper, lower in pairwise(rows))
