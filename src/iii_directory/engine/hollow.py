"""A long JSON text without what lies deep inside; where its fields are is found in what remains. Pure.

What is left out was looked at before, a stretch at a time (:mod:`iii_directory.engine.stretches`).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from iii_directory.engine.stretches import IN_A_LIST, closing, opening

if TYPE_CHECKING:
    from iii_directory.engine.stretches import Span, Stretch

    Spans = dict[str, Span]
    """Where the values of an object begin and end, by the names of its fields; the last of a name counts."""

_SOME_BLANKS: Final = re.compile("[ \t\r\n]*")
# What a number is makes no difference, and some would take long.
_SCANNER: Final = json.JSONDecoder(parse_int=len, parse_float=len)


@dataclass(frozen=True, slots=True)
class Hollow:
    """A text without what lies deeper in it than fields of fields."""

    text: bytes
    _here: list[int]
    _there: list[int]

    def fields(self, start: int = 0) -> Spans | None:
        """The fields of the object that begins somewhere; None where there is none, or a name is too long."""
        # Every byte is a character here, so that places are the same.
        text = self.text.decode("latin-1")
        at = _after_blanks(text, start)
        if text[at] != "{":
            return None
        spans: Spans = {}
        at = _after_blanks(text, at + 1)
        while text[at] != "}":
            named = at
            name, at = _SCANNER.raw_decode(text, at)
            if not self.is_whole((named, at)):
                return None
            begins = _after_blanks(text, _after_blanks(text, at) + 1)
            _, at = _SCANNER.raw_decode(text, begins)
            spans[name] = begins, at
            at = _after_blanks(text, at)
            if text[at] == ",":
                at = _after_blanks(text, at + 1)
        return spans

    def in_whole(self, span: Span) -> Span:
        """Where something of the hollow text is in the whole."""
        return self._place(span[0]), self._place(span[1])

    def is_whole(self, span: Span) -> bool:
        """Whether nothing was left out of something of the hollow text."""
        start, end = self.in_whole(span)
        return end - start == span[1] - span[0]

    def _place(self, at: int) -> int:
        segment = bisect_right(self._here, at) - 1
        return at - self._here[segment] + self._there[segment]


def hollowed(text: bytes, stretches: list[Stretch], depth: int) -> Hollow:
    """A sound text without its stretches in which so many brackets are open all the time.

    Where some are left out, those brackets are closed and opened that make JSON of the rest; and where the
    stretches end before the text does, those are closed that are open there.
    """
    parts: list[bytes] = []
    here, there, size = list[int](), list[int](), 0
    left_out: list[Stretch] = []
    is_open = b""
    for stretch in stretches:
        if stretch.lowest >= depth:
            left_out.append(stretch)
            continue
        is_open = stretch.open_after
        if left_out:
            parts.append(_bridge(left_out))
            size += len(parts[-1])
            left_out = []
        for start, end in stretch.kept():
            here.append(size)
            there.append(start)
            parts.append(text[start:end])
            size += len(parts[-1])
    return Hollow(b"".join((*parts, closing(is_open))), here, there)


def _bridge(left_out: list[Stretch]) -> bytes:
    before, after = left_out[0].open_before, left_out[-1].open_after
    stays = min(stretch.lowest for stretch in left_out)
    bridge = closing(before[stays:])
    if len(after) > stays:
        bridge += b"," if before[stays - 1] == IN_A_LIST else b',"":'
        bridge += opening(after[stays:])
    return bridge


def _after_blanks(text: str, at: int) -> int:
    found = _SOME_BLANKS.match(text, at)
    return at if found is None else found.end()
