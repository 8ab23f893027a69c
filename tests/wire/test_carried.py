"""What passes the engine unread: as it came, and nothing that would be refused if it were read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.driver import Driver, uuid_of

if TYPE_CHECKING:
    from random import Random

from iii_directory.engine.engine_state import Send
from iii_directory.wire.codec import UndecodableError, decode, encode, has_odd_number, parse, with_field
from iii_directory.wire.json_text import encode_value, read

ID = uuid_of(7)
# What makes brackets and quotes in texts hard to tell from those around them.
TRICKY = st.text(st.sampled_from('[]{}",\\\n u0e1+x'), max_size=12)
# Floats of the usual size: those near the end of what there is are read in full.
LEAVES = st.none() | st.integers() | st.floats(-1e30, 1e30) | TRICKY
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TRICKY, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TRICKY, VALUES, max_size=3)


def frame(payload: str) -> bytes:
    """An answer."""
    about = f'"type":"invocationresult","invocation_id":"{ID}","function_id":"f"'
    return f'{{{about},"result":{payload}}}'.encode()


def call(data: str) -> bytes:
    return f'{{"type":"invokefunction","invocation_id":"{ID}","function_id":"w::f","data":{data}}}'.encode()


def sent(driver: Driver) -> bytes:
    """The message that the last step sent, as it is written."""
    return b"".join(encode(next(effect.message for effect in driver.effects if isinstance(effect, Send))))


def passes(message: bytes) -> bool:
    try:
        decode(message)
    except UndecodableError:
        return False
    return True


def nested(value: Any, depth: int, random: Random) -> Any:
    for _ in range(depth):
        value = random.choice(([value, "]"], ["[", value], {"]{": value}, [[], value, {}]))
    return value


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


@given(VALUES, st.integers(100, 140), st.randoms(use_true_random=False), st.sampled_from((None, 1)))
def test_depth_is_that_of_the_value_whatever_its_texts_look_like(
    value: Any, depth: int, random: Random, indent: int | None
) -> None:
    value = [[{"a": [1]}] * 50, nested(value, depth, random), [{}] * 200]

    # With the frame around it there is one level more.
    assert passes(frame(json.dumps(value, indent=indent))) == (depth_of(value) <= 127)


@pytest.mark.parametrize(
    "number", ["1e309", "1E+400", "-1e400", "0.1e999", "1e0000400", "9" * 4301, "9" * 400 + ".5"]
)
def test_a_number_that_others_cannot_hold_does_not_pass_unread(number: str) -> None:
    assert has_odd_number(frame(f'{{"a": [1, {number} ]}}'))
    assert not passes(call(number))


def test_a_number_in_an_answer_is_passed_to_the_caller_unread() -> None:
    assert passes(frame("1e999"))


def test_a_number_in_an_error_is_read_and_refused() -> None:
    error = '{"code": "c", "message": "m", "more": 1e999}'
    with pytest.raises(UndecodableError, match="Number out of range"):
        decode(frame(f'1,"error":{error}'))


@pytest.mark.parametrize("number", ["1e30", "1E+22", "1e-400", "12345678901234567890123", "1.0", "-0"])
def test_other_numbers_pass(number: str) -> None:
    assert passes(call(number))


def test_texts_that_look_like_numbers_are_not_in_the_way() -> None:
    assert not has_odd_number(b'{"sha": "51e4443aa9e123f", "text": "1e999", "year": "1 the 2024"}')


@given(st.binary(max_size=3), st.integers(0, 400), VALUES)
def test_nothing_passes_unread_that_would_be_refused_if_read(junk: bytes, at: int, value: Any) -> None:
    whole = call(json.dumps(value))
    spoiled = whole[:at] + junk + whole[at + len(junk) :]
    if passes(spoiled) and spoiled.strip():
        parse(spoiled.decode())


@pytest.mark.parametrize(
    "payload", ["NaN", '"\\ud800"', '"\\udc00\\ud800"', "[1,]", "01", '"\x01"', "[" * 200 + "]" * 200]
)
def test_what_others_cannot_read_is_not_passed_on(payload: str) -> None:
    assert not passes(frame(payload))
    with pytest.raises(ValueError, match=r"malformed|truncated|deeply|surrogate"):
        parse(frame(payload).decode())


def test_bytes_that_are_not_text_are_not_passed_on() -> None:
    assert not passes(frame('"é"').replace(b"\xc3", b"\xff"))


@given(OBJECTS)
def test_a_field_more_is_the_only_difference(fields: dict[str, Any]) -> None:
    signed = with_field(json.dumps(fields).encode(), b"_by", "me")

    assert signed is None or json.loads(signed) == {**fields, "_by": "me"}


@pytest.mark.parametrize("text", [b'{"_by": 1}', b'{"\\u005fby": 1}'])
def test_a_field_is_not_there_twice(text: bytes) -> None:
    assert with_field(text, b"_by", "me") is None


def test_escaped_letters_of_other_scripts_are_not_in_the_way() -> None:
    assert json.loads(with_field(b'{"a": "\\u00e9"}', b"_by", "me") or b"") == {"a": "é", "_by": "me"}


@pytest.mark.parametrize("text", [b"{}", b"{  }", b"{\n}"])
def test_an_empty_object_gets_its_first_field(text: bytes) -> None:
    assert json.loads(with_field(text, b"_by", "me") or b"") == {"_by": "me"}


def test_what_is_carried_reaches_the_other_side_as_it_was_written() -> None:
    driver = Driver()
    worker, caller = driver.connect("worker"), driver.connect("caller")
    worker.register("w::f")
    carried = '{ "b" : 1.10, "a":[12345678901234567890123, 1E5], "b":"\\u00e9" }'

    caller.frame(call(f"[{carried}]"))
    asked = sent(driver)
    worker.frame(frame(carried))
    told = sent(driver)

    assert f"[{carried}]".encode() in asked
    assert carried.encode() in told


@pytest.mark.parametrize("claimed", ['"_caller_worker_id"', '"\\u005fcaller_worker_id"'])
def test_a_caller_cannot_pose_as_another(claimed: str) -> None:
    driver = Driver()
    worker, caller = driver.connect("worker"), driver.connect("caller")
    worker.register("w::f")

    caller.frame(call(f'{{{claimed}:"x","a":1}}'))
    asked = sent(driver)

    assert json.loads(asked, object_pairs_hook=list)[-1] == (
        "data",
        [("_caller_worker_id", caller.id), ("a", 1)],
    )


def test_a_worker_inside_is_given_values() -> None:
    driver = Driver()
    inside, caller = driver.connect("inside", inside=True), driver.connect("caller")
    inside.register("w::f")

    caller.start("w::f", {"n": 2**70})

    assert json.loads(sent(driver))["data"] == {"n": 2**70, "_caller_worker_id": caller.id}


def test_a_value_beside_an_integer_that_needs_the_other_encoder_is_written_too() -> None:
    carried = msgspec.Raw(b"[1]")
    assert json.loads(encode_value({"n": 2**70, "carried": carried})) == {"n": 2**70, "carried": [1]}
    assert read(carried) == [1]
