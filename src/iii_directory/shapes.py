"""Check the shape of JSON values from outside, so that the type checker knows them. Pure.

``is_…`` tests a value; ``…_of`` returns the value if it has the shape, otherwise an empty one.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeGuard

Json: TypeAlias = dict[str, Any]
"""A JSON object with unchecked fields."""


def is_object(value: object) -> TypeGuard[Json]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def is_count(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer of at least zero, and not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_text_map(value: object) -> TypeGuard[dict[str, str]]:
    """Return whether a value is an object with only string values."""
    return is_object(value) and all(isinstance(item, str) for item in value.values())


def is_text_list(value: object) -> TypeGuard[list[str]]:
    """Return whether a value is a list of strings."""
    return is_list(value) and all(isinstance(item, str) for item in value)


def object_of(value: object) -> Json:
    """Return the value if it is an object, else an empty one."""
    return value if is_object(value) else {}


def items_of(value: object) -> list[object]:
    """Return the value if it is a list, else an empty one."""
    return value if is_list(value) else []


def text_of(value: object) -> str | None:
    return value if isinstance(value, str) else None


def rows_of(answer: object, key: str) -> list[Json]:
    """Return the objects of the list at a key of an answer, skipping other items."""
    return [row for row in items_of(object_of(answer).get(key)) if is_object(row)]
