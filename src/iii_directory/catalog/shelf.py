"""Three small immutable structures under the snapshot, each cheap to derive from the one before. Pure.

`Pages` is a dictionary in pages, `Claims` settles who owns a key when several documents claim it, and `Shelf`
keeps the owners in order, together with whatever was computed from each of them. A changed document costs a
copy of the page and of the run it is in, however many others there are (goal ``catalogue.change-at-100000``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

T = TypeVar("T")
Row = TypeVar("Row")

# What holds so many is copied in about two microseconds; what would hold more than twice as many is divided.
_PAGE: Final = 128
_RUN: Final = 256
# Past this share of changed keys, making everything anew is cheaper than one copy after another.
_BULK: Final = 8


class Pages(Generic[T]):
    """A dictionary that never changes, its keys in no order."""

    __slots__ = ("_count", "_pages")

    def __init__(self, content: Mapping[str, T] | None = None) -> None:
        content = content or {}
        self._count = len(content)
        # A power of two, so that some bits of a key's hash name its page.
        pages = 1 << (self._count // _PAGE).bit_length()
        self._pages: list[dict[str, T]] = [{} for _ in range(pages)]
        for key, value in content.items():
            self._pages[hash(key) & (pages - 1)][key] = value

    def changed(self, edits: Mapping[str, T | None]) -> Pages[T]:
        """The same with some values put, replaced, or (None) taken out."""
        if not edits:
            return self
        if len(edits) * _BULK > self._count:
            return Pages(_edited(dict(self.items()), edits))
        after: Pages[T] = Pages()
        after._pages = self._pages.copy()
        after._count = self._count
        copied: dict[int, dict[str, T]] = {}
        for key, value in edits.items():
            at = hash(key) & (len(self._pages) - 1)
            if at not in copied:
                copied[at] = after._pages[at] = self._pages[at].copy()
            after._count += (value is not None) - (key in copied[at])
            _edited(copied[at], {key: value})
        return after if after._count < 2 * _PAGE * len(after._pages) else Pages(dict(after.items()))

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
        winners: Pages[T] | None = None,
        losers: Pages[tuple[T, ...]] | None = None,
    ) -> None:
        self._rank = rank
        self.winners: Pages[T] = winners or Pages()
        self.losers: Pages[tuple[T, ...]] = losers or Pages()

    def changed(
        self, removed: Iterable[tuple[str, T]], added: Iterable[tuple[str, T]]
    ) -> tuple[Claims[T], set[str]]:
        """The claims after some were withdrawn and some made, and the keys whose owner is another now."""
        touched: dict[str, list[T]] = {}
        for key, claim in removed:
            claims = touched[key] if key in touched else self._all(key)
            touched[key] = [other for other in claims if other is not claim]
        for key, claim in added:
            if key not in touched:
                touched[key] = self._all(key)
            touched[key].append(claim)
        winners: dict[str, T | None] = {}
        losers: dict[str, tuple[T, ...] | None] = {}
        for key, claims in touched.items():
            if len(claims) > 1:
                claims.sort(key=self._rank)
            winner = claims[0] if claims else None
            if winner is not self.winners.get(key):
                winners[key] = winner
            if len(claims) > 1 or key in self.losers:
                losers[key] = tuple(claims[1:]) or None
        return Claims(self._rank, self.winners.changed(winners), self.losers.changed(losers)), set(winners)

    def _all(self, key: str) -> list[T]:
        winner = self.winners.get(key)
        return [] if winner is None else [winner, *(self.losers.get(key) or ())]


class Run(Generic[T]):
    """Some neighbours of a shelf, with the rows that were made of them so far."""

    __slots__ = ("_columns", "items", "keys")

    def __init__(
        self, keys: list[str], items: list[T], columns: dict[Callable[[str, T], Any], list[Any]] | None = None
    ) -> None:
        self.keys = keys
        self.items = items
        self._columns: dict[Callable[[str, T], Any], list[Any]] = {} if columns is None else columns

    def column(self, make: Callable[[str, T], Row]) -> list[Row]:
        rows = self._columns.get(make)
        if rows is None:
            rows = self._columns[make] = list(map(make, self.keys, self.items))
        return cast("list[Row]", rows)

    def changed(self, edits: Mapping[str, T | None]) -> list[Run[T]]:
        """What stands in its place: a run, several when it grew too long, none when nothing is left."""
        # A list first: a thread may be making one more.
        columns = {make: rows.copy() for make, rows in list(self._columns.items())}
        run = Run(self.keys.copy(), self.items.copy(), columns)
        for key, item in edits.items():
            run._put(key, item)
        if len(run.keys) <= 2 * _RUN:
            return [run] if run.keys else []
        return [run._part(slice(at, at + _RUN)) for at in range(0, len(run.keys), _RUN)]

    def _put(self, key: str, item: T | None) -> None:
        at = bisect_left(self.keys, key)
        known = at < len(self.keys) and self.keys[at] == key
        span = slice(at, at + known)
        self.keys[span] = [] if item is None else [key]
        self.items[span] = [] if item is None else [item]
        for make, rows in self._columns.items():
            rows[span] = [] if item is None else [make(key, item)]

    def _part(self, span: slice) -> Run[T]:
        return Run(
            self.keys[span], self.items[span], {make: rows[span] for make, rows in self._columns.items()}
        )


class Shelf(Generic[T]):
    """Documents in the order of their keys, with columns of rows made from them on demand."""

    __slots__ = ("_columns", "_firsts", "_items", "_keys", "_runs")

    def __init__(self, runs: list[Run[T]]) -> None:
        self._runs = runs
        self._firsts = [run.keys[0] for run in runs]
        self._keys: list[str] | None = None
        self._items: list[T] | None = None
        self._columns: dict[Callable[[str, T], Any], list[Any]] = {}

    # The lists below are shared, and made at the first call: read them, never change them.

    @property
    def keys(self) -> list[str]:
        if self._keys is None:
            self._keys = list(chain.from_iterable(run.keys for run in self._runs))
        return self._keys

    @property
    def items(self) -> list[T]:
        if self._items is None:
            self._items = list(chain.from_iterable(run.items for run in self._runs))
        return self._items

    def column(self, make: Callable[[str, T], Row]) -> list[Row]:
        """One row for each document, in order."""
        rows = self._columns.get(make)
        if rows is None:
            rows = self._columns[make] = list(chain.from_iterable(run.column(make) for run in self._runs))
        return cast("list[Row]", rows)

    def __len__(self) -> int:
        return sum(len(run.keys) for run in self._runs)

    def below(self, prefix: str, make: Callable[[str, T], Row]) -> list[Row]:
        """The rows of the documents whose keys start with ``prefix``; no others are looked at."""
        rows: list[Row] = []
        for run in self._runs[max(bisect_right(self._firsts, prefix) - 1, 0) :]:
            start = bisect_left(run.keys, prefix)
            end = bisect_left(run.keys, _after(prefix)) if prefix else len(run.keys)
            rows += run.column(make)[start:end]
            if end < len(run.keys):
                break
        return rows

    def changed(self, edits: Mapping[str, T | None]) -> Shelf[T]:
        """The shelf with some documents put, replaced, or (None) taken out."""
        if not edits:
            return self
        if not self._runs:
            return shelve({key: item for key, item in edits.items() if item is not None})
        of_run: dict[int, dict[str, T | None]] = {}
        for key, item in edits.items():
            at = max(bisect_right(self._firsts, key) - 1, 0)
            of_run.setdefault(at, {})[key] = item
        runs = self._runs.copy()
        for at in sorted(of_run, reverse=True):
            runs[at : at + 1] = self._runs[at].changed(of_run[at])
        return Shelf(runs)


def shelve(content: Mapping[str, T]) -> Shelf[T]:
    """A shelf of these documents by their keys."""
    keys = sorted(content)
    runs = [keys[at : at + _RUN] for at in range(0, len(keys), _RUN)]
    return Shelf([Run(run, [content[key] for key in run]) for run in runs])


def _edited(content: dict[str, T], edits: Mapping[str, T | None]) -> dict[str, T]:
    for key, value in edits.items():
        if value is None:
            content.pop(key, None)
        else:
            content[key] = value
    return content


def _after(prefix: str) -> str:
    """What comes after everything that starts with a prefix, which must not be empty."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
