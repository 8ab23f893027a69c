"""Calls and answers, with what they carry left unread: the engine looks at the envelope alone. Pure.

What a worker answers is read by whoever asked, not by the engine on the way: a list of 1,000 rows costs a
skip instead of thousands of objects that are made, walked and written again (goal ``joined.list-1000``).
What is passed on is still JSON that others can read: the skip checks its grammar, and this module its
encoding, its depth and the numbers of calls. Where something is odd it gives no envelope, and the frame is
read in full by :mod:`iii_directory.engine.decoding`, which says what is wrong.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import msgspec

from iii_directory.engine import protocol
from iii_directory.engine.wire_json import Unread, read
from iii_directory.limits import KIB, MAX_JSON_DEPTH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from iii_directory.engine.wire_json import Json

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
    try:
        envelope = _ENVELOPES.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if envelope.type == protocol.INVOKE_FUNCTION and has_odd_number(frame):
        return None
    return envelope if is_readable(frame) else None


def unread(raw: msgspec.Raw) -> Unread | None:
    """What a field carries, to be passed on; null is nothing."""
    if raw is _NOTHING:
        return None
    content = bytes(raw)
    return None if content == b"null" else Unread(content)


def fields_of(text: bytes, unread_fields: Collection[str]) -> Json | None:
    """The fields of an object of JSON, some of them unread; None where it is no object."""
    try:
        fields = _FIELDS.decode(text)
    except msgspec.DecodeError:
        return None
    return {key: unread(raw) if key in unread_fields else read(unread(raw)) for key, raw in fields.items()}


def with_field(text: bytes, field: bytes, value: str) -> bytes | None:
    """An object of JSON with a field more, both of characters that need no escape.

    None where the object may have it already: what is there twice means one thing to one reader and another
    to the next.
    """
    if field in text or (b"\\" in text and _ESCAPED_ASCII.search(text)):
        return None
    separator = b"," if text[1:-1].strip() else b""
    return b"".join((text[:-1], separator, b'"', field, b'":"', value.encode(), b'"}'))


def has_odd_number(text: bytes) -> bool:
    """Whether a number of a JSON text is too large for others; a string may look like one."""
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

    Without a line of Python for each value: the text is cut down to its brackets and quotes.
    """
    try:
        short = len(text) <= _PIECE_BYTES
        brackets = _brackets(text) if short else b"".join(map(_brackets, _pieces(text)))
    except UnicodeDecodeError:
        return False
    if brackets.count(b"(") <= MAX_JSON_DEPTH:
        return True
    # Strings without brackets go as pairs of quotes; of the rest every second part is a string.
    structure = b"".join(brackets.replace(b'""', b"").split(b'"')[::2])
    depth = 0
    for start in range(0, len(structure), MAX_JSON_DEPTH):
        part = structure[start : start + MAX_JSON_DEPTH]
        opened = part.count(b"(")
        if depth + opened > MAX_JSON_DEPTH and depth + _deepest(part) > MAX_JSON_DEPTH:
            return False
        depth += 2 * opened - len(part)
    return True


def _pieces(text: bytes) -> Iterator[bytes]:
    """A text in pieces that a processor keeps at hand; they end with a quote, so within no character."""
    start = 0
    while start < len(text):
        end = text.find(b'"', start + _PIECE_BYTES) + 1 or len(text)
        yield text[start:end]
        start = end


def _brackets(piece: bytes) -> bytes:
    if not piece.isascii():
        piece.decode()
    return (_without_escapes(piece) if b"\\" in piece else piece).translate(_BRACKETS, _OTHERS)


def _without_escapes(text: bytes) -> bytes:
    """A JSON text without its escaped characters, so that every quote begins or ends a string."""
    parts = iter(text.split(b"\\"))
    kept = [next(parts)]
    # An empty part is an escaped backslash, and what comes behind it is no escape.
    kept += [part[1:] if part else next(parts, b"") for part in parts]
    return b"".join(kept)


def _deepest(part: bytes) -> int:
    return max(accumulate(1 if bracket == _OPENS else -1 for bracket in part))


_ENVELOPES: Final = msgspec.json.Decoder(Envelope)
_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ESCAPED_ASCII: Final = re.compile(rb"\\u00[2-7]")
_PIECE_BYTES: Final = 8 * KIB
_BRACKETS: Final = bytes.maketrans(b"{[}]", b"(())")
_OTHERS: Final = bytes(set(range(256)) - set(b'{[}]"'))
_OPENS: Final = ord("(")
# Digits, and the sign that an exponent may have, are one character; the letter of an exponent is another.
_DIGITS: Final = bytes.maketrans(b"0123456789+E", b"11111111111e")
# A float ends at 1e308. An integer may be longer; whether it is too long is said by whoever reads it in full.
_LONG_NUMBER: Final = b"1" * 309
_LONG_EXPONENT: Final = b"1e111"
_EXPONENT: Final = re.compile(rb"[eE]\+?\d{3,}\s*[,\]}]")
