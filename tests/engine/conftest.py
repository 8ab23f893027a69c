"""Fixtures for tests of the engine."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def no_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing is logged as an error: neither by our containment, nor by asyncio, nor by the parser."""
    with caplog.at_level(logging.WARNING):
        yield
    errors = [record for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert [f"{record.getMessage()} {record.exc_info}" for record in errors] == []
