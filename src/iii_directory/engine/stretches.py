"""A long JSON text, looked at a stretch at a time: nobody waits while megabytes are checked. Pure.

A text is cut at commas outside of strings, where one of its values has just ended. Each stretch is checked
by itself, between brackets that make it whole: those that are open where it begins, and those it leaves open.
All stretches are JSON if and only if the text is. Long strings and blanks within a stretch are checked a
piece at a time and left out of it (goals ``beside.values`` and ``beside.messages``).
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from iii_directory.limits import KIB, MAX_JSON_DEPTH
from iii_directory.text import is_utf8

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iii_directory.engine.wire_json import Text

PIECE_BYTES: Final = 32 * KIB
_OTHERS: Final = bytes(set(range(256)) - set(b'{[}]"'))
_AS_ONE_KIND: Final = bytes.maketrans(b"{[}]", b"(())")
_OPENS: Final = ord("(")
IN_A_LIST: Final = ord("[")
_CLOSING: Final = {ord("["): b"]", ord("{"): b"}"}
_BLANKS: Final = b" \t\r\n"
# Quotes that are passed on the way back to a comma: those of two strings for every level there can be.
_MOST_QUOTES: Final = 4 * MAX_JSON_DEPTH
# Between two commas of JSON there are some hundred brackets and quotes at the most.
_MOST_MARKS: Final = 4 * PIECE_BYTES
# And that much besides, without what is left out: names on every level, and one number.
_MOST_KEPT_BYTES: Final = 64 * PIECE_BYTES
_LONGEST_CHARACTER: Final = 4
# An escaped character by its number, as in "\\ud834\\udd1e": two of them may be one character.
_CODE: Final = len(b"\\u0000")
# A string this short is never left out in part: names and ids stay what they are.
_SHORT_BYTES: Final = 256
_FIRST_OF_PAIR: Final = re.compile(rb"\\u[dD][89abAB]")


class NotSoundError(Exception):
    """A text that is no JSON, no UTF-8, or deeper than others read."""


Span = tuple[int, int]


class Stretch(NamedTuple):
    """A part of a text, from where a value ended to where another did."""

    start: int
    end: int
    open_before: bytes
    """The brackets that are open where it begins."""
    open_after: bytes
    lowest: int
    """The fewest that are open anywhere in it."""
    gaps: tuple[Span, ...]
    """Parts of long strings and blanks, without which it means the same to whoever looks for fields."""
    is_sound: bool
    """Whether it is JSON; what is not may still have its brackets in order."""

    def kept(self) -> Iterator[Span]:
        """What it is without its gaps."""
        start = self.start
        for gap in self.gaps:
            yield start, gap[0]
            start = gap[1]
        yield start, self.end


class _Cut(NamedTuple):
    """Where a text is cut, and what is between that and the last cut."""

    end: int
    structure: bytes
    gaps: tuple[Span, ...]


def sound_stretches(text: bytes, piece: int = PIECE_BYTES) -> Iterator[Stretch | None]:
    """The stretches of a JSON text, each of them checked before it is given; None while one goes on.

    Raises:
        NotSoundError: the text is none that others can read, or cannot be cut though it looks as if.
    """
    for found in stretches_of(text, piece):
        if found is not None and not found.is_sound:
            raise NotSoundError
        yield found


def stretches_of(text: bytes, piece: int = PIECE_BYTES) -> Iterator[Stretch | None]:
    """The same of a text that may be none, as far as its brackets are in order.

    Raises:
        NotSoundError: they are not.
    """
    start, is_open = 0, b""
    for cut in _cuts(text, piece):
        if cut is None:
            yield None
            continue
        end, structure, gaps = cut
        # Its depth first: without the pairs of what is nested deeply there are as many turns as levels.
        if too_deep(structure, len(is_open)):
            raise NotSoundError
        left = _unmatched(structure)
        closed = len(left) - len(left.lstrip(b"]}"))
        lowest = len(is_open) - closed
        if lowest < 0 or left[closed:].strip(b"[{"):
            raise NotSoundError
        after = is_open[:lowest] + left[closed:]
        found = Stretch(start, end, is_open, after, lowest, gaps, is_sound=True)
        yield found if _is_checked(text, found) else found._replace(is_sound=False)
        start, is_open = end, after


def _is_checked(text: bytes, stretch: Stretch) -> bool:
    before = opening(stretch.open_before) if stretch.start else b""
    after = closing(stretch.open_after) if stretch.end < len(text) else b""
    whole = memoryview(text)
    return _is_json(before, *(whole[start:end] for start, end in stretch.kept()), after)


def _is_json(*parts: Text) -> bool:
    try:
        msgspec.json.decode(b"".join(parts), type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def opening(brackets: bytes) -> bytes:
    """A text that opens brackets, and in the last of them a value has just ended."""
    if not brackets:
        return b'""'
    outer = (b"[" if bracket == IN_A_LIST else b'{"":' for bracket in brackets[:-1])
    return b"".join((*outer, b'[""' if brackets[-1] == IN_A_LIST else b'{"":""'))


def closing(brackets: bytes) -> bytes:
    """What closes brackets."""
    return b"".join(_CLOSING[bracket] for bracket in reversed(brackets))


def _cuts(text: bytes, piece: int) -> Iterator[_Cut | None]:
    """Where a text is cut; None for a piece that goes on. The last cut is its end."""
    start, inside, ended_by = 0, False, b""
    marks, kept, gaps, began = b"", 0, list[Span](), 0
    while (end := _piece_end(text, start, piece)) < len(text):
        found = marks_in(text[start:end])
        gap = _gap(text, start, end, found, in_string=start - began if inside else None)
        if gap is not None:
            gaps.append(gap)
            start = end
            yield None
            continue
        is_inside = inside ^ (found.count(b'"') % 2 == 1)
        if b'"' in found:
            began = end  # if a string is open there, it began before
        comma = _last_comma(text, start, end, inside=is_inside)
        if comma is not None:
            found = found[: len(found) - len(marks_in(text[comma:end]))]
            end, is_inside = comma, False
        marks += found
        kept += end - start
        ended_by = text[start:end].rstrip(_BLANKS)[-1:] or ended_by
        start, inside = end, is_inside
        if comma is None:
            if len(marks) > _MOST_MARKS or kept > _MOST_KEPT_BYTES:
                raise NotSoundError
            yield None
        elif ended_by in b"[{":
            raise NotSoundError  # no value has ended there
        else:
            yield _Cut(start, structure_of(marks), tuple(gaps))
            marks, kept, gaps = b"", 0, []
    yield _Cut(len(text), structure_of(marks + marks_in(text[start:])), tuple(gaps))


def _gap(text: bytes, start: int, end: int, marks: bytes, *, in_string: int | None) -> Span | None:
    """What can be left out of a piece: all of it within a long string, and of blanks all but one.

    ``in_string`` is how much of a string there was before it, at least; None outside of strings.
    """
    if in_string is None:
        blank = not marks and not text[start:end].strip(_BLANKS)
        return (start + 1, end) if blank else None
    if in_string < _SHORT_BYTES or b'"' in marks:
        return None
    if not _is_json(b'"', memoryview(text)[start:end], b'"'):
        raise NotSoundError
    return start, end


def _piece_end(text: bytes, start: int, piece: int) -> int:
    """Where a piece ends, in the middle of no character, however it is written."""
    end = start + piece
    for _ in range(_LONGEST_CHARACTER - 1):
        if end < len(text) and text[end] & 0xC0 == 0x80:
            end += 1
    end += _ends_in_escape(text, start, end)
    code = text.rfind(b"\\u", max(start, end - _CODE), end)
    if code >= 0 and not _ends_in_escape(text, start, code):
        end = code + _CODE
        if _FIRST_OF_PAIR.match(text, code) and text.startswith(b"\\u", end):
            end += _CODE
    return min(end, len(text))


def _ends_in_escape(text: bytes, start: int, end: int) -> bool:
    """Whether what comes next is escaped; nothing is where the text starts."""
    if text[end - 1 : end] != b"\\":
        return False
    before = text[start:end]
    return (len(before) - len(before.rstrip(b"\\"))) % 2 == 1


def _last_comma(text: bytes, start: int, end: int, *, inside: bool) -> int | None:
    """The last comma of a piece outside of strings; its end may be inside of one."""
    piece = text[start:end]
    if b"\\" in piece:
        # Of the same length, with the quotes alone that begin or end a string.
        piece = piece.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    end = len(piece)
    for _ in range(_MOST_QUOTES):
        quote = piece.rfind(b'"', 0, end)
        # A piece may begin with the comma that the last one was cut at.
        comma = -1 if inside else piece.rfind(b",", max(quote, 0) + 1, end)
        if comma >= 0:
            return start + comma
        if quote < 0:
            return None
        inside, end = not inside, quote
    return None


def marks_in(piece: bytes) -> bytes:
    """The brackets and quotes of a piece, without those that are escaped.

    Raises:
        NotSoundError: it is no UTF-8.
    """
    if not is_utf8(piece):
        raise NotSoundError
    if b"\\" in piece:
        piece = _without_escapes(piece)
    return piece.translate(None, _OTHERS)


def outside_of_strings(text: bytes) -> bytes:
    """What is in no string of a JSON text that begins outside of one."""
    return b'"'.join(_without_escapes(text).split(b'"')[::2])


def _without_escapes(text: bytes) -> bytes:
    """A JSON text without its escaped quotes and backslashes, so that every quote begins or ends a string."""
    return text.replace(b"\\\\", b"").replace(b'\\"', b"")


def structure_of(marks: bytes) -> bytes:
    """The brackets outside of strings. Every second part of what is between quotes is a string."""
    return b"".join(marks.replace(b'""', b"").split(b'"')[::2])


def _unmatched(structure: bytes) -> bytes:
    """Brackets without the pairs among them: those that close what was open before, and those left open."""
    while True:
        fewer = structure.replace(b"{}", b"").replace(b"[]", b"")
        if len(fewer) == len(structure):
            return structure
        structure = fewer


def too_deep(structure: bytes, depth: int) -> bool:
    """Whether brackets, where so many are open already, lead deeper than others read."""
    brackets = structure.translate(_AS_ONE_KIND)
    for start in range(0, len(brackets), MAX_JSON_DEPTH):
        part = brackets[start : start + MAX_JSON_DEPTH]
        opened = part.count(b"(")
        if depth + opened > MAX_JSON_DEPTH and depth + _deepest(part) > MAX_JSON_DEPTH:
            return True
        depth += 2 * opened - len(part)
    return False


def _deepest(part: bytes) -> int:
    return max(accumulate(1 if bracket == _OPENS else -1 for bracket in part))
