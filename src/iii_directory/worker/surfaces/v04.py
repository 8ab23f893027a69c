"""The surface of v0.4: skills and prompts of a folder, without the ``directory::`` in front. Pure."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces import downloads, engine, registry, shapes
from iii_directory.worker.surfaces.registering import PLAIN_TRIGGER_TYPES
from iii_directory.worker.surfaces.shared import FETCH_SKILL, PROMPTS_LIST, SKILL_FETCH, SKILLS_LIST
from iii_directory.worker.surfaces.table import FunctionRow, Surface

_PROMPTS_GET: Final = FunctionRow(
    "prompts::get",
    lambda h: h.prompts.get,
    "Read one prompt by name: its template with name, description and modified_at, as plain fields.",
    shapes.NAMED_PROMPT,
    shapes.PROMPT,
)

SURFACE: Final = Surface(
    "v0.4",
    (
        SKILLS_LIST,
        FETCH_SKILL,
        SKILL_FETCH,
        PROMPTS_LIST,
        _PROMPTS_GET,
        *engine.V04_ROWS,
        *registry.V04_ROWS,
        downloads.V04_DOWNLOAD,
    ),
    PLAIN_TRIGGER_TYPES,
)
