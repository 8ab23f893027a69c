"""Work in the background: kept until it is done, its failure in the log, ended with whoever started it.

And work in the foreground that would keep the loop from everybody else, in turns.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

T = TypeVar("T")
log = logging.getLogger("iii_directory.worker")
# How long one turn of the loop is had by work that could go on for long.
_TURN_SECONDS: Final = 0.002


class Tasks:
    """The tasks of one owner. An event loop itself forgets a task that nobody holds."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine on the loop that runs now."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._finished)
        return task

    def cancel(self) -> None:
        for task in self._running:
            task.cancel()

    async def ended(self) -> None:
        """Wait until every task is over."""
        if self._running:
            await asyncio.wait(self._running)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("background work failed", exc_info=task.exception())


async def each_in_turns(items: Iterable[T], act: Callable[[T], None]) -> None:
    """Do something with each of many; others have the loop whenever that has taken a while."""
    until = time.monotonic() + _TURN_SECONDS
    for item in items:
        act(item)
        if time.monotonic() >= until:
            await asyncio.sleep(0)
            until = time.monotonic() + _TURN_SECONDS
