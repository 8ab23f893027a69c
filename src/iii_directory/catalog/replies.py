"""What the reading functions answer: each reply a function of one look and the payload. Pure.

The worker answers with them on an engine, and the command line where there is none, so both say the same.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from iii_directory.catalog import rows
from iii_directory.catalog.composed import registered_prompt_body, worker_overview, workers_index
from iii_directory.catalog.file_replies import file_as_text
from iii_directory.catalog.resolve import FoundFile, Undocumented, find_prompt, resolve_skill
from iii_directory.catalog.skills import file_count, skill_of
from iii_directory.documents.ids import namespace_of
from iii_directory.documents.payload_fields import choice, flag, optional_text, text
from iii_directory.documents.uris import SECTION_TEMPLATE, SKILL_TEMPLATE
from iii_directory.limits import QUOTED_CHARS
from iii_directory.text import cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from iii_directory.catalog.look import Look
    from iii_directory.catalog.rows import Row

    Payload = Mapping[str, Any]

# Keys of the front matter that have a field of their own.
_SHOWN_ELSEWHERE: Final = frozenset({"title", "type", "function_id", "description"})
_TEMPLATES: Final[list[Row]] = [
    {
        "uriTemplate": SKILL_TEMPLATE,
        "name": "skill",
        "description": "The body of one skill, by its id.",
        "mimeType": rows.MARKDOWN,
    },
    {
        "uriTemplate": SECTION_TEMPLATE,
        "name": "section",
        "description": "What a function answers to {}; its id with '/' in place of '::'.",
        "mimeType": rows.MARKDOWN,
    },
]


# Skills


def skills_index(look: Look, _: Payload) -> Row:
    """``directory::skills::index``"""
    return workers_index(look.listed)._asdict()


def skills_list(look: Look, payload: Payload) -> Row:
    """``directory::skills::list``"""
    found = rows.list_skills(
        look.listed,
        search=optional_text(payload, "search"),
        prefix=optional_text(payload, "prefix"),
        type_=optional_text(payload, "type"),
        include_description=flag(payload, "include_description", default=True),
        skills_only=choice(payload, "kind", ("skill", "document")) == "skill",
    )
    if found or not payload.get("search"):
        left = (_has_left(row, namespace_of(row["id"]), look) for row in found)
        return {"skills": _with_those_who_left(found, left) if look.left else found}
    asked = json.dumps({"query": cut(payload["search"], QUOTED_CHARS)}, ensure_ascii=False)
    return {"skills": [], "next": f"call directory::search {asked} to look for the words one by one"}


def _has_left(row: Row, home: str, look: Look) -> bool:
    """Whether the worker of a document left: its registrant, or of a file the worker of its namespace."""
    provenance = row["provenance"]
    return provenance["state"] == "gone" if provenance["kind"] == "registered" else home in look.left


def _with_those_who_left(found: list[Row], left: Iterable[bool]) -> list[Row]:
    """The rows, those of workers that are gone marked; others may be shared with later replies."""
    return [{**row, "connected": False} if gone else row for row, gone in zip(found, left, strict=True)]


def skill(look: Look, payload: Payload) -> Row | Undocumented:
    """``directory::skills::get``, but for an installed worker without a document: see `overview`."""
    asked, with_raw = text(payload, "id"), flag(payload, "raw", default=False)
    target = resolve_skill(look.snapshot, asked, look.installed or frozenset())
    if isinstance(target, Undocumented):
        return target
    if isinstance(target, FoundFile):
        return file_as_text(look, target.path, with_raw=with_raw)
    found, document = target.skill, look.read_document(target.skill)
    part_of = skill_of(look.snapshot, found)
    reply = rows.skill_reply(look.snapshot, found, target.opened(document.body))
    reply["skill"] = None if part_of is None else look.snapshot.display_id(part_of)
    reply["front_matter"] = {
        key: value for key, value in document.front_matter.items() if key not in _SHOWN_ELSEWHERE
    }
    if part_of is found:
        reply["files"] = file_count(look.snapshot, found)
    if with_raw:
        reply["raw"] = document.raw
        reply["sha256"] = hashlib.sha256(document.raw.encode(errors="surrogatepass")).hexdigest()
    return reply | look.files.place_of(found.path)


def overview(
    target: Undocumented, description: str, functions: Iterable[tuple[str, str]], modified_at: str
) -> Row:
    """``directory::skills::get`` for such a worker, out of what the engine knows of it."""
    body = worker_overview(target.worker, description, functions)
    return {
        "id": target.worker,
        "title": target.worker,
        "type": "index",
        "function_id": None,
        "body": target.opened(body),
        "modified_at": modified_at,
    }


def plain_skills(look: Look, _: Payload) -> Row:
    """``skills::list``"""
    return {"skills": rows.plain_rows(look.listed)}


def resources(look: Look, _: Payload) -> Row:
    """``skills::resources-list``"""
    return {"resources": rows.resource_rows(look.listed)}


def resource_templates(_look: Look, _: Payload) -> Row:
    """``skills::resources-templates``"""
    return {"resourceTemplates": _TEMPLATES}


# Prompts


def prompts_list(look: Look, _: Payload) -> Row:
    """``directory::prompts::list``"""
    found = rows.list_prompts(look.listed)
    if not look.left:
        return {"prompts": found}
    prompts = zip(found, look.listed.prompts.items, strict=True)
    left = (_has_left(row, namespace_of(prompt.path or ""), look) for row, prompt in prompts)
    return {"prompts": _with_those_who_left(found, left)}


def prompt(look: Look, payload: Payload) -> Row:
    """``directory::prompts::get`` and ``prompts::get``"""
    found = find_prompt(look.snapshot, text(payload, "name"))
    body = look.read_prompt(found) if found.function_id is None else registered_prompt_body(found)
    return rows.prompt_reply(found, body)


def plain_prompts(look: Look, _: Payload) -> Row:
    """``prompts::list``"""
    return {"prompts": rows.plain_prompt_rows(look.listed)}


def mcp_prompts(look: Look, _: Payload) -> Row:
    """``prompts::mcp-list``"""
    return {"prompts": rows.mcp_prompt_rows(look.listed)}
