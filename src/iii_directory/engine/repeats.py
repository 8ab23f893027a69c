"""Long answers are written as JSON a little at a time, and those that are given again only once. Pure.

To write a list of 10,000 rows takes milliseconds in which nobody else is served. So it is written in slices,
and whoever waits for it leaves the loop to others in between. A snapshot's rows are one and the same list
until something changes, and what was answered is not changed afterwards: so the lists that were answered last
are kept as text, and whoever asks at the same time or later has it for nothing (goals ``up.list-10000`` and
``beside.listing``).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from iii_directory.engine.wire_json import Written, encode_message
from iii_directory.limits import KEPT_LISTS, KIB
from iii_directory.shapes import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iii_directory.engine.wire_json import Json

# Shorter ones are written faster than they are looked up and put together.
_LONG_ROWS: Final = 100
_LONG_CHARS: Final = 256 * KIB
# What is written at a time, which takes a fifth of a millisecond, and how much of it makes a part.
_SLICE_ROWS: Final = 250
_SLICE_CHARS: Final = 64 * KIB
_PART_BYTES: Final = 256 * KIB
_ITSELF: Final = ""


class Repeats:
    """The long lists that were answered last, as text."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, Writing] = OrderedDict()

    def answer(self, result: object) -> Answer | None:
        """A result on its way to text; None if nothing about it is long: neither it nor one of its fields."""
        if is_object(result):
            long = {key: writing for key, value in result.items() if (writing := self._writing(value))}
            return Answer(result, long) if long else None
        writing = self._writing(result)
        return Answer(None, {_ITSELF: writing}) if writing else None

    def _writing(self, value: object) -> Writing | None:
        if isinstance(value, str):
            return Writing(value) if len(value) >= _LONG_CHARS else None
        if not is_list(value) or len(value) < _LONG_ROWS:
            return None
        known = self._known.pop(id(value), None)
        # A number of its own only as long as it is there: another list may have it by now.
        writing = known if known is not None and known.value is value else Writing(value)
        self._known[id(value)] = writing
        if len(self._known) > KEPT_LISTS:
            self._known.popitem(last=False)
        return writing


class Answer:
    """A result that is long, or has long fields."""

    def __init__(self, result: Json | None, writing: dict[str, Writing]) -> None:
        self._result = result
        self._writing = writing

    def write_some(self) -> bool:
        """Write a slice of what nobody has written yet; False if there is nothing left."""
        return any(writing.write_some() for writing in self._writing.values())

    @property
    def result(self) -> object:
        """The result with its texts; what is no JSON stays as it is, and whoever sends it will find out."""
        written = {key: writing.outcome for key, writing in self._writing.items()}
        return written[_ITSELF] if self._result is None else {**self._result, **written}


class Writing:
    """One long value on its way to text, for all who wait for it."""

    def __init__(self, value: str | list[object]) -> None:
        self.value = value
        self._text = Written(value, [])
        self._is_whole = False
        self._steps = self._write(_text_slices(value) if isinstance(value, str) else _list_slices(value))

    @property
    def outcome(self) -> object:
        return self._text if self._is_whole else self.value

    def write_some(self) -> bool:
        """Write a slice; False when the whole is written, or cannot be."""
        try:
            next(self._steps)
        except (StopIteration, TypeError, ValueError):
            return False
        return True

    def _write(self, slices: Iterator[bytes]) -> Iterator[None]:
        rest: list[bytes] = []
        for piece in slices:
            rest.append(piece)
            # Small ones would have to be put together anew with every answer.
            if sum(map(len, rest)) >= _PART_BYTES:
                self._text.parts.append(b"".join(rest))
                rest = []
            yield
        self._text.parts.append(b"".join(rest))
        self._is_whole = True


def _list_slices(rows: list[object]) -> Iterator[bytes]:
    before = b"["
    for start in range(0, len(rows), _SLICE_ROWS):
        yield before + encode_message(rows[start : start + _SLICE_ROWS])[1:-1]
        before = b","
    yield b"]"


def _text_slices(text: str) -> Iterator[bytes]:
    yield b'"'
    for start in range(0, len(text), _SLICE_CHARS):
        yield encode_message(text[start : start + _SLICE_CHARS])[1:-1]
    yield b'"'
