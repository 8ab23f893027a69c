"""Define a row of the table of functions, and build the JSON Schemas of its request and response.

Fields are written as a mapping from name to schema. A plain string as schema is the description of a text
field, and a name that ends with "?" belongs to an optional field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from iii_directory.bus.seam import Function, Handler, Payload
from iii_directory.documents.model import META_KEY

if TYPE_CHECKING:
    from iii_directory.catalog.view import CatalogueView
    from iii_directory.worker.services import Services

Schema: TypeAlias = dict[str, Any]
Fields: TypeAlias = Mapping[str, Schema | str]
Reply: TypeAlias = Callable[["CatalogueView", Payload], object]

V02: Final = "v0.2"
V04: Final = "v0.4"
V05: Final = "v0.5"
V08: Final = "v0.8"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRow(Function):
    """One function under one id: what the engine is told of it, and how it is answered."""

    generations: tuple[str, ...]
    """The generations that have it under this id; empty if every generation has it."""
    reply: Reply | None = None
    """Makes the answer from a look at the catalogue and the payload."""
    handler: Callable[[Services], Handler] | None = None
    """Otherwise the method of one of the worker's services that answers."""
    example: Mapping[str, Any]
    """A payload that is answered where the worker of ``examples/python_worker`` runs; the tests send it."""


class TriggerTypeRow(NamedTuple):
    """One custom trigger type. ``topics`` tell which changes it reports."""

    id: str
    generations: tuple[str, ...]
    topics: tuple[str, ...]
    description: str
    event: Schema


def function(
    *,
    ids: Mapping[str, tuple[str, ...]],
    description: str,
    response: Fields | str | None,
    request: Fields | str | None = None,
    reply: Reply | None = None,
    handler: Callable[[Services], Handler] | None = None,
    example: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    long_fields: tuple[str, ...] = (),
    accepts_others: bool = True,
) -> tuple[FunctionRow, ...]:
    """Declare one function for all generations; ``ids`` maps each of its ids to the generations that have it.

    A string as request describes a payload of any shape, a string as response the text that is answered.
    ``accepts_others`` is False for a function that refuses fields it does not know.
    """
    takes = one_of_any(request) if isinstance(request, str) else obj(request or {})
    if not accepts_others:
        takes["additionalProperties"] = False
    answers = None if response is None else text(response) if isinstance(response, str) else obj(response)
    return tuple(
        FunctionRow(
            id=function_id,
            generations=generations,
            description=description,
            request=takes,
            response=answers,
            reply=reply,
            handler=handler,
            example=example or {},
            metadata=None if metadata is None else dict(metadata),
            long_fields=long_fields,
        )
        for function_id, generations in ids.items()
    )


def text(description: str) -> Schema:
    return {"type": "string", "description": description}


def maybe(schema: Schema | str) -> Schema:
    """Allow null beside the values of a schema."""
    schema = text(schema) if isinstance(schema, str) else schema
    return {**schema, "type": [schema["type"], "null"]}


def flag(description: str, *, default: bool | None = None) -> Schema:
    return {"type": "boolean", "description": description} | ({} if default is None else {"default": default})


def count(description: str) -> Schema:
    return {"type": "integer", "format": "uint", "minimum": 0, "description": description}


def choice(description: str, *values: str) -> Schema:
    return {"enum": list(values), "description": description}


def texts(description: str) -> Schema:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def table(fields: Fields, description: str) -> Schema:
    """Describe a list of objects."""
    return {"type": "array", "items": obj(fields), "description": description}


def one_of_any(description: str) -> Schema:
    """Describe a field whose shape another worker decides."""
    return {"description": description}


def some_object(description: str) -> Schema:
    return {"type": "object", "description": description}


def obj(fields: Fields, description: str = "") -> Schema:
    """Describe an object."""
    properties = {
        name.removesuffix("?"): text(field) if isinstance(field, str) else field
        for name, field in fields.items()
    }
    schema: Schema = {"type": "object", "properties": properties}
    required = [name for name in fields if not name.endswith("?")]
    if required:
        schema["required"] = required
    if description:
        schema["description"] = description
    return schema


MODIFIED_AT: Final = text("When the file was last changed, or the entry registered: RFC 3339, UTC.")
CONNECTED: Final = flag("False if its worker was connected and has left; otherwise left out.")
SOURCE: Final = choice("Where the entry comes from.", "registered", "folder")
PROVENANCE: Final = obj(
    {
        "kind": choice(
            "file: the operator's own; installed: from somewhere; written: through this directory by a "
            "caller; registered: by a worker; built-in: of this program.",
            *("file", "installed", "written", "registered", "built-in"),
        ),
        "root?": "The folder that holds the file: skills, local, or the last two names of a root.",
        "from?": "What it was installed from: registry, repo, site, archive or folder.",
        "address?": "The address of that registry, repository or site.",
        "version?": "The version or commit that was installed.",
        "worker?": "The name of the worker that registered or wrote it, or unknown.",
        "worker_id?": "The id that the engine gave that worker's connection, or unknown.",
        "since?": "When it was registered, written or installed: RFC 3339, UTC.",
        "state?": choice(
            "Whether the file is as it was installed or written; or whether the registrant is connected.",
            *("verified", "edited", "connected", "gone", "unknown"),
        ),
    },
    "Where the document comes from. Text of other authors than the operator is theirs alone.",
)
META: Final = obj({f"{META_KEY}?": PROVENANCE}, "For MCP clients: where it comes from.")
SKILL_ID: Final = text(
    "The id of the skill, as every list prints it; a worker's overview goes by the worker's name."
)
