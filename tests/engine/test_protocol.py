"""The words of the protocol stand in one place."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import iii_directory
from iii_directory.wire import protocol

SOURCE = Path(iii_directory.__file__).parent
CONSTANTS = {
    name: value for name, value in vars(protocol).items() if isinstance(value, str) and name.isupper()
}
# What a comment beside or above a code says about it.
CODES: dict[str, str] = {
    found["code"]: found["above"] or found["beside"] or ""
    for found in re.finditer(
        r'^(?:# (?P<above>.*)\n)?[A-Z_]+: Final = "(?P<code>\w+)"(?:  # (?P<beside>.*))?$',
        Path(protocol.__file__).read_text(encoding="utf-8").split("# Every code", 1)[1],
        re.MULTILINE,
    )
}
TYPES = {"invokefunction", "invocationresult", "workerregistered", "registrationrejected"} | {
    value for name, value in CONSTANTS.items() if name.startswith(("REGISTER_", "UNREGISTER_", "TRIGGER_REG"))
}


def words_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_no_module_writes_out_a_code_or_a_type_of_message() -> None:
    words = TYPES | CODES.keys()
    # publish.py is a worker's to copy, and stands on the SDK alone.
    written_out = {
        str(path.relative_to(SOURCE)): sorted(found)
        for path in SOURCE.rglob("*.py")
        if path.name not in ("protocol.py", "publish.py") and (found := words_in(path) & words)
    }

    assert written_out == {}


def test_every_code_has_a_meaning_and_every_fault_of_the_engine_a_code() -> None:
    raised: set[str] = set()
    for path in (SOURCE / "engine").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "EngineFault"
            ):
                code = node.args[0]
                raised.add(code.attr if isinstance(code, ast.Attribute) else ast.unparse(code))

    # The one that is handed a code by its caller.
    assert raised - {"code"} <= CONSTANTS.keys()
    assert {CONSTANTS[name] for name in raised - {"code"}} <= CODES.keys()
    assert all(meaning.endswith(".") for meaning in CODES.values())
