"""The published SDKs that the contract is held against, and where they differ."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import version as installed

from tests.sdk.installation import HERE, NODE, install_node, install_python

KIB, MIB = 1024, 1024 * 1024


@dataclass(frozen=True)
class Sdk:
    """One published SDK. Sizes are of the padding in a message, which the rest of it adds little to."""

    language: str
    version: str
    namespaced: bool
    """Knows namespaces and is told of a refused registration; both came with 0.23."""
    sends: int
    """A size it can send: whole frames end at the engine's 16 MiB, fragments came with 0.25."""
    receives: int
    """A size it can receive: 1 MiB a message was the limit before 0.24.4."""

    @property
    def name(self) -> str:
        return f"{self.language}-{self.version}"

    def command(self) -> tuple[list[str], dict[str, str]]:
        """What to run, and with which variables of its own; installs the SDK if it is not there yet."""
        if self.language == "node":
            return [str(NODE), str(HERE / "driver.mjs"), str(install_node())], {}
        own = self.version == installed("iii-sdk")
        path = {} if own else {"PYTHONPATH": str(install_python(self.version))}
        # -P keeps the folder of the script off the path.
        return [sys.executable, "-P", str(HERE / "driver.py")], path


SDKS = (
    Sdk("python", "0.23.0", namespaced=True, sends=2 * MIB, receives=900 * KIB),
    Sdk("python", "0.24.6", namespaced=True, sends=2 * MIB, receives=17 * MIB),
    Sdk("python", "0.25.0", namespaced=True, sends=17 * MIB, receives=17 * MIB),
    Sdk("node", "0.22.1", namespaced=False, sends=2 * MIB, receives=17 * MIB),
)
