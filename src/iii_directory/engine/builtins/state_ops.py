"""The operations of ``state::update``, as functions of a value. Pure.

Operations are applied in order; one that fails is reported and the others still count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, cast

from iii_directory import limits
from iii_directory.engine.engine_state import limit_exceeded
from iii_directory.shapes import is_list, is_object, items_of, object_of
from iii_directory.wire.json_text import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.wire.json_text import Json

    Apply = Callable[["Draft", object, Json], object]
Made = TypeVar("Made")
_POLLUTING: Final = frozenset(("__proto__", "constructor", "prototype"))
# What a number can be on the wire: a signed or an unsigned integer of 64 bits, or a double.
SMALLEST_INTEGER: Final = -(2**63)
LARGEST_INTEGER: Final = 2**64 - 1
OPS: Final = ("set", "merge", "increment", "decrement", "append", "remove")


class OpError(Exception):
    """One operation that could not be applied; ``code`` is part of the protocol."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Draft:
    """What an update has copied already, so that a large value is copied once and not for every operation."""

    def __init__(self) -> None:
        # Kept by their ids, and alive for as long as the update takes.
        self._own: dict[int, object] = {}
        self._copied = 0

    def object(self, value: object) -> Json:
        """Return the object to change in the place of ``value``; a value that is not an object becomes {}."""
        if id(value) in self._own:
            return cast("Json", value)
        return self._keep(dict(cast("Json", value)) if isinstance(value, dict) else {})

    def list(self, value: list[object]) -> list[object]:
        return value if id(value) in self._own else self._keep(list(value))

    def text(self, held: str, added: str) -> str:
        self._copied += len(held)
        if self._copied > limits.MAX_STATE_COPIED_CHARS:
            # It would keep other callers waiting.
            raise limit_exceeded("appending to strings this long, this often, takes too long")
        return held + added

    def _keep(self, made: Made) -> Made:
        self._own[id(made)] = made
        return made


def op_problem(op: Json) -> str | None:
    """Return what is wrong with the form of an operation, or None."""
    kind, path, step = op.get("type"), op.get("path"), op.get("by")
    if kind not in OPS:
        return f"unknown op type {kind!r}, expected one of {', '.join(OPS)}"
    if kind in ("merge", "append"):
        segments = path if is_list(path) else [path]
        if path is not None and not all(isinstance(segment, str) for segment in segments):
            return f"`path` of {kind} must be a string or a list of strings"
        return None if "value" in op else "missing field `value`"
    if not isinstance(path, str):
        return f"`path` of {kind} must be a string"
    is_integer = type(step) is int and SMALLEST_INTEGER <= step < -SMALLEST_INTEGER
    if kind in ("increment", "decrement") and not is_integer:
        return f"`by` of {kind} must be an integer of 64 bits"
    return None


def apply_ops(value: object, ops: list[Json]) -> tuple[object, list[Json]]:
    """Return the new value, and an error row for each failed operation; the old value is not changed.

    ``value`` may be ABSENT; what nothing was applied to then is an empty object.

    Raises:
        EngineFault: strings are appended to that are too long, too often.
    """
    errors: list[Json] = []
    draft = Draft()
    for index, op in enumerate(ops):
        try:
            value = _APPLY[op["type"]](draft, value, op)
        except OpError as error:
            errors.append({"op_index": index, "code": error.code, "message": str(error), "doc_url": None})
    return {} if value is ABSENT else value, errors


def _at_field(kind: str, change: Callable[[object, Json], object]) -> Apply:
    """Make an operation that replaces one field, or the root; it is removed if ``change`` returns ABSENT."""

    def apply(draft: Draft, value: object, op: Json) -> object:
        path = _checked_path(kind, op)
        if not path:
            changed = change(value, op)
            return None if changed is ABSENT else changed
        _check_target(kind, value)
        changed = change(object_of(value).get(path[0], ABSENT), op)
        target = draft.object(value)
        if changed is ABSENT:
            target.pop(path[0], None)
        else:
            target[path[0]] = changed
        return target

    return apply


def _merge(draft: Draft, value: object, op: Json) -> object:
    path, merged = _checked_path("merge", op), op.get("value")
    if not is_object(merged):
        raise OpError("merge.value.not_an_object", "merge needs an object")
    if len(merged) > (most := limits.MAX_STATE_MERGE_KEYS):
        raise OpError("merge.value.too_many_keys", f"an object has at most {most} keys")
    if _POLLUTING & merged.keys():
        raise OpError("merge.value.proto_polluted", "the object has a key that cannot be used")
    level: list[object] = [merged]
    for _ in range(limits.MAX_STATE_MERGE_DEPTH):
        below = (node.values() if is_object(node) else items_of(node) for node in level)
        level = [child for children in below for child in children if isinstance(child, (dict, list))]
    if level:
        raise OpError("merge.value.too_deep", f"an object has at most {limits.MAX_STATE_MERGE_DEPTH} levels")
    if not path and value is not ABSENT and not is_object(value):
        return value  # at the root there is nothing to merge into, which the real engine accepts

    def merge_into(leaf: object) -> object:
        target = draft.object(leaf)
        target.update(merged)
        return target

    return _at(draft, value, path, merge_into)


def _sum(kind: str, held: object, by: int) -> object:
    if held is ABSENT:
        return by
    if isinstance(held, bool) or not isinstance(held, (int, float)):
        raise OpError(f"{kind}.not_number", "the value is not a number")
    total = held + by
    if isinstance(total, int) and not SMALLEST_INTEGER <= total <= LARGEST_INTEGER:
        raise OpError(f"{kind}.not_number", "the sum is out of range")
    return total


def _append(draft: Draft, value: object, op: Json) -> object:
    path, item = _checked_path("append", op), op.get("value")
    if path:
        _check_target("append", value)
    started: object = item if isinstance(item, str) else [item]

    def append_to(leaf: object) -> object:
        if leaf is ABSENT:
            # Below the first level a missing leaf becomes a list, even for a string.
            return [item] if len(path) > 1 else started
        if leaf is None:
            return started
        if is_list(leaf):
            longer = draft.list(leaf)
            longer.append(item)
            return longer
        if isinstance(leaf, str) and isinstance(item, str):
            return draft.text(leaf, item)
        raise OpError("append.type_mismatch", "append needs a list, or a string for a string")

    return _at(draft, value, path, append_to)


def _at(draft: Draft, value: object, path: list[str], change: Callable[[object], object]) -> object:
    """Change the leaf at a path; what is missing on the way, or is not an object, becomes one."""
    if not path:
        return change(value)
    inner = _at(draft, object_of(value).get(path[0], ABSENT), path[1:], change)
    node = draft.object(value)
    node[path[0]] = inner
    return node


def _check_target(kind: str, value: object) -> None:
    if value is not ABSENT and not isinstance(value, dict):
        raise OpError(f"{kind}.target_not_object", "the value is not an object")


def _checked_path(kind: str, op: Json) -> list[str]:
    """Return the segments of the path of an operation; none for the root."""
    path = op.get("path")
    if path is None or path == "":
        return []
    segments = [path] if isinstance(path, str) else cast("list[str]", path)
    if len(segments) > limits.MAX_STATE_PATH_DEPTH:
        raise OpError(f"{kind}.path.too_deep", f"a path has at most {limits.MAX_STATE_PATH_DEPTH} segments")
    for segment in segments:
        if not segment:
            raise OpError(f"{kind}.path.empty_segment", "a path segment is empty")
        if len(segment.encode()) > limits.MAX_STATE_SEGMENT_BYTES:
            most = limits.MAX_STATE_SEGMENT_BYTES
            raise OpError(f"{kind}.path.segment_too_long", f"a segment has at most {most} bytes")
        if segment in _POLLUTING:
            raise OpError(f"{kind}.path.proto_polluted", f"'{segment}' cannot be used as a key")
    return segments


_APPLY: Final[dict[str, Apply]] = {
    "set": _at_field("set", lambda _held, op: op.get("value")),
    "merge": _merge,
    "increment": _at_field("increment", lambda held, op: _sum("increment", held, op["by"])),
    "decrement": _at_field("decrement", lambda held, op: _sum("decrement", held, -op["by"])),
    "append": _append,
    "remove": _at_field("remove", lambda _held, _op: ABSENT),
}
