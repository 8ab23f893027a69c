"""Files are kept in memory here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.memory import in_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    with in_memory(tmp_path) as path:
        yield path
