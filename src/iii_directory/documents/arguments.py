"""The arguments of a prompt, from its front matter. Pure."""

from __future__ import annotations

from typing import Any, cast

from iii_directory.documents.model import PromptArgument


def read_arguments(values: dict[str, Any], problems: list[str]) -> tuple[PromptArgument, ...]:
    """``arguments`` (a list of names or of mappings) or else ``args_schema`` (a JSON Schema of an object)."""
    for key, reader in (("arguments", _from_list), ("args_schema", _from_schema)):
        value = values.get(key)
        if value is None:
            continue
        arguments = reader(value)
        if arguments is not None:
            return arguments
        problems.append(f"'{key}' in its front matter does not describe arguments and is ignored")
    return ()


def _from_list(value: object) -> tuple[PromptArgument, ...] | None:
    if not isinstance(value, list):
        return None
    found: dict[str, PromptArgument] = {}
    for item in cast("list[object]", value):
        argument = _argument(item)
        if argument is None or argument.name in found:
            return None
        found[argument.name] = argument
    return tuple(found.values())


def _argument(item: object) -> PromptArgument | None:
    if isinstance(item, str):
        return PromptArgument(item.strip()) if item.strip() else None
    if not isinstance(item, dict):
        return None
    fields = cast("dict[str, object]", item)
    name, description, required = fields.get("name"), fields.get("description"), fields.get("required", False)
    if not isinstance(name, str) or not name.strip() or not isinstance(required, bool):
        return None
    return PromptArgument(name.strip(), description if isinstance(description, str) else None, required)


def _from_schema(value: object) -> tuple[PromptArgument, ...] | None:
    if not isinstance(value, dict):
        return None
    schema = cast("dict[str, object]", value)
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return None
    return tuple(
        PromptArgument(name, _described(field), name in required)
        for name, field in cast("dict[str, object]", properties).items()
        if name.strip()
    )


def _described(field: object) -> str | None:
    description = cast("dict[str, object]", field).get("description") if isinstance(field, dict) else None
    return description if isinstance(description, str) else None
