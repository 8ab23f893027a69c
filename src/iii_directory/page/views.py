"""Collect what each view shows by calling the directory's own functions.

A view is plain data: the JSON twin prints it, the HTML and Markdown templates render it. The page knows
nothing that these functions do not tell, so it works on the embedded engine and on any other.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from iii_directory.shapes import items_of, object_of, rows_of
from iii_directory.text import skeleton

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from iii_directory.shapes import Json

PAGE_ROWS: Final = 60
_LATEST: Final = 8
_FACETS: Final = ("source", "type", "worker", "root")
KINDS: Final = ("skill", "prompt", "function", "trigger", "worker", "installable")
# The names of sources in headings and filters, in the order of trust.
SOURCES: Final = {
    "file": "Your files",
    "installed": "Installed",
    "written": "Written by agents",
    "registered": "Registered by workers",
    "built-in": "Built in",
}


class CallFailedError(Exception):
    """A function of the directory answered with an error."""

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing
        """True if the asked document, function or worker does not exist."""


class Caller(Protocol):
    """Calls functions of the directory."""

    async def __call__(self, function_id: str, payload: Mapping[str, Any]) -> Any:
        """Return the answer of a function that only reads; raise `CallFailedError`."""
        ...


@dataclass(frozen=True, slots=True)
class View:
    """The data of one view and the name of its templates."""

    template: str
    title: str
    data: Json
    status: int = 200
    twins: bool = True
    extra: Json = field(default_factory=dict[str, Any])
    """Values for the HTML template that are not part of the data, such as the token of a form."""


class Views:
    """Makes the views out of calls."""

    def __init__(self, call: Caller) -> None:
        self._call = call

    async def overview(self) -> View:
        """Count everything, with what needs attention and what changed last."""
        skills, prompts, functions, workers, health = await asyncio.gather(
            self._rows("directory::skills::list", "skills", kind="skill"),
            self._rows("directory::prompts::list", "prompts"),
            self._rows("directory::function-list", "functions"),
            self._rows("directory::worker-list", "workers"),
            self._call("directory::diagnostics", {"limit": _LATEST}),
        )
        latest = sorted(skills, key=lambda row: str(row.get("modified_at")), reverse=True)
        return View(
            "overview",
            "What agents can do here",
            {
                "counts": {
                    "skills": len(skills),
                    "documents": sum(int(row.get("documents", 1)) for row in skills),
                    "prompts": len(prompts),
                    "functions": len(functions),
                    "workers": len(workers),
                },
                "attention": object_of(health).get("attention", 0),
                "findings": rows_of(health, "findings"),
                "latest": [_with_source(row) for row in latest[:_LATEST]],
                "sources": Counter(_with_source(row)["source"] for row in skills),
            },
        )

    async def search(self, query: str, kind: str | None) -> View:
        """Rank everything for a sentence."""
        data: Json = {"query": query, "kind": kind, "results": [], "nearest": [], "fits": None}
        if query.strip():
            asked: Json = {"query": query, "limit": 10, "budget_chars": 32_768}
            if kind in KINDS:
                asked["kinds"] = [kind]
            answer = object_of(await self._call("directory::search", asked))
            results = rows_of(answer, "results")
            data["corrected"] = object_of(answer.get("corrected"))
            data["fits"] = any(result.get("fits") for result in results)
            data["next"] = " ".join(str(result.get("next") or "") for result in results).strip()
            data["results"] = [
                {
                    **hit,
                    "kind": section.get("kind"),
                    "href": _href(str(section.get("kind")), str(hit.get("id"))),
                }
                for result in results
                for section in rows_of(result, "sections")
                for hit in rows_of(section, "hits")
            ]
            data["nearest"] = [
                {**hit, "href": _href(str(hit.get("kind")), str(hit.get("id")))}
                for result in results
                for hit in rows_of(result, "nearest")
            ]
        return View("search", f"{query}: search" if query else "Search", data)

    async def skills(self, chosen: Mapping[str, str], page: int) -> View:
        """List one page of skills, filtered by facets."""
        rows = [
            _with_source(row) for row in await self._rows("directory::skills::list", "skills", kind="skill")
        ]
        wanted = {facet: chosen[facet] for facet in _FACETS if chosen.get(facet)}
        kept = [row for row in rows if all(str(row.get(facet)) == value for facet, value in wanted.items())]
        words = chosen.get("search", "").strip()
        if words:
            folded = skeleton(words)
            kept = [
                row for row in kept if folded in skeleton(f"{row['id']} {row['title']} {row['description']}")
            ]
        kept.sort(key=lambda row: (list(SOURCES).index(row["source"]), row["id"]))
        pages = max(1, math.ceil(len(kept) / PAGE_ROWS))
        page = min(max(page, 1), pages)
        facets = {
            facet: Counter(str(row[facet]) for row in rows if row.get(facet)).most_common(12)
            for facet in _FACETS
        }
        return View(
            "skills",
            "Skills",
            {
                "skills": kept[(page - 1) * PAGE_ROWS : page * PAGE_ROWS],
                "total": len(kept),
                "all": len(rows),
                "page": page,
                "pages": pages,
                "chosen": wanted,
                "search": words,
                "facets": {facet: counts for facet, counts in facets.items() if len(counts) > 1},
            },
        )

    async def skill(self, skill_id: str) -> View:
        """Read a skill with its files, pages, facts and cost."""
        document = object_of(await self._call("directory::skills::get", {"id": skill_id, "raw": True}))
        found = str(document.get("id") or skill_id)
        files, pages, facts = await asyncio.gather(
            self._optional("directory::skills::files", {"id": found}),
            self._rows("directory::skills::list", "skills", prefix=f"{found}/"),
            self._optional("directory::skills::facts", {"id": found}),
        )
        data = {
            **_with_source(document),
            "uri": f"iii://{found}",
            "file_rows": rows_of(files, "files"),
            "pages": [row for row in pages if row.get("id") != found],
            "facts": object_of(object_of(facts).get("facts")),
            "facts_findings": rows_of(facts, "findings"),
            "tokens": _tokens(document, rows_of(files, "files")),
        }
        return View("skill", str(document.get("title") or found), data)

    async def file(self, skill_id: str, path: str, offset: int = 0) -> Json:
        """Read a page of a skill's file."""
        asked = {"id": skill_id, "path": path, "offset": offset}
        return object_of(await self._call("directory::skills::file", asked))

    async def prompts(self) -> View:
        """List the prompts."""
        return View("prompts", "Prompts", {"prompts": await self._rows("prompts::mcp-list", "prompts")})

    async def prompt(self, name: str) -> View:
        """Read a prompt with its arguments."""
        listed, read = await asyncio.gather(
            self._rows("prompts::mcp-list", "prompts"),
            self._optional("directory::prompts::get", {"name": name}),
        )
        row = next((row for row in listed if row.get("name") == name), None)
        if row is None:
            raise CallFailedError(f"there is no prompt called {name}", missing=True)
        body = object_of(read)
        return View(
            "prompt",
            name,
            {**row, **{key: body[key] for key in ("body", "modified_at", "provenance") if key in body}},
        )

    async def functions(self) -> View:
        """List the functions, grouped by worker."""
        rows = await self._rows("directory::function-list", "functions")
        shown = [row for row in rows if not str(row.get("name", "")).startswith("__")]
        groups: dict[str, list[Json]] = {}
        for row in shown:
            groups.setdefault(str(row.get("worker_name") or "unknown"), []).append(row)
        return View(
            "functions",
            "Functions",
            {"groups": dict(sorted(groups.items())), "total": len(shown), "hidden": len(rows) - len(shown)},
        )

    async def function(self, function_id: str) -> View:
        """Describe a function with its schemas and an example call."""
        info = object_of(await self._call("directory::function-info", {"function_id": function_id}))
        properties = object_of(object_of(info.get("request_schema")).get("properties"))
        required = {str(one) for one in items_of(object_of(info.get("request_schema")).get("required"))}
        example = {
            name: _example(object_of(schema)) for name, schema in properties.items() if name in required
        }
        return View("function", function_id, {**info, "example": example})

    async def workers(self) -> View:
        """List connected and known workers."""
        return View("workers", "Workers", {"workers": await self._rows("directory::worker-list", "workers")})

    async def worker(self, name: str) -> View:
        """Describe a worker with its functions, skills and prompts."""
        return View("worker", name, object_of(await self._call("directory::worker-info", {"name": name})))

    async def registry(self, search: str) -> View:
        """List published workers."""
        data: Json = {"search": search, "workers": [], "problem": None}
        try:
            answer = await self._call(
                "directory::registry::workers::list", {"search": search} if search else {}
            )
            data |= object_of(answer)
        except CallFailedError as error:
            data["problem"] = str(error)
        return View("registry", "Registry", data)

    async def published(self, name: str) -> View:
        """Describe a published worker."""
        info = object_of(await self._call("directory::registry::workers::info", {"name": name}))
        return View("published", name, {"name": name, **info})

    async def diagnostics(self) -> View:
        """List everything that needs attention."""
        answer = object_of(await self._call("directory::diagnostics", {}))
        return View("diagnostics", "Diagnostics", {**answer, "findings": rows_of(answer, "findings")})

    async def readiness(self) -> dict[str, str]:
        """Tell the state of each part: engine, worker, folder, state and registry."""
        names: tuple[str, ...] = ("engine", "worker", "folder", "state", "registry")
        parts: dict[str, str] = dict.fromkeys(names, "unavailable")
        try:
            answer = await self._call("directory::diagnostics", {})
        except CallFailedError as error:
            return {**parts, "engine": "ok" if error.missing else "unavailable"}
        parts |= {"engine": "ok", "worker": "ok", "folder": "followed", "state": "ok", "registry": "ok"}
        for row in rows_of(answer, "findings"):
            if row.get("kind") == "watch":
                parts["folder"] = "rescanned"
            elif row.get("kind") == "unavailable" and row.get("subject") == "iii-state":
                parts["state"] = "unavailable"
            elif row.get("kind") == "unavailable" and "registry" in str(row.get("subject")):
                # Published workers are not needed to serve what is here.
                parts["registry"] = "not reached"
        return parts

    async def metrics(self) -> list[Json]:
        """Return the counters of the directory."""
        return rows_of(await self._call("directory::metrics", {}), "metrics")

    async def usage(self) -> View:
        """Show what was offered, read and used, and the searches that found nothing."""
        answer = await self._optional("directory::skills::usage", {})
        return View("usage", "Usage", {"known": answer is not None, **object_of(answer)})

    async def _rows(self, function_id: str, key: str, **payload: Any) -> list[Json]:
        return rows_of(await self._call(function_id, payload), key)

    async def _optional(self, function_id: str, payload: Mapping[str, Any]) -> Any:
        """Call a function that another generation of the directory may not have."""
        try:
            return await self._call(function_id, payload)
        except CallFailedError:
            return None


def _with_source(row: Json) -> Json:
    """Add the fields that facets filter by: the kind of source and the worker."""
    known = object_of(row.get("provenance"))
    kind = str(known.get("kind") or ("file" if row.get("root") else "registered"))
    worker = known.get("worker") or (
        str(row.get("id", "")).partition("/")[0] if kind == "registered" else None
    )
    return {**row, "source": kind if kind in SOURCES else "registered", "worker": worker}


def _tokens(document: Json, files: list[Json]) -> dict[str, int]:
    """Estimate what a document costs a model: to read it, and with every text file of the skill."""
    readable = [row for row in files if str(row.get("media_type")).startswith(("text/", "application/json"))]
    read = len(str(document.get("raw") or document.get("body") or "")) // 4
    return {"read": read, "whole": max(read, sum(int(row.get("bytes") or 0) for row in readable) // 4)}


def _href(kind: str, found: str) -> str | None:
    place = {
        "skill": "skills",
        "prompt": "prompts",
        "function": "functions",
        "worker": "workers",
        "installable": "registry",
    }.get(kind)
    return None if place is None else f"/{place}/{found}"


def _example(schema: Json) -> Any:
    """Make an example value for a required argument."""
    if "default" in schema:
        return schema["default"]
    if choices := items_of(schema.get("enum")):
        return choices[0]
    kinds: Iterable[object] = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    values: Mapping[object, Any] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    return next((values[kind] for kind in kinds if kind in values), "…")
