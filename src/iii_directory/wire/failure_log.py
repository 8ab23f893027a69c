"""Logs unexpected failures with their tracebacks, a few for each connection that causes them."""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import TYPE_CHECKING

from iii_directory.limits import MAX_CONNECTION_LOG_LINES, MAX_CONNECTION_TRACEBACKS, MAX_COUNTED_CALLERS

if TYPE_CHECKING:
    import logging


class FailureLog:
    """Counts failures by the connection that caused them, so that no client can fill the log."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._counts: OrderedDict[str, int] = OrderedDict()

    def failed(self, what: str, connection_id: str | None) -> None:
        """Log the exception that is being handled: in full, then as one line, then not at all."""
        cause = connection_id or ""
        count = self._counts.pop(cause, 0) + 1
        self._counts[cause] = count
        if len(self._counts) > MAX_COUNTED_CALLERS:
            self._counts.popitem(last=False)
        if count <= MAX_CONNECTION_TRACEBACKS:
            self._log.exception("%s", what)
        elif count <= MAX_CONNECTION_LOG_LINES:
            self._log.error("%s again (%s)", what, type(sys.exception()).__name__)
        elif count == MAX_CONNECTION_LOG_LINES + 1:
            self._log.error("further failures caused by connection %s are not logged", cause or "unknown")
