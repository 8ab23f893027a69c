"""Calls and answers, with what they carry left unread: the engine looks at the envelope alone. Pure.

What a worker answers is read by whoever asked, not by the engine on the way: a list of 1,000 rows costs a
skip instead of thousands of objects that are made, walked and written again (goal ``joined.list-1000``).
What is passed on is still JSON that others can read: the skip checks its grammar, and this module its
encoding, its depth and the numbers of calls. Where something is odd it gives no envelope, and the frame is
read in full by :mod:`iii_directory.engine.decoding`, which says what is wrong.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from iii_directory.engine import protocol
from iii_directory.engine.hollow import hollowed
from iii_directory.engine.stretches import (
    PIECE_BYTES,
    NotSoundError,
    marks_in,
    outside_of_strings,
    stretches_of,
    structure_of,
    too_deep,
)
from iii_directory.engine.wire_json import Unread, is_long
from iii_directory.limits import KIB, MAX_JSON_DEPTH
from iii_directory.text import is_utf8

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from iii_directory.engine.hollow import Hollow, Spans
    from iii_directory.engine.stretches import Span, Stretch

_NOTHING: Final = msgspec.Raw(b"null")


class Envelope(msgspec.Struct, gc=False):
    """The fields of a call and of an answer. Those that are not texts are JSON as it came."""

    type: str
    function_id: str
    invocation_id: str | None = None
    data: msgspec.Raw = _NOTHING
    result: msgspec.Raw = _NOTHING
    error: msgspec.Raw = _NOTHING
    action: msgspec.Raw = _NOTHING
    metadata: msgspec.Raw = _NOTHING
    activation: msgspec.Raw = _NOTHING
    namespace: str | None = None
    traceparent: str | None = None
    baggage: str | None = None


def envelope_of(frame: bytes) -> Envelope | None:
    """The envelope of a call or an answer; None for what has none, and for what may not be passed on.

    A call reaches workers that did not ask for it, so its numbers must be such as everybody can read. The
    numbers of an answer are between a worker and those who chose to ask it.
    """
    envelope = unchecked_envelope(frame)
    if envelope is None or (envelope.type == protocol.INVOKE_FUNCTION and has_odd_number(frame)):
        return None
    return envelope if is_readable(frame) else None


def unchecked_envelope(frame: bytes) -> Envelope | None:
    """The same of what an engine has let pass already."""
    try:
        return _ENVELOPES.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class Looked(NamedTuple):
    """What is known of a long frame: its envelope, and what it carries, its data or its result."""

    envelope: Envelope
    carried: Unread | None = None
    problem: str | None = None
    """Why it may not be passed on."""


def envelope_in_turns(frame: bytes, piece: int = PIECE_BYTES) -> Generator[None, None, Looked | None]:
    """The same for a long frame, a little at a time; of one that is no JSON, what was known till then."""
    stretches: list[Stretch] = []
    odd, problem = False, None
    try:
        for stretch in stretches_of(frame, piece):
            if stretch is not None:
                stretches.append(stretch)
                odd = odd or _is_odd(frame, stretch)
                problem = problem if stretch.is_sound else _NOT_JSON
            yield
    except NotSoundError:
        problem = _NOT_JSON
    yield
    outside = _outside(frame, stretches)
    if outside is None and problem is not None:
        # What is wrong may lie outside of what it carries; before that, it may have said whose call it is.
        outside = _outside(frame, list(takewhile(lambda stretch: stretch.is_sound, stretches)))
    if outside is None:
        return None
    yield
    envelope, hollow, fields = outside.envelope, outside.hollow, outside.fields
    is_call = envelope.type == protocol.INVOKE_FUNCTION
    if is_call and odd:
        problem = problem or "number out of range"
    for name in _BESIDE & fields.keys():
        start, end = hollow.in_whole(fields[name])
        setattr(envelope, name, msgspec.Raw(frame[start:end]))
        if is_long(frame[start:end]):
            problem = problem or f"field '{name}' is too long"
    carried = fields.get("data" if is_call else "result")
    if problem is not None or carried is None:
        return Looked(envelope, None, problem)
    yield
    return Looked(envelope, _in_whole(frame, outside, carried))


class _Outside(NamedTuple):
    """What lies outside of what a frame carries."""

    envelope: Envelope
    hollow: Hollow
    fields: Spans
    shows_inside: bool
    """Whether the fields of what it carries are there, too."""


def _outside(frame: bytes, stretches: list[Stretch]) -> _Outside | None:
    """The outside of a call or an answer; its own fields are few and mostly short."""
    # Without what is deeper than the fields of the data, or if that leaves much, than the data itself.
    hollow, shows_inside = hollowed(frame, stretches, 3), True
    if len(hollow.text) > _LONG_HOLLOW_BYTES:
        hollow, shows_inside = hollowed(frame, stretches, 2), False
    if len(hollow.text) > _LONG_HOLLOW_BYTES:
        return None
    envelope = unchecked_envelope(hollow.text)
    fields = None if envelope is None else hollow.fields()
    if envelope is None or fields is None:
        return None
    if not all(hollow.is_whole(span) for name, span in fields.items() if name in _READ):
        return None
    return _Outside(envelope, hollow, fields, shows_inside)


def _is_odd(frame: bytes, stretch: Stretch) -> bool:
    parts = (frame[start:end] for start, end in stretch.kept())
    # With what ends a number, if it is the last.
    return has_odd_number(b"".join((*parts, frame[stretch.end : stretch.end + 1])))


def _in_whole(frame: bytes, outside: _Outside, carried: Span) -> Unread | None:
    """What a frame carries, with its fields if they are known; nothing is copied."""
    hollow = outside.hollow
    fields = hollow.fields(carried[0]) if outside.shows_inside else None
    whole = _part(frame, hollow.in_whole(carried))
    if whole is None or fields is None:
        return whole
    whole.fields = {name: _part(frame, hollow.in_whole(span)) for name, span in fields.items()}
    return whole


def _part(frame: bytes, span: Span) -> Unread | None:
    part = memoryview(frame)[slice(*span)]
    return None if bytes(part[:5]) == b"null" else Unread(part)


def unread(raw: msgspec.Raw) -> Unread | None:
    """What a field carries, to be passed on; null is nothing."""
    if raw is _NOTHING:
        return None
    view = memoryview(raw)
    # A copy of what is short is quicker to work with.
    content = bytes(raw) if len(view) <= PIECE_BYTES else view
    return None if content == b"null" else Unread(content)


def fields_of(value: Unread) -> dict[str, Unread | None] | None:
    """The fields of an object of JSON, None for null; None where it is no object."""
    if value.fields is not None:
        return value.fields
    try:
        return {key: unread(raw) for key, raw in _FIELDS.decode(value.text).items()}
    except msgspec.DecodeError:
        return None


def items_of(raw: msgspec.Raw) -> list[Unread | None] | None:
    """The items of a list of JSON, None for null; None where it is no list."""
    try:
        return [unread(item) for item in _ITEMS.decode(raw)]
    except msgspec.DecodeError:
        return None


def with_field(text: bytes, field: bytes, value: str) -> bytes | None:
    """An object of JSON with a field more, both of characters that need no escape.

    None where the object may have it already: what is there twice means one thing to one reader and another
    to the next.
    """
    if field in text or (b"\\" in text and _ESCAPED_ASCII.search(text)):
        return None
    # Nobody looks at all of a long one: what is in it begins soon.
    separator = b"," if text[1:_SOON_BYTES].strip(b" \t\r\n}") or text[1:-1].strip() else b""
    return b"".join((text[:-1], separator, b'"', field, b'":"', value.encode(), b'"}'))


def has_odd_number(text: bytes) -> bool:
    """Whether a number of a JSON text is too large for others."""
    # Mostly nothing looks like one, not even in a string.
    return _looks_odd(text) and _looks_odd(outside_of_strings(text))


def _looks_odd(text: bytes) -> bool:
    digits = text.translate(_DIGITS)
    if _LONG_NUMBER in digits:
        return True
    found = digits.find(_LONG_EXPONENT)
    while found >= 0:
        if _EXPONENT.match(text, found + 1):
            return True
        found = digits.find(_LONG_EXPONENT, found + 1)
    return False


def is_readable(text: bytes) -> bool:
    """Whether a JSON text is UTF-8 and no deeper than others read.

    Without a line of Python for each value: the text is cut down to its brackets and quotes. Most are short,
    and have fewer brackets than may be open at once, wherever these stand.
    """
    short = len(text) <= _AT_HAND_BYTES
    if short and text.count(b"{") + text.count(b"[") <= MAX_JSON_DEPTH:
        return is_utf8(text)
    try:
        marks = marks_in(text) if short else b"".join(map(marks_in, _pieces(text)))
    except NotSoundError:
        return False
    return marks.count(b"{") + marks.count(b"[") <= MAX_JSON_DEPTH or not too_deep(structure_of(marks), 0)


def _pieces(text: bytes) -> Iterator[bytes]:
    """A text in pieces that a processor keeps at hand; they end with a quote, so within no character."""
    start = 0
    while start < len(text):
        end = text.find(b'"', start + _AT_HAND_BYTES) + 1 or len(text)
        yield text[start:end]
        start = end


_ENVELOPES: Final = msgspec.json.Decoder(Envelope)
_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_ESCAPED_ASCII: Final = re.compile(rb"\\u00[2-7]")
_BESIDE: Final = frozenset(("error", "action", "metadata", "activation"))
_NOT_JSON: Final = "not JSON, or nested too deeply"
_READ: Final = frozenset(Envelope.__struct_fields__) - _BESIDE - {"data", "result"}
_LONG_HOLLOW_BYTES: Final = 256 * KIB
_SOON_BYTES: Final = 64
# As much as a processor keeps at hand.
_AT_HAND_BYTES: Final = 8 * KIB
# Digits, and the sign that an exponent may have, are one character; the letter of an exponent is another.
_DIGITS: Final = bytes.maketrans(b"0123456789+E", b"11111111111e")
# A float ends at 1e308. An integer may be longer; whether it is too long is said by whoever reads it in full.
_LONG_NUMBER: Final = b"1" * 309
_LONG_EXPONENT: Final = b"1e111"
_EXPONENT: Final = re.compile(rb"[eE]\+?\d{3,}\s*[,\]}]")
