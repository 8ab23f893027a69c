"""Where the directory of a test is: inside the embedded engine, joined to it, or joined to a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pytest
from tests.support.engine import REAL_ENGINE

if TYPE_CHECKING:
    from tests.support.engine import EngineThread

EMBEDDED: Final = ("inside", "joined")
PLACES: Final = (*EMBEDDED, *(("real",) if REAL_ENGINE else ()))
# For what depends on the engine: which workers are installed, and frames that another engine drops.
embedded_only = pytest.mark.parametrize("place", EMBEDDED, indirect=True)


class Place(NamedTuple):
    """An address, and the engine there if the directory is to be inside it."""

    url: str
    inside: EngineThread | None = None
