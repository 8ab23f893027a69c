"""Immutable collections for the snapshot, each cheap to derive from the one before. Pure.

`PagedMap` is a dictionary in pages, `Claims` settles who owns a key when several documents claim it, and
`SortedDocuments` keeps the owners in order, together with the rows that were computed from each of them. A
changed document costs a copy of the page and of the run it is in, however many others there are (goal
``catalogue.change-at-100000``; copies of plain dictionaries take ten times as long there).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

T = TypeVar("T")
Row = TypeVar("Row")

# A page or run of this size is copied in about two microseconds. Twice as many are divided.
_PAGE: Final = 128
_RUN: Final = 256
# Past this share of changed keys, building everything anew is cheaper than copying page by page.
_BULK: Final = 8


class PagedMap(Generic[T]):
    """An immutable dictionary without an order of its keys."""

    __slots__ = ("_count", "_pages")

    def __init__(self, content: Mapping[str, T] | None = None) -> None:
        content = content or {}
        self._count = len(content)
        # A power of two, so that some bits of a key's hash name its page.
        pages = 1 << (self._count // _PAGE).bit_length()
        self._pages: list[dict[str, T]] = [{} for _ in range(pages)]
        for key, value in content.items():
            self._pages[hash(key) & (pages - 1)][key] = value

    def changed(self, edits: Mapping[str, T | None]) -> PagedMap[T]:
        """Return a copy with some values added, replaced, or (None) removed."""
        if not edits:
            return self
        if len(edits) * _BULK > self._count:
            return PagedMap(_edited(dict(self.items()), edits))
        after: PagedMap[T] = PagedMap()
        after._pages = self._pages.copy()
        after._count = self._count
        copied: dict[int, dict[str, T]] = {}
        for key, value in edits.items():
            at = hash(key) & (len(self._pages) - 1)
            if at not in copied:
                copied[at] = after._pages[at] = self._pages[at].copy()
            after._count += (value is not None) - (key in copied[at])
            _edited(copied[at], {key: value})
        # Pages that grew too full are divided; those that emptied are not joined, because that saves nothing.
        return after if after._count < 2 * _PAGE * len(after._pages) else PagedMap(dict(after.items()))

    def get(self, key: str) -> T | None:
        return self._pages[hash(key) & (len(self._pages) - 1)].get(key)

    def __getitem__(self, key: str) -> T:
        return self._pages[hash(key) & (len(self._pages) - 1)][key]

    def __contains__(self, key: str) -> bool:
        return key in self._pages[hash(key) & (len(self._pages) - 1)]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._pages)

    def __len__(self) -> int:
        return self._count

    def items(self) -> Iterator[tuple[str, T]]:
        return chain.from_iterable(page.items() for page in self._pages)

    def values(self) -> Iterator[T]:
        return chain.from_iterable(page.values() for page in self._pages)


class Claims(Generic[T]):
    """The document that owns each key, and those that claimed it in vain, best first."""

    __slots__ = ("_rank", "losers", "winners")

    def __init__(
        self,
        rank: Callable[[T], Any],
        winners: PagedMap[T] | None = None,
        losers: PagedMap[tuple[T, ...]] | None = None,
    ) -> None:
        self._rank = rank
        self.winners: PagedMap[T] = winners or PagedMap()
        self.losers: PagedMap[tuple[T, ...]] = losers or PagedMap()

    def changed(
        self, removed: Iterable[tuple[str, T]], added: Iterable[tuple[str, T]]
    ) -> tuple[Claims[T], set[str]]:
        """Withdraw and add claims; return the new claims and the keys that have another owner now."""
        touched: dict[str, list[T]] = {}

        def claims_to(key: str) -> list[T]:
            if key not in touched:
                winner = self.winners.get(key)
                touched[key] = [] if winner is None else [winner, *(self.losers.get(key) or ())]
            return touched[key]

        for key, claim in removed:
            touched[key] = [other for other in claims_to(key) if other is not claim]
        for key, claim in added:
            claims_to(key).append(claim)
        winners: dict[str, T | None] = {}
        losers: dict[str, tuple[T, ...] | None] = {}
        for key, claims in touched.items():
            if len(claims) > 1:
                claims.sort(key=self._rank)
            winner = claims[0] if claims else None
            # By identity, as claims are withdrawn; comparing whole documents would cost more than the rest.
            if winner is not self.winners.get(key):
                winners[key] = winner
            if len(claims) > 1 or key in self.losers:
                losers[key] = tuple(claims[1:]) or None
        return Claims(self._rank, self.winners.changed(winners), self.losers.changed(losers)), set(winners)


class SortedRun(Generic[T]):
    """Some neighbours in `SortedDocuments`, with the rows that were computed from them so far."""

    __slots__ = ("columns", "items", "keys")

    def __init__(
        self, keys: list[str], items: list[T], columns: dict[Callable[[str, T], Any], list[Any]] | None = None
    ) -> None:
        self.keys = keys
        self.items = items
        self.columns: dict[Callable[[str, T], Any], list[Any]] = {} if columns is None else columns

    def column(self, make: Callable[[str, T], Row]) -> list[Row]:
        rows = self.columns.get(make)
        if rows is None:
            rows = self.columns[make] = list(map(make, self.keys, self.items))
        return cast("list[Row]", rows)

    def changed(self, edits: Mapping[str, T | None]) -> list[SortedRun[T]]:
        """Return the runs that replace this one: one, several if it grew too long, or none if it is empty."""
        keys, items = self.keys.copy(), self.items.copy()
        # A list first, because another thread may be adding a column.
        columns = {make: rows.copy() for make, rows in list(self.columns.items())}
        for key, item in edits.items():
            at = bisect_left(keys, key)
            span = slice(at, at + (at < len(keys) and keys[at] == key))
            keys[span] = [] if item is None else [key]
            items[span] = [] if item is None else [item]
            for make, rows in columns.items():
                rows[span] = [] if item is None else [make(key, item)]
        size = len(keys) if len(keys) <= 2 * _RUN else _RUN
        spans = [slice(at, at + size) for at in range(0, len(keys), size or 1)]
        return [
            SortedRun(keys[span], items[span], {make: rows[span] for make, rows in columns.items()})
            for span in spans
        ]


class SortedDocuments(Generic[T]):
    """Documents in the order of their keys, with columns of rows computed from them on demand.

    The lists are shared between callers, so callers must not change them.
    """

    def __init__(self, runs: list[SortedRun[T]]) -> None:
        self._runs = runs
        self._firsts = [run.keys[0] for run in runs]
        self._columns: dict[Callable[[str, T], Any], list[Any]] = {}

    @cached_property
    def keys(self) -> list[str]:
        return list(chain.from_iterable(run.keys for run in self._runs))

    @cached_property
    def items(self) -> list[T]:
        return list(chain.from_iterable(run.items for run in self._runs))

    def column(self, make: Callable[[str, T], Row]) -> list[Row]:
        """Return one row for each document, in order; each row is computed once.

        The rows are kept for each ``make``, so a function made anew for every call would fill the memory.
        """
        rows = self._columns.get(make)
        if rows is None:
            rows = self._columns[make] = list(chain.from_iterable(run.column(make) for run in self._runs))
        return cast("list[Row]", rows)

    def __len__(self) -> int:
        return sum(len(run.keys) for run in self._runs)

    def below(self, prefix: str, make: Callable[[str, T], Row]) -> list[Row]:
        """Return the rows of the documents whose keys start with ``prefix``, without visiting the others."""
        # The least string after everything that starts with the prefix.
        after = prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else ""
        rows: list[Row] = []
        for run in self._runs[max(bisect_right(self._firsts, prefix) - 1, 0) :]:
            start = bisect_left(run.keys, prefix)
            end = bisect_left(run.keys, after) if prefix else len(run.keys)
            rows += run.column(make)[start:end]
            if end < len(run.keys):
                break
        return rows

    def changed(self, edits: Mapping[str, T | None]) -> SortedDocuments[T]:
        """Return a copy with some documents added, replaced, or (None) removed."""
        if not edits:
            return self
        if not self._runs:
            return sorted_by_key({key: item for key, item in edits.items() if item is not None})
        by_run: dict[int, dict[str, T | None]] = {}
        for key, item in edits.items():
            at = max(bisect_right(self._firsts, key) - 1, 0)
            by_run.setdefault(at, {})[key] = item
        runs = self._runs.copy()
        # From the last run to the first, because a replacement may change the number of runs.
        for at in sorted(by_run, reverse=True):
            runs[at : at + 1] = self._runs[at].changed(by_run[at])
        return SortedDocuments(runs)


def sorted_by_key(content: Mapping[str, T]) -> SortedDocuments[T]:
    """Sort documents by their keys."""
    keys = sorted(content)
    runs = [keys[at : at + _RUN] for at in range(0, len(keys), _RUN)]
    return SortedDocuments([SortedRun(run, [content[key] for key in run]) for run in runs])


def _edited(content: dict[str, T], edits: Mapping[str, T | None]) -> dict[str, T]:
    for key, value in edits.items():
        if value is None:
            content.pop(key, None)
        else:
            content[key] = value
    return content
