"""Decides whose call begins next, so that no caller keeps others from being answered.

An event loop begins everything that came in before it looks for more. So only as many calls begin in one pass
of the loop as fit into a few milliseconds; the others wait in one line for each caller, and the callers take
turns. A call that comes while others wait never overtakes them.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

T = TypeVar("T")
# No further call begins in a pass of the loop once the calls begun in it have taken this long together.
_PASS_SECONDS: Final = 0.004
# As many calls are released in one pass at most, and fewer while calls turn out to take long.
_MOST_AT_ONCE: Final = 128


class FairQueue(Generic[T]):
    """The calls that one worker is about to begin, on its event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, release: Callable[[str, T], None]) -> None:
        """``release`` gets a caller and its call, and lets the call ask :meth:`has_time` when it begins."""
        self._loop = loop
        self._release = release
        self._began: float | None = None
        """When the first call of this pass began."""
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()
        """A line for each caller; the caller whose turn it is stands first."""
        self._put_back: list[tuple[str, T]] = []
        """Released calls for which this pass had no time left, in their order."""
        self._released = 0
        """Calls that were released and have not begun yet."""
        self._at_once = _MOST_AT_ONCE
        self._begun: set[str] = set()
        """Callers of which a call began in this pass."""
        self._gone: set[str] = set()
        """Callers that left in this pass, while calls were released."""
        self._is_due = False
        self._is_closed = False
        self._was_deferred = False
        self._is_releasing = False
        """Whether calls that waited were released and may still have to go back."""

    def add(self, caller: str, call: T) -> None:
        """Release a call, or let it wait behind those that came before."""
        if self._is_closed:
            return
        if self._waiting or self._put_back or self._is_releasing:
            self._waiting.setdefault(caller, deque()).append(call)
        else:
            self._released += 1
            self._release(caller, call)
        if not self._is_due:
            # Behind the call, so that one call alone takes no further pass.
            self._is_due = True
            self._loop.call_soon(self._next_pass)

    def has_time(self, caller: str, call: T) -> bool:
        """Whether a released call may begin in this pass; it is queued again if not."""
        self._released -= 1
        now = self._loop.time()
        if self._began is None:
            self._began = now
        if now - self._began < _PASS_SECONDS:
            self._begun.add(caller)
            return True
        if caller not in self._gone:
            self._put_back.append((caller, call))
        return False

    def drop(self, caller: str) -> None:
        """Forget the waiting calls of a caller that has left."""
        self._waiting.pop(caller, None)
        if self._put_back:
            self._put_back = [entry for entry in self._put_back if entry[0] != caller]
        if self._released:
            self._gone.add(caller)

    def close(self) -> None:
        """Forget all waiting calls, and release no further ones."""
        self._waiting.clear()
        self._put_back.clear()
        self._is_closed = True

    def _next_pass(self) -> None:
        if self._is_closed:
            return
        if self._released and not self._was_deferred:
            # Calls that came with the first one begin later in this pass, and count towards its time.
            self._was_deferred = True
            self._loop.call_soon(self._next_pass)
            return
        self._was_deferred = False
        self._began = None
        wanted = self._at_once // 2 if self._put_back else 2 * self._at_once
        self._at_once = min(max(wanted, 1), _MOST_AT_ONCE)
        self._queue_again()
        if not self._released:
            self._gone.clear()
        self._is_releasing = bool(self._waiting)
        for _ in range(self._at_once):
            if not self._waiting:
                break
            caller, line = self._waiting.popitem(last=False)
            if len(line) > 1:
                self._waiting[caller] = line  # behind all others
            self._released += 1
            self._release(caller, line.popleft())
        self._is_due = self._released > 0
        if self._is_due:
            # Behind those that were just released, so that it finds out which of them had no time.
            self._loop.call_soon(self._next_pass)

    def _queue_again(self) -> None:
        """Put calls that had no time back to the front, callers that were served behind all others."""
        for caller, call in reversed(self._put_back):
            self._waiting.setdefault(caller, deque()).appendleft(call)
            self._waiting.move_to_end(caller, last=False)
        for caller in dict.fromkeys(caller for caller, _ in self._put_back):
            if caller in self._begun:
                self._waiting.move_to_end(caller)
        self._put_back.clear()
        self._begun.clear()
