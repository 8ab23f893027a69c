"""How the engine provides functions and trigger types of its own: tables of rows, and helpers for inputs.

Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from iii_directory.engine.calls import UnreadFields
from iii_directory.engine.engine_state import EngineFault, RegisteredFunction, TriggerType, bad_input
from iii_directory.shapes import is_object, object_of
from iii_directory.wire.json_text import fields_reader
from iii_directory.wire.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from iii_directory.engine.calls import BuiltinRequest
    from iii_directory.engine.router import Router
    from iii_directory.wire.json_text import Json


@dataclass(frozen=True, slots=True)
class BuiltinFunction:
    id: str
    description: str
    handler: Callable[[BuiltinRequest], object]
    request_schema: Json
    response_schema: Json | None = None
    unread_fields: tuple[str, ...] = ()
    """What it only keeps: a large value in one of these is not read."""


@dataclass(frozen=True, slots=True)
class BuiltinType:
    id: str
    description: str
    configuration_schema: Json
    request_schema: Json
    is_checked: bool = False
    """Whether bindings whose config does not fit the schema are refused."""

    def problem_with(self, config: object) -> str | None:
        """Return what is wrong with the config of a binding, or None."""
        if not is_object(config):
            return f"the config of a {self.id} trigger is an object"
        for key, row in object_of(self.configuration_schema.get("properties")).items():
            kind = _TYPES[row["type"]]
            if config.get(key) is not None and not isinstance(config[key], kind):
                return f"'{key}' must be a {_NAMES[kind]}"
        return None


@dataclass(frozen=True, slots=True)
class BuiltinWorker:
    """A worker that lives inside the engine: how it shows in ``engine::workers::list``."""

    name: str
    description: str
    functions: Sequence[BuiltinFunction]
    types: Sequence[BuiltinType]


def provide(
    router: Router,
    name: str,
    description: str,
    functions: Sequence[BuiltinFunction],
    types: Sequence[BuiltinType] = (),
) -> None:
    """Put a built-in worker with its functions and trigger types on the engine."""
    router.builtin_workers[name] = BuiltinWorker(name, description, functions, types)
    for row in functions:
        router.calls.builtins[row.id] = row.handler
        if row.unread_fields:
            names = dict.fromkeys((*object_of(row.request_schema.get("properties")), *row.unread_fields))
            router.calls.unread_fields[row.id] = UnreadFields(row.unread_fields, fields_reader(names))
        router.engine_state.add_function(
            RegisteredFunction(
                id=row.id,
                namespace=DEFAULT_NAMESPACE,
                owner=None,
                worker_name=name,
                description=row.description,
                request_schema=row.request_schema,
                response_schema=row.response_schema,
            )
        )
    for kind in types:
        router.triggers.types[DEFAULT_NAMESPACE, kind.id] = TriggerType(
            id=kind.id,
            namespace=DEFAULT_NAMESPACE,
            owner=None,
            worker_name=name,
            description=kind.description,
            configuration_schema=kind.configuration_schema,
            request_schema=kind.request_schema,
            check=kind.problem_with if kind.is_checked else None,
        )


def schema(*required: str, **properties: object) -> Json:
    """Make a JSON Schema of an object; a property is given as a schema or as the name of a type.

    A required property is a string, unless it is given as well.
    """
    given = {**dict.fromkeys(required, "string"), **properties}
    rows = {k: {"type": v} if isinstance(v, str) else v for k, v in given.items()}
    described: Json = {"type": "object", "properties": rows}
    return {**described, "required": list(required)} if required else described


ANY: Final[Json] = {}


def text(request: BuiltinRequest, key: str) -> str:
    """Return a required string of the input."""
    if request.payload.get(key) is None:
        raise missing(request, key)
    return optional(request, key, str)


def optional(request: BuiltinRequest, key: str, kind: type) -> Any:
    """Return an optional field of the input, or None."""
    value = request.payload.get(key)
    if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise bad_input(request.function_id, f"field `{key}` must be a {_NAMES[kind]}")
    return value


def missing(request: BuiltinRequest, key: str) -> EngineFault:
    return bad_input(request.function_id, f"missing field `{key}`")


def contains(needle: str | None, *hay: str | None) -> bool:
    """Return whether a search term is absent or a case-insensitive substring of one of the texts."""
    return needle is None or any(needle.lower() in (text or "").lower() for text in hay)


_NAMES: Final = {str: "string", int: "integer", bool: "boolean", list: "list", dict: "object"}
_TYPES: Final = {"string": str, "array": list}
