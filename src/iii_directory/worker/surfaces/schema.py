"""What a row of the table of functions is, and the words its JSON Schemas are written in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.bus.seam import Function, Handler, Payload
from iii_directory.documents.provenance import META_KEY

if TYPE_CHECKING:
    from iii_directory.catalog.look import Look
    from iii_directory.worker.parts import Parts

Schema = dict[str, Any]
Reply = Callable[["Look", Payload], object]
Answering = Callable[["Parts"], Handler]

V02: Final = "v0.2"
V04: Final = "v0.4"
V05: Final = "v0.5"
V08: Final = "v0.8"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRow(Function):
    """One function: what the engine is told of it, who answers it, and which generations have it."""

    generations: tuple[str, ...]
    """The generations that have it under this id; empty for what is there whichever of them are on."""
    reply: Reply | None = None
    """What answers it, where a look and the payload are enough."""
    handler: Answering | None = None
    """Else the method that does, of one of the parts of the worker; they are made when they are needed."""
    example: Mapping[str, Any]
    """A payload that is answered where the worker of ``examples/python_worker`` runs; the tests send it."""


class TriggerTypeRow(NamedTuple):
    """One custom trigger type. ``topics`` tell which changes it reports."""

    id: str
    generations: tuple[str, ...]
    topics: tuple[str, ...]
    description: str
    event: Schema


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
CONNECTED: Final = flag("False where its worker was connected and is no more; else left out.")
SOURCE: Final = {"enum": ["registered", "folder"], "description": "Where the entry comes from."}
PROVENANCE: Final = obj(
    {
        "kind": {
            "enum": ["file", "installed", "written", "registered", "built-in"],
            "description": "file: the operator's own; installed: from somewhere; written: through this "
            "directory by a caller; registered: by a worker; built-in: of this program.",
        },
        "root": text("The folder that holds the file: skills, local, or the last two names of a root."),
        "from": text("What it was installed from: registry, repo, site, archive or folder."),
        "address": text("The address of that registry, repository or site."),
        "version": text("The version or commit that was installed."),
        "worker": text("The name of the worker that registered or wrote it; unknown where nobody says."),
        "worker_id": text("The id that the engine gave that worker's connection; unknown likewise."),
        "since": text("When it was registered, written or installed: RFC 3339, UTC."),
        "state": {
            "enum": ["verified", "edited", "connected", "gone", "unknown"],
            "description": "Whether the file is as it was installed or written; or whether the registrant "
            "is connected.",
        },
    },
    optional=("root", "from", "address", "version", "worker", "worker_id", "since", "state"),
    description="Where the document comes from. Text of other authors than the operator is theirs alone.",
)
META: Final = obj(
    {META_KEY: PROVENANCE},
    optional=(META_KEY,),
    description="For MCP clients: where it comes from.",
)
SKILL_ID: Final = text(
    "The id of the skill, as every list prints it; a worker's overview goes by the worker's name."
)
