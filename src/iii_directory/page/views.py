"""Make the views of the web page out of calls of the directory's functions.

A view is plain data: the JSON twin prints it, the HTML and Markdown templates render it. The page knows
nothing that these functions do not tell, so it works on the embedded engine and on any other.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from dataclasses import dataclass, field
from heapq import nlargest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.documents.model import META_KEY
from iii_directory.limits import CHARS_PER_TOKEN
from iii_directory.shapes import items_of, object_of, rows_of
from iii_directory.text import skeleton

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from iii_directory.shapes import Json

    Caller = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
    """Calls a function of the directory with a payload; raises `CallFailedError`."""

PAGE_ROWS: Final = 60
_LATEST: Final = 8
_FACETS: Final = ("source", "type", "worker", "root")
_FACET_VALUES: Final = 12
KINDS: Final = ("skill", "prompt", "function", "trigger", "worker", "installable")
# The names of sources in headings and filters, in the order of trust.
SOURCES: Final = {
    "file": "Your files",
    "installed": "Installed",
    "written": "Written by agents",
    "registered": "Registered by workers",
    "built-in": "Built in",
}
_PLACES: Final = {
    "skill": "/skills/",
    "prompt": "/prompts/",
    "function": "/functions/",
    "worker": "/workers/",
    "installable": "/registry/",
}


class CallFailedError(Exception):
    """A function of the directory answered with an error."""

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing
        """True if the asked document, function or worker does not exist."""


@dataclass(frozen=True, slots=True)
class View:
    """The data of one view and the name of its templates."""

    template: str
    title: str
    data: Json
    status: int = 200
    twins: bool = True
    extra: Json = field(default_factory=dict[str, Any])
    """Values for the HTML template that are not part of the data, such as what a form was given."""


class Listing(NamedTuple):
    """The skills of one answer of the directory, put in order for people."""

    rows: list[Json]
    """By source and id, with the fields that facets filter by."""
    latest: list[Json]
    documents: int
    facets: dict[str, Counter[str]]
    installed: dict[str, Json]


@dataclass(eq=False)
class Views:
    """Makes the views out of calls."""

    _call: Caller
    _listed: tuple[object, Listing] | None = None
    """The rows of the last list, and the rows in order."""

    async def overview(self) -> View:
        """Count everything, with what needs attention and what changed last."""
        answer, prompts, functions, workers, health = await asyncio.gather(
            self._call("directory::skills::list", {"kind": "skill"}),
            self._rows("directory::prompts::list", "prompts"),
            self._rows("directory::function-list", "functions"),
            self._rows("directory::worker-list", "workers"),
            self._call("directory::diagnostics", {"limit": _LATEST, "attention": True}),
        )
        listing, kinds = self._listing(answer), object_of(object_of(health).get("counts"))
        data: Json = {
            "counts": {
                "skills": len(listing.rows),
                "documents": listing.documents,
                "prompts": len(prompts),
                "functions": len(functions),
                "workers": len(workers),
            },
            "hidden": object_of(answer).get("hidden", 0),
            "attention": object_of(health).get("attention", 0),
            "edited": kinds.get("edited", 0),
            "published": len(listing.installed),
            "findings": rows_of(health, "findings"),
            "latest": listing.latest,
            "sources": listing.facets["source"],
        }
        return View("overview", "What agents can do here", data)

    async def search(self, query: str, kind: str | None) -> View:
        """Rank everything for a sentence, as agents would get it."""
        data: Json = {"query": query, "kind": kind, "results": [], "nearest": [], "fits": None}
        if query.strip():
            asked: Json = {"query": query, "limit": 10, "budget_chars": 32_768}
            if kind in KINDS:
                asked["kinds"] = [kind]
            answer = object_of(await self._call("directory::search", asked))
            results = rows_of(answer, "results")
            hits = [
                {**hit, "kind": section.get("kind")}
                for result in results
                for section in rows_of(result, "sections")
                for hit in rows_of(section, "hits")
            ]
            nearest = [hit for result in results for hit in rows_of(result, "nearest")]
            data |= {
                "corrected": object_of(answer.get("corrected")),
                "fits": any(result.get("fits") for result in results),
                "next": " ".join(str(result.get("next") or "") for result in results).strip(),
                "results": [_with_call(hit) for hit in hits],
                "nearest": [_with_call(hit) for hit in nearest],
            }
        return View("search", f"{query}: search" if query else "Search", data)

    async def skills(self, chosen: Mapping[str, str]) -> View:
        """List one page of skills, filtered by facets; ``hidden`` lists what lists leave out."""
        is_hidden = bool(chosen.get("hidden"))
        function_id = "directory::skills::hidden" if is_hidden else "directory::skills::list"
        answer = object_of(await self._call(function_id, {} if is_hidden else {"kind": "skill"}))
        listing = self._listing(answer)
        kept = rows = listing.rows
        wanted = {facet: chosen[facet] for facet in _FACETS if chosen.get(facet)}
        for facet, value in wanted.items():
            kept = [row for row in kept if str(row.get(facet)) == value]
        words = chosen.get("search", "").strip()
        if words:
            folded = skeleton(words)
            kept = [
                row for row in kept if folded in skeleton(f"{row['id']} {row['title']} {row['description']}")
            ]
        pages = max(1, math.ceil(len(kept) / PAGE_ROWS))
        asked = chosen.get("page", "")
        page = min(max(int(asked), 1), pages) if asked.isascii() and asked.isdigit() and len(asked) < 9 else 1
        data: Json = {
            "skills": kept[(page - 1) * PAGE_ROWS : page * PAGE_ROWS],
            "total": len(kept),
            "all": len(rows),
            "page": page,
            "pages": pages,
            "chosen": wanted,
            "search": words,
            "hidden": answer.get("hidden", 0),
            "shows_hidden": is_hidden,
            "facets": {
                facet: counts.most_common(_FACET_VALUES)
                for facet, counts in listing.facets.items()
                # A facet that every skill has with the same value narrows nothing.
                if len(counts) > 1 or 0 < counts.total() < len(rows) or facet in wanted
            },
        }
        return View("skills", "Hidden skills" if is_hidden else "Skills", data)

    async def skill(self, skill_id: str) -> View:
        """Read a skill with its files, pages, facts, cost, and what links to it."""
        document = object_of(await self._call("directory::skills::get", {"id": skill_id, "raw": True}))
        found = str(document.get("id") or skill_id)
        files, pages, facts, links = await asyncio.gather(
            self._optional("directory::skills::files", {"id": found}),
            self._rows("directory::skills::list", "skills", prefix=f"{found}/"),
            self._optional("directory::skills::facts", {"id": found}),
            self._optional("directory::skills::links", {"id": found}),
        )
        file_rows, known = rows_of(files, "files"), object_of(object_of(facts).get("facts"))
        row = object_of(next((row for row in pages if row.get("id") == found), None))
        functions = rows_of(known, "functions")
        own = document.get("function_id")
        if own and own not in [row.get("id") for row in functions]:
            functions.insert(0, {"id": own, "exists": None})
        data: Json = {
            **_with_source(document),
            "description": row.get("description"),
            # Relative links of an overview start in the folder of its skill, those of a page beside it.
            "folder": found if document.get("skill") == found else found.rpartition("/")[0],
            "uri": f"iii://{found}",
            "file_rows": file_rows,
            "pages": [row for row in pages if row.get("id") != found],
            "facts": known,
            "facts_findings": rows_of(facts, "findings"),
            "links": rows_of(links, "documents"),
            "functions": functions,
            "tokens": _tokens(found, str(row.get("description") or ""), document, file_rows),
        }
        return View("skill", str(document.get("title") or found), data)

    async def file(self, path: str, offset: int = 0) -> Json:
        """Read a page of a file by the id of its skill with its path behind it."""
        return object_of(await self._call("directory::skills::file", {"id": path, "offset": offset}))

    async def prompts(self) -> View:
        """List the prompts."""
        rows = [_with_source(row) for row in await self._rows("prompts::mcp-list", "prompts")]
        return View("prompts", "Prompts", {"prompts": rows})

    async def prompt(self, name: str) -> View:
        """Read a prompt with its arguments."""
        listed, read = await asyncio.gather(
            self._rows("prompts::mcp-list", "prompts"),
            self._optional("directory::prompts::get", {"name": name}),
        )
        row = next((row for row in listed if row.get("name") == name), None)
        if row is None:
            raise CallFailedError(f"no prompt is called {name}", missing=True)
        return View("prompt", name, {**_with_source(row), **object_of(read)})

    async def functions(self, *, hidden: bool) -> View:
        """List the functions, grouped by worker; the functions of workers' own workings are hidden."""
        rows = await self._rows("directory::function-list", "functions")
        inner = [row for row in rows if str(row.get("name", "")).startswith("__")]
        groups: dict[str, list[Json]] = {}
        for row in inner if hidden else [row for row in rows if row not in inner]:
            groups.setdefault(str(row.get("worker_name") or "unknown"), []).append(row)
        total = sum(map(len, groups.values()))
        data: Json = {"groups": dict(sorted(groups.items())), "total": total, "hidden": len(inner)}
        return View("functions", "Functions", {**data, "shows_hidden": hidden})

    async def function(self, function_id: str) -> View:
        """Describe a function with its schemas and an example call."""
        info = object_of(await self._call("directory::function-info", {"function_id": function_id}))
        schema = object_of(info.get("request_schema"))
        required = {str(one) for one in items_of(schema.get("required"))}
        properties = object_of(schema.get("properties")).items()
        example = {name: _example(object_of(one)) for name, one in properties if name in required}
        return View("function", function_id, {**info, "example": example})

    async def workers(self) -> View:
        """List the workers on the engine, those that are only installed, and those that left."""
        rows, skills = await asyncio.gather(
            self._rows("directory::worker-list", "workers"),
            self._rows("directory::skills::list", "skills", kind="skill"),
        )
        here = {str(row.get("name")) for row in rows}
        gone = Counter(
            str(row["worker"] or row["id"].partition("/")[0])
            for row in map(_with_source, skills)
            if row.get("connected") is False
        )
        left = [{"name": name, "skills": number} for name, number in sorted(gone.items()) if name not in here]
        there = installed_workers(skills).items()
        installed = [{"name": name, **known} for name, known in there if name not in here]
        return View("workers", "Workers", {"workers": rows, "installed": installed, "gone": left})

    async def worker(self, name: str) -> View:
        """Describe a worker with its functions, skills and prompts."""
        return View("worker", name, object_of(await self._call("directory::worker-info", {"name": name})))

    async def registry(self, search: str, cursor: str | None) -> View:
        """List published workers, with the version of each that is installed here."""
        asked = {key: value for key, value in (("search", search), ("cursor", cursor)) if value}
        here = installed_workers(await self._rows("directory::skills::list", "skills", kind="skill"))
        data: Json = {
            "search": search,
            "workers": [],
            "problem": None,
            "next_cursor": None,
            "installed": here,
        }
        try:
            page = object_of(await self._call("directory::registry::workers::list", asked))
        except CallFailedError as error:
            data["problem"] = str(error)
        else:
            rows = rows_of(page, "workers")
            data["workers"] = [{**row, "installed": here.get(str(row.get("name")))} for row in rows]
            data["next_cursor"] = object_of(page.get("pagination")).get("next_cursor")
        return View("registry", "Registry", data)

    async def published(self, name: str, version: str | None) -> View:
        """Describe a published worker, and whether it is installed and current."""
        asked = {"name": name, **({"version": version} if version else {})}
        info, skills = await asyncio.gather(
            self._call("directory::registry::workers::info", asked),
            self._rows("directory::skills::list", "skills", prefix=name),
        )
        found = object_of(info)
        offered = object_of(found.get("worker")).get("version")
        installed = installed_workers(skills).get(name)
        states = {None: "not installed", offered: "current"}
        data: Json = {
            "name": name,
            **found,
            "asked_version": version,
            "installed": installed,
            "state": states.get(None if installed is None else installed["version"], "another version"),
        }
        return View("published", name, data)

    async def diagnostics(self) -> View:
        """List what needs attention, and then what is good to know."""
        answer = object_of(await self._call("directory::diagnostics", {}))
        rows = rows_of(answer, "findings")
        rows.sort(key=lambda row: not row.get("attention"))
        return View("diagnostics", "Diagnostics", {**answer, "findings": rows})

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

    async def usage(self) -> View:
        """Show what was offered, read and used, and the searches that found nothing."""
        answer = await self._optional("directory::skills::usage", {})
        data: Json = {"known": answer is not None, **object_of(answer)}
        data["never_read"] = sum(1 for row in rows_of(answer, "skills") if not row["read"] + row["used"])
        return View("usage", "Usage", data)

    def _listing(self, answer: Any) -> Listing:
        """Put the skills of an answer in order, unless it is the list of the last answer.

        In the process of the directory an unchanged list comes as the same object; ordering 10,000 rows takes
        longer than everything else of a view.
        """
        skills = object_of(answer).get("skills")
        if self._listed is None or skills is not self._listed[0]:
            order = list(SOURCES)
            rows = [_with_source(row) for row in rows_of(answer, "skills")]
            rows.sort(key=lambda row: (order.index(row["source"]), row["id"]))
            listing = Listing(
                rows,
                nlargest(_LATEST, rows, key=lambda row: str(row.get("modified_at"))),
                sum(int(row.get("documents", 1)) for row in rows),
                {facet: Counter(str(row[facet]) for row in rows if row.get(facet)) for facet in _FACETS},
                installed_workers(rows),
            )
            self._listed = skills, listing
        return self._listed[1]

    async def _rows(self, function_id: str, key: str, **payload: Any) -> list[Json]:
        return rows_of(await self._call(function_id, payload), key)

    async def _optional(self, function_id: str, payload: Mapping[str, Any]) -> Any:
        """Return the answer of a function that another generation of the directory may not have, or None."""
        try:
            return await self._call(function_id, payload)
        except CallFailedError:
            return None


def installed_workers(skills: Iterable[Json]) -> dict[str, Json]:
    """Return the version and the state of every namespace that was installed from a registry."""
    found: dict[str, Json] = {}
    for row in skills:
        known = object_of(row.get("provenance"))
        if known.get("kind") == "installed" and known.get("from") == "registry":
            name = str(row.get("id")).partition("/")[0]
            is_edited = "edited" in (known.get("state"), found.get(name, {}).get("state"))
            state = "edited" if is_edited else known.get("state")
            found[name] = {"version": known.get("version"), "state": state, "since": known.get("since")}
    return found


def _with_source(row: Json) -> Json:
    """Add the fields that facets filter by: the kind of source and the worker."""
    known = object_of(row.get("provenance") or object_of(row.get("_meta")).get(META_KEY))
    kind = str(known.get("kind") or ("file" if row.get("root") else "registered"))
    namespace = str(row.get("id", "")).partition("/")[0]
    worker = known.get("worker") or (namespace if kind == "registered" else None)
    source = kind if kind in SOURCES else "registered"
    return {**row, "provenance": known, "source": source, "worker": worker}


def _with_call(hit: Json) -> Json:
    """Add to an answer of a search the view it opens and the call an agent would make next."""
    kind, found = str(hit.get("kind")), str(hit.get("id"))
    calls = {
        "skill": f"iii-directory skills show {found}",
        "prompt": f"iii-directory prompts show {found}",
        "function": f"iii-directory trigger {found} --json '{{}}'",
        "installable": f"iii-directory skills add {found}",
    }
    place = _PLACES.get(kind)
    source = _with_source(hit)["source"] if hit.get("provenance") else None
    return {**hit, "href": place and place + found, "call": calls.get(kind), "source": source}


def _tokens(skill_id: str, description: str, document: Json, files: list[Json]) -> dict[str, int]:
    """Estimate what a skill costs a model at each level: its line in a list, itself, and all its texts."""
    read = len(str(document.get("raw") or document.get("body") or ""))
    readable = [row for row in files if str(row.get("media_type")).startswith(("text/", "application/json"))]
    whole = max(read, sum(int(row.get("bytes") or 0) for row in readable))
    chars = {"line": len(f"- {skill_id}: {description}\n"), "read": read, "whole": whole}
    return {level: -(-number // CHARS_PER_TOKEN) for level, number in chars.items()}


def _example(schema: Json) -> Any:
    """Make an example value for a required argument."""
    if "default" in schema:
        return schema["default"]
    if choices := items_of(schema.get("enum")):
        return choices[0]
    kinds: Iterable[object] = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    values: Mapping[object, Any] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    return next((values[kind] for kind in kinds if kind in values), "…")
