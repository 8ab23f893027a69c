"""Answer questions about the engine and about the directory itself, with the documents about them."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from iii_directory.catalog.explain import explanation
from iii_directory.documents.payload_fields import flag, optional_text, optional_texts, optional_word, text
from iii_directory.errors import DirectoryError, invalid_field
from iii_directory.limits import MAX_FUNCTION_BATCH
from iii_directory.mcp.exposure import exposed, tool_row
from iii_directory.worker.engine_view import EngineView, matches

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

    from iii_directory.bus.seam import Function, Handler, Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.catalog.view import CatalogueView
    from iii_directory.documents.model import Finding, Skill
    from iii_directory.install.writes import Edits
    from iii_directory.worker.engine_view import Row
    from iii_directory.worker.installed_workers import InstalledWorkers
    from iii_directory.worker.served_skills import Targets
    from iii_directory.worker.usage import CallMetrics

HOW_TO: Final = "how-to"
LISTS: Final[Mapping[str, tuple[Callable[[EngineView], Awaitable[list[Row]]], str, tuple[str, ...]]]] = {
    "functions": (EngineView.functions, "function_id", ("search", "prefix", "worker", "namespace")),
    "triggers": (EngineView.trigger_types, "id", ("search", "prefix", "worker", "namespace")),
    "registered_triggers": (
        EngineView.bindings,
        "id",
        ("search", "prefix", "trigger_type", "function_id", "worker", "namespace"),
    ),
    "workers": (EngineView.workers, "name", ("search", "prefix", "runtime", "status", "namespace")),
}
"""What can be listed, by its name in the reply: what fetches it, the field that names a row, and filters."""
_SECTION_LINK: Final = re.compile(r"iii://fn/([a-z0-9_/-]+)")


@dataclass(eq=False)
class EngineHandlers:
    """Answers ``directory::*-list|-info`` and ``directory::engine::functions::info``."""

    _engine: EngineView
    _catalogue: Catalogue
    _links: tuple[Snapshot | None, dict[str, list[Skill]]] = (None, {})
    """How-tos of a snapshot by the functions their bodies link to."""

    def lister(self, what: str) -> Handler:
        """Return what answers a list of ``LISTS``: the rows that pass every filter, sorted by name and id."""
        fetch, identifier, keys = LISTS[what]

        async def listed(payload: Payload) -> Row:
            filters = {key: optional_text(payload, key) for key in keys}
            rows = [row for row in await fetch(self._engine) if matches(row, filters, identifier)]
            return {what: sorted(rows, key=lambda row: (str(row[identifier]), str(row.get("id"))))}

        return listed

    async def function_info(self, payload: Payload) -> Row:
        namespace = optional_word(payload, "namespace")
        detail = await self._engine.function(text(payload, "function_id"), namespace)
        return {**detail, **await self._documents(detail)}

    async def engine_function_info(self, payload: Payload) -> Row:
        several = optional_texts(payload, "function_ids")
        if several:
            if len(several) > MAX_FUNCTION_BATCH:
                raise invalid_field("function_ids", f"a list of at most {MAX_FUNCTION_BATCH} function ids")
            found = await self._engine.functions_at_once(several, optional_word(payload, "namespace"))
            rows = [row if "error" in row else {**row, **await self._documents(row)} for row in found]
            return {"functions": [{key: row[key] for key in row if key != "name"} for row in rows]}
        detail = await self.function_info(payload)
        del detail["name"]
        return detail

    async def trigger_info(self, payload: Payload) -> Row:
        return await self._engine.trigger_type(text(payload, "id"), optional_word(payload, "namespace"))

    async def registered_info(self, payload: Payload) -> Row:
        detail = await self._engine.binding(text(payload, "id"))
        if detail["function"] is not None:
            detail["function"] |= await self._documents(detail["function"])
        return detail

    async def worker_info(self, payload: Payload) -> Row:
        name = text(payload, "name")
        detail = await self._engine.worker(name, optional_word(payload, "namespace"))
        snapshot = (await self._catalogue.current()).listed
        overview = snapshot.find(name)
        skills = [*([overview] if overview else []), *snapshot.skills_below(name)]
        prompts = [
            {"name": prompt.name, "description": prompt.description}
            for prompt in snapshot.prompts.items
            if (prompt.path or prompt.function_id or "").replace("::", "/").startswith(f"{name}/")
        ]
        return {**detail, "skills": _brief(snapshot, skills), "prompts": prompts}

    # Documents about a function

    async def _documents(self, detail: Row) -> dict[str, Any]:
        """Return the how-to of a function and the other documents about it, if there are any."""
        function_id = detail["function_id"]
        look = await self._catalogue.current()
        snapshot = look.listed
        # Any worker may register a document about any function, so the operator's come first.
        about = sorted(
            snapshot.documenting(function_id),
            key=lambda s: (s.provenance.order, s.type != HOW_TO, s.function_id != function_id, s.id),
        )
        if self._links[0] is not snapshot:
            self._links = snapshot, await asyncio.to_thread(_read_links, look)
        linking = [s for s in self._links[1].get(function_id, ()) if s not in about]
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
            found["related_skills"] = _brief(snapshot, related)
        return found


def _read_links(look: CatalogueView) -> dict[str, list[Skill]]:
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


def _brief(snapshot: Snapshot, skills: Iterable[Skill]) -> list[Row]:
    """Return rows that name some skills, each once."""
    return [
        {"id": snapshot.display_id(skill), "title": skill.title, "provenance": skill.provenance.as_json()}
        for skill in dict.fromkeys(skills)
    ]


@dataclass(eq=False)
class UpkeepHandlers:
    """Answers ``directory::diagnostics`` and ``metrics``, ``skills::explain``, ``budget`` and ``facts``."""

    _catalogue: Catalogue
    _engine: EngineView
    _edits: Edits
    _installed: InstalledWorkers
    _functions: Collection[Function]
    _metrics: CallMetrics
    _links: dict[str, Targets] = field(default_factory=dict[str, "Targets"])
    """Where the links of each document lead."""
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the one call that reads all texts of all skills: other readers need the threads."""

    async def diagnostics(self, payload: Payload) -> Row:
        with_check = flag(payload, "check", default=False)
        look = await self._catalogue.current()
        found = [*look.findings(), *await self._engine.findings(), *await self._edited(look)]
        if with_check:
            from iii_directory.worker.served_skills import objections

            async with self._reading:
                found += await asyncio.to_thread(objections, look)
        reply, told_by = look.report(found, payload), self._installed.asked_of
        return reply if told_by is None else {**reply, "installed_by": told_by}

    async def explain(self, payload: Payload) -> Row:
        look = await self._catalogue.current()
        return await asyncio.to_thread(explanation, look, payload, await self._edited(look))

    async def budget(self, _: Payload) -> Row:
        from iii_directory.worker.served_skills import budget

        async with self._reading:
            look = await self._catalogue.current()
            return await asyncio.to_thread(budget, look, tool_rows(self._functions))

    async def facts(self, payload: Payload) -> Row:
        from iii_directory.worker.served_skills import facts

        functions = {row["function_id"] for row in await self._engine.functions()}
        look = await self._catalogue.current()
        async with self._reading:
            return await asyncio.to_thread(facts, look, payload, functions)

    async def links(self, payload: Payload) -> Row:
        from iii_directory.worker.served_skills import linking

        async with self._reading:
            return await asyncio.to_thread(linking, await self._catalogue.current(), payload, self._links)

    async def metrics(self, _: Payload) -> Row:
        look = await self._catalogue.current()
        workers = await self._engine.workers()
        gauges: dict[str, tuple[str, float]] = {
            "documents": ("Documents that are served.", len(look.snapshot.skills)),
            "prompts": ("Prompts that are served.", len(look.snapshot.prompts)),
            "installed_namespaces": ("Installed namespaces.", len(look.lockfile.namespaces)),
            "connections": (
                "Workers that are connected to the engine.",
                sum(row.get("status") == "connected" for row in workers),
            ),
        }
        return {"metrics": self._metrics.report(gauges)}

    async def _edited(self, look: CatalogueView) -> list[Finding]:
        """Return findings about installed files that were edited by hand."""
        if not look.lockfile.namespaces:
            return []
        return await asyncio.to_thread(self._edits.findings, look.lockfile)


def tool_rows(functions: Iterable[Function]) -> list[Row]:
    """Return the rows by which MCP clients see those of our functions that are tools by default."""
    known = {function.id: function for function in functions}
    tools = exposed([{"function_id": key, "metadata": row.metadata} for key, row in known.items()], (), "")
    rows = ((tool, known[tool.function_id]) for tool in tools)
    return [
        tool_row(tool, {"description": row.description, "request_schema": row.request}) for tool, row in rows
    ]
