"""Fixtures for every test."""

from __future__ import annotations

import gc
import signal
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

# A shell without job control starts what it runs in the background with Ctrl-C ignored, and commands that
# tests start would inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def engine() -> Iterator[EngineThread]:
    """A fresh embedded engine, in memory, on a free port."""
    with EngineThread() as running:
        yield running


@pytest.fixture(autouse=True)
def _undo_freezing() -> Iterator[None]:
    """Undo the gc.freeze() of a directory that ran in this process, which would keep all garbage."""
    yield
    gc.unfreeze()
