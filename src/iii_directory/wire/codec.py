"""From frames to messages and back, for engines and workers alike. Pure.

Decoding checks what both sides rely on and nothing more; unknown fields are ignored. The JSON that a call or
an answer carries is passed on as text, so it is checked for what others could not read: its grammar, its
encoding and depth, and the numbers of calls, which reach workers that did not ask for them.
"""

from __future__ import annotations

import json
import math
import re
from codecs import getincrementaldecoder
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import msgspec

from iii_directory.limits import KIB, LARGE_VALUE_BYTES, LONG_FRAME_BYTES, MAX_JSON_DEPTH, MAX_TRACE_CHARS
from iii_directory.shapes import is_object
from iii_directory.text import is_utf8
from iii_directory.wire import messages as m
from iii_directory.wire.json_text import ABSENT, encode_value, is_long, read
from iii_directory.wire.protocol import INVOCATION_RESULT, INVOKE_FUNCTION

if TYPE_CHECKING:
    from collections.abc import Generator

    from iii_directory.wire.json_text import Json, Text

TELEMETRY: Final = (b"OTLP", b"MTRC", b"LOGS")
_is_uuid: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch
_NOT_UUID: Final = "field 'invocation_id' must be a UUID"
_ODD_NUMBER: Final = "number out of range"
_TOO_LONG: Final = "neither call nor answer, and too long to be anything else"
_TOO_DEEP: Final = "nested too deeply"
_PIECE_BYTES: Final = 64 * KIB
_REASON_CHARS: Final = 160
# A frame up to this size cannot be nested too deeply.
_SHORT_BYTES: Final = 2 * MAX_JSON_DEPTH
_DECODER: Final = msgspec.json.Decoder(m.Message)
_ENCODER: Final = msgspec.json.Encoder()
_NULL: Final = msgspec.Raw(b"null")
_NULL_BYTES: Final = 4


class UndecodableError(Exception):
    """A frame that is not a message.

    ``call`` is the id of a call that was asked for, ``answered`` the id of a call that was answered, if such
    an id could be read: a caller waits for both.
    """

    def __init__(
        self, reason: str, *, call: str | None = None, answered: str | None = None, function_id: str = ""
    ) -> None:
        super().__init__(reason)
        self.call = call
        self.answered = answered
        self.function_id = function_id


# Encoding


def encode(message: m.Message) -> list[Text]:
    """Write a message, in parts that follow on each other: a long text that it carries is not copied.

    Raises:
        TypeError, ValueError: what it carries is not JSON.
    """
    if type(message) is m.InvokeFunction:
        return _around(message, "data", message.data)
    if type(message) is m.InvocationResult:
        return _around(message, "result", message.result)
    return [_encoded(message)]


def _around(message: m.InvokeFunction | m.InvocationResult, field: str, payload: object) -> list[Text]:
    """Write a message and the text that it carries in its last field."""
    if payload is ABSENT:
        return [_encoded(message)]
    text = payload if type(payload) is msgspec.Raw else msgspec.Raw(encode_value(payload))
    is_long_text = len(text) >= LARGE_VALUE_BYTES
    setattr(message, field, _NULL if is_long_text else text)
    try:
        whole = _encoded(message)
    finally:
        setattr(message, field, payload)
    # Without the null and the bracket that end it.
    return [whole[:-5], memoryview(text), b"}"] if is_long_text else [whole]


def _encoded(message: m.Message) -> bytes:
    try:
        return _ENCODER.encode(message)
    except (OverflowError, msgspec.ValidationError):
        # An integer of more than 64 bits, in a schema for example.
        return encode_value(msgspec.to_builtins(message, builtin_types=(msgspec.Raw,)))


# Decoding


def decode(frame: bytes) -> m.Message | None:
    """Read the message of a frame; return None for a blank frame and for telemetry.

    Raises:
        UndecodableError: the frame is not a JSON object, has an unknown type or lacks what its type needs.
    """
    try:
        message = _DECODER.decode(frame)
        if not frame.isascii() and not is_utf8(frame):
            raise UndecodableError("not UTF-8")
        is_wide = len(frame) > _SHORT_BYTES and len(frame.translate(None, _NOT_OPENING)) > MAX_JSON_DEPTH
        if is_wide and _Depth().exceeds(frame):
            raise UndecodableError(_TOO_DEEP)
        if type(message) is m.InvokeFunction:
            data = message.data
            # Only what the call carries is passed on: the digits of a UUID often look like a large number.
            text = bytes(data) if type(data) is msgspec.Raw and message.metadata is None else frame
            digits = text.translate(_DIGITS)
            is_suspect = _LONG_EXPONENT in digits or (len(text) > _LONGEST_NUMBER and _LONG_NUMBER in digits)
            if is_suspect and has_odd_number(text):
                raise UndecodableError(_ODD_NUMBER)
        return _checked(message)
    except (UndecodableError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _explained(error, frame)


def decode_in_turns(frame: bytes) -> Generator[None, None, m.Message | None]:
    """Read the message of a long frame, and let others have the loop in between.

    Raises:
        UndecodableError: as :func:`decode` does.
    """
    decoder, depth, looks_odd = getincrementaldecoder("utf-8")(), _Depth(), False
    try:
        for start in range(0, len(frame), _PIECE_BYTES):
            end = start + _PIECE_BYTES
            piece = frame[start:end]
            decoder.decode(piece, final=end >= len(frame))
            if depth.exceeds(piece):
                raise UndecodableError(_TOO_DEEP)
            # A number may lie across the end of a piece.
            looks_odd = looks_odd or _looks_odd(frame[max(0, start - len(_LONG_NUMBER)) : end])
            yield
        outside = _OUTSIDE.decode(frame)
        yield
        # Only what a call or an answer carries may be long: the rest would be read at once.
        kind = read(outside.type) if len(outside.type) <= _NAME_BYTES else None
        if kind not in (INVOKE_FUNCTION, INVOCATION_RESULT) and is_long(frame):
            raise UndecodableError(_TOO_LONG)
        for field in ("error", "action", "metadata", "activation"):
            if is_long(getattr(outside, field)):
                raise UndecodableError(f"field '{field}' is too long")
        message = _DECODER.decode(frame)
        yield
        if looks_odd and type(message) is m.InvokeFunction and has_odd_number(frame):
            raise UndecodableError(_ODD_NUMBER)
        return _checked(message)
    except (UndecodableError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _explained(error, frame)


def _checked(message: m.Message) -> m.Message:
    """Check and complete what the types of a message cannot express."""
    if type(message) is m.InvokeFunction:
        _check_call(message)
    elif type(message) is m.InvocationResult:
        if _is_uuid(message.invocation_id) is None:
            raise UndecodableError(_NOT_UUID)
        message.invocation_id = message.invocation_id.lower()
        # A null result counts as no value, as on the real engine.
        result = message.result
        if type(result) is msgspec.Raw and len(result) == _NULL_BYTES and bytes(result) == b"null":
            message.result = ABSENT
        if message.error is not None:
            message.error = _error_body(message.error)
    elif type(message) is m.TriggerRegistrationResult:
        message.error = _error_body(message.error)
    elif type(message) is m.RegisterTrigger and message.config is ABSENT:
        message.config = None
    return message


def _check_call(message: m.InvokeFunction) -> None:
    if message.invocation_id is not None and _is_uuid(message.invocation_id) is None:
        raise UndecodableError(_NOT_UUID)
    action = message.action
    if action is not None and action.type == "enqueue" and action.queue is None:
        raise UndecodableError("field 'action' must name the queue")
    data = message.data
    if type(data) is not msgspec.Raw or (len(data) == _NULL_BYTES and bytes(data) == b"null"):
        message.data = None
    # A trace is kept for as long as a call goes on, unless it is longer than a trace can be.
    if message.traceparent is not None and len(message.traceparent) > MAX_TRACE_CHARS:
        message.traceparent = None
    if message.baggage is not None and len(message.baggage) > MAX_TRACE_CHARS:
        message.baggage = None


def _error_body(error: Json | None) -> Json | None:
    if error is None:
        return None
    if not isinstance(error.get("code"), str) or not isinstance(error.get("message"), str):
        raise UndecodableError("field 'error' must be {code, message}")
    body = {key: error[key] for key in ("code", "message", "stacktrace") if isinstance(error.get(key), str)}
    # Real engines drop it; through this one the next steps of an error reach a worker that is joined, too.
    return {**body, "data": error["data"]} if isinstance(error.get("data"), dict) else body


def _explained(error: Exception, frame: bytes) -> None:
    """Say what is wrong with a frame, and whose call it was about if that can be read."""
    if frame.startswith(TELEMETRY) or not frame.strip():
        return
    reason = _TOO_DEEP if isinstance(error, RecursionError) else str(error)
    if isinstance(error, UnicodeDecodeError):
        reason = "not UTF-8"
    elif not isinstance(error, msgspec.ValidationError | UndecodableError | RecursionError):
        reason = f"not JSON: {error}"
    about = _about(frame)
    kind, given_id, function_id = about.get("type"), about.get("invocation_id"), about.get("function_id")
    call_id = given_id if isinstance(given_id, str) and _is_uuid(given_id) else None
    raise UndecodableError(
        reason[:_REASON_CHARS],
        call=call_id if kind == INVOKE_FUNCTION else None,
        answered=call_id.lower() if call_id is not None and kind == INVOCATION_RESULT else None,
        function_id=function_id if isinstance(function_id, str) and is_text(function_id) else "",
    ) from None


def _about(frame: bytes) -> Json:
    """Read what can be read of the outside of a frame that is not a message."""
    try:
        outside = _OUTSIDE.decode(frame)
        named = {key: getattr(outside, key) for key in ("type", "invocation_id", "function_id")}
        return {key: read(raw) for key, raw in named.items() if len(raw) <= _NAME_BYTES}
    except (ValueError, RecursionError):
        pass
    if len(frame) <= LONG_FRAME_BYTES:
        try:
            # Python's reader takes a NaN in what a call carries, and characters that cannot be sent.
            value: object = json.loads(frame)
        except (ValueError, RecursionError):
            return {}
        return value if is_object(value) else {}
    # A long frame is not read in full for that. SDKs write the id before or after what a call carries.
    ends = b" ".join((frame[-_NAME_BYTES:], frame[:_NAME_BYTES]))
    return {key.decode(): value.decode("utf-8", "replace") for key, value in _NAMED.findall(ends)}


def parse(text: str) -> object:
    """Read a JSON text that is to become part of a message.

    Raises:
        ValueError: it is not JSON, or a number, a character or the depth is out of bounds.
    """
    data = text.encode()
    try:
        value = read(msgspec.Raw(data))
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if _Depth().exceeds(data):
        raise ValueError(_TOO_DEEP)
    return value


def is_text(value: str) -> bool:
    """Return whether UTF-8 can write a string."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


# What others could not read


class _Depth:
    """Follows how deeply JSON is nested, through text that comes in pieces."""

    def __init__(self) -> None:
        self._open = 0
        self._in_string = False
        self._is_escaped = False

    def exceeds(self, piece: bytes) -> bool:
        """Take a piece in; whether it leads deeper than others read."""
        if self._is_escaped:
            piece, self._is_escaped = piece[1:], False
        if b"\\" in piece:
            self._is_escaped = (len(piece) - len(piece.rstrip(b"\\"))) % 2 == 1
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        marks = piece.translate(None, _NO_BRACKETS)
        parts = marks.split(b'"')
        brackets = b"".join(parts[1::2] if self._in_string else parts[::2]).translate(_AS_ONE_KIND)
        self._in_string ^= len(parts) % 2 == 0
        opened = brackets.count(b"(")
        if self._open + opened > MAX_JSON_DEPTH:
            steps = accumulate((1 if bracket == _OPENS else -1 for bracket in brackets), initial=self._open)
            if max(steps) > MAX_JSON_DEPTH:
                return True
        self._open += 2 * opened - len(brackets)
        return False


def has_odd_number(text: bytes) -> bool:
    """Return whether a number of a JSON text is too large for others."""
    # Mostly nothing looks like one, not even in a string.
    if not _looks_odd(text):
        return False
    without_escapes = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return _looks_odd(b'"'.join(without_escapes.split(b'"')[::2]))


def _looks_odd(text: bytes) -> bool:
    digits = text.translate(_DIGITS)
    if _LONG_NUMBER in digits and _TOO_MANY_DIGITS.search(text):
        return True
    if _LONG_EXPONENT not in digits:
        return False
    for count, number in enumerate(_LARGE_FLOATS.finditer(text)):
        # As many huge numbers as this have no meaning, and are not converted one by one.
        if count > _MOST_LARGE_FLOATS or math.isinf(float(number[0])):
            return True
    return False


def with_field(text: bytes, field: bytes, value: str) -> bytes | None:
    """Add a field to a JSON object, both of characters that need no escape.

    None where the object may have it already: a field that is there twice means one thing to one reader and
    another to the next.
    """
    if field in text or (b"\\" in text and _ESCAPED_ASCII.search(text)):
        return None
    # A long object is not looked at as a whole: what is in it begins soon.
    separator = b"," if text[1:_SOON_BYTES].strip(b" \t\r\n}") or text[1:-1].strip() else b""
    return b"".join((text[:-1], separator, b'"', field, b'":"', value.encode(), b'"}'))


class _Outside(msgspec.Struct):
    """The fields of a call or an answer, all of them unread."""

    type: msgspec.Raw = _NULL
    invocation_id: msgspec.Raw = _NULL
    function_id: msgspec.Raw = _NULL
    error: msgspec.Raw = _NULL
    action: msgspec.Raw = _NULL
    metadata: msgspec.Raw = _NULL
    activation: msgspec.Raw = _NULL


_OUTSIDE: Final = msgspec.json.Decoder(_Outside)
_NAMED: Final = re.compile(rb'"(type|invocation_id|function_id)"\s*:\s*"([^"\\]*)"')
_NAME_BYTES: Final = KIB
_NOT_OPENING: Final = bytes(set(range(256)) - set(b"{["))
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b'{[}]"'))
_AS_ONE_KIND: Final = bytes.maketrans(b"{[}]", b"(())")
_OPENS: Final = ord("(")
_ESCAPED_ASCII: Final = re.compile(rb"\\u00[2-7]")
_SOON_BYTES: Final = 64
# Digits, and the sign that an exponent may have, are one character; the letter of an exponent is another.
_DIGITS: Final = bytes.maketrans(b"0123456789+E", b"11111111111e")
# A float ends at 1e308. An integer may be longer, up to what Python converts.
_LONGEST_NUMBER: Final = 308
_LONG_NUMBER: Final = b"1" * (_LONGEST_NUMBER + 1)
_TOO_MANY_DIGITS: Final = re.compile(rb"(?<![0-9])(?:[0-9]{309,}[.eE]|[0-9]{4301,})")
_LONG_EXPONENT: Final = b"1e111"
_LARGE_FLOATS: Final = re.compile(rb"(?<![0-9.])[0-9][0-9.]*[eE]\+?[0-9]{3,}(?=\s*(?:[,\]}]|\Z))")
_MOST_LARGE_FLOATS: Final = 1000
