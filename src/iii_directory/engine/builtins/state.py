"""``state::*``: values by scope and key, and the trigger type that tells of every change. Pure."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from iii_directory import limits
from iii_directory.engine.builtins import table
from iii_directory.engine.builtins.state_ops import OPS, apply_ops, op_problem
from iii_directory.engine.builtins.table import ANY, BuiltinFunction, BuiltinType, provide, schema
from iii_directory.engine.calls import DEFERRED
from iii_directory.engine.engine_state import EngineFault, bad_input, limit_exceeded
from iii_directory.engine.store import StoreError, UnreadableError
from iii_directory.shapes import is_list, object_of
from iii_directory.wire import protocol
from iii_directory.wire.json_text import ABSENT, encode_value, is_long, read, takes_long

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.calls import BuiltinRequest
    from iii_directory.engine.router import Router
    from iii_directory.engine.sqlite_store import DatabaseQueue
    from iii_directory.engine.store import Store
    from iii_directory.wire.json_text import Json


T = TypeVar("T")


class State:
    """Every write tells the subscribers, also one that changed nothing: so does the real engine."""

    def __init__(self, router: Router, store: Store, queue: DatabaseQueue) -> None:
        self._fire = router.events.fire
        self._continued = router.events.continued
        self._store = store
        self._queue = queue
        # A scope stays listed after its last key is gone, until a restart.
        self._emptied: set[str] = set()

    def set(self, request: BuiltinRequest) -> object:
        scope, key = table.text(request, "scope"), table.text(request, "key")
        field = "value" if "value" in request.payload else "data"
        if field not in request.payload:
            raise table.missing(request, "value")
        value = request.payload[field]

        def reply(old: object) -> Json:
            self._changed("state:created" if old is ABSENT else "state:updated", scope, key, old, value)
            return {"old_value": None if old is ABSENT else old, "new_value": value}

        large = type(value) is msgspec.Raw or self._is_large(scope, key)
        work = partial(self._replaced, scope, key, value)
        return self._do(request, protocol.SET_ERROR, work, reply, large=large)

    def get(self, request: BuiltinRequest) -> object:
        scope, key = table.text(request, "scope"), table.text(request, "key")
        large = self._is_large(scope, key)
        return self._do(request, protocol.GET_ERROR, lambda: self._store.get(scope, key), large=large)

    def delete(self, request: BuiltinRequest) -> object:
        scope, key = table.text(request, "scope"), table.text(request, "key")

        def reply(old: object) -> object:
            if old is not ABSENT:
                self._emptied.add(scope)
            self._changed("state:deleted", scope, key, old, None)
            return old

        large, work = self._is_large(scope, key), partial(self._replaced, scope, key, ABSENT)
        return self._do(request, protocol.DELETE_ERROR, work, reply, large=large)

    def list(self, request: BuiltinRequest) -> object:
        scope = table.text(request, "scope")

        def values() -> object:
            size = self._store.size(scope)
            if size > limits.MAX_STATE_LIST_BYTES:
                raise limit_exceeded(
                    f"the scope holds {size // limits.MIB} MiB and one answer carries "
                    f"{limits.MAX_STATE_LIST_BYTES // limits.MIB}; read its keys one by one with state::get"
                )
            return self._store.values(scope)

        large = False
        if not self._queue.is_busy:
            with suppress(StoreError):  # the work itself will say so
                large = self._store.size(scope) > limits.LARGE_VALUE_BYTES
        return self._do(request, protocol.LIST_ERROR, values, large=large)

    def list_groups(self, request: BuiltinRequest) -> object:
        return self._do(
            request,
            protocol.LIST_GROUPS_ERROR,
            self._store.scopes,
            lambda held: {"groups": sorted({*held, *self._emptied})},
        )

    def update(self, request: BuiltinRequest) -> object:
        scope, key = table.text(request, "scope"), table.text(request, "key")
        ops = _checked_ops(request)

        def change() -> tuple[object, object, list[Json]]:
            old = self._store.get(scope, key)
            new, errors = _updated(old, ops)
            self._store.set(scope, key, new)
            return old, new, errors

        def reply(done: tuple[object, object, list[Json]]) -> Json:
            old, new, errors = done
            self._changed("state:created" if old is ABSENT else "state:updated", scope, key, old, new)
            answer: Json = {"old_value": None if old is ABSENT else old, "new_value": new}
            return {**answer, "errors": errors} if errors else answer

        large = self._is_large(scope, key)
        return self._do(request, protocol.UPDATE_ERROR, change, reply, large=large)

    def _do(
        self,
        request: BuiltinRequest,
        code: str,
        work: Callable[[], T],
        reply: Callable[[T], object] = lambda value: value,
        *,
        large: bool = False,
    ) -> object:
        """Work on the store and reply once what was written is kept, in the order in which calls came."""

        def then(outcome: Callable[[], T]) -> None:
            try:
                result = reply(outcome())
            except StoreError as error:
                request.answer(ABSENT, EngineFault(code, str(error)).body())
            except EngineFault as fault:
                request.answer(ABSENT, fault.body())
            except Exception:
                request.answer(ABSENT, EngineFault(code, "the state could not be asked").body())
                raise
            else:
                request.answer(result, None)

        self._queue.run(work, self._continued(then), is_slow=large)
        return DEFERRED

    def _replaced(self, scope: str, key: str, value: object) -> object:
        """Set a value, or delete it for ABSENT; return the old one, None if it cannot be read any more."""
        try:
            old = self._store.get(scope, key)
        except UnreadableError:
            old = None
        if value is ABSENT:
            self._store.delete(scope, key)
        else:
            self._store.set(scope, key, value)
        return old

    def _is_large(self, scope: str, key: str) -> bool:
        # While something is under way all that comes waits for it, and the store is not to be asked.
        return not self._queue.is_busy and (scope, key) in self._store.large

    def _changed(self, event_type: str, scope: str, key: str, old: object, new: object) -> None:
        event = {
            "type": "state",
            "event_type": event_type,
            "scope": scope,
            "key": key,
            "old_value": None if old is ABSENT else old,
            "new_value": new,
        }
        self._fire(
            "state",
            event,
            lambda config: config.get("scope") in (None, scope) and config.get("key") in (None, key),
            has_conditions=True,
        )


def _updated(old: object, ops: list[Json]) -> tuple[object, list[Json]]:
    """Return the new value, and the errors of single operations."""
    if not takes_long(old):
        new, errors = apply_ops(read(old), ops)
        if not is_long(encode_value(new)):
            return new, errors
    raise EngineFault(
        protocol.VALUE_TOO_LARGE,
        f"A value that is updated has at most {limits.MAX_READ_BYTES // limits.MIB} MiB, "
        f"with at most {limits.MAX_READ_MARKS} commas and opening brackets; "
        "a larger one is replaced with state::set.",
    )


def _checked_ops(request: BuiltinRequest) -> list[Json]:
    ops = request.payload.get("ops")
    if not is_list(ops):
        raise table.missing(request, "ops")
    if len(ops) > limits.MAX_STATE_OPS:
        raise limit_exceeded(f"an update has at most {limits.MAX_STATE_OPS} operations")
    checked = [object_of(op) for op in ops]
    for op in checked:
        problem = op_problem(op)
        if problem is not None:
            raise bad_input(request.function_id, problem)
    return checked


def provide_state(router: Router, store: Store, queue: DatabaseQueue) -> None:
    """Put the state functions and their trigger type on the engine."""
    it = State(router, store, queue)
    old_new = schema("old_value", "new_value", old_value=ANY, new_value=ANY)
    functions = [
        BuiltinFunction(
            "state::set",
            "Set a value.",
            it.set,
            schema("scope", "key", "value", value=ANY),
            old_new,
            unread_fields=("value", "data"),
        ),
        BuiltinFunction("state::get", "Read a value.", it.get, schema("scope", "key")),
        BuiltinFunction("state::delete", "Delete a value.", it.delete, schema("scope", "key")),
        BuiltinFunction(
            "state::list",
            "All values of a scope, in the order they were first set.",
            it.list,
            schema("scope"),
            {"type": "array"},
        ),
        BuiltinFunction(
            "state::list_groups",
            "The scopes that hold values.",
            it.list_groups,
            schema(),
            schema("groups", groups={"type": "array", "items": {"type": "string"}}),
        ),
        BuiltinFunction(
            "state::update",
            f"Apply operations to a value: {', '.join(OPS)}.",
            it.update,
            schema("scope", "key", "ops", ops={"type": "array", "items": {"type": "object"}}),
            old_new,
        ),
    ]
    changed = BuiltinType(
        "state",
        "Fires after every write of state, filtered by scope and key.",
        schema(scope="string", key="string", condition_function_id="string"),
        schema(event_type="string", scope="string", key="string", old_value=ANY, new_value=ANY),
        is_checked=True,
    )
    about = "Values by scope and key, with change events."
    provide(router, "iii-state", about, functions, [changed])
