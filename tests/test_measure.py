"""The size and readability of the source, as `tools.measure` counts them, do not get worse again."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.measure import figures

import iii_directory

PACKAGE: Final = Path(iii_directory.__file__).parent
AT_MOST: Final = {
    "lines": 42_950,
    "modules": 160,
    "packages": 15,
    "functions per 1,000 lines": 60,
    "private functions used once, %": 10.5,
    "import lines, %": 7,
    "file names that occur twice": 0,
    "class names that occur twice": 0,
    "phrases to decode": 4,
}
AT_LEAST: Final = {"median lines of a module": 250, "comment lines, %": 2.6}


def test_the_source_is_as_small_and_readable_as_it_was() -> None:
    found = figures(PACKAGE.parent)

    assert {name: found[name] for name, most in AT_MOST.items() if found[name] > most} == {}
    assert {name: found[name] for name, least in AT_LEAST.items() if found[name] < least} == {}
