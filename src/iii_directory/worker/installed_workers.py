"""Which workers are installed, as the engine says; the catalogue shows their namespaces."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from iii_directory.bus.seam import CallError
from iii_directory.engine.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.bus.seam import Bus

INSTALLED_TIMEOUT_MS: Final = 5_000


class InstalledWorkers:
    """The names of the installed workers, asked of the engine now and then.

    The first answer, and the first after `forget`, are waited for; later ones are fetched behind a reader's
    back when they grow old.
    """

    def __init__(self, bus: Bus, ttl_seconds: float, clock: Callable[[], float]) -> None:
        self._bus = bus
        self._ttl = ttl_seconds
        self._clock = clock
        self._asked_at: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._worth_waiting = True
        self.names: frozenset[str] | None = None
        """None when the engine cannot say."""

    async def known(self) -> frozenset[str] | None:
        asking = self._task is not None and not self._task.done()
        if self._asked_at is None or (not asking and self._clock() - self._asked_at > self._ttl):
            self._worth_waiting = self._asked_at is None
            self._asked_at = self._clock()
            self._task = asyncio.get_running_loop().create_task(self._ask())
        if self._worth_waiting and self._task is not None and not self._task.done():
            await asyncio.shield(self._task)
        return self.names

    def forget(self) -> None:
        """The next reader asks anew: workers came or the engine is another one."""
        self._asked_at = None

    async def _ask(self) -> None:
        try:
            answer = await self._bus.call(
                "worker::list", {}, timeout_ms=INSTALLED_TIMEOUT_MS, namespace=DEFAULT_NAMESPACE
            )
        except CallError:
            self.names = None
            return
        self.names = worker_names(answer)


def worker_names(answer: object) -> frozenset[str] | None:
    """The names in an answer of ``worker::list``, or None if it has no such shape."""
    workers = cast("dict[str, Any]", answer).get("workers") if isinstance(answer, dict) else None
    if not isinstance(workers, list):
        return None
    rows = [cast("dict[str, Any]", row) for row in cast("list[object]", workers) if isinstance(row, dict)]
    return frozenset(row["name"] for row in rows if isinstance(row.get("name"), str))
