"""Invalid frames: damaged messages, and bytes that were never a message."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

from tests.engine.driver import uuid_of
from tests.support.raw_socket import request

if TYPE_CHECKING:
    from random import Random

PLACE = {"scope": "s", "key": "k"}
OPS: list[Any] = [
    {"type": "set", "path": "a", "value": 1},
    {"type": "merge", "path": ["a", "b"], "value": {"x": 1}},
    {"type": "increment", "path": "n", "by": 1},
    {"type": "append", "path": "l", "value": "x"},
    {"type": "remove", "path": "a"},
]
PAYLOADS: dict[str, dict[str, Any]] = {
    "engine::workers::register": {"name": "x", "pid": 1, "namespace": "default", "version": "1"},
    "engine::workers::list": {"search": "x", "runtime": "test", "status": "connected"},
    "engine::workers::info": {"name": "x", "namespace": "default"},
    "engine::functions::list": {"search": "x", "prefix": "e", "workers": ["x"], "include_internal": True},
    "engine::functions::info": {
        "function_id": "state::set",
        "function_ids": ["state::get"],
        "namespace": "n",
    },
    "engine::triggers::list": {"search": "x", "prefix": "e", "worker": "x", "include_internal": True},
    "engine::triggers::info": {"id": "state", "namespace": "default"},
    "engine::registered-triggers::list": {"search": "x", "trigger_type": "state", "function_id": "f"},
    "engine::registered-triggers::info": {"id": "b"},
    "engine::register_trigger": {"trigger_type": "state", "function_id": "state::delete", "config": PLACE},
    "engine::unregister_trigger": {"id": "b"},
    "engine::log::info": {"message": "m", "service_name": "s"},
    "engine::health::check": {},
    "engine::channels::create": {"buffer_size": 4},
    "state::set": {**PLACE, "value": {"a": [1]}},
    "state::get": PLACE,
    "state::delete": PLACE,
    "state::list": {"scope": "s"},
    "state::list_groups": {},
    "state::update": {**PLACE, "ops": OPS},
    "publish": {"topic": "t", "data": {"x": 1}},
    "configuration::register": {
        "id": "c",
        "name": "n",
        "description": "d",
        "schema": {"type": "object", "properties": {"a": {"type": "integer"}}},
        "initial_value": {"a": "${A:1}"},
    },
    "configuration::set": {"id": "c", "value": {"a": "${B:2}"}},
    "configuration::get": {"id": "c", "raw": False},
    "configuration::list": {},
    "configuration::schema": {"id": "c"},
    "worker::list": {"running_only": True},
}
ID = uuid_of(7)
MESSAGES: list[dict[str, Any]] = [
    {"type": "registerfunction", "id": "x::f", "description": "d", "metadata": {"internal": False}},
    {"type": "unregisterfunction", "id": "x::f"},
    {"type": "registertriggertype", "id": "x::t", "description": "d", "namespace": "default"},
    {"type": "unregistertriggertype", "id": "x::t"},
    {"type": "registertrigger", "id": "b", "trigger_type": "x::t", "function_id": "x::f", "config": {}},
    {"type": "registertrigger", "id": "b", "trigger_type": "state", "function_id": "x::f", "config": PLACE},
    {
        "type": "registertrigger",
        "id": "c",
        "trigger_type": "subscribe",
        "function_id": "publish",
        "config": {},
    },
    {"type": "unregistertrigger", "id": "b"},
    {"type": "triggerregistrationresult", "id": "b", "trigger_type": "x::t", "function_id": "x::f"},
    {"type": "invocationresult", "invocation_id": ID, "function_id": "x::f", "result": {"x": 1}},
    {"type": "invokefunction", "function_id": "x::f", "data": {}, "invocation_id": ID, "metadata": 1},
    {"type": "invokefunction", "function_id": "x::f", "data": {}, "action": {"type": "void"}},
    {
        "type": "invokefunction",
        "function_id": "x::f",
        "data": {},
        "action": {"type": "enqueue", "queue": "q"},
    },
    {"type": "reattach", "previous_worker_id": ID, "reattach_token": ID},
    {"type": "ping"},
    {"type": "pong"},
    *(
        {"type": "invokefunction", "function_id": function_id, "data": payload, "invocation_id": ID}
        for function_id, payload in PAYLOADS.items()
    ),
]
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    2**64,
    10**400,
    1e308,
    "",
    " ",
    "\x00",
    "\u202e",
    "é" * 300,
    "x" * 5000,
    ID,
    "default",
    "x::f",
    "state::delete",
    "${A}",
    "${A:NaN}",
    [],
    {},
    [[[[]]]],
    {"type": "set"},
    {"$ref": "#"},
    {"type": "void"},
    ["a", "b"],
    {"__proto__": 1},
]


def gone_wrong(random: Random) -> str | bytes:
    """A valid message after a few accidents, in JSON or in bytes."""
    message: Any = json.loads(json.dumps(random.choice(MESSAGES)))
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        message = _changed(random, message)
    text = json.dumps(message, ensure_ascii=random.random() < 0.5)
    chance = random.random()
    if chance < 0.7:
        return text
    if chance < 0.8:
        return text.replace(
            random.choice('"1{[:'), random.choice(("", "NaN", "1e999", "\\ud800", "[", "}")), 1
        )
    raw = bytearray(text.encode())
    for _ in range(random.randrange(1, 4)):
        raw[random.randrange(len(raw))] = random.randrange(256)
    return bytes(raw) if chance < 0.9 else bytes(raw).decode(errors="replace")


def _changed(random: Random, value: Any) -> Any:
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(list(value))
        chance = random.random()
        if chance < 0.15:
            return {name: item for name, item in value.items() if name != key}
        if chance < 0.3:
            return {**value, random.choice(("type", "id", "data", "x", "", "\x00")): random.choice(ODD)}
        return {**value, key: _changed(random, value[key])}
    if isinstance(value, list) and value and random.random() < 0.7:
        index = random.randrange(len(value))
        return [*value[:index], _changed(random, value[index]), *value[index + 1 :]]
    return random.choice(ODD)


def noise(random: Random) -> bytes:
    return random.randbytes(random.choice((0, 1, 2, 5, 20, 200, 3000)))


def websocket_frame(random: Random, payload: bytes) -> bytes:
    """A frame with a valid or a senseless head."""
    head = random.choice((0x81, 0x82, 0x81, 0x01, 0x02, 0x00, 0x80, 0x88, 0x89, 0x8A, random.randrange(256)))
    masked = random.random() < 0.95
    length = (
        len(payload) if random.random() < 0.9 else random.choice((0, 125, 126, 127, 70_000, 2**40, 2**63))
    )
    bit = 0x80 if masked else 0
    if length < 126 and random.random() < 0.95:
        start = struct.pack(">BB", head, bit | length)
    elif length < 2**16:
        start = struct.pack(">BBH", head, bit | 126, length)
    else:
        start = struct.pack(">BBQ", head, bit | 127, length)
    # With a mask of zeros the payload stays as it is.
    return start + (b"\x00" * 4 if masked else b"") + payload


def handshake_gone_wrong(random: Random, port: int) -> bytes:
    raw = bytearray(request(port, random.choice(("/", "/otel", "//[", "/ws/channels/x?key=%ff&dir=read"))))
    for _ in range(random.choice((0, 1, 2, 8))):
        accident = random.random()
        place = random.randrange(len(raw))
        if accident < 0.4:
            raw[place] = random.randrange(256)
        elif accident < 0.7:
            raw[place:place] = random.choice((b"\r\n", b"\n", b":", b"\x00", b"x" * 9000, b"Host: a\r\n"))
        else:
            del raw[place : place + random.randrange(1, 20)]
    return bytes(raw)
