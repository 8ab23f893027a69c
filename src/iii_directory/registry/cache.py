"""Answers kept for a while: one request for identical questions at the same time, and a bounded memory."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

from iii_directory import limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

Value = TypeVar("Value")


class AnswerCache(Generic[Value]):
    """Successes only; a failure is told to everyone who waited for it and forgotten."""

    def __init__(
        self,
        ttl_ms: int,
        *,
        size: int = limits.MAX_CACHED_ANSWERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ttl = ttl_ms / 1000
        self._size = size
        self._clock = clock
        self._kept: OrderedDict[Hashable, tuple[float, Value]] = OrderedDict()
        self._running: dict[Hashable, asyncio.Task[Value]] = {}

    async def get(self, key: Hashable, fetch: Callable[[], Awaitable[Value]]) -> Value:
        """The kept answer while it is fresh, else what ``fetch`` answers, asked once for all who wait."""
        kept = self._kept.get(key)
        if kept is not None and self._clock() < kept[0]:
            self._kept.move_to_end(key)
            return kept[1]
        task = self._running.get(key)
        if task is None:
            task = asyncio.ensure_future(self._fetch(key, fetch))
            self._running[key] = task
            task.add_done_callback(lambda done: self._finished(key, done))
        # Whoever asked first may give up; the others still want the answer.
        return await asyncio.shield(task)

    async def _fetch(self, key: Hashable, fetch: Callable[[], Awaitable[Value]]) -> Value:
        value = await fetch()
        self._kept[key] = (self._clock() + self._ttl, value)
        self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return value

    def _finished(self, key: Hashable, task: asyncio.Task[Value]) -> None:
        self._running.pop(key, None)
        if not task.cancelled():
            # Looked at, so that a failure nobody waits for any more is not reported as forgotten.
            task.exception()
