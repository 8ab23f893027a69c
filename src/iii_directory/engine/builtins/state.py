"""``state::*``: values by scope and key, and the trigger type that tells of every change. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from iii_directory.engine import protocol
from iii_directory.engine.allowances import limit_exceeded
from iii_directory.engine.builtins.state_ops import OPS, SMALLEST_INTEGER, TooMuchWorkError, apply_ops
from iii_directory.engine.builtins.table import (
    ANY,
    BuiltinFunction,
    BuiltinType,
    BuiltinWorker,
    missing,
    provide,
    schema,
    text,
)
from iii_directory.engine.engine_state import EngineFault, bad_input
from iii_directory.engine.store import StoreError
from iii_directory.engine.wire_json import ABSENT, encode, read
from iii_directory.limits import MAX_STATE_LIST_BYTES, MAX_STATE_OPS, MAX_STATE_VALUE_CHARS, MIB
from iii_directory.shapes import is_list, is_object, object_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.calls import Request
    from iii_directory.engine.router import Router
    from iii_directory.engine.store import Store
    from iii_directory.engine.wire_json import Json


T = TypeVar("T")


class State:
    """Every write tells the subscribers, also one that changed nothing: so does the real engine."""

    def __init__(self, router: Router, store: Store) -> None:
        self._fire = router.events.fire_on_condition
        self._store = store
        # A scope stays listed after its last key is gone, until a restart.
        self._emptied: set[str] = set()

    def set(self, request: Request) -> Json:
        scope, key = text(request, "scope"), text(request, "key")
        field = "value" if "value" in request.payload else "data"
        if field not in request.payload:
            raise missing(request, "value")
        value = request.payload[field]
        old = _stored(protocol.SET_ERROR, lambda: self._store.get(scope, key))
        _stored(protocol.SET_ERROR, lambda: self._store.set(scope, key, value))
        self._changed("state:created" if old is ABSENT else "state:updated", scope, key, old, value)
        return {"old_value": _null(old), "new_value": value}

    def get(self, request: Request) -> object:
        scope, key = text(request, "scope"), text(request, "key")
        return _stored(protocol.GET_ERROR, lambda: self._store.get(scope, key))

    def delete(self, request: Request) -> object:
        scope, key = text(request, "scope"), text(request, "key")
        old = _stored(protocol.DELETE_ERROR, lambda: self._store.get(scope, key))
        _stored(protocol.DELETE_ERROR, lambda: self._store.delete(scope, key))
        if old is not ABSENT:
            self._emptied.add(scope)
        self._changed("state:deleted", scope, key, old, None)
        return old

    def list(self, request: Request) -> object:
        scope = text(request, "scope")
        size = _stored(protocol.LIST_ERROR, lambda: self._store.size(scope))
        if size > MAX_STATE_LIST_BYTES:
            raise limit_exceeded(
                f"the scope holds {size // MIB} MiB and one answer carries {MAX_STATE_LIST_BYTES // MIB}; "
                "read its keys one by one with state::get"
            )
        return _stored(protocol.LIST_ERROR, lambda: self._store.values(scope))

    def list_groups(self, request: Request) -> Json:  # noqa: ARG002 (it takes no fields)
        held = _stored(protocol.LIST_GROUPS_ERROR, self._store.scopes)
        return {"groups": sorted({*held, *self._emptied})}

    def update(self, request: Request) -> Json:
        scope, key = text(request, "scope"), text(request, "key")
        ops = _checked_ops(request)
        old = _stored(protocol.UPDATE_ERROR, lambda: self._store.get(scope, key))
        try:
            new, errors = apply_ops(read(old), ops)
        except TooMuchWorkError:
            raise limit_exceeded("appending to strings this long, this often, takes too long") from None
        if len(encode(new)) > MAX_STATE_VALUE_CHARS:
            raise EngineFault(
                protocol.VALUE_TOO_LARGE, f"A value has at most {MAX_STATE_VALUE_CHARS} characters."
            )
        _stored(protocol.UPDATE_ERROR, lambda: self._store.set(scope, key, new))
        self._changed("state:created" if old is ABSENT else "state:updated", scope, key, old, new)
        reply: Json = {"old_value": _null(old), "new_value": new}
        if errors:
            reply["errors"] = errors
        return reply

    def _changed(self, event_type: str, scope: str, key: str, old: object, new: object) -> None:
        event = {
            "type": "state",
            "event_type": event_type,
            "scope": scope,
            "key": key,
            "old_value": _null(old),
            "new_value": new,
        }
        self._fire(
            "state",
            event,
            lambda config: config.get("scope") in (None, scope) and config.get("key") in (None, key),
        )


def _stored(code: str, action: Callable[[], T]) -> T:
    try:
        return action()
    except StoreError as error:
        raise EngineFault(code, str(error)) from None


def _null(value: object) -> object:
    return None if value is ABSENT else value


def _checked_ops(request: Request) -> list[Json]:
    ops = request.payload.get("ops")
    if not is_list(ops):
        raise missing(request, "ops")
    if len(ops) > MAX_STATE_OPS:
        raise limit_exceeded(f"an update has at most {MAX_STATE_OPS} operations")
    checked = [object_of(op) for op in ops]
    for op in checked:
        problem = _op_problem(op)
        if problem is not None:
            raise bad_input(request.function_id, problem)
    return checked


def _op_problem(op: Json) -> str | None:
    kind, path = op.get("type"), op.get("path")
    if kind not in OPS:
        return f"unknown op type {kind!r}, expected one of {', '.join(OPS)}"
    if kind in ("merge", "append"):
        segments = path if is_list(path) else [path]
        if path is not None and not all(isinstance(segment, str) for segment in segments):
            return f"`path` of {kind} must be a string or a list of strings"
    elif not isinstance(path, str):
        return f"`path` of {kind} must be a string"
    if kind in ("increment", "decrement") and not _is_step(op.get("by")):
        return f"`by` of {kind} must be an integer of 64 bits"
    if kind in ("merge", "append") and "value" not in op:
        return "missing field `value`"
    return None


def _is_step(value: object) -> bool:
    return type(value) is int and SMALLEST_INTEGER <= value < -SMALLEST_INTEGER


def _check_config(config: object) -> str | None:
    if not is_object(config):
        return "the config of a state trigger is an object"
    for key in ("scope", "key", "condition_function_id"):
        if config.get(key) is not None and not isinstance(config[key], str):
            return f"'{key}' must be a string"
    return None


def provide_state(router: Router, store: Store) -> None:
    """Put the state functions and their trigger type on the engine."""
    it = State(router, store)
    place = {"scope": "string", "key": "string"}
    old_new = schema(["old_value", "new_value"], old_value=ANY, new_value=ANY)
    functions = [
        BuiltinFunction(
            "state::set",
            "Set a value.",
            it.set,
            schema(["scope", "key", "value"], **place, value=ANY),
            old_new,
            unread_fields=("value", "data"),
        ),
        BuiltinFunction("state::get", "Read a value.", it.get, schema(["scope", "key"], **place)),
        BuiltinFunction("state::delete", "Delete a value.", it.delete, schema(["scope", "key"], **place)),
        BuiltinFunction(
            "state::list",
            "All values of a scope, in the order they were first set.",
            it.list,
            schema(["scope"], scope="string"),
            {"type": "array"},
        ),
        BuiltinFunction(
            "state::list_groups",
            "The scopes that hold values.",
            it.list_groups,
            schema(),
            schema(["groups"], groups={"type": "array", "items": {"type": "string"}}),
        ),
        BuiltinFunction(
            "state::update",
            f"Apply operations to a value: {', '.join(OPS)}.",
            it.update,
            schema(["scope", "key", "ops"], **place, ops={"type": "array", "items": {"type": "object"}}),
            old_new,
        ),
    ]
    changed = BuiltinType(
        "state",
        "Fires after every write of state, filtered by scope and key.",
        schema(**place, condition_function_id="string"),
        schema(event_type="string", **place, old_value=ANY, new_value=ANY),
        _check_config,
    )
    about = "Values by scope and key, with change events."
    provide(router, BuiltinWorker("iii-state", about, functions, [changed]))
