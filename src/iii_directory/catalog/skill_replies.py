"""Build the answers of the functions that list and read skills and prompts. Pure.

Every reply is a function of one view of the catalogue and the payload. The worker answers with them on an
engine, and the command line without one, so both say the same. A row is built once for each document and
shared by all answers until the document changes.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from iii_directory.catalog import skill_folders
from iii_directory.catalog.file_replies import file_as_text
from iii_directory.catalog.resolve import FoundFile, Undocumented, find_prompt, resolve_skill
from iii_directory.catalog.skill_indexes import registered_prompt_body, worker_overview, workers_index
from iii_directory.documents.ids import namespace_of
from iii_directory.documents.model import META_KEY
from iii_directory.documents.payload_fields import choice, flag, optional_text, text
from iii_directory.documents.uris import SCHEME, SECTION_TEMPLATE, SKILL_TEMPLATE, address_of
from iii_directory.limits import QUOTED_CHARS
from iii_directory.text import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.catalog.view import CatalogueView
    from iii_directory.documents.model import Prompt, Provenance, Skill

    Payload = Mapping[str, Any]


Row = dict[str, Any]

MARKDOWN: Final = "text/markdown"
INDEX_RESOURCE: Final[Row] = {
    "uri": f"{SCHEME}skills",
    "name": "skills",
    "description": "Every skill of this directory in one tree, with links to each.",
    "mimeType": MARKDOWN,
}
# Keys of the front matter that have a field of their own in the answer.
_SHOWN_ELSEWHERE: Final = frozenset({"title", "type", "function_id", "description"})
_TEMPLATES: Final[list[Row]] = [
    {
        "uriTemplate": SKILL_TEMPLATE,
        "name": "skill",
        "description": "The body of one skill, by its id.",
        "mimeType": MARKDOWN,
    },
    {
        "uriTemplate": SECTION_TEMPLATE,
        "name": "section",
        "description": "What a function answers to {}; its id with '/' in place of '::'.",
        "mimeType": MARKDOWN,
    },
]


# Rows, one for each document


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
    """Build the row of a listing without descriptions; the field stays, but is empty."""
    return directory_row(key, skill) | {"description": ""}


def plain_row(key: str, skill: Skill) -> Row:
    source = "registered" if skill.path is None else "folder"
    return directory_row(key, skill) | {"registered_at": skill.modified_at, "source": source}


def resource_row(key: str, skill: Skill) -> Row | None:
    address = address_of(key, skill)
    if address is None:
        return None
    return {"uri": address, "name": skill.title, "mimeType": MARKDOWN, "_meta": meta_of(skill.provenance)}


def meta_of(provenance: Provenance) -> Row:
    """Build the ``_meta`` of a document for MCP clients."""
    return {META_KEY: provenance.as_json()}


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
        "source": "registered" if prompt.path is None else "folder",
        "provenance": prompt.provenance.as_json(),
    }


def mcp_prompt_row(_: str, prompt: Prompt) -> Row:
    return {
        "name": prompt.name,
        "description": prompt.description,
        "arguments": [
            {"name": argument.name, "required": argument.required}
            | ({} if argument.description is None else {"description": argument.description})
            for argument in prompt.arguments
        ],
        "_meta": meta_of(prompt.provenance),
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
    """Return the rows of ``directory::skills::list`` to which all given filters apply.

    With ``skills_only`` there is one row for each skill, which counts its documents and files.
    """
    make = directory_row if include_description else light_row
    rows = snapshot.rows_of(prefix, make) if prefix else snapshot.skills.column(make)
    if search is not None or type_ is not None:
        needle = "" if search is None else search.casefold()
        rows = [
            row
            for row in rows
            if (type_ is None or row["type"] == type_)
            and (
                needle in row["id"]
                or needle in row["title"].casefold()
                or needle in row["description"].casefold()
            )
        ]
    if not skills_only:
        return rows
    whole = rows is snapshot.skills.column(make)
    known: dict[Callable[[str, Skill], Row], list[Row]] = snapshot.computed.setdefault(list_skills, {})
    if whole and make in known:
        return known[make]
    found: list[Row] = []
    for row in rows:
        skill = snapshot.find(row["id"])
        if skill is not None and skill_folders.is_skill(snapshot, skill):
            documents = len(skill_folders.documents_of_skill(snapshot, skill))
            found.append(row | {"documents": documents, "files": skill_folders.file_count(snapshot, skill)})
    if whole:
        known[make] = found
    return found


def resource_rows(snapshot: Snapshot) -> list[Row]:
    """Return the entries of ``skills::resources-list``: the index, then every skill that has an address."""
    return [INDEX_RESOURCE, *(row for row in snapshot.skills.column(resource_row) if row is not None)]


# Answers about skills


def skills_index(view: CatalogueView, _: Payload) -> Row:
    """Answer ``directory::skills::index``."""
    return workers_index(view.listed)._asdict()


def skills_list(view: CatalogueView, payload: Payload) -> Row:
    """Answer ``directory::skills::list``."""
    found = list_skills(
        view.listed,
        search=optional_text(payload, "search"),
        prefix=optional_text(payload, "prefix"),
        type_=optional_text(payload, "type"),
        include_description=flag(payload, "include_description", default=True),
        skills_only=choice(payload, "kind", ("skill", "document")) == "skill",
    )
    if found or not payload.get("search"):
        rows = _with_gone_marked(view, found, (namespace_of(row["id"]) for row in found))
        hidden = _hidden_ids(view)
        return {"skills": rows, **({"hidden": len(hidden)} if hidden else {})}
    asked = json.dumps({"query": cut(payload["search"], QUOTED_CHARS)}, ensure_ascii=False)
    return {"skills": [], "next": f"call directory::search {asked} to look for the words one by one"}


def skills_hidden(view: CatalogueView, _: Payload) -> Row:
    """Answer ``directory::skills::hidden``."""
    hidden = _hidden_ids(view)
    return {"skills": [row for row in list_skills(view.snapshot, skills_only=True) if row["id"] in hidden]}


def _hidden_ids(view: CatalogueView) -> frozenset[str]:
    """Return the ids of the skills that are served by name only, because of the table ``visibility``."""
    if view.offered is None:
        return frozenset()
    listed = {key for key, _ in skill_folders.every_skill(view.offered)}
    return frozenset(key for key, _ in skill_folders.every_skill(view.snapshot) if key not in listed)


def _with_gone_marked(view: CatalogueView, rows: list[Row], homes: Iterable[str]) -> list[Row]:
    """Mark the rows whose worker has left: the registrant, or for a file the worker of its namespace.

    The other rows may be shared with later replies, and so may the whole list where no worker has left.
    """
    if not view.left:
        return rows
    marked: list[Row] = []
    for row, home in zip(rows, homes, strict=True):
        source = row["provenance"]
        gone = source["state"] == "gone" if source["kind"] == "registered" else home in view.left
        marked.append({**row, "connected": False} if gone else row)
    return marked


def skill(view: CatalogueView, payload: Payload) -> Row | Undocumented:
    """Answer ``directory::skills::get``, except for an installed worker without documents: see `overview`."""
    asked, with_raw = text(payload, "id"), flag(payload, "raw", default=False)
    target = resolve_skill(view.snapshot, asked, view.installed or frozenset())
    if isinstance(target, Undocumented):
        return target
    if isinstance(target, FoundFile):
        return file_as_text(view, target.path, with_raw=with_raw)
    found, document = target.skill, view.read_document(target.skill)
    part_of = skill_folders.skill_of(view.snapshot, found)
    reply: Row = {
        "id": view.snapshot.display_id(found),
        "title": found.title,
        "type": found.type,
        "function_id": found.function_id,
        "body": _behind(target.note, document.body),
        "modified_at": found.modified_at,
        "provenance": found.provenance.as_json(),
        "skill": None if part_of is None else view.snapshot.display_id(part_of),
        "front_matter": {
            key: value for key, value in document.front_matter.items() if key not in _SHOWN_ELSEWHERE
        },
    }
    if part_of is found:
        reply["files"] = skill_folders.file_count(view.snapshot, found)
    if with_raw:
        reply["raw"] = document.raw
        reply["sha256"] = hashlib.sha256(document.raw.encode(errors="surrogatepass")).hexdigest()
    return reply | view.files.place_of(found.path)


def overview(
    target: Undocumented, description: str, functions: Iterable[tuple[str, str]], modified_at: str
) -> Row:
    """Answer ``directory::skills::get`` for a worker without documents, from what the engine knows of it."""
    return {
        "id": target.worker,
        "title": target.worker,
        "type": "index",
        "function_id": None,
        "body": _behind(target.note, worker_overview(target.worker, description, functions)),
        "modified_at": modified_at,
    }


def _behind(note: str | None, body: str) -> str:
    return body if note is None else f"{note}\n\n{body}"


def plain_skills(view: CatalogueView, _: Payload) -> Row:
    """Answer ``skills::list``."""
    return {"skills": view.listed.skills.column(plain_row)}


def resources(view: CatalogueView, _: Payload) -> Row:
    """Answer ``skills::resources-list``."""
    return {"resources": resource_rows(view.listed)}


def resource_templates(_view: CatalogueView, _: Payload) -> Row:
    """Answer ``skills::resources-templates``."""
    return {"resourceTemplates": _TEMPLATES}


# Answers about prompts


def prompts_list(view: CatalogueView, _: Payload) -> Row:
    """Answer ``directory::prompts::list``."""
    prompts = view.listed.prompts
    homes = (namespace_of(prompt.path or "") for prompt in prompts.items)
    return {"prompts": _with_gone_marked(view, prompts.column(directory_prompt_row), homes)}


def prompt(view: CatalogueView, payload: Payload) -> Row:
    """Answer ``directory::prompts::get`` and ``prompts::get``."""
    found = find_prompt(view.snapshot, text(payload, "name"))
    body = view.read_prompt(found) if found.function_id is None else registered_prompt_body(found)
    return {
        "name": found.name,
        "description": found.description,
        "body": body,
        "modified_at": found.modified_at,
        "provenance": found.provenance.as_json(),
    }


def plain_prompts(view: CatalogueView, _: Payload) -> Row:
    """Answer ``prompts::list``."""
    return {"prompts": view.listed.prompts.column(plain_prompt_row)}


def mcp_prompts(view: CatalogueView, _: Payload) -> Row:
    """Answer ``prompts::mcp-list``."""
    return {"prompts": view.listed.prompts.column(mcp_prompt_row)}
