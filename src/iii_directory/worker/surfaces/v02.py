"""The surface of v0.2: registrations kept in iii-state, and reads shaped for MCP bridges. Pure."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces.registering import (
    MCP_PROMPT_ROWS,
    PLAIN_TRIGGER_TYPES,
    REGISTERING_ROWS,
)
from iii_directory.worker.surfaces.shared import FETCH_SKILL, PROMPTS_LIST, SKILL_FETCH, SKILLS_LIST
from iii_directory.worker.surfaces.table import NOTHING, FunctionRow, Surface, obj, request, rows, text

_MIME: Final = text("text/markdown, or application/json for a section that answers data.")
_RESOURCE: Final = obj(
    {
        "uri": text("The iii:// address."),
        "name": text("The title."),
        "description": text("What is there."),
        "mimeType": _MIME,
    },
    optional=("description",),
)
_CONTENT: Final = obj(
    {"uri": text("The URI as it was given."), "mimeType": _MIME, "text": text("The content.")}
)
_TEMPLATE: Final = obj(
    {
        "uriTemplate": text("An RFC 6570 template."),
        "name": text("What it leads to."),
        "description": text("How to fill it."),
        "mimeType": _MIME,
    }
)

_RESOURCES_LIST: Final = FunctionRow(
    "skills::resources-list",
    lambda h: h.resources.list,
    "For MCP bridges: every skill at every depth as a resource, the index first.",
    NOTHING,
    obj({"resources": rows(_RESOURCE, "The index, then every skill, sorted by id.")}),
)
_RESOURCES_READ: Final = FunctionRow(
    "skills::resources-read",
    lambda h: h.resources.read,
    "For MCP bridges: read one iii:// URI, a skill, the index or a section.",
    request({"uri": text("The URI to read.")}, required=("uri",)),
    obj({"contents": rows(_CONTENT, "One entry.")}),
)
_RESOURCES_TEMPLATES: Final = FunctionRow(
    "skills::resources-templates",
    lambda h: h.resources.templates,
    "For MCP bridges: the two templates of iii:// URIs.",
    NOTHING,
    obj({"resourceTemplates": rows(_TEMPLATE, "A skill by its id, and a section by its function.")}),
)

SURFACE: Final = Surface(
    "v0.2",
    (
        SKILLS_LIST,
        FETCH_SKILL,
        SKILL_FETCH,
        PROMPTS_LIST,
        _RESOURCES_LIST,
        _RESOURCES_READ,
        _RESOURCES_TEMPLATES,
        *REGISTERING_ROWS,
        *MCP_PROMPT_ROWS,
    ),
    PLAIN_TRIGGER_TYPES,
)
