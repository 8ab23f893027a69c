"""The shapes that several generations answer with, each described once. Pure."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces.table import (
    MODIFIED_AT,
    Schema,
    count,
    flag,
    maybe,
    obj,
    one_of_any,
    request,
    rows,
    text,
)

SKILL_ID: Final = text(
    "The id of the skill, as every list prints it; a worker's overview goes by the worker's name."
)
TITLE: Final = text("The front matter's title, else the first heading, else the id.")
TYPE: Final = maybe(text("The front matter's type, such as index, how-to or reference; null without one."))
FUNCTION_ID: Final = maybe(
    text("The function this skill documents: what to call. Null when it is about more than one, or none.")
)
DESCRIPTION: Final = text(
    "The front matter's description, else the first paragraph. Empty when it was not asked for."
)
BYTES: Final = count("The size of the file, or of the registered body, in bytes.")
SOURCE: Final = {"enum": ["registered", "folder"], "description": "Where the entry comes from."}

SKILL_ROW: Final = obj(
    {
        "id": SKILL_ID,
        "title": TITLE,
        "type": TYPE,
        "function_id": FUNCTION_ID,
        "description": DESCRIPTION,
        "bytes": BYTES,
        "modified_at": MODIFIED_AT,
    },
    optional=("type", "function_id"),
)
SKILL_ROWS: Final = obj({"skills": rows(SKILL_ROW, "One row per skill, sorted by id.")})
REGISTRY_SKILL_ROWS: Final = obj(
    {
        "skills": rows(
            obj(
                {**SKILL_ROW["properties"], "registered_at": MODIFIED_AT, "source": SOURCE},
                optional=("type", "function_id"),
            ),
            "One row per skill, sorted by id; never a body.",
        )
    }
)
SKILL: Final = obj(
    {
        "id": SKILL_ID,
        "title": TITLE,
        "type": TYPE,
        "function_id": FUNCTION_ID,
        "body": text("The markdown after the front matter. A substitute says so in its first quoted line."),
        "modified_at": MODIFIED_AT,
    },
    optional=("type", "function_id"),
)
FETCH: Final = request(
    {
        "uri": text("One iii:// URI, or a bare skill id."),
        "uris": rows({"type": "string"}, "Several of them; wins over uri when it holds anything."),
    }
)
FETCHED: Final[Schema] = {
    "type": "string",
    "description": "One markdown text: a section per URI, headed by it, with a rule between them.",
}

PROMPT_NAME: Final = text("The name of the prompt: what a person types after the slash.")
PROMPT_DESCRIPTION: Final = text("What the prompt is for.")
PROMPT_ROW: Final = obj({"name": PROMPT_NAME, "description": PROMPT_DESCRIPTION, "modified_at": MODIFIED_AT})
PROMPT_ROWS: Final = obj({"prompts": rows(PROMPT_ROW, "One row per prompt, sorted by name.")})
REGISTRY_PROMPT_ROWS: Final = obj(
    {
        "prompts": rows(
            obj(
                {
                    **PROMPT_ROW["properties"],
                    "function_id": maybe(
                        text("The function that renders it; null for a template in the folder.")
                    ),
                    "arguments": count("How many arguments it declares."),
                    "registered_at": MODIFIED_AT,
                    "source": SOURCE,
                }
            ),
            "One row per prompt, sorted by name.",
        )
    }
)
PROMPT: Final = obj(
    {
        "name": PROMPT_NAME,
        "description": PROMPT_DESCRIPTION,
        "body": text("The template; for a registered prompt, how to have it rendered."),
        "modified_at": MODIFIED_AT,
    }
)
PROMPT_ARGUMENT: Final = obj(
    {
        "name": text("The name of the argument."),
        "description": text("What to give for it."),
        "required": flag("Whether a client must ask for it.", default=False),
    },
    optional=("description", "required"),
)
NAMED_PROMPT: Final = request({"name": PROMPT_NAME}, required=("name",))

FINDING: Final = obj(
    {
        "kind": text("What sort of finding it is, such as skipped, shadowed or front_matter."),
        "subject": text("The path below the skills folder, the id or the namespace it is about."),
        "reason": text("What is wrong or odd."),
        "fix": text("What to do about it."),
    }
)
ANYTHING: Final = one_of_any("Whatever the other side answers.")
