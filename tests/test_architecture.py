"""What may import what."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "iii_directory"
OUTSIDE = {
    "asyncio",
    "concurrent",
    "ctypes",
    "http",
    "httpx",
    "iii",
    "multiprocessing",
    "os",
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
    "watchfiles",
    "websockets",
}
PURE = (
    "errors",
    "limits",
    "documents",
    "catalog.bodies",
    "catalog.diagnostics",
    "catalog.indexes",
    "catalog.records",
    "catalog.registered",
    "catalog.resolve",
    "catalog.rows",
    "catalog.rules",
    "catalog.shelf",
    "catalog.snapshot",
    "catalog.suggest",
    "catalog.summary",
    "catalog.visibility",
    "engine.access",
    "engine.builtins",
    "engine.calls",
    "engine.decoding",
    "engine.events",
    "engine.kernel",
    "engine.messages",
    "engine.patterns",
    "engine.router",
    "engine.schemas",
    "engine.store",
    "engine.triggers",
    "engine.wire_json",
    "install.lockfile",
    "install.names",
    "install.plan",
    "mcp.config_snippets",
    "mcp.exposure",
    "mcp.failures",
    "mcp.names",
    "mcp.rows",
    "worker.engine_rows",
    "worker.surfaces",
)


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def is_pure(name: str) -> bool:
    return any(name == pure or name.startswith(f"{pure}.") for pure in PURE)


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


@pytest.mark.parametrize("name", [name for name in MODULES if is_pure(name)])
def test_a_pure_module_does_not_reach_for_the_outside(name: str) -> None:
    imported = runtime_imports(MODULES[name])

    assert not {module for module in imported if module.split(".")[0] in OUTSIDE}


@pytest.mark.parametrize("name", [name for name in MODULES if is_pure(name)])
def test_a_pure_module_imports_only_pure_modules_of_ours(name: str) -> None:
    prefix = "iii_directory."
    ours = {module[len(prefix) :] for module in runtime_imports(MODULES[name]) if module.startswith(prefix)}

    assert not {module for module in ours if module in MODULES and not is_pure(module) and "." in module}


@pytest.mark.parametrize("pure", PURE)
def test_every_name_on_the_list_of_pure_modules_exists(pure: str) -> None:
    assert pure in MODULES


def test_only_the_bus_and_the_publish_helper_know_the_sdk() -> None:
    knowing = {
        name
        for name, path in MODULES.items()
        if any(module == "iii" or module.startswith("iii.") for module in runtime_imports(path))
    }

    assert knowing <= {"worker.sdk_bus", "publish"}


def test_only_the_bridge_knows_the_sdk_for_mcp() -> None:
    knowing = {
        name
        for name, path in MODULES.items()
        if any(module.split(".")[0] in ("mcp", "mcp_types", "uvicorn") for module in runtime_imports(path))
    }

    assert knowing
    assert all(name.startswith("mcp.") for name in knowing)


def test_nothing_below_imports_the_command_line() -> None:
    for name, path in MODULES.items():
        if not name.startswith("cli") and name != "__main__":
            assert not any(module.startswith("iii_directory.cli") for module in runtime_imports(path)), name
