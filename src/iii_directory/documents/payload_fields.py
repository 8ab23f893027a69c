"""Read the fields of a payload, raising an error that names a missing or wrong field. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iii_directory.errors import invalid_field
from iii_directory.limits import MAX_NAME_FIELD_CHARS
from iii_directory.shapes import is_count, is_list, is_object, is_text_list, items_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Payload = Mapping[str, Any]


def text(payload: Payload, key: str) -> str:
    """Return a required string."""
    value = payload.get(key)
    if not isinstance(value, str):
        raise invalid_field(key, "a string" if key in payload else "given, as a string")
    return value


def optional_text(payload: Payload, key: str) -> str | None:
    value = payload.get(key)
    if value is not None and not isinstance(value, str):
        raise invalid_field(key, "a string")
    return value


def optional_word(payload: Payload, key: str) -> str | None:
    """Return an optional string without surrounding blanks; a blank string counts as missing."""
    value = optional_text(payload, key)
    return None if value is None else value.strip() or None


def flag(payload: Payload, key: str, *, default: bool) -> bool:
    value = payload.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise invalid_field(key, "true or false")
    return value


def count(payload: Payload, key: str, *, default: int) -> int:
    """Return an optional integer of at least zero."""
    value = payload.get(key)
    if value is None:
        return default
    if not is_count(value):
        raise invalid_field(key, "a whole number that is not negative")
    return value


def choice(payload: Payload, key: str, among: tuple[str, ...]) -> str | None:
    """Return an optional value that must be one of a few words."""
    value = payload.get(key)
    if value is not None and value not in among:
        raise invalid_field(key, " or ".join(f"'{word}'" for word in among))
    return value


def optional_texts(payload: Payload, key: str) -> list[str] | None:
    """Return an optional list of strings."""
    value = payload.get(key)
    if value is not None and not is_text_list(value):
        raise invalid_field(key, "a list of strings")
    return value


def check_names(payload: Payload, keys: Iterable[str]) -> None:
    """Refuse a string, or an item of a list, that is longer than any name can be."""
    for key in keys:
        value = payload.get(key)
        texts = items_of(value) if is_list(value) else (value,)
        if any(isinstance(text, str) and len(text) > MAX_NAME_FIELD_CHARS for text in texts):
            raise invalid_field(key, f"at most {MAX_NAME_FIELD_CHARS} characters long")


def mapping(payload: Payload, key: str) -> dict[str, Any]:
    """Return an optional object; empty when it is not given."""
    value = payload.get(key)
    if value is None:
        return {}
    if not is_object(value):
        raise invalid_field(key, "an object")
    return value
