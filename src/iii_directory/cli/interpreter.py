"""Warns about interpreters with known vulnerabilities in the modules that read archives of strangers.

`make` runs this file before anything is installed, so it imports the standard library alone.
"""

from __future__ import annotations

import sys
from typing import Final

# The first release of each Python version in which all of these are repaired.
_VULNERABILITIES: Final = {
    "CVE-2024-0450": {(3, 11): 8, (3, 12): 2},
    "CVE-2024-6232": {(3, 11): 10, (3, 12): 6},
    "CVE-2025-8194": {(3, 11): 14, (3, 12): 12, (3, 13): 6},
}


def interpreter_warning(version: tuple[int, ...] = sys.version_info[:3]) -> str | None:
    """Name the vulnerabilities that a Python release has, and the release to use instead."""
    series, patch = (version[0], version[1]), version[2]
    open_ones = {
        name: fixed[series] for name, fixed in _VULNERABILITIES.items() if patch < fixed.get(series, 0)
    }
    if not open_ones:
        return None
    found, better = (".".join(map(str, numbers)) for numbers in (version, (*series, max(open_ones.values()))))
    return (
        f"Python {found} has known vulnerabilities in the modules that unpack archives "
        f"({', '.join(open_ones)}); use Python {better} or newer"
    )


if __name__ == "__main__" and (warning := interpreter_warning()) is not None:
    sys.stderr.write(f"warning: {warning}\n")
