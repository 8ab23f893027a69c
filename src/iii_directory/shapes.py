"""The shapes of JSON from outside: asked once, here, and known to the type checker from then on. Pure.

``is_…`` says whether a value has a shape; ``…_of`` gives what there is of it, nothing where there is none.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeGuard

Json: TypeAlias = dict[str, Any]
"""A JSON object whose fields were not looked at yet."""


def is_object(value: object) -> TypeGuard[Json]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def is_count(value: object) -> TypeGuard[int]:
    """A whole number from zero on; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_text_map(value: object) -> TypeGuard[dict[str, str]]:
    """An object with nothing but strings in it."""
    return is_object(value) and all(isinstance(item, str) for item in value.values())


def is_text_list(value: object) -> TypeGuard[list[str]]:
    """A list with nothing but strings in it."""
    return is_list(value) and all(isinstance(item, str) for item in value)


def object_of(value: object) -> Json:
    """The object itself, an empty one where there is none."""
    return value if is_object(value) else {}


def items_of(value: object) -> list[object]:
    """The items of a list, none where there is no list."""
    return value if is_list(value) else []


def text_of(value: object) -> str | None:
    return value if isinstance(value, str) else None


def rows_of(answer: object, key: str) -> list[Json]:
    """The objects of a list under a key of an answer; what is no object is left out."""
    return [row for row in items_of(object_of(answer).get(key)) if is_object(row)]
