"""Introspection: what is connected and registered, with the documents about it."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final

from iii_directory.documents.payload_fields import optional_text, optional_texts, optional_word, text
from iii_directory.errors import DirectoryError, invalid_field
from iii_directory.limits import MAX_FUNCTION_BATCH
from iii_directory.worker.engine_rows import matches

if TYPE_CHECKING:
    from iii_directory.bus.seam import Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.look import Look
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Skill
    from iii_directory.worker.engine_rows import Row
    from iii_directory.worker.engine_view import EngineView

HOW_TO: Final = "how-to"
_SECTION_LINK: Final = re.compile(r"iii://fn/([a-z0-9_/-]+)")


class Introspection:
    """The eight ``directory::*-list|-info`` functions and ``directory::engine::functions::info``."""

    def __init__(self, engine: EngineView, catalogue: Catalogue) -> None:
        self._engine = engine
        self._catalogue = catalogue
        self._linked_in: Snapshot | None = None
        self._links: dict[str, list[Skill]] = {}

    async def function_list(self, payload: Payload) -> Row:
        wanted = ("search", "prefix", "worker", "namespace")
        return {"functions": _filtered(await self._engine.functions(), payload, "function_id", wanted)}

    async def function_info(self, payload: Payload) -> Row:
        detail = await self._engine.function(
            text(payload, "function_id"), optional_word(payload, "namespace")
        )
        return {**detail, **await self._documents(detail)}

    async def engine_function_info(self, payload: Payload) -> Row:
        several = optional_texts(payload, "function_ids")
        if several:
            return {"functions": await self._several(several, optional_word(payload, "namespace"))}
        detail = await self.function_info(payload)
        del detail["name"]
        return detail

    async def trigger_list(self, payload: Payload) -> Row:
        wanted = ("search", "prefix", "worker", "namespace")
        return {"triggers": _filtered(await self._engine.trigger_types(), payload, "id", wanted)}

    async def trigger_info(self, payload: Payload) -> Row:
        return await self._engine.trigger_type(text(payload, "id"), optional_word(payload, "namespace"))

    async def registered_list(self, payload: Payload) -> Row:
        wanted = ("search", "prefix", "trigger_type", "function_id", "worker", "namespace")
        return {"registered_triggers": _filtered(await self._engine.bindings(), payload, "id", wanted)}

    async def registered_info(self, payload: Payload) -> Row:
        detail = await self._engine.binding(text(payload, "id"))
        if detail["function"] is not None:
            detail["function"] |= await self._documents(detail["function"])
        return detail

    async def worker_list(self, payload: Payload) -> Row:
        wanted = ("search", "prefix", "runtime", "status", "namespace")
        return {"workers": _filtered(await self._engine.workers(), payload, "name", wanted)}

    async def worker_info(self, payload: Payload) -> Row:
        name = text(payload, "name")
        detail = await self._engine.worker(name, optional_word(payload, "namespace"))
        return {**detail, **_written_about(await self._catalogue.look(), name)}

    async def _several(self, function_ids: list[str], namespace: str | None) -> list[Row]:
        if len(function_ids) > MAX_FUNCTION_BATCH:
            raise invalid_field("function_ids", f"a list of at most {MAX_FUNCTION_BATCH} function ids")
        found = await self._engine.functions_at_once(function_ids, namespace)
        rows = [row if "error" in row else {**row, **await self._documents(row)} for row in found]
        return [{key: value for key, value in row.items() if key != "name"} for row in rows]

    # Documents about a function

    async def _documents(self, detail: Row) -> dict[str, Any]:
        """The how-to of a function and what else is written about it, where there is any."""
        function_id = detail["function_id"]
        look = await self._catalogue.look()
        snapshot = look.listed
        # Any worker may register a document about any function, so the operator's come first.
        about = sorted(
            snapshot.documenting(function_id),
            key=lambda s: (s.provenance.order, _closeness(s, function_id)),
        )
        linking = [s for s in (await self._linking(look)).get(function_id, ()) if s not in about]
        guide = next((s for s in about + linking if s.type == HOW_TO), None)
        found: dict[str, Any] = {}
        if guide is not None:
            try:
                found["how_guide"] = {
                    "skill_id": snapshot.display_id(guide),
                    "title": guide.title,
                    "body": look.read_skill(guide),
                    "provenance": guide.provenance.as_json(),
                }
            except DirectoryError:
                guide = None  # its file went just now
        overview = snapshot.find(str(detail["worker_name"])) if detail["worker_name"] else None
        related = [s for s in (*about, *linking, *([overview] if overview else [])) if s is not guide]
        if related:
            found["related_skills"] = [
                {"id": snapshot.display_id(s), "title": s.title, "provenance": s.provenance.as_json()}
                for s in dict.fromkeys(related)
            ]
        return found

    async def _linking(self, look: Look) -> dict[str, list[Skill]]:
        """How-tos by the functions their bodies link to; read once for each snapshot, in a thread."""
        if self._linked_in is not look.listed:
            self._links = await asyncio.to_thread(_read_links, look)
            self._linked_in = look.listed
        return self._links


def _read_links(look: Look) -> dict[str, list[Skill]]:
    links: dict[str, list[Skill]] = {}
    for skill in look.listed.skills.items:
        if skill.type != HOW_TO:
            continue
        try:
            body = look.read_skill(skill)
        except DirectoryError:
            continue
        for path in dict.fromkeys(_SECTION_LINK.findall(body)):
            links.setdefault(path.strip("/").replace("/", "::"), []).append(skill)
    return links


def _written_about(look: Look, worker: str) -> Row:
    """The documents of a worker: those in the namespace that is called like it."""
    snapshot = look.listed
    overview = snapshot.find(worker)
    skills = [*([overview] if overview else []), *snapshot.skills_below(worker)]
    return {
        "skills": [
            {"id": snapshot.display_id(s), "title": s.title, "provenance": s.provenance.as_json()}
            for s in dict.fromkeys(skills)
        ],
        "prompts": [
            {"name": prompt.name, "description": prompt.description}
            for prompt in snapshot.prompts.items
            if (prompt.path or prompt.function_id or "").replace("::", "/").startswith(f"{worker}/")
        ],
    }


def _closeness(skill: Skill, function_id: str) -> tuple[bool, bool, str]:
    return skill.type != HOW_TO, skill.function_id != function_id, skill.id


def _filtered(rows: list[Row], payload: Payload, identifier: str, keys: tuple[str, ...]) -> list[Row]:
    """The rows that pass every filter, sorted by what they are called, and then by their ids."""
    filters = {key: optional_text(payload, key) for key in keys}
    found = [row for row in rows if matches(row, filters, identifier)]
    return sorted(found, key=lambda row: (str(row[identifier]), str(row.get("id"))))
