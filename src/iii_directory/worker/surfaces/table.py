"""What a surface is made of: rows from a function id to its handler, its schemas and its description.

Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.bus.seam import Handler
    from iii_directory.worker.handlers import Handlers

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """One function of a generation. ``handler`` picks the method that answers it."""

    id: str
    handler: Callable[[Handlers], Handler]
    description: str
    request: Schema
    response: Schema | None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TriggerTypeRow:
    """One custom trigger type of a generation. ``topic`` tells whose changes it reports."""

    id: str
    topic: str
    description: str
    event: Schema


@dataclass(frozen=True, slots=True)
class Surface:
    """What one generation of the worker offers."""

    generation: str
    functions: tuple[FunctionRow, ...]
    trigger_types: tuple[TriggerTypeRow, ...] = ()


def text(description: str) -> Schema:
    return {"type": "string", "description": description}


def maybe(schema: Schema) -> Schema:
    """The same, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def flag(description: str, *, default: bool | None = None) -> Schema:
    return {
        "type": "boolean",
        "description": description,
        **({} if default is None else {"default": default}),
    }


def count(description: str) -> Schema:
    return {"type": "integer", "format": "uint", "minimum": 0, "description": description}


def rows(item: Schema, description: str) -> Schema:
    return {"type": "array", "items": item, "description": description}


def one_of_any(description: str) -> Schema:
    """A field whose shape is somebody else's."""
    return {"description": description}


def obj(properties: Mapping[str, Schema], *, optional: tuple[str, ...] = (), description: str = "") -> Schema:
    """An object; every property is required unless it is named as optional."""
    schema: Schema = {"type": "object", "properties": dict(properties)}
    required = [name for name in properties if name not in optional]
    if required:
        schema["required"] = required
    if description:
        schema["description"] = description
    return schema


def request(properties: Mapping[str, Schema], *, required: tuple[str, ...] = ()) -> Schema:
    """An input; nothing is required unless it is named."""
    return obj(properties, optional=tuple(name for name in properties if name not in required))


NOTHING: Final = request({})
MODIFIED_AT: Final = text("When the file was last changed, or the entry registered: RFC 3339, UTC.")
