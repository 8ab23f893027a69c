"""Work that takes long, done in a thread of its own while the loop goes on: large values of the state.

SQLite lets go of the interpreter while it reads and writes, so that others are answered meanwhile (goal
``beside.values``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NoReturn, TypeVar

from iii_directory.engine.store import StoreError
from iii_directory.limits import MAX_ERRANDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

T = TypeVar("T")


class ErrandThread:
    """:class:`~iii_directory.engine.store.Errands` of an engine that runs on an event loop."""

    def __init__(self, carry_on: Callable[[Callable[[], None]], None]) -> None:
        """``carry_on`` is given, on the loop, what is to be done after a piece of work."""
        self._carry_on = carry_on
        # One thread, which is made with the first errand: what came first is done first.
        self._thread = ThreadPoolExecutor(1, "state")
        self._count = 0
        self._waiting: deque[Callable[[], None]] = deque()
        self.made = 0
        """How many errands there have been."""

    @property
    def under_way(self) -> bool:
        return self._count > 0

    @property
    def is_behind(self) -> bool:
        """Whether so many are under way that whoever makes them should wait; each holds what it came with."""
        return self._count > MAX_ERRANDS

    def when_caught_up(self, action: Callable[[], None]) -> None:
        """Do something once few enough are under way: now, if they are."""
        if self.is_behind:
            self._waiting.append(action)
        else:
            action()

    def run(self, work: Callable[[], T], then: Callable[[Callable[[], T]], None]) -> None:
        loop = asyncio.get_running_loop()

        def finished(done: Future[T]) -> None:
            loop.call_soon_threadsafe(self._finished, lambda: then(done.result))

        try:
            submitted = self._thread.submit(work)
        except RuntimeError:  # it is closed
            then(_stopping)
            return
        self._count += 1
        self.made += 1
        submitted.add_done_callback(finished)

    async def close(self) -> None:
        """Wait until everything is done. Nobody may come with more."""
        await asyncio.to_thread(self._thread.shutdown)

    def _finished(self, then: Callable[[], None]) -> None:
        self._count -= 1
        self._carry_on(then)
        while self._waiting and not self.is_behind:
            self._waiting.popleft()()


def _stopping() -> NoReturn:
    raise StoreError("the engine is stopping")
