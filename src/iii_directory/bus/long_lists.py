"""Writes long lists as JSON in several passes of the loop, and keeps the text of those answered last.

A snapshot's rows are one and the same list until something changes, and what was answered is not changed
afterwards. So a caller that asks for the same list, at the same time or later, gets the text for nothing
(goals ``up.list-10000`` and ``beside.listing``).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final, TypeGuard

from iii_directory.limits import KEPT_LISTS
from iii_directory.shapes import is_list, is_object
from iii_directory.wire.json_text import Written, encode_value

# Shorter lists are written faster than they are looked up.
_LONG_ROWS: Final = 100
# Rows written at a time, which takes a fifth of a millisecond.
_SLICE_ROWS: Final = 250


def has_long_list(result: object) -> bool:
    """Whether a result, or one of its fields, is a long list."""
    if is_object(result):
        return any(map(_is_long, result.values()))
    return _is_long(result)


class LongLists:
    """The long lists that were answered last, with their texts."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[list[object], asyncio.Future[bytes]]] = OrderedDict()

    async def written(self, result: object) -> object:
        """Return a result in which long lists, itself or its fields, have their texts with them."""
        if is_object(result):
            long = {key: await self._text(value) for key, value in result.items() if _is_long(value)}
            return {**result, **long} if long else result
        return await self._text(result) if _is_long(result) else result

    async def _text(self, rows: list[object]) -> object:
        known = self._known.pop(id(rows), None)
        if known is None or known[0] is not rows:
            # The id is another list's by now.
            known = rows, asyncio.ensure_future(_encoded(rows))
        self._known[id(rows)] = known
        if len(self._known) > KEPT_LISTS:
            self._known.popitem(last=False)
        try:
            return Written(rows, await asyncio.shield(known[1]))
        except (TypeError, ValueError):
            return rows  # it is not JSON, which its sender finds out


def _is_long(value: object) -> TypeGuard[list[object]]:
    return is_list(value) and len(value) >= _LONG_ROWS


async def _encoded(rows: list[object]) -> bytes:
    slices: list[bytes] = []
    for start in range(0, len(rows), _SLICE_ROWS):
        slices.append(encode_value(rows[start : start + _SLICE_ROWS])[1:-1])
        await asyncio.sleep(0)
    return b"".join((b"[", b",".join(slices), b"]"))
