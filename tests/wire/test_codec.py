"""What a frame means, and what is refused."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any
from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_directory.limits import LARGE_VALUE_BYTES
from iii_directory.wire import codec
from iii_directory.wire import messages as m
from iii_directory.wire.codec import UndecodableError
from iii_directory.wire.json_text import ABSENT, encode_value, read

if TYPE_CHECKING:
    from collections.abc import Callable

ID = "0b8f3c1e-9d7a-4c55-8f10-3f2f6f1d2a3b"
ERROR = {"code": "c", "message": "m"}


def decode(frame: str | bytes) -> m.Message | None:
    """A message with what it carries, which the engine leaves to its recipient."""
    data = frame.encode(errors="surrogatepass") if isinstance(frame, str) else frame
    message = codec.decode(data)
    if isinstance(message, m.InvokeFunction):
        message.data = read(message.data)
    elif isinstance(message, m.InvocationResult):
        message.result = read(message.result)
    return message


def decoded(**fields: Any) -> m.Message | None:
    return decode(json.dumps(fields))


def refusal(frame: str | bytes) -> UndecodableError:
    with pytest.raises(UndecodableError) as caught:
        decode(frame)
    return caught.value


def invoke(**fields: Any) -> m.InvokeFunction:
    message = decoded(type="invokefunction", function_id="f", **fields)
    assert isinstance(message, m.InvokeFunction)
    return message


def nested(depth: int) -> str:
    """A call whose whole frame is as deep as asked."""
    data = "[" * (depth - 1) + "]" * (depth - 1)
    return f'{{"type":"invokefunction","function_id":"f","invocation_id":"{ID}","data":{data}}}'


EVERY_TYPE: dict[str, tuple[dict[str, Any], m.Message]] = {
    "registerfunction": (
        {
            "id": "a::b",
            "description": "d",
            "request_format": {"type": "object"},
            "response_format": True,
            "metadata": {"k": 1},
        },
        m.RegisterFunction(
            id="a::b",
            description="d",
            request_format={"type": "object"},
            response_format=True,
            metadata={"k": 1},
        ),
    ),
    "unregisterfunction": ({"id": "a::b"}, m.UnregisterFunction(id="a::b")),
    "registertriggertype": (
        {
            "id": "t",
            "description": "d",
            "trigger_request_format": {},
            "call_request_format": [],
            "namespace": "n",
        },
        m.RegisterTriggerType(
            id="t", description="d", trigger_request_format={}, call_request_format=[], namespace="n"
        ),
    ),
    "unregistertriggertype": ({"id": "t", "namespace": "n"}, m.UnregisterTriggerType(id="t", namespace="n")),
    "registertrigger": (
        {
            "id": "b",
            "trigger_type": "t",
            "function_id": "f",
            "config": {"x": 1},
            "metadata": {"m": 1},
            "namespace": "n",
            "trigger_namespace": "p",
        },
        m.RegisterTrigger(
            id="b",
            trigger_type="t",
            function_id="f",
            config={"x": 1},
            metadata={"m": 1},
            namespace="n",
            trigger_namespace="p",
        ),
    ),
    "unregistertrigger": ({"id": "b", "trigger_type": "t"}, m.UnregisterTrigger(id="b", trigger_type="t")),
    "triggerregistrationresult": (
        {"id": "b", "trigger_type": "t", "function_id": "f", "error": ERROR},
        m.TriggerRegistrationResult(id="b", trigger_type="t", function_id="f", error=ERROR),
    ),
    "invokefunction": (
        {
            "function_id": "f",
            "data": [1],
            "invocation_id": ID,
            "action": {"type": "enqueue", "queue": "q"},
            "metadata": {"m": 1},
            "namespace": "n",
            "traceparent": "tp",
            "baggage": "bg",
        },
        m.InvokeFunction(
            function_id="f",
            data=[1],
            invocation_id=ID,
            action=m.Action("enqueue", "q"),
            metadata={"m": 1},
            namespace="n",
            traceparent="tp",
            baggage="bg",
        ),
    ),
    "invocationresult": (
        {"invocation_id": ID, "function_id": "f", "result": 0},
        m.InvocationResult(invocation_id=ID, function_id="f", result=0),
    ),
    "reattach": (
        {"previous_worker_id": "w", "reattach_token": "t"},
        m.Reattach(previous_worker_id="w", reattach_token="t"),
    ),
    "ping": ({}, m.Ping()),
    "pong": ({}, m.Pong()),
    "registerservice": ({"id": "s", "name": "s"}, m.RegisterService()),
    "observe": (
        {
            "id": "o",
            "source": {"function_id": "a::changed", "namespace": "there", "args": {"x": 1}},
            "target": {"function_id": "b::heard", "namespace": "here"},
            "metadata": {"k": 1},
        },
        m.Observe(
            id="o",
            source=m.ObservedFunction("a::changed", "there", {"x": 1}),
            target=m.ObservedFunction("b::heard", "here"),
            metadata={"k": 1},
        ),
    ),
    "unobserve": ({"id": "o"}, m.Unobserve(id="o")),
    "observerack": (
        {"id": "o", "function_id": "f", "revision": 2},
        m.ObserverAck(id="o", function_id="f", revision=2),
    ),
    "invocationsobserved": ({"items": []}, m.InvocationsObserved()),
    "localinvocationstats": ({"functions": []}, m.LocalInvocationStats()),
}

REQUIRED_TEXTS = [
    ("registerfunction", "id"),
    ("unregisterfunction", "id"),
    ("registertriggertype", "id"),
    ("registertriggertype", "description"),
    ("unregistertriggertype", "id"),
    ("registertrigger", "id"),
    ("registertrigger", "trigger_type"),
    ("registertrigger", "function_id"),
    ("unregistertrigger", "id"),
    ("triggerregistrationresult", "id"),
    ("triggerregistrationresult", "trigger_type"),
    ("triggerregistrationresult", "function_id"),
    ("invokefunction", "function_id"),
    ("invocationresult", "function_id"),
    ("invocationresult", "invocation_id"),
    ("reattach", "previous_worker_id"),
]


@pytest.mark.parametrize("kind", EVERY_TYPE)
def test_every_type_is_read_with_all_of_its_fields(kind: str) -> None:
    fields, expected = EVERY_TYPE[kind]

    assert decoded(type=kind, **fields) == expected


@pytest.mark.parametrize("kind", EVERY_TYPE)
def test_unknown_fields_and_the_place_of_the_type_make_no_difference(kind: str) -> None:
    fields, expected = EVERY_TYPE[kind]

    assert decoded(**fields, never_heard_of={"x": 1}, type=kind) == expected
    assert decode(json.dumps({**fields, "type": kind}).encode()) == expected


@pytest.mark.parametrize(("kind", "field"), REQUIRED_TEXTS)
@pytest.mark.parametrize("wrong", [..., None, 7, ["x"]])
def test_a_message_without_what_its_type_needs_is_refused(kind: str, field: str, wrong: Any) -> None:
    fields = {**EVERY_TYPE[kind][0], "type": kind, field: wrong}
    if wrong is ...:
        del fields[field]

    assert field in str(refusal(json.dumps(fields)))


@pytest.mark.parametrize("field", ["namespace", "traceparent", "baggage"])
def test_an_optional_text_may_be_absent_or_null_but_nothing_else(field: str) -> None:
    assert invoke(data=1) == invoke(data=1, **{field: None})
    assert field in str(
        refusal(json.dumps({"type": "invokefunction", "function_id": "f", "data": 1, field: 3}))
    )


def test_a_call_without_data_and_a_binding_without_config_carry_null() -> None:
    binding = decoded(type="registertrigger", id="b", trigger_type="t", function_id="f")

    assert invoke().data is None
    assert isinstance(binding, m.RegisterTrigger)
    assert binding.config is None


def test_actions_are_void_enqueue_or_none() -> None:
    assert invoke(action=None).action is None
    assert invoke(action={"type": "void"}).action == m.Action("void")
    assert invoke(action={"type": "enqueue", "queue": "q"}).action == m.Action("enqueue", "q")


@pytest.mark.parametrize(
    "action", ["void", [], {}, {"type": "Void"}, {"type": "enqueue"}, {"type": "enqueue", "queue": 1}, 1]
)
def test_another_action_is_refused(action: Any) -> None:
    refused = refusal(
        json.dumps({"type": "invokefunction", "function_id": "f", "invocation_id": ID, "action": action})
    )

    assert refused.call == ID


@pytest.mark.parametrize(
    "value", ["", "x", "123", ID[:-1], ID + "0", ID.replace("-", ""), f"{{{ID}}}", 5, [], {}, f" {ID}"]
)
def test_a_call_id_that_is_not_a_uuid_is_refused_and_cannot_be_answered(value: Any) -> None:
    refused = refusal(json.dumps({"type": "invokefunction", "function_id": "f", "invocation_id": value}))

    assert refused.call is None


def test_a_null_call_id_asks_for_no_answer() -> None:
    assert invoke(invocation_id=None, data=1).invocation_id is None


def test_the_id_of_an_answer_is_read_in_any_case() -> None:
    answer = decoded(type="invocationresult", invocation_id=ID.upper(), function_id="f")

    assert isinstance(answer, m.InvocationResult)
    assert answer.invocation_id == ID


@pytest.mark.parametrize("value", [False, 0, "", [], {}])
def test_an_empty_result_is_a_result(value: Any) -> None:
    answer = decoded(type="invocationresult", invocation_id=ID, function_id="f", result=value)

    assert isinstance(answer, m.InvocationResult)
    assert answer.result == value


@pytest.mark.parametrize("fields", [{}, {"result": None}])
def test_a_null_result_counts_as_none(fields: dict[str, Any]) -> None:
    answer = decoded(type="invocationresult", invocation_id=ID, function_id="f", **fields)

    assert isinstance(answer, m.InvocationResult)
    assert answer.result is ABSENT


def test_an_error_keeps_code_message_and_stack_and_nothing_else() -> None:
    answer = decoded(
        type="invocationresult",
        invocation_id=ID,
        function_id="f",
        error={**ERROR, "stacktrace": "at", "more": 1},
    )

    assert isinstance(answer, m.InvocationResult)
    assert answer.error == {**ERROR, "stacktrace": "at"}


@pytest.mark.parametrize(
    "error", ["text", 1, [], {}, {"code": "c"}, {"message": "m"}, {"code": 1, "message": "m"}]
)
def test_an_error_of_another_shape_is_refused_and_says_which_call_it_was_about(error: Any) -> None:
    refused = refusal(
        json.dumps({"type": "invocationresult", "invocation_id": ID, "function_id": "f", "error": error})
    )

    assert refused.answered == ID
    assert refused.call is None


@pytest.mark.parametrize("frame", ["", " ", "\n\t ", b"", b"  "])
def test_a_blank_frame_is_nothing(frame: str | bytes) -> None:
    assert decode(frame) is None


@pytest.mark.parametrize("prefix", [b"OTLP", b"MTRC", b"LOGS"])
def test_telemetry_is_let_through_unread(prefix: bytes) -> None:
    assert decode(prefix + b'{"resourceSpans": [\xff') is None


@pytest.mark.parametrize(
    "frame",
    [
        "x",
        "{",
        "[]",
        "null",
        "7",
        '"ping"',
        '{"type":"ping"} x',
        "{'type':'ping'}",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        "\ufeff{}",
        '{"type":"ping",}',
    ],
)
def test_a_message_that_is_not_a_json_object_is_refused(frame: str | bytes) -> None:
    refusal(frame)


@pytest.mark.parametrize("kind", [None, 7, True, [], {}, ["ping"], "Ping", "PING", "pings", ""])
def test_an_unknown_type_is_refused(kind: Any) -> None:
    refusal(json.dumps({"type": kind}))


def test_the_reason_repeats_only_the_beginning_of_a_long_type() -> None:
    assert len(str(refusal(json.dumps({"type": "x" * 100_000})))) < 200


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 5000])
def test_an_invalid_number_is_refused_and_its_caller_can_be_told(number: str) -> None:
    frame = f'{{"type":"invokefunction","function_id":"f","invocation_id":"{ID}","data":{{"x":{number}}}}}'
    refused = refusal(frame)

    assert (refused.call, refused.function_id) == (ID, "f")


@pytest.mark.parametrize(
    "number", ["12345678901234567890", "-9223372036854775808", "1.0", "1e300", "0.1", "-0.0"]
)
def test_integers_of_64_bits_and_doubles_survive(number: str) -> None:
    frame = f'{{"type":"invokefunction","function_id":"f","data":{number}}}'
    message = decode(frame)

    assert isinstance(message, m.InvokeFunction)
    assert encode_value(message.data).decode() == repr(json.loads(number))


@pytest.mark.parametrize("escape", [r"\ud800", r"\uDFFF", r"\udc00\ud800", r"x\uD83Dx"])
def test_a_lone_surrogate_is_refused_and_its_caller_can_be_told(escape: str) -> None:
    for data in (f'"{escape}"', f'{{"{escape}":1}}'):
        frame = f'{{"type":"invokefunction","function_id":"f","invocation_id":"{ID}","data":{data}}}'

        assert refusal(frame).call == ID


def test_a_surrogate_in_the_function_id_is_not_repeated() -> None:
    frame = f'{{"type":"invokefunction","function_id":"\\ud800","invocation_id":"{ID}","data":1}}'
    refused = refusal(frame)

    assert (refused.call, refused.function_id) == (ID, "")


def test_a_surrogate_pair_is_a_character() -> None:
    message = decode('{"type":"invokefunction","function_id":"f","data":"\\ud83d\\ude00"}')

    assert isinstance(message, m.InvokeFunction)
    assert message.data == "😀"


def test_a_frame_of_128_levels_is_read_and_one_more_is_refused() -> None:
    assert isinstance(decode(nested(128)), m.InvokeFunction)
    assert refusal(nested(129)).call == ID


def test_a_frame_too_deep_to_parse_at_all_is_refused() -> None:
    assert refusal(nested(200_000)).call is None


def test_brackets_inside_a_text_do_not_count_as_depth() -> None:
    assert isinstance(decoded(type="invokefunction", function_id="f", data="[{" * 500), m.InvokeFunction)


def test_a_wide_frame_is_not_a_deep_one() -> None:
    assert isinstance(decoded(type="invokefunction", function_id="f", data=[[]] * 1000), m.InvokeFunction)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_any_payload_comes_out_as_it_went_in(value: Any) -> None:
    message = decode(encode_value({"type": "invokefunction", "function_id": "f", "data": value}))

    assert isinstance(message, m.InvokeFunction)
    assert message.data == value


FIELDS = st.sampled_from(sorted({field for _, field in REQUIRED_TEXTS}))


@given(st.sampled_from(sorted(EVERY_TYPE)), st.dictionaries(FIELDS, JSON_VALUES))
def test_any_fields_are_read_or_refused(kind: str, fields: dict[str, Any]) -> None:
    with contextlib.suppress(UndecodableError):
        decode(encode_value({"type": kind, **fields}))


@pytest.mark.parametrize("kind", EVERY_TYPE)
def test_every_message_is_read_as_it_was_written(kind: str) -> None:
    message = EVERY_TYPE[kind][1]

    assert decode(b"".join(codec.encode(message))) == message


def test_a_long_text_that_is_carried_is_not_copied() -> None:
    text = msgspec.Raw(b'"' + b"x" * LARGE_VALUE_BYTES + b'"')
    parts = codec.encode(m.InvocationResult(invocation_id=ID, function_id="f", baggage="b", result=text))

    assert any(isinstance(part, memoryview) and part.obj is text for part in parts)
    assert json.loads(b"".join(parts))["result"] == "x" * LARGE_VALUE_BYTES


def outcome(decoding: Callable[[bytes], m.Message | None], frame: bytes) -> object:
    """The message that comes of decoding, or what was said about the frame."""
    try:
        message = decoding(frame)
    except UndecodableError as error:
        return error.call, error.answered
    if isinstance(message, m.InvokeFunction):
        message.data = read(message.data)
    return message


def in_turns(frame: bytes) -> m.Message | None:
    looking = codec.decode_in_turns(frame)
    while True:
        try:
            next(looking)
        except StopIteration as end:
            return end.value


TRICKY = st.text(st.sampled_from('[]{}",\\\n u0é1+x'), max_size=12)
TRICKY_VALUES = st.recursive(
    st.none() | st.integers() | TRICKY,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TRICKY, inner, max_size=4),
    max_leaves=12,
)


@given(TRICKY_VALUES, st.integers(1, 12), st.binary(max_size=2), st.integers(0, 200), st.booleans())
def test_a_frame_read_in_turns_is_read_as_it_is_at_once(
    value: Any, piece: int, junk: bytes, at: int, is_ascii: bool
) -> None:
    fields = {"type": "invokefunction", "invocation_id": ID, "function_id": "f", "data": value}
    whole = json.dumps(fields, ensure_ascii=is_ascii).encode()
    spoiled = whole[:at] + junk + whole[at + len(junk) :]
    with mock.patch.object(codec, "_PIECE_BYTES", piece):
        for frame in (whole, spoiled):
            assert outcome(in_turns, frame) == outcome(codec.decode, frame)


@pytest.mark.parametrize("depth", [128, 129])
@pytest.mark.parametrize("piece", [1, 7, 64])
def test_depth_is_counted_across_pieces(depth: int, piece: int) -> None:
    frame = nested(depth).replace('"data":[', '"data":["]{\\"[",').encode()
    with mock.patch.object(codec, "_PIECE_BYTES", piece):
        assert isinstance(outcome(in_turns, frame), m.InvokeFunction) is (depth <= 128)
