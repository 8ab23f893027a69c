"""JSON as it may pass the wire: what the other side could not read is refused before it is sent on. Pure.

Out goes ``orjson``: a list of 10,000 rows takes a twentieth of the time. In comes ``json``, although
``orjson`` reads a small message in 2 microseconds instead of 8: it makes a rounded float of an integer beyond
64 bits and says nothing, while a value must come out of the state as it went in. What nobody here has to read
stays :class:`Unread`.
"""

from __future__ import annotations

import json
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, Final

import orjson

from iii_directory.limits import LARGE_VALUE_BYTES, MAX_JSON_DEPTH, MAX_READ_BYTES, MAX_READ_MARKS
from iii_directory.shapes import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Json = dict[str, Any]
Text = bytes | memoryview
"""JSON as it is written, or where it is written."""


class Absent:
    """The type of :data:`ABSENT`: a value that is not there, which is not the same as null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()


class Unread:
    """A value that came as JSON and can be passed on as it is; nobody has read it yet."""

    __slots__ = ("_text", "fields")

    def __init__(self, text: Text, fields: dict[str, Unread | None] | None = None) -> None:
        self._text = text
        self.fields = fields
        """The values of its fields, None for null, if it is an object whose fields are known already."""

    def __len__(self) -> int:
        """How many bytes its text has."""
        return len(self._text)

    @property
    def text(self) -> bytes:
        if isinstance(self._text, memoryview):
            self._text = bytes(self._text)
        return self._text

    @property
    def view(self) -> Text:
        """Its text without a copy, where it is part of something larger."""
        return self._text

    @property
    def parts(self) -> Sequence[Text]:
        return (self._text,)


class Written:
    """A value of this process whose JSON text is there too, in parts that follow on each other."""

    __slots__ = ("parts", "value")

    def __init__(self, value: object, parts: list[bytes]) -> None:
        self.value = value
        self.parts = parts

    def __len__(self) -> int:
        """How many bytes its text has."""
        return sum(map(len, self.parts))

    @property
    def text(self) -> bytes:
        return b"".join(self.parts)


class NotJsonError(Exception):
    """A text that is no JSON, or a value that cannot be sent. ``value`` is what could be read of it."""

    def __init__(self, reason: str, value: object = None) -> None:
        super().__init__(reason)
        self.value = value


def encode(value: object) -> str:
    """A value as compact JSON text."""
    return _ENCODER.encode(value)


def encode_message(value: object) -> bytes:
    """The same in UTF-8, as it is sent.

    What is not a number, which no message that came in can hold, is written as null.

    Raises:
        TypeError, ValueError: it is no JSON.
    """
    try:
        return orjson.dumps(value, _as_it_came)
    except TypeError:
        # It has an integer of more than 64 bits, which others may read, or it is not JSON at all.
        return _ENCODER.encode(value).encode()


def encode_parts(message: Json) -> list[Text]:
    """The same in parts that follow on each other: a long value that is text already is not copied.

    Raises:
        TypeError, ValueError: it is no JSON.
    """
    try:
        return [orjson.dumps(message, _short_as_it_came)]
    except TypeError:
        return _parts_around_gaps(message)


def read(value: object) -> object:
    """A value itself, also where it was not read before."""
    if isinstance(value, Written):
        return value.value
    return _value_of(value.text) if isinstance(value, Unread) else value


def whole(value: object) -> object:
    """A value with nothing unread in it: neither itself nor its fields or items."""
    if is_object(value):
        unread = {key: read(item) for key, item in value.items() if type(item) in _TEXTS}
        return {**value, **unread} if unread else value
    if is_list(value):
        return [read(item) for item in value] if _TEXTS.intersection(map(type, value)) else value
    return read(value)


def is_read_in_turns(value: object) -> bool:
    """Whether a list has so much unread in it that its items are to be read in several turns of the loop."""
    return is_list(value) and sum(len(item) for item in value if type(item) is Unread) > LARGE_VALUE_BYTES


def takes_long(value: object, most: int = MAX_READ_BYTES) -> bool:
    """Whether to read a value, with what is unread in it, would keep everybody else waiting.

    How long that takes depends on how many values there are, and there are as many as these characters.
    """
    if type(value) is Unread:
        # Nearly every call carries one, and it is short.
        return len(value) > MAX_READ_MARKS and is_long(value.text, most=most)
    return is_long(*(item.text for item in _below(value) if type(item) is Unread), most=most)


def is_long(*texts: bytes, most: int = MAX_READ_BYTES) -> bool:
    """The same for JSON texts."""
    size = sum(map(len, texts))
    if size <= MAX_READ_MARKS or size > most:
        return size > most
    return sum(len(text.translate(None, _NO_MARKS)) for text in texts) > MAX_READ_MARKS


def _below(value: object) -> Iterable[object]:
    if is_object(value):
        return value.values()
    return value if is_list(value) else ()


def parse(text: str) -> object:
    """The value of a JSON text, if it can also be sent as one.

    Raises:
        NotJsonError: it is no JSON, or a number, a character or the depth is out of bounds.
    """
    try:
        value = _value_of(text.encode())
    except RecursionError:
        raise NotJsonError("nested too deeply") from None
    except ValueError as error:
        raise NotJsonError(f"not JSON: {error}", _read_leniently(text)) from None
    # Both checks can only fail when these characters are there; most messages skip them.
    if text.count("{") + text.count("[") > MAX_JSON_DEPTH and _depth_exceeds(value, MAX_JSON_DEPTH):
        raise NotJsonError("nested too deeply", value)
    if ("\\ud" in text or "\\uD" in text) and not is_text(value):
        raise NotJsonError("a lone surrogate is not Unicode text", value)
    return value


def is_text(value: object) -> bool:
    """Whether every string in a value can be written as UTF-8."""
    try:
        _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def _parts_around_gaps(message: Json) -> list[Text]:
    left_out: list[Sequence[Text]] = []

    def gap(value: object) -> orjson.Fragment:
        known = _unread(value)
        if len(known) < LARGE_VALUE_BYTES:
            return orjson.Fragment(known.text)
        left_out.append(known.parts)
        return _GAP

    try:
        around = orjson.dumps(message, gap)
    except TypeError:
        return [encode_message(message)]
    # No JSON has this byte, so it stands in the gaps and nowhere else.
    first, *others = around.split(_GAP_MARK)
    return [first, *(part for parts, rest in zip(left_out, others, strict=True) for part in (*parts, rest))]


def _short_as_it_came(value: object) -> orjson.Fragment:
    # Nearly every message carries one, so it is not asked more than it must be.
    known = value if type(value) is Unread else _unread(value)
    if len(known) >= LARGE_VALUE_BYTES:
        raise TypeError("it is long")
    return orjson.Fragment(known.text)


def _as_it_came(value: object) -> orjson.Fragment:
    return orjson.Fragment(_unread(value).text)


def _read_now(value: object) -> object:
    return read(_unread(value))


def _unread(value: object) -> Unread | Written:
    """What an encoder does not know: a value whose text is there, or no JSON."""
    if isinstance(value, (Unread, Written)):
        return value
    raise TypeError(f"{type(value).__name__} is no JSON")


def _value_of(data: bytes) -> object:
    # A fifth of the time, but integers of more than 64 bits, which others may read, would lose digits. What
    # is refused is read once more, to say what is wrong as ever.
    if _LONG_NUMBER not in data.translate(_DIGITS):
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
    text = data.decode()
    if text.startswith("{"):
        value, end = _DECODER.raw_decode(text)
        if end == len(text):
            return value
    # With blanks around it, or wrong: looking for both takes as long again as reading a small message.
    return _DECODER.decode(text)


def _read_leniently(text: str) -> object:
    """What Python reads in a text that is no JSON: a NaN in the data does not hide whose call it was."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"number out of range: {text[:20]}")
    return number


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def _depth_exceeds(value: object, limit: int) -> bool:
    """Level by level, and without a line of Python for each value: a long list has many, and is not deep."""
    level: list[object] = [value]
    for _ in range(limit):
        objects = [item.values() for item in level if is_object(item)]
        lists = [item for item in level if is_list(item)]
        below = list(chain.from_iterable(chain(objects, lists)))
        level = list(compress(below, map(_CONTAINERS.__contains__, map(type, below))))
        if not level:
            return False
    return True


_TEXTS: Final = frozenset((Unread, Written))
_NO_MARKS: Final = bytes(set(range(256)) - set(b",[{"))
_GAP_MARK: Final = b"\0"
_GAP: Final = orjson.Fragment(_GAP_MARK)
_CONTAINERS: Final = frozenset((dict, list))
_DIGITS: Final = bytes(ord("1") if chr(code).isdecimal() and code < 128 else 0 for code in range(256))
_LONG_NUMBER: Final = b"1" * 19
_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)
# What is sent was parsed or built here: there are no circles to look for.
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False, default=_read_now
)
