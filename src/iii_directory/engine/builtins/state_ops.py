"""The operations of ``state::update``, as functions of a value. Pure.

Operations are applied in order; one that fails is reported and the others still count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, cast

from iii_directory import limits
from iii_directory.shapes import is_list
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
            raise TooMuchWorkError
        return held + added

    def _keep(self, made: Made) -> Made:
        self._own[id(made)] = made
        return made


class TooMuchWorkError(Exception):
    """An update that would keep other callers waiting."""


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
        TooMuchWorkError: strings are appended to that are too long, too often.
    """
    errors: list[Json] = []
    draft = Draft()
    for index, op in enumerate(ops):
        try:
            value = _APPLY[op["type"]](draft, value, op)
        except OpError as error:
            errors.append({"op_index": index, "code": error.code, "message": str(error), "doc_url": None})
    return {} if value is ABSENT else value, errors


def _set(draft: Draft, value: object, op: Json) -> object:
    path = cast("str", op["path"])
    _check_segments("set", _path(op))
    if not path:
        return op.get("value")
    target = draft.object(_target("set", value))
    target[path] = op.get("value")
    return target


def _remove(draft: Draft, value: object, op: Json) -> object:
    path = cast("str", op["path"])
    _check_segments("remove", _path(op))
    if not path:
        return None
    target = draft.object(_target("remove", value))
    target.pop(path, None)
    return target


def _merge(draft: Draft, value: object, op: Json) -> object:
    path, merged = _path(op), op.get("value")
    _check_segments("merge", path)
    if not isinstance(merged, dict):
        raise OpError("merge.value.not_an_object", "merge needs an object")
    merged = cast("Json", merged)
    _check_merged(merged)
    if not path and not _is_object(value):
        return value  # at the root there is nothing to merge into, which the real engine accepts

    def merge_into(leaf: object) -> object:
        target = draft.object(leaf)
        target.update(merged)
        return target

    return _at(draft, value, path, merge_into)


def _add(kind: str, sign: int) -> Apply:
    def apply(draft: Draft, value: object, op: Json) -> object:
        path, by = cast("str", op["path"]), sign * cast("int", op["by"])
        _check_segments(kind, _path(op))
        if not path:
            return _sum(kind, value, by)
        total = _sum(kind, _target(kind, value).get(path, ABSENT), by)
        target = draft.object(_target(kind, value))
        target[path] = total
        return target

    return apply


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
    path, item = _path(op), op.get("value")
    _check_segments("append", path)
    if path:
        value = _target("append", value)
    # Below the first level a missing leaf becomes a list, even for a string.
    start: object = [item] if len(path) > 1 else _started(item)
    return _at(draft, value, path, lambda leaf: start if leaf is ABSENT else _appended(draft, leaf, item))


def _appended(draft: Draft, leaf: object, item: object) -> object:
    if leaf is None:
        return _started(item)
    if isinstance(leaf, list):
        longer = draft.list(cast("list[object]", leaf))
        longer.append(item)
        return longer
    if isinstance(leaf, str) and isinstance(item, str):
        return draft.text(leaf, item)
    raise OpError("append.type_mismatch", "append needs a list, or a string for a string")


def _started(item: object) -> object:
    return item if isinstance(item, str) else [item]


def _at(draft: Draft, value: object, path: list[str], change: Callable[[object], object]) -> object:
    """The value with the leaf at the path changed; what is missing or no object on the way becomes one."""
    if not path:
        return change(value)
    inner = _at(draft, _object_or_empty(value).get(path[0], ABSENT), path[1:], change)
    node = draft.object(value)
    node[path[0]] = inner
    return node


def _object_or_empty(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _target(kind: str, value: object) -> Json:
    if not _is_object(value):
        raise OpError(f"{kind}.target_not_object", "the value is not an object")
    return _object_or_empty(value)


def _is_object(value: object) -> bool:
    return value is ABSENT or isinstance(value, dict)


def _path(op: Json) -> list[str]:
    path = op.get("path")
    if path is None or path == "":
        return []
    return [path] if isinstance(path, str) else cast("list[str]", path)


def _check_segments(kind: str, segments: list[str]) -> None:
    if len(segments) > limits.MAX_STATE_PATH_DEPTH:
        raise OpError(f"{kind}.path.too_deep", f"a path has at most {limits.MAX_STATE_PATH_DEPTH} segments")
    for segment in segments:
        if not segment:
            raise OpError(f"{kind}.path.empty_segment", "a path segment is empty")
        if len(segment.encode()) > limits.MAX_STATE_SEGMENT_BYTES:
            raise OpError(
                f"{kind}.path.segment_too_long",
                f"a segment has at most {limits.MAX_STATE_SEGMENT_BYTES} bytes",
            )
        if segment in _POLLUTING:
            raise OpError(f"{kind}.path.proto_polluted", f"'{segment}' cannot be used as a key")


def _check_merged(merged: Json) -> None:
    if len(merged) > limits.MAX_STATE_MERGE_KEYS:
        raise OpError(
            "merge.value.too_many_keys", f"an object has at most {limits.MAX_STATE_MERGE_KEYS} keys"
        )
    if _POLLUTING & merged.keys():
        raise OpError("merge.value.proto_polluted", "the object has a key that cannot be used")
    level: list[object] = [merged]
    for _ in range(limits.MAX_STATE_MERGE_DEPTH):
        level = [child for node in level for child in _containers(node)]
    if level:
        raise OpError("merge.value.too_deep", f"an object has at most {limits.MAX_STATE_MERGE_DEPTH} levels")


def _containers(node: object) -> list[object]:
    children = cast("Json", node).values() if isinstance(node, dict) else cast("list[object]", node)
    return [child for child in children if isinstance(child, (dict, list))]


_APPLY: Final[dict[str, Apply]] = {
    "set": _set,
    "merge": _merge,
    "increment": _add("increment", 1),
    "decrement": _add("decrement", -1),
    "append": _append,
    "remove": _remove,
}
