"""Read the fields of a payload, raising an error that names a missing or wrong field. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from iii_directory.documents.ids import check_prompt_name, check_registered_id
from iii_directory.documents.parse import check_body
from iii_directory.errors import BAD_PROMPT, DirectoryError, invalid_field
from iii_directory.limits import MAX_BODY_BYTES, MAX_NAME_FIELD_CHARS
from iii_directory.shapes import is_count, is_list, is_object, is_text_list, items_of
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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


Fields = dict[str, Any]

# The trigger types for registrations and downloads in each generation: the short names, then the newest.
SKILLS_CHANGED: Final = ("skills::on-change", "directory::skills::on-change")
PROMPTS_CHANGED: Final = ("prompts::on-change", "directory::prompts::on-change")


def skill_fields(given: Mapping[str, Any], check_id: Callable[[str], None] = check_registered_id) -> Fields:
    """Return ``{id, skill}`` after checking both; ``check_id`` decides which ids are allowed."""
    skill_id, body = text(given, "id"), text(given, "skill")
    check_id(skill_id)
    check_body(body)
    return {"id": skill_id, "skill": body}


def prompt_fields(given: Mapping[str, Any]) -> Fields:
    """Return ``{name, description, arguments, function_id}`` with all fields of each argument filled in."""
    name = text(given, "name")
    check_prompt_name(name)
    fields = {
        "name": name,
        "description": _visible_text(given, "description"),
        "arguments": _arguments(given.get("arguments")),
        "function_id": _visible_text(given, "function_id"),
    }
    try:
        size = len(json.dumps(fields, ensure_ascii=False).encode())
    except UnicodeEncodeError:
        raise DirectoryError(BAD_PROMPT, "the prompt must be text that UTF-8 can carry") from None
    if size > MAX_BODY_BYTES:
        raise DirectoryError(BAD_PROMPT, f"the prompt is too large: {size} bytes, at most {MAX_BODY_BYTES}")
    return fields


def _visible_text(given: Mapping[str, Any], field: str) -> str:
    value = text(given, field)
    if not value.strip():
        raise DirectoryError(BAD_PROMPT, f"{field} must be non-empty")
    return value


def _arguments(value: object) -> list[Fields]:
    if value is None:
        return []
    if not is_list(value):
        raise invalid_field("arguments", "a list of objects with a name")
    found: dict[str, Fields] = {}
    for item in value:
        if not is_object(item):
            raise invalid_field("arguments", "a list of objects with a name")
        name, description, required = item.get("name"), item.get("description"), item.get("required")
        if not isinstance(name, str):
            raise invalid_field("arguments[].name", "a string")
        if not name.strip():
            raise DirectoryError(BAD_PROMPT, "argument name must be non-empty")
        if description is not None and not isinstance(description, str):
            raise invalid_field("arguments[].description", "a string")
        if required is not None and not isinstance(required, bool):
            raise invalid_field("arguments[].required", "true or false")
        if name in found:
            raise DirectoryError(BAD_PROMPT, f"duplicate argument name {quoted(name)}")
        described = {} if description is None else {"description": description}
        found[name] = {"name": name, **described, "required": required or False}
    return list(found.values())
