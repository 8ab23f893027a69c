"""A long text that is looked at a stretch at a time is taken, and refused, like one that is read at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.engine.driver import decoded_in_turns

from iii_directory.engine.decoding import UndecodableError, decode
from iii_directory.engine.envelope import envelope_in_turns, envelope_of, fields_of, is_readable, unread
from iii_directory.engine.hollow import hollowed
from iii_directory.engine.messages import InvocationResult, InvokeFunction
from iii_directory.engine.stretches import PIECE_BYTES, NotSoundError, sound_stretches
from iii_directory.engine.wire_json import Unread, read

if TYPE_CHECKING:
    from collections.abc import Generator

    from iii_directory.engine.envelope import Envelope, Looked
    from iii_directory.engine.stretches import Stretch

ID = "0b8f3c1e-9d7a-4c55-8f10-3f2f6f1d2a3b"
LONG_TEXTS = st.builds(
    lambda part, times, rest: part * times + rest, st.text(min_size=1), st.integers(20, 200), st.text()
)
NAMES = st.text(max_size=4) | st.text('"\\{}[]:, é1', max_size=12)
TEXTS = NAMES | LONG_TEXTS
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=30,
)
WRITTEN = st.builds(
    lambda value, indent, ascii_only: json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode(),
    VALUES,
    st.sampled_from((None, 0, 1, 300)),
    st.booleans(),
)
PIECES = st.integers(2, 40)
JUNK = (
    st.binary(max_size=3)
    | st.text('"\\{}[]:,1 ', max_size=3).map(str.encode)
    | st.sampled_from((b"\\u", b"\\ud834", b"\\udd1e", b"\\u00e", b"\n", b"\x01"))
)


def stretches_of(text: bytes, piece: int) -> list[Stretch]:
    return [found for found in sound_stretches(text, piece) if found is not None]


def is_sound(text: bytes, piece: int) -> bool:
    try:
        stretches = stretches_of(text, piece)
    except NotSoundError:
        return False
    assert b"".join(text[found.start : found.end] for found in stretches) == text
    return bool(stretches)


def is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return is_readable(text)


@given(WRITTEN, PIECES)
def test_every_text_of_json_is_sound_however_it_is_cut(text: bytes, piece: int) -> None:
    assert is_sound(text, piece)


@given(WRITTEN, PIECES, JUNK, st.integers(0, 2000), st.integers(0, 3))
def test_a_spoiled_text_is_sound_if_it_is_json(
    text: bytes, piece: int, junk: bytes, at: int, lost: int
) -> None:
    at %= len(text)
    spoiled = text[:at] + junk + text[at + lost :]

    assert is_sound(spoiled, piece) == is_json(spoiled)


@pytest.mark.parametrize(
    "text",
    [
        *("[1,2", "[1,2]]", "[1,,2]", "[1,2,]", '{"a":1,}', '{"a","b":1}', '["a":1]', '"a" "b"', '"a"1'),
        *('["a".5]', '["a"e5]', '["a"1]', '{"a":"b" "c":1}', '[["a"},["b"]]', '{"a":["b"}]', "[1 2,3]"),
        *("[,1]", '{,"a":1}', "[[,1],2]", '[1,{,"a":2}]', ",1", "[1],2"),
        *('["a\\"]', '["a', '["\\ud800"]', '["\x01"]', "[NaN,1]", "[01,1]", "]", '["a"]]["b"]'),
    ],
)
def test_what_is_no_json_is_not_sound(text: str) -> None:
    for spaces in ("", " " * 100):
        spoiled = text.replace(",", f"{spaces},{spaces}").encode()
        assert not any(is_sound(spoiled, piece) for piece in range(2, 20))


def test_a_text_that_is_no_utf8_is_not_sound() -> None:
    assert not is_sound(b'["a","\xff","b"]', 4)


@pytest.mark.parametrize("depth", [128, 129])
def test_a_text_is_sound_down_to_the_depth_that_others_read(depth: int) -> None:
    assert is_sound(b'["a",' * depth + b"1" + b"]" * depth, 16) is (depth == 128)


def test_brackets_without_end_are_refused_before_they_are_matched() -> None:
    """To match them takes a turn for each level: minutes for as many as a frame can have."""
    assert not is_sound(b"[" * 1_000_000 + b"]" * 1_000_000, PIECE_BYTES)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param([{"t": n, "v": 2.5, "ok": True} for n in range(10_000)], id="rows of numbers"),
        pytest.param({str(n): n for n in range(30_000)}, id="an object of numbers"),
        pytest.param({str(n): "x" * 20 for n in range(10_000)}, id="an object of texts"),
        pytest.param([f'he said "{n}", and left' for n in range(10_000)], id="texts with quotes"),
        pytest.param([[n, []] for n in range(20_000)], id="lists"),
        pytest.param(["x" * 1_000_000, "y"], id="a long text"),
        pytest.param(["\\" * 400_000, '"' * 400_000], id="texts of escapes"),
        pytest.param(["ä€𝄞" * 100_000], id="a long text of long characters"),
        pytest.param([json.dumps({"a": ["b"] * 40})] * 2_000, id="texts of JSON"),
        pytest.param(["x" * 51 + '"' * 101] * 4_000, id="texts of quotes, as long as fit a piece"),
    ],
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_nothing_is_looked_at_for_long_at_once(
    value: object, *, ascii_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where it is cut, nor where it is checked."""
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    checked: list[int] = []

    def counted(parts: bytes, **options: Any) -> object:
        checked.append(len(parts))
        return decoded(parts, **options)

    decoded = msgspec.json.decode
    monkeypatch.setattr(msgspec.json, "decode", counted)

    turns = list(sound_stretches(text, PIECE_BYTES))

    assert len(turns) > len(text) // PIECE_BYTES
    assert max(checked) < 8 * PIECE_BYTES


def test_a_number_without_end_is_not_looked_at_as_a_whole() -> None:
    assert not is_sound(b"[" + b"1" * 10_000_000 + b"]", PIECE_BYTES)


def test_blanks_are_looked_at_a_piece_at_a_time() -> None:
    text = b"[" + b" " * 300_000 + b"1" + b"\n" * 300_000 + b"]"

    stretches = [found for found in sound_stretches(text, PIECE_BYTES) if found is not None]

    assert sum(end - start for found in stretches for start, end in found.kept()) < 4 * PIECE_BYTES
    assert not is_sound(text.replace(b"1", b"1" + b" " * 300_000 + b"2"), PIECE_BYTES)


def finished(
    looking: Generator[None, None, Looked | None],
) -> Looked | None:
    """What is known of a frame in the end, if it may be passed on."""
    while True:
        try:
            next(looking)
        except StopIteration as end:
            return end.value if end.value is None or end.value.problem is None else None


def frame(fields: str, data: bytes, kind: str = "invokefunction", name: str = "data") -> bytes:
    head = f'{{"type":"{kind}","invocation_id":"{ID}",{fields}"function_id":"w::f","{name}":'
    return head.encode() + data + b"}"


@given(WRITTEN, WRITTEN, PIECES)
def test_the_envelope_of_a_long_frame_is_that_of_any_other(data: bytes, more: bytes, piece: int) -> None:
    fields = f'"metadata":{more.decode()},'
    for text in (frame(fields, data), frame(fields, data, "invocationresult", "result")):
        found = finished(envelope_in_turns(text, piece))

        expected = envelope_of(text)
        assert (found is None) == (expected is None)
        if found is not None and expected is not None:
            carried = unread(expected.data if expected.type == "invokefunction" else expected.result)
            assert (found.carried and found.carried.text) == (carried and carried.text)
            assert beside(found.envelope) == beside(expected)


def beside(envelope: Envelope) -> list[object]:
    """Everything but what it carries."""
    names = set(envelope.__struct_fields__) - {"data", "result"}
    fields = (getattr(envelope, name) for name in sorted(names))
    return [bytes(field) if isinstance(field, msgspec.Raw) else field for field in fields]


def read_fields(value: Unread) -> dict[str, object] | None:
    fields = fields_of(value)
    return None if fields is None else {name: read(field) for name, field in fields.items()}


@given(st.dictionaries(NAMES, VALUES, max_size=6), st.sampled_from((None, 1)), PIECES)
def test_the_fields_of_the_data_are_where_they_are_said_to_be(
    fields: dict[str, Any], indent: int | None, piece: int
) -> None:
    text = frame("", json.dumps(fields, indent=indent).encode())
    assume(envelope_of(text) is not None)

    found = finished(envelope_in_turns(text, piece))

    assert found is not None
    assert found.carried is not None
    assert found.carried.fields is not None
    assert read_fields(found.carried) == read_fields(Unread(found.carried.text)) == fields


@pytest.mark.parametrize("name", ["value", "x" * 1_000])
def test_a_long_name_of_a_field_is_read_as_it_is(name: str) -> None:
    text = frame("", json.dumps({name: "v", "more": "y" * 1_000}).encode())

    found = finished(envelope_in_turns(text, 16))

    assert found is not None
    assert found.carried is not None
    assert read_fields(found.carried) == {name: "v", "more": "y" * 1_000}


@pytest.mark.parametrize("head", ["ty", "type", "func", "function_id"])
def test_a_long_name_does_not_pass_for_a_short_one(head: str) -> None:
    """With a part of it left out it would be the name of a field of the envelope."""
    short = next(name for name in ("type", "function_id") if name.startswith(head))
    long = head + "x" * 1_000 + short[len(head) :]
    text = frame("", b"{}")[:-1] + f',"{long}":"y"}}'.encode()

    for piece in range(2, 40):
        found = finished(envelope_in_turns(text, piece))
        assert found is None or beside(found.envelope) == beside(cast("Envelope", envelope_of(text)))


def test_a_long_id_is_read_whole_or_not_at_all() -> None:
    text = frame("", b"{}").replace(b"w::f", b"w::" + b"f" * 1_000)

    for piece in range(2, 40):
        found = finished(envelope_in_turns(text, piece))
        assert found is None or found.envelope.function_id == "w::" + "f" * 1_000


def test_of_two_fields_of_a_name_the_last_counts() -> None:
    rows = json.dumps([["x" * 30]] * 20)
    text = frame("", f'{{"value": [1, {rows}], "value": [2, {rows}]}}'.encode())

    found = finished(envelope_in_turns(text, 16))

    assert found is not None
    assert found.carried is not None
    assert found.carried.fields is not None
    value = found.carried.fields["value"]
    assert value is not None
    assert value.text == f"[2, {rows}]".encode()


def test_a_long_text_is_left_out_but_for_its_ends() -> None:
    rows = json.dumps([{"n": n, "text": "x" * 80} for n in range(1_000)])
    text = frame("", f'{{"key": "k", "value": {rows}, "scope": "s"}}'.encode())

    hollow = hollowed(text, stretches_of(text, 1_000), 3)

    assert len(hollow.text) < 5_000
    assert json.loads(hollow.text)["data"]["scope"] == "s"


@given(WRITTEN, JUNK, st.integers(0, 2000))
def test_a_long_frame_is_decoded_or_refused_like_any_other(data: bytes, junk: bytes, at: int) -> None:
    for text in (frame("", data), frame("", data, "invocationresult", "result")):
        spoiled = text[: at % len(text)] + junk + text[at % len(text) + len(junk) :]

        assert outcome_in_turns(spoiled) == outcome(spoiled)


def outcome(text: bytes) -> object:
    try:
        return comparable(decode(text))
    except UndecodableError as error:
        return str(error)


def outcome_in_turns(text: bytes) -> object:
    try:
        return comparable(decoded_in_turns(text))
    except UndecodableError as error:
        return str(error)


def comparable(message: object) -> object:
    if isinstance(message, InvokeFunction):
        return message.function_id, message.invocation_id, repr(read(message.data)), repr(message.metadata)
    if isinstance(message, InvocationResult):
        return message.function_id, repr(read(message.result)), repr(message.error)
    return repr(message)
