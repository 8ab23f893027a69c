"""Whose call is begun next: nobody who asks for much at once keeps others from being answered.

A loop begins everything that came in before it looks for more. So the calls of one turn are begun as long as
they have taken little time together, and somebody's first sooner than another's second; the others wait,
those of each caller in their order, and the callers take turns (goals ``beside.missing`` and
``beside.listing``).
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

# After this long no further call of the same caller is begun in one turn of the loop, and later none at all.
_CALLER_SECONDS: Final = 0.002
_TURN_SECONDS: Final = 0.004
# Calls that waited and turn out to take no time are begun so many at once.
_MOST_AT_ONCE: Final = 64


class Turns:
    """The calls of one worker, on its loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._began: float | None = None
        """When this turn began; None while nothing is begun or waits."""
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By caller; the one whose turn it is stands first."""
        self._released: Counter[str] = Counter()
        """How many calls of a caller may be begun and have not been yet: no later one passes them."""
        self._at_once = 1
        self._begun: set[str] = set()
        """Whose calls were begun in this turn."""

    async def come(self, caller: str) -> None:
        """Wait until a call of somebody may be begun; mostly that is now."""
        now = self._loop.time()
        if self._began is None:
            self._began = now
            self._loop.call_soon(self._next_turn)
        allowed = _CALLER_SECONDS if caller in self._begun else _TURN_SECONDS
        is_first = caller not in self._waiting and caller not in self._released
        if is_first and now - self._began < allowed:
            self._begun.add(caller)
            return
        waiting = self._loop.create_future()
        self._waiting.setdefault(caller, deque()).append(waiting)
        try:
            await waiting
        finally:
            if waiting.done() and not waiting.cancelled():
                self._begun_at_last(caller)

    def _begun_at_last(self, caller: str) -> None:
        self._released[caller] -= 1
        if not self._released[caller]:
            del self._released[caller]

    def _next_turn(self) -> None:
        self._begun.clear()
        if self._began is None or not self._waiting:
            self._began = None
            return
        now = self._loop.time()
        quick = now - self._began < _CALLER_SECONDS
        self._at_once = min(2 * self._at_once, _MOST_AT_ONCE) if quick else 1
        self._began = now
        self._loop.call_soon(self._next_turn)
        for _ in range(self._at_once):
            if self._waiting:
                self._begin_one()

    def _begin_one(self) -> None:
        caller = next(iter(self._waiting))
        line = self._waiting.pop(caller)
        self._begun.add(caller)
        first = line.popleft()
        if line:
            self._waiting[caller] = line  # behind all others
        if not first.done():  # it was not given up
            self._released[caller] += 1
            first.set_result(None)
