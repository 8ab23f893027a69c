"""Fixtures for every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.engine import EngineThread

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def engine() -> Iterator[EngineThread]:
    """A fresh embedded engine, in memory, on a free port."""
    with EngineThread() as running:
        yield running
