"""The rows about writing single skills of the skills folder, for operators who allow it."""

from __future__ import annotations

from typing import Final

from iii_directory.documents.uris import WRITING
from iii_directory.limits import KIB, MAX_BODY_BYTES
from iii_directory.worker.surfaces.schema import (
    MODIFIED_AT,
    SKILL_ID,
    FunctionRow,
    count,
    obj,
    request,
    rows,
    text,
)

# The worker puts in whether it is so.
_METADATA: Final = {WRITING: False}
_CONTENT: Final = text(
    f"The whole file: markdown, with front matter if wanted; at most {MAX_BODY_BYTES // KIB} KiB."
)
_EXPECTED: Final = text(
    "The sha256 of what was read before. If somebody wrote the skill since, nothing is changed (D118)."
)
_WRITTEN: Final = obj(
    {
        "id": SKILL_ID,
        "uri": text("Its address."),
        "bytes": count("The size of the file."),
        "sha256": text("The hash of the file, 64 hex digits: what the next write of it can expect."),
        "modified_at": MODIFIED_AT,
        "findings": rows(
            obj({"kind": text("Its kind."), "reason": text("Why."), "fix": text("What to do.")}),
            "What readers will be warned of, such as hidden text; left out where there is nothing.",
        ),
    },
    optional=("findings",),
)
# A caller who sends another field expects something to come of it.
_CLOSED: Final = {"additionalProperties": False}
_ALLOWED: Final = "Only where the operator set allow_writing."

FUNCTIONS: Final = (
    FunctionRow(
        id="directory::skills::create",
        generations=(),
        handler=lambda parts: parts.authoring.create,
        long_fields=("content",),
        description="Write a new skill into the skills folder. The id says where: 'notes' becomes the "
        "overview notes/SKILL.md, 'notes/backups' the page notes/backups.md. Never replaces anything: for a "
        f"skill that is there call directory::skills::update. {_ALLOWED}",
        request=request(
            {
                "id": text("The id of the new skill: lowercase segments of a-z 0-9 _ - joined by '/'."),
                "content": _CONTENT,
            },
            required=("id", "content"),
        )
        | _CLOSED,
        response=_WRITTEN,
        metadata=_METADATA,
        example={"id": "notes/backups", "content": "# Backups\n\nRun them at night.\n"},
    ),
    FunctionRow(
        id="directory::skills::update",
        generations=(),
        handler=lambda parts: parts.authoring.update,
        long_fields=("content",),
        description="Replace the whole text of a skill of the skills folder. Read it first with "
        "directory::skills::get and raw, and pass its sha256 as expected_sha256, so that nothing is lost "
        f"when two write. Never creates: for that call directory::skills::create. {_ALLOWED}",
        request=request(
            {"id": SKILL_ID, "content": _CONTENT, "expected_sha256": _EXPECTED}, required=("id", "content")
        )
        | _CLOSED,
        response=_WRITTEN,
        metadata=_METADATA,
        example={"id": "notes/restoring", "content": "# Restoring\n\nAsk before you do.\n"},
    ),
    FunctionRow(
        id="directory::skills::delete",
        generations=(),
        handler=lambda parts: parts.authoring.delete,
        description="Delete a skill's file from the skills folder, with the folders it leaves empty. "
        "Other files of the skill stay. The reply tells what was there; to see what there is call "
        f"directory::skills::list. {_ALLOWED}",
        request=request({"id": SKILL_ID, "expected_sha256": _EXPECTED}, required=("id",)) | _CLOSED,
        response=_WRITTEN,
        metadata=_METADATA,
        example={"id": "notes/outdated"},
    ),
)
