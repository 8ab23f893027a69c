"""Two small immutable structures under the snapshot, both cheap to derive from one another. Pure.

`Claims` settles who owns a key when several documents claim it; `Shelf` keeps the owners in order, together
with whatever was computed from each of them, so that one changed document costs one new row.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")
Row = TypeVar("Row")


class Claims(Generic[T]):
    """The document that owns each key, and those that claimed it in vain, best first."""

    __slots__ = ("_rank", "losers", "winners")

    def __init__(
        self,
        rank: Callable[[T], Any],
        winners: Mapping[str, T] | None = None,
        losers: Mapping[str, tuple[T, ...]] | None = None,
    ) -> None:
        self._rank = rank
        self.winners: Mapping[str, T] = winners or {}
        self.losers: Mapping[str, tuple[T, ...]] = losers or {}

    def changed(
        self, removed: Iterable[tuple[str, T]], added: Iterable[tuple[str, T]]
    ) -> tuple[Claims[T], set[str]]:
        """The claims after some were withdrawn and some made, and the keys whose owner is another now."""
        winners, losers = dict(self.winners), dict(self.losers)
        touched: set[str] = set()
        for key, claim in removed:
            touched.add(key)
            left = [other for other in _all(winners, losers, key) if other is not claim]
            _settle(winners, losers, key, left)
        for key, claim in added:
            touched.add(key)
            if key in winners:
                _settle(winners, losers, key, sorted((*_all(winners, losers, key), claim), key=self._rank))
            else:
                winners[key] = claim
        moved = {key for key in touched if winners.get(key) is not self.winners.get(key)}
        return Claims(self._rank, winners, losers), moved


class Shelf(Generic[T]):
    """Documents in the order of their keys, with columns of rows made from them on demand."""

    __slots__ = ("_columns", "items", "keys")

    def __init__(
        self, keys: list[str], items: list[T], columns: dict[Callable[[str, T], Any], list[Any]] | None = None
    ) -> None:
        self.keys = keys
        self.items = items
        self._columns: dict[Callable[[str, T], Any], list[Any]] = {} if columns is None else columns

    def column(self, make: Callable[[str, T], Row]) -> list[Row]:
        """One row for each document, in order. The list is shared: read it, never change it."""
        rows = self._columns.get(make)
        if rows is None:
            rows = self._columns[make] = list(map(make, self.keys, self.items))
        return cast("list[Row]", rows)

    def changed(self, edits: Mapping[str, T | None]) -> Shelf[T]:
        """The shelf with some documents put, replaced, or (None) taken out."""
        if not edits:
            return self
        columns = {make: rows.copy() for make, rows in self._columns.items()}
        shelf = Shelf(self.keys.copy(), self.items.copy(), columns)
        for key, item in edits.items():
            shelf._put(key, item)
        return shelf

    def range_of(self, prefix: str) -> range:
        """The positions of the keys that start with ``prefix``, which must not be empty."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        return range(bisect_left(self.keys, prefix), bisect_left(self.keys, end))

    def _put(self, key: str, item: T | None) -> None:
        at = bisect_left(self.keys, key)
        known = at < len(self.keys) and self.keys[at] == key
        span = slice(at, at + known)
        self.keys[span] = [] if item is None else [key]
        self.items[span] = [] if item is None else [item]
        for make, rows in self._columns.items():
            rows[span] = [] if item is None else [make(key, item)]


def shelve(content: Mapping[str, T]) -> Shelf[T]:
    """A shelf of these documents by their keys."""
    keys = sorted(content)
    return Shelf(keys, [content[key] for key in keys])


def _all(winners: Mapping[str, T], losers: Mapping[str, tuple[T, ...]], key: str) -> tuple[T, ...]:
    return (winners[key], *losers.get(key, ())) if key in winners else ()


def _settle(winners: dict[str, T], losers: dict[str, tuple[T, ...]], key: str, claims: list[T]) -> None:
    losers.pop(key, None)
    if claims:
        winners[key] = claims[0]
    else:
        winners.pop(key, None)
    if len(claims) > 1:
        losers[key] = tuple(claims[1:])
