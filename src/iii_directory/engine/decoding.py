"""From a frame to a message: one JSON object, told apart by ``type``. Pure.

Calls and answers keep what they carry unread (:mod:`iii_directory.engine.envelope`); everything else, and
everything with something odd about it, is read in full.

Decoding checks what the router relies on and nothing more; unknown fields are ignored, and what cannot be
understood is an :class:`UndecodableError` that still names the call it belonged to, if that could be read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeGuard

from iii_directory.engine import protocol
from iii_directory.engine.envelope import envelope_in_turns, envelope_of, unread
from iii_directory.engine.messages import (
    Ignored,
    InvocationResult,
    InvokeFunction,
    Ping,
    Reattach,
    RegisterFunction,
    RegisterTrigger,
    RegisterTriggerType,
    TriggerRegistrationResult,
    UnregisterFunction,
    UnregisterTrigger,
    UnregisterTriggerType,
)
from iii_directory.engine.wire_json import ABSENT, Json, NotJsonError, is_long, is_text, parse, read
from iii_directory.limits import MAX_TRACE_CHARS, QUOTED_CHARS
from iii_directory.shapes import is_object, object_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from iii_directory.engine.envelope import Envelope
    from iii_directory.engine.messages import Message

_TELEMETRY: Final = (b"OTLP", b"MTRC", b"LOGS")
_TOO_LONG: Final = "neither call nor answer, and too long to be anything else"
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class UndecodableError(Exception):
    """A frame that is no message.

    ``call`` is the id of a call that was asked for, ``answered`` the id of one that was answered, if such
    an id could be read: somebody waits for both.
    """

    def __init__(
        self, reason: str, *, call: str | None = None, answered: str | None = None, function_id: str = ""
    ) -> None:
        super().__init__(reason)
        self.call = call
        self.answered = answered
        self.function_id = function_id


def decode(frame: str | bytes) -> Message | None:
    """The message in a frame, or None for a blank one.

    Raises:
        UndecodableError: the frame is no JSON object, has an unknown type or lacks what its type needs.
    """
    # A text that UTF-8 cannot write is told so like bytes that are none.
    data = frame.encode(errors="surrogatepass") if isinstance(frame, str) else frame
    envelope = envelope_of(data)
    message = None if envelope is None else _relayed(envelope)
    return message or _read_in_full(data)


def decode_in_turns(frame: bytes) -> Generator[None, None, Message | None]:
    """The same for a long frame, a little at a time.

    Raises:
        UndecodableError: as :func:`decode` does.
    """
    if frame.startswith(_TELEMETRY):
        return _read_in_full(frame)
    found = yield from envelope_in_turns(frame)
    message = None if found is None or found.problem else _relayed(found.envelope)
    if found is not None and isinstance(message, InvokeFunction):
        message.data = found.carried
    elif found is not None and isinstance(message, InvocationResult):
        message.result = found.carried or ABSENT
    if message is None and found is not None and is_long(frame):
        raise _about_call(found.problem or _TOO_LONG, _said_of_call(found.envelope))
    return message or _read_in_full(frame)


def _relayed(envelope: Envelope) -> Message | None:
    """A call or an answer; None if it is neither, or wrong."""
    call_id = envelope.invocation_id
    try:
        if envelope.type == protocol.INVOKE_FUNCTION and (call_id is None or _is_uuid(call_id)):
            # An observer that is told of something is seldom enough to be read in full.
            return None if unread(envelope.activation) else _call_in(envelope)
        if envelope.type == protocol.INVOCATION_RESULT and call_id is not None and _is_uuid(call_id):
            result, error = unread(envelope.result), _error_body(read(unread(envelope.error)))
            return InvocationResult(
                call_id.lower(), envelope.function_id, ABSENT if result is None else result, error
            )
    except (UndecodableError, ValueError):
        return None
    return None


def _call_in(envelope: Envelope) -> InvokeFunction:
    action, queue = _action(read(unread(envelope.action)))
    return InvokeFunction(
        function_id=envelope.function_id,
        data=unread(envelope.data),
        invocation_id=envelope.invocation_id,
        action=action,
        queue=queue,
        metadata=read(unread(envelope.metadata)),
        namespace=envelope.namespace,
        traceparent=_short(envelope.traceparent),
        baggage=_short(envelope.baggage),
    )


def _read_in_full(data: bytes) -> Message | None:
    if data.startswith(_TELEMETRY):
        return Ignored("telemetry")
    if is_long(data):
        raise UndecodableError(_TOO_LONG)
    try:
        frame = data.decode()
    except UnicodeDecodeError:
        raise UndecodableError("not UTF-8") from None
    if not frame.strip():
        return None
    fields = _parse_object(frame)
    kind = _text(fields, "type")
    decoder = _DECODERS.get(kind)
    if decoder is None:
        if kind in protocol.IGNORED_TYPES:
            return Ignored(kind)
        raise UndecodableError(f"unknown message type {kind[:QUOTED_CHARS]!r}")
    try:
        return decoder(fields)
    except UndecodableError as error:
        raise _about_call(str(error), fields) from None


def _is_uuid(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def _parse_object(text: str) -> Json:
    try:
        value = parse(text)
    except NotJsonError as error:
        raise _about_call(str(error), error.value) from None
    if not is_object(value):
        raise UndecodableError("not a JSON object")
    return value


def _about_call(reason: str, value: object) -> UndecodableError:
    """The error for a frame; somebody can be told only if the id of a call can be read."""
    fields = object_of(value)
    kind, call_id, function_id = fields.get("type"), fields.get("invocation_id"), fields.get("function_id")
    if not _is_uuid(call_id):
        return UndecodableError(reason)
    return UndecodableError(
        reason,
        call=call_id if kind == protocol.INVOKE_FUNCTION else None,
        answered=call_id.lower() if kind == protocol.INVOCATION_RESULT else None,
        function_id=function_id if isinstance(function_id, str) and is_text(function_id) else "",
    )


def _said_of_call(envelope: Envelope) -> Json:
    return {
        "type": envelope.type,
        "invocation_id": envelope.invocation_id,
        "function_id": envelope.function_id,
    }


def _text(fields: Json, key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise UndecodableError(f"field '{key}' must be a string")
    return value


def _optional_text(fields: Json, key: str) -> str | None:
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise UndecodableError(f"field '{key}' must be a string")
    return value


def _object(fields: Json, key: str) -> Json | None:
    value = fields.get(key)
    if value is not None and not is_object(value):
        raise UndecodableError(f"field '{key}' must be an object")
    return value


def _trace(fields: Json, key: str) -> str | None:
    """What is kept for as long as a call goes on, unless it is longer than a trace is."""
    return _short(_optional_text(fields, key))


def _short(trace: str | None) -> str | None:
    return trace if trace is None or len(trace) <= MAX_TRACE_CHARS else None


def _error_body(value: object) -> Json | None:
    if value is None:
        return None
    body = object_of(value)
    if not isinstance(body.get("code"), str) or not isinstance(body.get("message"), str):
        raise UndecodableError("field 'error' must be {code, message}")
    return {key: body[key] for key in ("code", "message", "stacktrace") if isinstance(body.get(key), str)}


def _register_function(f: Json) -> RegisterFunction:
    return RegisterFunction(
        id=_text(f, "id"),
        description=_optional_text(f, "description"),
        request_format=f.get("request_format"),
        response_format=f.get("response_format"),
        metadata=f.get("metadata"),
        http_invoked=f.get("invocation") is not None,
        observe=_object(f, "observe"),
    )


def _observe(f: Json) -> RegisterTrigger:
    """An observer of a function is a binding to what the function stands for."""
    source, target = _object(f, "source") or {}, _object(f, "target") or {}
    return RegisterTrigger(
        id=_text(f, "id"),
        trigger_type=_text(source, "function_id"),
        function_id=_text(target, "function_id"),
        config=source.get("args"),
        metadata=f.get("metadata"),
        namespace=_optional_text(target, "namespace"),
        trigger_namespace=_optional_text(source, "namespace"),
        observes=True,
    )


def _register_trigger_type(f: Json) -> RegisterTriggerType:
    return RegisterTriggerType(
        id=_text(f, "id"),
        description=_text(f, "description"),
        trigger_request_format=f.get("trigger_request_format"),
        call_request_format=f.get("call_request_format"),
        namespace=_optional_text(f, "namespace"),
    )


def _register_trigger(f: Json) -> RegisterTrigger:
    return RegisterTrigger(
        id=_text(f, "id"),
        trigger_type=_text(f, "trigger_type"),
        function_id=_text(f, "function_id"),
        config=f.get("config"),
        metadata=f.get("metadata"),
        namespace=_optional_text(f, "namespace"),
        trigger_namespace=_optional_text(f, "trigger_namespace"),
    )


def _trigger_result(f: Json) -> TriggerRegistrationResult:
    return TriggerRegistrationResult(
        _text(f, "id"), _text(f, "trigger_type"), _text(f, "function_id"), _error_body(f.get("error"))
    )


def _invoke(f: Json) -> InvokeFunction:
    call_id = f.get("invocation_id")
    if call_id is not None and not _is_uuid(call_id):
        raise UndecodableError("field 'invocation_id' must be a UUID")
    action, queue = _action(f.get("action"))
    return InvokeFunction(
        function_id=_text(f, "function_id"),
        data=f.get("data"),
        invocation_id=call_id,
        action=action,
        queue=queue,
        metadata=f.get("metadata"),
        namespace=_optional_text(f, "namespace"),
        traceparent=_trace(f, "traceparent"),
        baggage=_trace(f, "baggage"),
        observer_id=text_of((_object(f, "activation") or {}).get("observer_id")),
    )


def _action(value: object) -> tuple[str | None, str | None]:
    if value is None:
        return None, None
    fields = object_of(value)
    kind = fields.get("type")
    if kind == "void":
        return "void", None
    if kind == "enqueue":
        return "enqueue", _text(fields, "queue")
    raise UndecodableError("field 'action' must be {type: void} or {type: enqueue, queue}")


def _result(f: Json) -> InvocationResult:
    call_id = f.get("invocation_id")
    if not _is_uuid(call_id):
        raise UndecodableError("field 'invocation_id' must be a UUID")
    # A null result counts as no value, as on the real engine.
    result = f.get("result")
    return InvocationResult(
        call_id.lower(),
        _text(f, "function_id"),
        ABSENT if result is None else result,
        _error_body(f.get("error")),
    )


def _reattach(f: Json) -> Reattach:
    return Reattach(_text(f, "previous_worker_id"), _optional_text(f, "reattach_token"))


_DECODERS: Final[dict[str, Callable[[Json], Message]]] = {
    protocol.INVOKE_FUNCTION: _invoke,
    protocol.INVOCATION_RESULT: _result,
    protocol.REGISTER_FUNCTION: _register_function,
    protocol.UNREGISTER_FUNCTION: lambda f: UnregisterFunction(_text(f, "id")),
    protocol.REGISTER_TRIGGER_TYPE: _register_trigger_type,
    protocol.UNREGISTER_TRIGGER_TYPE: lambda f: UnregisterTriggerType(
        _text(f, "id"), _optional_text(f, "namespace")
    ),
    protocol.REGISTER_TRIGGER: _register_trigger,
    protocol.UNREGISTER_TRIGGER: lambda f: UnregisterTrigger(_text(f, "id")),
    protocol.OBSERVE: _observe,
    protocol.UNOBSERVE: lambda f: UnregisterTrigger(_text(f, "id")),
    protocol.TRIGGER_REGISTRATION_RESULT: _trigger_result,
    protocol.REATTACH: _reattach,
    protocol.PING: lambda _: Ping(),
}
