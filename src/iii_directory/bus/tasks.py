"""Background tasks, long work in turns, and a fair order among callers.

An event loop begins everything that came in before it looks for more. So only as many calls begin in one pass
of the loop as fit into a few milliseconds; the others wait in one queue for each caller, and the callers take
turns. A call that comes while others wait never overtakes them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable


T = TypeVar("T")
log = logging.getLogger("iii_directory.worker")
# How long one turn of the loop is had by work that could go on for long.
_TURN_SECONDS: Final = 0.002


class Tasks:
    """The tasks of one owner. An event loop itself keeps no reference to its tasks."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return how many tasks are under way."""
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


# No further call begins in a pass of the loop once the calls begun in it have taken this long together.
_PASS_SECONDS: Final = 0.004
_MOST_RUNNERS: Final = 128


class FairQueue(Generic[T]):
    """Begins the calls of one worker on its event loop, by turns for each caller.

    A runner is a task that makes one call after the other. As long as calls wait for nothing, one runner
    makes all of them, and no call needs a task of its own; runners are added while calls wait for something.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, make: Callable[[T], Coroutine[Any, Any, None]]
    ) -> None:
        self._loop = loop
        self._make = make
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()
        """A line for each caller; the caller whose turn it is stands first."""
        self._runners: set[asyncio.Task[None]] = set()
        self._wanted = 1
        """How many runners are started in a pass."""
        self._started = 0
        """How many runners were started in this pass, and how many of them have not begun yet."""
        self._unbegun = 0
        self._idle = 0
        """How many runners of this pass found nothing to do."""
        self._until: float | None = None
        """When the time of this pass is over."""
        self._is_due = False
        self._end_of_pass: asyncio.Handle | None = None
        self._is_closed = False

    def add(self, caller: str, call: T) -> None:
        """Let a call wait behind those that came before."""
        if self._is_closed:
            return
        line = self._waiting.get(caller)
        if line is None:
            line = self._waiting[caller] = deque()
        line.append(call)
        if self._started < self._wanted:
            self._start_runner()

    def drop(self, caller: str) -> None:
        """Forget the waiting calls of a caller that has left."""
        self._waiting.pop(caller, None)

    async def close(self) -> None:
        """Forget all waiting calls, end those that have begun, and begin no further ones."""
        self._waiting.clear()
        self._is_closed = True
        runners = list(self._runners)
        for runner in runners:
            runner.cancel()
        if runners:
            await asyncio.wait(runners)

    def _start_runner(self) -> None:
        self._started += 1
        self._unbegun += 1
        self._runners.add(self._loop.create_task(self._run()))
        if not self._is_due:
            # Behind the runner, so that one call alone takes no further pass.
            self._is_due = True
            self._until = None
            self._end_of_pass = self._loop.call_soon(self._next_pass)

    async def _run(self) -> None:
        self._unbegun -= 1
        call = self._next()
        self._idle += call is None
        try:
            while call is not None:
                await self._make(call)
                call = self._next() if self._waiting else None
        except Exception:
            log.exception("a call failed")
        finally:
            # Not by a callback, which would take a further pass of the loop.
            self._runners.discard(cast("asyncio.Task[None]", asyncio.current_task()))
            if self._started == 1 and not (self._waiting or self._unbegun) and self._end_of_pass is not None:
                # The only call of this pass is made, so the pass can end here, without a callback.
                self._end_of_pass.cancel()
                self._wanted = 1 if self._idle else self._wanted
                self._started = self._idle = 0
                self._until = self._end_of_pass = None
                self._is_due = False

    def _next(self) -> T | None:
        """Take the next call, unless the time of this pass is over."""
        if not self._waiting:
            return None
        now = self._loop.time()
        if self._until is None:
            self._until = now + _PASS_SECONDS
        elif now >= self._until:
            return None
        caller, line = self._waiting.popitem(last=False)
        if len(line) > 1:
            self._waiting[caller] = line  # behind all others
        return line.popleft()

    def _next_pass(self) -> None:
        if self._unbegun:
            # Runners of calls that came with the first one begin later in this pass.
            self._end_of_pass = self._loop.call_soon(self._next_pass)
            return
        has_time = self._until is None or self._loop.time() < self._until
        if self._waiting and has_time:
            self._wanted = min(2 * self._wanted, _MOST_RUNNERS)
        elif self._idle:
            self._wanted = max(1, self._started - self._idle)
        self._started = self._idle = 0
        self._until = self._end_of_pass = None
        self._is_due = False
        calls = sum(map(len, self._waiting.values())) if self._waiting else 0
        for _ in range(min(self._wanted, calls)):
            self._start_runner()
