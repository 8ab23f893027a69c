"""Keep the search indexes of skills and prompts in step with the catalogue.

A search brings the indexes up to date before it answers. Besides that, changes are indexed in the background
once calls have paused, a little at a time, so that neither writers nor readers pay for a search that may
never come. Everything happens on the bus's event loop: an answer never sees half a change.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING, Final

from iii_directory.bus.tasks import Tasks
from iii_directory.catalog.snapshot import EMPTY
from iii_directory.limits import INDEX_LATEST_SECONDS, INDEX_PAUSE_SECONDS
from iii_directory.search.library import document_kinds, records_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.catalog.view import CatalogueView

# A search reads at most so many changed bodies before it answers, about a millisecond each.
_AT_ONCE: Final = 100
# A search waits for at most so many vectors, about a tenth of a millisecond each; more are made in the
# background, and until then words alone count.
_VECTORS_AT_ONCE: Final = 1000
_VECTORS_IN_A_ROW: Final = 8
# How long indexing holds the loop at a time.
_SLICE_SECONDS: Final = 0.002
# How long the loop is left to others after each slice, in multiples of the slice: not at all while a search
# waits; half of the time for what a search has asked for, or while nothing calls; else almost always.
_HURRY: Final = 0
_HALF: Final = 1
_BUSY: Final = 25
# Slices of the first indexing after which gc.freeze() is called: some hundred documents, which a collection
# would scan in two milliseconds.
_SLICES_TO_FREEZE: Final = 150


class DocumentIndexes:
    """The indexes of skills and prompts.

    ``activity`` is a number that grows with every call; indexing in the background gives way to calls.
    """

    def __init__(self, activity: Callable[[], int] = lambda: 0) -> None:
        self.kinds = document_kinds()
        self.snapshot: Snapshot = EMPTY
        """The documents that are indexed."""
        self._activity = activity
        self._indexed: CatalogueView | None = None
        self._newest: CatalogueView | None = None
        self._searched = False
        """Whether a search has asked: before that the table of word vectors is not read."""
        self._changing = asyncio.Lock()
        self._waiting = 0
        """How many searches wait for the indexes."""
        self._tasks = Tasks()
        self._working: asyncio.Task[None] | None = None

    @property
    def complete(self) -> bool:
        """Return whether every body is indexed, and every vector made that searches need."""
        return all(not kind.unread and kind.index.by_meaning for kind in self.kinds)

    def follow(self, view: CatalogueView) -> None:
        """Index the documents of a view in the background, once calls have paused."""
        self._newest = view
        if self._has_work and (self._working is None or self._working.done()):
            self._working = self._tasks.start(self._work_in_background())

    async def catch_up(self, view: CatalogueView) -> None:
        """Index the documents of a view now, for a search.

        If many changed, their bodies follow in the background; so do the vectors of many documents.
        """
        self._searched = True
        if view.listed is self.snapshot and not self._unmade:
            return
        self._newest = view
        self._waiting += 1
        pace = _Pace(self._activity)
        try:
            await self._index_newest(pace)
            if self._unmade > _VECTORS_AT_ONCE:
                for kind in self.kinds:
                    kind.index.by_meaning = False
            else:
                await self._make_vectors(pace, _HURRY)
        finally:
            self._waiting -= 1
        self.follow(self._newest)

    def close(self) -> None:
        self._tasks.cancel()
        # Garbage of a moment at which `_Pace` froze is left to the collector again: a process may start many
        # directories, one after the other.
        gc.unfreeze()

    # Inner workings

    @property
    def _unmade(self) -> int:
        return sum(kind.index.unmade_vectors for kind in self.kinds)

    @property
    def _has_work(self) -> bool:
        is_old = self._newest is not None and self._newest.listed is not self.snapshot
        return is_old or any(kind.unread for kind in self.kinds) or (self._searched and self._unmade > 0)

    async def _work_in_background(self) -> None:
        pace = _Pace(self._activity, freezes=self._indexed is None)
        pace.freeze()
        while self._has_work:
            # Only a search leaves bodies unread, and it told its caller that the answer is not complete.
            for kind in self.kinds:
                while kind.unread and self._indexed is not None:
                    key, record = next(iter(kind.unread.items()))
                    kind.put(key, record, self._indexed)
                    await pace.rest(_HALF)
            if self._searched:
                await self._make_vectors(pace, _HALF)
            # Until no call came for a moment, a search wants bodies, or changes have waited too long.
            latest, before = time.monotonic() + INDEX_LATEST_SECONDS, -1
            while (now := self._activity()) != before and time.monotonic() < latest:
                if any(kind.unread for kind in self.kinds):
                    break
                before = now
                await asyncio.sleep(INDEX_PAUSE_SECONDS)
            await self._index_newest(pace)
        pace.freeze()

    async def _make_vectors(self, pace: _Pace, times: int) -> None:
        for kind in self.kinds:
            while kind.index.unmade_vectors:
                kind.index.make_vectors(_VECTORS_IN_A_ROW)
                await pace.rest(times)
            kind.index.by_meaning = True

    async def _index_newest(self, pace: _Pace) -> None:
        async with self._changing:
            # The newest view by now, which need not be the one that made this start: indexing an older one
            # after a newer one would undo changes.
            view = self._newest
            if view is None or view.listed is self.snapshot:
                return
            for kind, records in zip(self.kinds, records_of(view), strict=True):
                for key in kind.known.keys() - records.keys():
                    kind.drop(key)
                changed: list[str] = []
                for key, record in records.items():
                    if kind.known.get(key) is not record and not kind.relabels(key, record):
                        changed.append(key)
                    await pace.rest(_HURRY if self._waiting else None)
                for key in changed:
                    # A search that waits for many documents is not kept waiting for their bodies too.
                    reads = len(changed) <= _AT_ONCE or not self._waiting
                    kind.put(key, records[key], view if reads else None)
                    await pace.rest(_HURRY if self._waiting else None)
            self._indexed, self.snapshot = view, view.listed


class _Pace:
    """Leaves the event loop to others after each slice of work.

    During the first indexing it also calls gc.freeze(). The indexes stay for good, and scanning them for
    garbage holds the loop for 40 ms with 10,000 documents, again and again (every goal ``beside``). Only
    during the first, because garbage of such a moment stays as well.
    """

    def __init__(self, activity: Callable[[], int], *, freezes: bool = False) -> None:
        self._activity = activity
        self._since = time.monotonic()
        self._seen = activity()
        self._by_activity = _HALF
        self._freezes = freezes
        self._slices = 0

    async def rest(self, times: int | None) -> None:
        """When a slice is over, leave the loop to others for so many times as long; None goes by activity."""
        spent = time.monotonic() - self._since
        if spent < _SLICE_SECONDS:
            return
        self._slices += 1
        if self._slices % _SLICES_TO_FREEZE == 0:
            self.freeze()
        # A slice that took long, as when the machine was busy elsewhere, must not make a search wait 25 times
        # as long for what is under way here.
        spent = min(spent, 2 * _SLICE_SECONDS)
        await asyncio.sleep(spent * (self._by_activity if times is None else times))
        before, self._seen = self._seen, self._activity()
        self._by_activity = _HALF if before == self._seen else _BUSY
        self._since = time.monotonic()

    def freeze(self) -> None:
        if self._freezes:
            gc.freeze()
