"""The surface of v0.8: ``directory::*``, with forgiving reads and errors that say what to do. Pure."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces import downloads, registry, shapes
from iii_directory.worker.surfaces.engine import ENGINE_FUNCTION_INFO
from iii_directory.worker.surfaces.registering import DIRECTORY_TRIGGER_TYPES
from iii_directory.worker.surfaces.table import (
    NOTHING,
    FunctionRow,
    Surface,
    count,
    flag,
    obj,
    request,
    text,
)

_GET: Final = FunctionRow(
    "directory::skills::get",
    lambda h: h.reading.get,
    "Read one skill: its markdown body with id, title, type, function_id and modified_at. A worker's "
    "overview goes by the worker's bare name. Forgiving: 'x/index', 'x/SKILL.md', 'x.md', 'iii://x' and "
    "other case all find x, and a name that is only part of a worker's finds that worker. A miss names close "
    "ids and what to call next. For teasers without bodies call directory::skills::list.",
    request(
        {
            "id": text(
                "The skill to read, as a list prints it. A trailing .md, a file name SKILL.md or SKILLS.md "
                "and an iii:// in front are understood; other schemes are not."
            )
        },
        required=("id",),
    ),
    shapes.SKILL,
)
_LIST: Final = FunctionRow(
    "directory::skills::list",
    lambda h: h.reading.list,
    "List skills, one row each, without bodies. Narrow with search (substring of id, title and description), "
    "prefix (ids below a worker, its overview included) and type (exact). include_description: false makes "
    "rows light. A row's id goes to directory::skills::get; its function_id is what to call. For one block "
    "per worker call directory::skills::index.",
    request(
        {
            "search": text(
                "Keep rows whose id, title or (while included) description has this, in any case."
            ),
            "prefix": text("Keep ids that start with this, such as 'db/'; finds the overview of db too."),
            "type": text("Keep rows of exactly this type."),
            "include_description": flag("False leaves descriptions empty.", default=True),
        }
    ),
    shapes.SKILL_ROWS,
)
_INDEX: Final = FunctionRow(
    "directory::skills::index",
    lambda h: h.reading.index,
    "One short markdown block per worker: title, first paragraph, and the call that reads its overview. Made "
    "for system prompts; start here. For single skills call directory::skills::list.",
    NOTHING,
    obj(
        {
            "body": text("The markdown, sorted by id. When it grows long, descriptions are left out first."),
            "workers_count": count("How many workers it covers."),
        }
    ),
)
_PROMPTS_LIST: Final = FunctionRow(
    "directory::prompts::list",
    lambda h: h.prompts.list,
    "List the prompts, slash-command templates for people: name, description, modified_at.",
    NOTHING,
    shapes.PROMPT_ROWS,
)
_PROMPTS_GET: Final = FunctionRow(
    "directory::prompts::get",
    lambda h: h.prompts.get,
    "Read one prompt by name: its template with name, description and modified_at. A prompt that a function "
    "renders answers with how to have it rendered.",
    shapes.NAMED_PROMPT,
    shapes.PROMPT,
)

SURFACE: Final = Surface(
    "v0.8",
    (
        _GET,
        _LIST,
        _INDEX,
        _PROMPTS_LIST,
        _PROMPTS_GET,
        ENGINE_FUNCTION_INFO,
        *registry.V08_ROWS,
        *downloads.V08_ROWS,
    ),
    DIRECTORY_TRIGGER_TYPES,
)
