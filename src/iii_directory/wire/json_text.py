"""JSON as messages carry it: text that is passed on as it came, and how long reading it takes. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec
import orjson

from iii_directory.limits import MAX_READ_BYTES, MAX_READ_MARKS, MIB
from iii_directory.shapes import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Json = dict[str, Any]
Text = bytes | memoryview
"""JSON as it is written, or where it is written."""
ABSENT: Final = msgspec.UNSET
"""A value that is not there, which is not the same as null."""


class Written(msgspec.Struct):
    """A value of this process together with its JSON text."""

    value: object
    text: bytes


def encode_value(value: object) -> bytes:
    """Write a value as compact JSON; what is not a number becomes null.

    Raises:
        TypeError, ValueError: it is not JSON.
    """
    try:
        return orjson.dumps(value, _as_it_came)
    except TypeError:
        # It has an integer of more than 64 bits, which others may read, or it is not JSON at all.
        return _BIG_NUMBERS.encode(value).encode()


def read(value: object) -> object:
    """Return a value itself, also where only its text is there.

    Raises:
        ValueError: the text is not JSON that can be read here.
    """
    if type(value) is msgspec.Raw:
        return _VALUES.decode(value)
    return value.value if type(value) is Written else value


def whole(value: object) -> object:
    """Return a value in which nothing is left as text: neither the value nor its fields or items."""
    if is_object(value):
        unread = {key: read(item) for key, item in value.items() if type(item) in _TEXTS}
        return {**value, **unread} if unread else value
    if is_list(value):
        return [read(item) for item in value] if _TEXTS.intersection(map(type, value)) else value
    return read(value)


def fields_reader(names: Iterable[str]) -> Callable[[msgspec.Raw], dict[str, object] | None]:
    """Return what reads the named fields of a JSON object as texts, None for null.

    Other fields are skipped, however many there are. It returns None for what is not an object.
    """
    fields = [(name, msgspec.Raw, ABSENT) for name in names]
    decoder = msgspec.json.Decoder(msgspec.defstruct("Fields", fields))

    def read_fields(value: msgspec.Raw) -> dict[str, object] | None:
        try:
            found = msgspec.structs.asdict(decoder.decode(value))
        except msgspec.DecodeError:
            return None
        return {name: carried(raw) for name, raw in found.items() if raw is not ABSENT}

    return read_fields


def items_of_list(value: msgspec.Raw) -> list[object] | None:
    """Return the items of a JSON list as texts, None for null; None if it is not a list."""
    try:
        return [carried(raw) for raw in _ITEMS.decode(value)]
    except msgspec.DecodeError:
        return None


def carried(raw: msgspec.Raw) -> msgspec.Raw | None:
    """Return what a field carries; null is nothing."""
    return None if len(raw) == len(b"null") and bytes(raw) == b"null" else raw


def takes_long(value: object, most: int = MAX_READ_BYTES) -> bool:
    """Return whether reading a value, with the texts in it, would keep other callers waiting.

    That depends on the number of values in it, and there are as many as commas and opening brackets.
    """
    if type(value) is msgspec.Raw:
        # Nearly every call carries one, and it is short.
        return len(value) > MAX_READ_MARKS and is_long(value, most=most)
    below = value.values() if is_object(value) else value if is_list(value) else ()
    return is_long(*(item for item in below if type(item) is msgspec.Raw), most=most)


def is_long(*texts: Text | msgspec.Raw, most: int = MAX_READ_BYTES) -> bool:
    """Return whether reading JSON texts would keep other callers waiting."""
    size = sum(map(len, texts))
    if size <= MAX_READ_MARKS or size > most:
        return size > most
    return sum(len(bytes(text).translate(None, _NOT_MARKS)) for text in texts) > MAX_READ_MARKS


def too_long_sentence(reader: str, most: int = MAX_READ_BYTES) -> str:
    """Say what a reader accepts, to the sender of something that takes long to read."""
    return (
        f"{reader} as a whole: at most {most // MIB} MiB, with at most {MAX_READ_MARKS} commas and "
        "opening brackets"
    )


def _as_it_came(value: object) -> orjson.Fragment:
    if type(value) is msgspec.Raw:
        return orjson.Fragment(bytes(value))
    if type(value) is Written:
        return orjson.Fragment(value.text)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _read_now(value: object) -> object:
    if type(value) in _TEXTS:
        return read(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


_TEXTS: Final = frozenset((msgspec.Raw, Written))
_VALUES: Final = msgspec.json.Decoder(Any)
_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_NOT_MARKS: Final = bytes(set(range(256)) - set(b",[{"))
# What is sent was parsed or built here and has no cycles to look for.
_BIG_NUMBERS: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False, default=_read_now
)
