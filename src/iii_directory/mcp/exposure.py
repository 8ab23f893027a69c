"""What MCP clients are shown: which functions are tools and how they are named, and the rows of lists. Pure.

Titles, names and descriptions reach people and models in lists, so they are cleaned of invisible characters;
bodies are served as they are. A row that clients could not use is left out: it must not cost them the list.
"""

from __future__ import annotations

import hashlib
import json
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory import limits
from iii_directory.documents.ids import segments_problem
from iii_directory.documents.model import META_KEY
from iii_directory.documents.uris import READ_ONLY, SCHEME, WRITING, is_guarded
from iii_directory.shapes import is_count, is_object, is_text_list, object_of, rows_of, text_of
from iii_directory.text import cut, visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

Row = dict[str, Any]

# The functions of the directory and of the engine that the bridge calls.
MCP_RESOURCES: Final = "directory::mcp::resources"
RESOURCES_LIST: Final = "skills::resources-list"
RESOURCES_READ: Final = "skills::resources-read"
RESOURCES_TEMPLATES: Final = "skills::resources-templates"
PROMPTS_LIST: Final = "prompts::mcp-list"
PROMPTS_GET: Final = "prompts::mcp-get"
FUNCTIONS_LIST: Final = "engine::functions::list"
FUNCTIONS_INFO: Final = "engine::functions::info"
SEARCH: Final = "directory::search"
FETCH: Final = "skill::fetch"
FETCHES: Final = (FETCH, "skills::fetch_skill", "directory::skills::fetch-skill")

# Agents call this function first, so its tool has a short name.
_SHORT_NAMES: Final = {SEARCH: "search"}
TOOL_NAME: Final = re.compile(rf"[a-zA-Z0-9_-]{{1,{limits.MAX_TOOL_NAME_CHARS}}}")
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")
_HASH_CHARS: Final = 8
_LABELS: Final = ("name", "title", "description")


def read_payload(uri: str) -> Row:
    """Return the payload that reads a resource; a section runs only a function that says it only reads."""
    return {"uri": uri, "sections": READ_ONLY}


class Hints(NamedTuple):
    """What a host may let a model do without asking its user."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True

    def as_annotations(self) -> Row:
        """Return the hints in the names of the protocol."""
        names = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
        return dict(zip(names, self, strict=True))


READS: Final = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
_ASKS_THE_REGISTRY: Final = Hints(read_only=True, destructive=False, idempotent=True)
_INSTALLS: Final = Hints(idempotent=True)
_WRITES: Final = Hints(open_world=False)
# Nothing is known about functions of other workers, so the hints assume the worst, as the protocol does.
_UNKNOWN: Final = Hints()

OFFERED: Final[Mapping[str, Hints]] = {
    # This one runs functions behind iii://fn/ links: see `exposed`.
    FETCH: READS,
    SEARCH: READS,
    "directory::skills::index": READS,
    "directory::skills::list": READS,
    "directory::skills::get": READS,
    "directory::skills::files": READS,
    "directory::skills::file": READS,
    "directory::prompts::list": READS,
    "directory::prompts::get": READS,
    "directory::function-list": READS,
    "directory::engine::functions::info": READS,
    "directory::diagnostics": READS,
    "directory::skills::explain": READS,
    "directory::registry::workers::list": _ASKS_THE_REGISTRY,
    "directory::registry::workers::info": _ASKS_THE_REGISTRY,
    "directory::skills::download_from_registry": _INSTALLS,
    "directory::skills::download_from_repo": _INSTALLS,
    # These are tools only where the operator allows writing: see `exposed`.
    "directory::skills::create": _WRITES,
    "directory::skills::update": _WRITES,
    "directory::skills::delete": _WRITES,
}
"""The directory's tools, where the engine has them: the newest door to each thing, not every generation's."""


class Exposed(NamedTuple):
    """One function that is a tool."""

    name: str
    function_id: str
    hints: Hints


def is_internal(row: Mapping[str, Any]) -> bool:
    """Return whether a function must never be a tool, whatever the operator asked for."""
    marked = object_of(row.get("metadata")).get("internal") is True
    return marked or is_guarded(str(row.get("function_id")))


def exposed(
    rows: Iterable[Mapping[str, Any]],
    globs: Sequence[str],
    namespace: str,
    offered: Collection[str] = OFFERED.keys(),
) -> list[Exposed]:
    """Choose the tools from an engine's function list, sorted by name.

    A function is a tool if it is ``offered`` or matches one of the ``globs``.
    """
    hints: dict[str, Hints] = {}
    for row in rows:
        function_id, metadata = str(row["function_id"]), object_of(row.get("metadata"))
        wanted = function_id in offered or any(fnmatchcase(function_id, glob) for glob in globs)
        allowed = not is_internal(row) and metadata.get(WRITING) is not False
        if wanted and allowed and row.get("namespace", namespace) == namespace:
            # A fetch only reads where its directory runs no function that does more.
            runs_anything = function_id == FETCH and metadata.get("sections") != READ_ONLY
            hints[function_id] = _UNKNOWN if runs_anything else OFFERED.get(function_id, _UNKNOWN)
    return [Exposed(name, one, hints[one]) for name, one in sorted(tool_names(hints).items())]


DEFAULTS: Final[Mapping[str, Row]] = {
    # A model reads the names first; the schemas of one worker alone may take 65 KB.
    "directory::registry::workers::info": {"schemas": False, "readme": False}
}
"""The defaults of a tool's arguments, where they differ from those of its function."""


def tool_row(tool: Exposed, detail: Mapping[str, Any]) -> Row:
    """Describe a tool as ``tools/list`` shows it, from what the engine knows of its function."""
    schema = input_schema(detail.get("request_schema"))
    properties = object_of(schema.get("properties"))
    defaults = DEFAULTS.get(tool.function_id, {})
    told = {key: {**properties[key], "default": defaults[key]} for key in defaults if key in properties}
    known = visible(cut(text_of(detail.get("description")) or "", limits.MAX_TOOL_DESCRIPTION_CHARS))
    return {
        "name": tool.name,
        "inputSchema": {**schema, "properties": {**properties, **told}} if told else schema,
        "title": visible(tool.function_id),
        "annotations": tool.hints.as_annotations(),
        "description": known or f"Calls {visible(tool.function_id)} on the engine.",
    }


def input_schema(schema: object) -> Row:
    """Return the function's own schema if it can be that of a tool, else one that takes any object."""
    anything: Row = {"type": "object"}
    if not is_object(schema):
        return anything
    properties = schema.get("properties", {})
    usable = (
        schema.get("type") == "object"
        and isinstance(schema.get("$schema", ""), str)
        and is_object(properties)
        and all(isinstance(value, (dict, bool)) for value in properties.values())
        and is_text_list(schema.get("required", []))
        # One function must not make the list too large for all clients.
        and len(json.dumps(schema, ensure_ascii=False)) <= limits.MAX_TOOL_SCHEMA_CHARS
    )
    return schema if usable else anything


def result_text(result: object) -> str:
    """Write the result of a function for a model: text as it is, anything else as JSON without padding."""
    if isinstance(result, str):
        return result
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))


# Names: what every client accepts, one name per function, the same every time


def tool_names(function_ids: Iterable[str]) -> dict[str, str]:
    """Give every id a name; the result maps names to ids.

    ``a::b`` becomes ``a__b``. An id that cannot be read back from such a name gets a hash of itself at the
    end, so that its name does not depend on which other functions there are.
    """
    names: dict[str, str] = {}
    hashed: list[tuple[str, str]] = []
    ids = sorted(set(function_ids))
    for one in ids:
        name = _FOREIGN.sub("_", one.replace("::", "__"))
        if TOOL_NAME.fullmatch(name) and name.replace("__", "::") == one:
            names[name] = one
        else:
            hashed.append((name, one))
    for one, short in _SHORT_NAMES.items():
        if one in ids and short not in names:
            names = {name: other for name, other in names.items() if other != one} | {short: one}
    for name, one in hashed:
        digest = hashlib.sha256(one.encode(errors="surrogatepass")).hexdigest()
        # The hash is longer where another function has the short name, perhaps on purpose.
        candidates = (
            f"{name[: limits.MAX_TOOL_NAME_CHARS - 1 - length]}_{digest[:length]}"
            for length in range(_HASH_CHARS, limits.MAX_TOOL_NAME_CHARS)
        )
        names[next(candidate for candidate in candidates if candidate not in names)] = one
    return names


# Rows: what the directory's functions for MCP answer, made safe to pass on


def resources(answer: object) -> list[Row]:
    """Return the usable entries of ``skills::resources-list`` and ``directory::mcp::resources``."""
    found: list[Row] = []
    for row in rows_of(answer, "resources"):
        if _is_handle(row.get("uri")) and isinstance(row.get("name"), str):
            about = {key: row[key] for key in ("annotations", "_meta") if is_object(row.get(key))}
            size = {"size": row["size"]} if is_count(row.get("size")) else {}
            found.append(_labelled(row, "uri", "mimeType") | about | size)
    return found


def templates(answer: object) -> list[Row]:
    """Return the usable entries of ``skills::resources-templates``."""
    return [
        _labelled(row, "uriTemplate", "mimeType")
        for row in rows_of(answer, "resourceTemplates")
        if _is_handle(row.get("uriTemplate")) and isinstance(row.get("name"), str)
    ]


def prompts(answer: object) -> list[Row]:
    """Return the usable entries of ``prompts::mcp-list``."""
    found: list[Row] = []
    for row in rows_of(answer, "prompts"):
        if _is_handle(row.get("name")):
            arguments = [
                {**_labelled(argument), "required": argument.get("required") is True}
                for argument in rows_of(row, "arguments")
                if _is_handle(argument.get("name"))
            ]
            found.append(_labelled(row) | {"arguments": arguments} | _source(row))
    return found


def prompt(answer: object) -> Row:
    """Return the answer of ``prompts::mcp-get``; the messages are the prompt's body and stay as they are."""
    found = object_of(answer)
    return _labelled(found) | {"messages": found.get("messages")} | _source(found)


def contents(answer: object) -> list[Row] | None:
    """Return the entries of ``skills::resources-read`` as they are, or None if one is not a resource."""
    found = rows_of(answer, "contents")
    usable = (
        isinstance(row.get("uri"), str) and any(isinstance(row.get(key), str) for key in ("text", "blob"))
        for row in found
    )
    return found if found and all(usable) else None


def with_meta(answer: object, *, is_fetch: bool) -> tuple[object, Row]:
    """Split the answer of a tool's function into what the client reads and the ``_meta`` of the result.

    ``_meta`` has the provenance of one document, or of a fetch that of each address.
    """
    found = object_of(answer)
    source = object_of(found.get("provenance"))
    meta = {META_KEY: source} if source else {}
    if not is_fetch:
        return answer, meta
    text = found.get("content")
    return (text, meta) if isinstance(text, str) else (answer, {})


def completion(answer: object, typed: str) -> Row:
    """Return what can be typed for the argument of a template, out of a list of resources or of functions.

    Ids of skills, or paths of functions that have an address and may be run: those that start with the typed
    text, then those that contain it; at most 100.
    """
    known = [uri.removeprefix(SCHEME) for row in resources(answer) if (uri := row["uri"]).startswith(SCHEME)]
    ids = {str(row.get("function_id")) for row in rows_of(answer, "functions") if not is_internal(row)}
    paths = sorted(one.replace("::", "/") for one in ids if "/" not in one)
    known += [path for path in paths if segments_problem(path, "function path") is None]
    needle = typed.strip().lower()
    found = [one for one in known if needle in one]
    found.sort(key=lambda one: not one.startswith(needle))
    return {
        "values": found[: limits.MAX_COMPLETIONS],
        "total": len(found),
        "hasMore": len(found) > limits.MAX_COMPLETIONS,
    }


def _labelled(row: Row, *others: str) -> Row:
    cleaned = {key: visible(row[key]) for key in _LABELS if isinstance(row.get(key), str)}
    return cleaned | {key: row[key] for key in others if isinstance(row.get(key), str)}


def _source(row: Row) -> Row:
    """Return the provenance that the directory gave; nothing else of a prompt's ``_meta`` is passed on."""
    source = object_of(object_of(row.get("_meta")).get(META_KEY))
    return {"_meta": {META_KEY: source}} if source else {}


def _is_handle(value: object) -> bool:
    """Return whether a client can send a value back to ask for the thing: cleaning would not change it."""
    return isinstance(value, str) and value == visible(value) != ""
