"""Reading the fields of a payload: present, of the right type, or an error that names the field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from iii_directory.documents.registering import required_text
from iii_directory.errors import invalid_field

if TYPE_CHECKING:
    from iii_directory.bus.seam import Payload


def text(payload: Payload, key: str) -> str:
    """A required string."""
    return required_text(payload, key)


def optional_text(payload: Payload, key: str) -> str | None:
    value = payload.get(key)
    if value is not None and not isinstance(value, str):
        raise invalid_field(key, "a string")
    return value


def flag(payload: Payload, key: str, *, default: bool) -> bool:
    value = payload.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise invalid_field(key, "true or false")
    return value


def optional_texts(payload: Payload, key: str) -> list[str] | None:
    """An optional list of strings."""
    value = payload.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[Any]", value)):
        raise invalid_field(key, "a list of strings")
    return cast("list[str]", value)


def mapping(payload: Payload, key: str) -> dict[str, Any]:
    """An optional object; empty when it is not given."""
    value = payload.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid_field(key, "an object")
    return cast("dict[str, Any]", value)
