"""Read the declared arguments of a prompt and render its template. Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from iii_directory.documents.model import PromptArgument
from iii_directory.errors import BAD_PROMPT, DirectoryError, Step
from iii_directory.limits import MAX_RENDERED_CHARS
from iii_directory.shapes import is_list, is_object, object_of, text_of
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The placeholders of common hosts: an argument by name, by position, or all of them.
_PLACEHOLDER: Final = re.compile(r"\{\{ *([^{}\s]{1,64}) *\}\}|\$([1-9][0-9]?)(?![0-9])|\$ARGUMENTS\b")


def read_arguments(values: dict[str, Any], problems: list[str]) -> tuple[PromptArgument, ...]:
    """Read ``arguments`` (a list of names or mappings) or else ``args_schema`` (a JSON Schema)."""
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
    if not is_list(value):
        return None
    found: dict[str, PromptArgument] = {}
    for item in value:
        argument = _argument(item)
        if argument is None or argument.name in found:
            return None
        found[argument.name] = argument
    return tuple(found.values())


def _argument(item: object) -> PromptArgument | None:
    if isinstance(item, str):
        return PromptArgument(item.strip()) if item.strip() else None
    if not is_object(item):
        return None
    name, description, required = item.get("name"), item.get("description"), item.get("required", False)
    if not isinstance(name, str) or not name.strip() or not isinstance(required, bool):
        return None
    return PromptArgument(name.strip(), text_of(description), required)


def _from_schema(value: object) -> tuple[PromptArgument, ...] | None:
    if not is_object(value):
        return None
    properties, required = value.get("properties", {}), value.get("required", [])
    if not is_object(properties) or not is_list(required):
        return None
    return tuple(
        PromptArgument(name, text_of(object_of(field).get("description")), name in required)
        for name, field in properties.items()
        if name.strip()
    )


def rendered(
    name: str, template: str, declared: Sequence[PromptArgument], given: Mapping[str, object]
) -> str:
    """Render the template of a prompt with the caller's values.

    ``{{name}}`` stands for an argument by name, ``$1`` for one by position, ``$ARGUMENTS`` for all values in
    order. A missing optional argument renders as an empty string; a missing required one is an error.
    Placeholders without a declared argument stay as written, and values are not rendered again.
    """
    missing = [
        argument.name for argument in declared if argument.required and given.get(argument.name) is None
    ]
    if missing:
        names = ", ".join(map(quoted, missing))
        plural = "s" if len(missing) > 1 else ""
        raise DirectoryError(
            BAD_PROMPT,
            f"prompt '{name}' needs the argument{plural} {names}",
            next_steps=(Step(f"with the argument{plural} in 'arguments'", "prompts::mcp-get"),),
        )
    values = {argument.name: _as_text(given.get(argument.name)) for argument in declared}
    others = {key: _as_text(value) for key, value in given.items() if key not in values}

    size = len(template)

    def filled(found: re.Match[str]) -> str:
        nonlocal size
        value = value_for(found)
        size += len(value)
        if size > MAX_RENDERED_CHARS:
            raise DirectoryError(
                BAD_PROMPT,
                f"prompt '{name}' with these arguments is longer than {MAX_RENDERED_CHARS} characters",
                next_steps=(Step("with shorter arguments", "prompts::mcp-get"),),
            )
        return value

    def value_for(found: re.Match[str]) -> str:
        if found[1] is not None:
            return values.get(found[1], found[0])
        if found[2] is not None:
            place = int(found[2]) - 1
            return list(values.values())[place] if place < len(values) else found[0]
        every = [value for value in (*values.values(), *others.values()) if value]
        return " ".join(every) if values or others else found[0]

    return _PLACEHOLDER.sub(filled, template)


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
