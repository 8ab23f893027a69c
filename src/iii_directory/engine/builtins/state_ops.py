"""The operations of ``state::update``, as functions of a value. Pure.

Operations are applied in order; one that fails is reported and the others still count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.messages import Json

MAX_PATH_DEPTH: Final = 32
MAX_SEGMENT_BYTES: Final = 256
MAX_MERGE_KEYS: Final = 1024
MAX_MERGE_DEPTH: Final = 16
_POLLUTING: Final = frozenset(("__proto__", "constructor", "prototype"))
OPS: Final = ("set", "merge", "increment", "decrement", "append", "remove")


class OpError(Exception):
    """One operation that could not be applied; ``code`` is part of the protocol."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def apply_ops(value: object, ops: list[Json]) -> tuple[object, list[Json]]:
    """The new value, and an error row for each operation that failed. The old value is not changed."""
    errors: list[Json] = []
    for index, op in enumerate(ops):
        try:
            value = _APPLY[op["type"]](value, op)
        except OpError as error:
            errors.append({"op_index": index, "code": error.code, "message": str(error), "doc_url": None})
    return value, errors


def _set(value: object, op: Json) -> object:
    path = cast("str", op["path"])
    if path == "":
        return op.get("value")
    _check_segments("set", [path])
    return {**_target("set", value), path: op.get("value")}


def _remove(value: object, op: Json) -> object:
    path = cast("str", op["path"])
    if path == "":
        return None
    target = _target("remove", value)
    return {key: item for key, item in target.items() if key != path}


def _merge(value: object, op: Json) -> object:
    path = _path(op)
    _check_segments("merge", path)
    merged = op.get("value")
    if not isinstance(merged, dict):
        raise OpError("merge.value.not_an_object", "merge needs an object")
    merged = cast("Json", merged)
    _check_merged(merged)
    return _at(value, path, lambda leaf: {**(cast("Json", leaf) if isinstance(leaf, dict) else {}), **merged})


def _add(kind: str, sign: int) -> Callable[[object, Json], object]:
    def apply(value: object, op: Json) -> object:
        path, by = cast("str", op["path"]), sign * cast("int", op["by"])
        _check_segments(kind, [path])
        target = _target(kind, value)
        held = target.get(path)
        if held is not None and (isinstance(held, bool) or not isinstance(held, (int, float))):
            raise OpError(f"{kind}.not_number", f"'{path}' is not a number")
        return {**target, path: by if held is None else cast("float", held) + by}

    return apply


def _append(value: object, op: Json) -> object:
    path, item = _path(op), op.get("value")
    _check_segments("append", path)
    if path:
        value = _target("append", value)
    elif value == {}:
        value = None  # an absent value starts as {}, which nothing could be appended to
    whole_string = isinstance(item, str) and len(path) <= 1
    return _at(value, path, lambda leaf: _appended(leaf, item, whole_string=whole_string))


def _appended(leaf: object, item: object, *, whole_string: bool) -> object:
    if leaf is None:
        return item if whole_string else [item]
    if isinstance(leaf, list):
        return [*cast("list[object]", leaf), item]
    if isinstance(leaf, str) and isinstance(item, str):
        return leaf + item
    raise OpError("append.type_mismatch", "append needs a list, or a string for a string")


def _at(value: object, path: list[str], change: Callable[[object], object]) -> object:
    """The value with the leaf at the path changed; what is missing or no object on the way becomes one."""
    if not path:
        return change(value)
    node = cast("Json", value) if isinstance(value, dict) else {}
    return {**node, path[0]: _at(node.get(path[0]), path[1:], change)}


def _target(kind: str, value: object) -> Json:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise OpError(f"{kind}.target_not_object", "the value is not an object")
    return cast("Json", value)


def _path(op: Json) -> list[str]:
    path = op.get("path")
    if path is None or path == "":
        return []
    return [path] if isinstance(path, str) else cast("list[str]", path)


def _check_segments(kind: str, segments: list[str]) -> None:
    if len(segments) > MAX_PATH_DEPTH:
        raise OpError(f"{kind}.path.too_deep", f"a path has at most {MAX_PATH_DEPTH} segments")
    for segment in segments:
        if not segment:
            raise OpError(f"{kind}.path.empty_segment", "a path segment is empty")
        if len(segment.encode()) > MAX_SEGMENT_BYTES:
            raise OpError(f"{kind}.path.segment_too_long", f"a segment has at most {MAX_SEGMENT_BYTES} bytes")
        if segment in _POLLUTING:
            raise OpError(f"{kind}.path.proto_polluted", f"'{segment}' cannot be used as a key")


def _check_merged(merged: Json) -> None:
    if len(merged) > MAX_MERGE_KEYS:
        raise OpError("merge.value.too_many_keys", f"an object has at most {MAX_MERGE_KEYS} keys")
    level: list[object] = [merged]
    for _ in range(MAX_MERGE_DEPTH):
        if any(isinstance(node, dict) and _POLLUTING & cast("Json", node).keys() for node in level):
            raise OpError("merge.value.proto_polluted", "the object has a key that cannot be used")
        level = [child for node in level for child in _containers(node)]
    if level:
        raise OpError("merge.value.too_deep", f"an object has at most {MAX_MERGE_DEPTH} levels")


def _containers(node: object) -> list[object]:
    children = cast("Json", node).values() if isinstance(node, dict) else cast("list[object]", node)
    return [child for child in children if isinstance(child, (dict, list))]


_APPLY: Final[dict[str, Callable[[object, Json], object]]] = {
    "set": _set,
    "merge": _merge,
    "increment": _add("increment", 1),
    "decrement": _add("decrement", -1),
    "append": _append,
    "remove": _remove,
}
