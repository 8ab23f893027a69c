"""What the listing functions answer: one row a document, made once and shared by every answer after. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from iii_directory.catalog.skills import documents_of_skill, file_count, is_skill
from iii_directory.documents.ids import RESERVED_IDS
from iii_directory.documents.provenance import META_KEY
from iii_directory.documents.uris import SCHEME

if TYPE_CHECKING:
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Prompt, PromptArgument, Skill
    from iii_directory.documents.provenance import Provenance

Row = dict[str, Any]

MARKDOWN: Final = "text/markdown"
INDEX_RESOURCE: Final[Row] = {
    "uri": f"{SCHEME}skills",
    "name": "skills",
    "description": "Every skill of this directory in one tree, with links to each.",
    "mimeType": MARKDOWN,
}


def list_skills(
    snapshot: Snapshot,
    *,
    search: str | None = None,
    prefix: str | None = None,
    type_: str | None = None,
    include_description: bool = True,
    skills_only: bool = False,
) -> list[Row]:
    """The rows of ``directory::skills::list``; every filter given must hold.

    With ``skills_only`` one row for each skill, which says how many documents and files it has.
    """
    make = directory_row if include_description else light_row
    rows = snapshot.rows_of(prefix, make) if prefix else snapshot.skills.column(make)
    if search is not None or type_ is not None:
        needle = None if search is None else search.casefold()
        rows = [
            row
            for row in rows
            if (type_ is None or row["type"] == type_) and (needle is None or _mentions(row, needle))
        ]
    if not skills_only:
        return rows
    if rows is snapshot.skills.column(make):
        return snapshot.once(_all_skill_rows if include_description else _all_light_skill_rows)
    return _skill_rows(snapshot, rows)


def plain_rows(snapshot: Snapshot) -> list[Row]:
    """The rows of ``skills::list``."""
    return snapshot.skills.column(plain_row)


def resource_rows(snapshot: Snapshot) -> list[Row]:
    """The entries of ``skills::resources-list``: the index, then every skill that has an address."""
    return [INDEX_RESOURCE, *(row for row in snapshot.skills.column(resource_row) if row is not None)]


def list_prompts(snapshot: Snapshot) -> list[Row]:
    """The rows of ``directory::prompts::list``."""
    return snapshot.prompts.column(directory_prompt_row)


def plain_prompt_rows(snapshot: Snapshot) -> list[Row]:
    """The rows of ``prompts::list``."""
    return snapshot.prompts.column(plain_prompt_row)


def mcp_prompt_rows(snapshot: Snapshot) -> list[Row]:
    """The entries of ``prompts::mcp-list``."""
    return snapshot.prompts.column(mcp_prompt_row)


def skill_reply(snapshot: Snapshot, skill: Skill, body: str) -> Row:
    """The answer of ``directory::skills::get``."""
    return {
        "id": snapshot.display_id(skill),
        "title": skill.title,
        "type": skill.type,
        "function_id": skill.function_id,
        "body": body,
        "modified_at": skill.modified_at,
        "provenance": skill.provenance.as_json(),
    }


def prompt_reply(prompt: Prompt, body: str) -> Row:
    """The answer of ``directory::prompts::get``."""
    return {
        "name": prompt.name,
        "description": prompt.description,
        "body": body,
        "modified_at": prompt.modified_at,
        "provenance": prompt.provenance.as_json(),
    }


def directory_row(key: str, skill: Skill) -> Row:
    row: Row = {
        "id": key,
        "title": skill.title,
        "type": skill.type,
        "function_id": skill.function_id,
        "description": skill.description,
        "bytes": skill.bytes,
        "modified_at": skill.modified_at,
        "provenance": skill.provenance.as_json(),
    }
    if skill.name is not None:
        row["name"] = skill.name
    if skill.disable_model_invocation:
        row["disable_model_invocation"] = True
    if skill.provenance.root is not None:
        row["root"] = skill.provenance.root
    return row


def light_row(key: str, skill: Skill) -> Row:
    """The row of a listing without descriptions; the field stays, so that a reader finds it."""
    return directory_row(key, skill) | {"description": ""}


def plain_row(key: str, skill: Skill) -> Row:
    return directory_row(key, skill) | {"registered_at": skill.modified_at, "source": skill.source}


def resource_row(key: str, skill: Skill) -> Row | None:
    address = address_of(key, skill)
    if address is None:
        return None
    return {"uri": address, "name": skill.title, "mimeType": MARKDOWN, "_meta": meta_of(skill.provenance)}


def meta_of(provenance: Provenance) -> Row:
    """What MCP clients find in ``_meta`` of a document."""
    return {META_KEY: provenance.as_json()}


def address_of(key: str, skill: Skill) -> str | None:
    """The URI of a skill shown as ``key``; where the index is in its way, by its full id or not at all."""
    if key not in RESERVED_IDS:
        return SCHEME + key
    return None if skill.id in RESERVED_IDS else SCHEME + skill.id


def directory_prompt_row(_: str, prompt: Prompt) -> Row:
    return {
        "name": prompt.name,
        "description": prompt.description,
        "modified_at": prompt.modified_at,
        "provenance": prompt.provenance.as_json(),
    }


def plain_prompt_row(_: str, prompt: Prompt) -> Row:
    return {
        "name": prompt.name,
        "description": prompt.description,
        "function_id": prompt.function_id,
        "arguments": len(prompt.arguments),
        "registered_at": prompt.modified_at,
        "modified_at": prompt.modified_at,
        "source": prompt.source,
        "provenance": prompt.provenance.as_json(),
    }


def mcp_prompt_row(_: str, prompt: Prompt) -> Row:
    return {
        "name": prompt.name,
        "description": prompt.description,
        "arguments": [_mcp_argument(argument) for argument in prompt.arguments],
        "_meta": meta_of(prompt.provenance),
    }


def _mcp_argument(argument: PromptArgument) -> Row:
    row: Row = {"name": argument.name, "required": argument.required}
    if argument.description is not None:
        row["description"] = argument.description
    return row


def _all_skill_rows(snapshot: Snapshot) -> list[Row]:
    return _skill_rows(snapshot, snapshot.skills.column(directory_row))


def _all_light_skill_rows(snapshot: Snapshot) -> list[Row]:
    return _skill_rows(snapshot, snapshot.skills.column(light_row))


def _skill_rows(snapshot: Snapshot, rows: list[Row]) -> list[Row]:
    found: list[Row] = []
    for row in rows:
        skill = snapshot.find(row["id"])
        if skill is not None and is_skill(snapshot, skill):
            documents = len(documents_of_skill(snapshot, skill))
            found.append(row | {"documents": documents, "files": file_count(snapshot, skill)})
    return found


def _mentions(row: Row, needle: str) -> bool:
    return needle in row["id"] or needle in row["title"].casefold() or needle in row["description"].casefold()
