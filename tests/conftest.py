"""Fixtures for every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from tests.support.engine import EngineThread

if TYPE_CHECKING:
    from collections.abc import Iterator

# The same examples on every run, however busy the machine is; the soak tests roll the dice.
settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("suite")


@pytest.fixture
def engine() -> Iterator[EngineThread]:
    """A fresh embedded engine, in memory, on a free port."""
    with EngineThread() as running:
        yield running
