"""The rows about what was left out, and why."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.handlers.reading import Reading
from iii_directory.worker.surfaces.schema import FunctionRow, count, flag, maybe, obj, request, rows, text

_FINDING: Final = obj(
    {
        "kind": text("What sort of finding it is, such as skipped, shadowed or front_matter."),
        "subject": text("The path below the skills folder, the id or the namespace it is about."),
        "reason": text("What is wrong or odd."),
        "fix": text("What to do about it."),
    }
)

FUNCTIONS: Final = (
    FunctionRow(
        id="directory::skills::explain",
        generations=(),
        handler=Reading.explain,
        description="Why a document is served as it is, or is not: every rule that hid, cut, shadowed or "
        "skipped it, each with what to do. Call it when something is missing or looks wrong.",
        request=request(
            {"id": text("The id, address, prompt name or path that was asked for.")}, required=("id",)
        ),
        response=obj(
            {
                "asked": text("What was asked for."),
                "served": flag("Whether a reader is given just that."),
                "id": maybe(text("What a reader is given: an id, a name or a path; null for nothing.")),
                "summary": text("That in one sentence."),
                "rules": rows(_FINDING, "Every rule that touched it."),
            }
        ),
        example={"id": "greeter"},
    ),
    FunctionRow(
        id="directory::diagnostics",
        generations=(),
        handler=Reading.diagnostics,
        description="What the directory left out or found odd, each with its reason and what to do: skipped "
        "files, shadowed ids, broken front matter, records that cannot be read, failed downloads, installed "
        "files that were edited by hand. Call it when something is missing, with attention and a limit at "
        "first, because the whole can be long. Of one document, directory::skills::explain says more.",
        request=request(
            {
                "attention": flag("Only what somebody should do something about.", default=False),
                "limit": count("At most so many findings, what needs attention first."),
            }
        ),
        response=obj(
            {
                "counts": {"type": "object", "description": "How many findings there are of each kind."},
                "attention": count("How many of them need attention."),
                "findings": rows(_FINDING, "The findings that were asked for."),
                "left_out": count("How many findings there are beside those; left out where none."),
            },
            optional=("left_out",),
        ),
        example={"attention": True, "limit": 20},
    ),
)
