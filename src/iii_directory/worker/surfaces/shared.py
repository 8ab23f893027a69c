"""Functions that more than one generation has, under the same id: one row, one handler. Pure."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces import shapes
from iii_directory.worker.surfaces.table import NOTHING, FunctionRow

SKILLS_LIST: Final = FunctionRow(
    "skills::list",
    lambda h: h.reading.registry_list,
    "List every skill, from the folder and from registrations, without bodies: id, title, type, function_id, "
    "description, bytes, registered_at, modified_at, source. Read one with directory::skills::get.",
    NOTHING,
    shapes.REGISTRY_SKILL_ROWS,
)
FETCH_SKILL: Final = FunctionRow(
    "skills::fetch_skill",
    lambda h: h.reading.fetch,
    "Read one or more iii:// URIs and get one markdown text back. Pass uri, or uris for several at once.",
    shapes.FETCH,
    shapes.FETCHED,
)
SKILL_FETCH: Final = FunctionRow(
    "skill::fetch",
    lambda h: h.reading.fetch,
    "Follow iii:// links: pass uri for one, or uris for several in one round trip, and get one markdown text "
    "back. Works for skills (iii://resend/email), the index (iii://skills) and live sections (iii://fn/a/b).",
    shapes.FETCH,
    # No response schema: a bridge would promise structured output for what is plain text.
    None,
    {"mcp.expose": True, "mcp": {"expose": True}},
)
PROMPTS_LIST: Final = FunctionRow(
    "prompts::list",
    lambda h: h.prompts.registry_list,
    "List every prompt, from the folder and from registrations: name, description, function_id, how many "
    "arguments, registered_at, modified_at, source.",
    NOTHING,
    shapes.REGISTRY_PROMPT_ROWS,
)
