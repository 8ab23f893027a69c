"""Which functions of an engine are tools, what each is called and what a client is told about it. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from iii_directory.documents.uris import READ_ONLY, WRITING, is_guarded
from iii_directory.limits import MAX_TOOL_DESCRIPTION_CHARS, MAX_TOOL_NAME_CHARS, MAX_TOOL_SCHEMA_CHARS
from iii_directory.shapes import is_object, is_text_list, object_of
from iii_directory.text import cut, visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

Row = dict[str, Any]

MCP_RESOURCES: Final = "directory::mcp::resources"
RESOURCES_LIST: Final = "skills::resources-list"
RESOURCES_READ: Final = "skills::resources-read"
RESOURCES_TEMPLATES: Final = "skills::resources-templates"


def read_payload(uri: str) -> Row:
    """The payload that reads a resource; a section runs only a function that says it only reads."""
    return {"uri": uri, "sections": READ_ONLY}


PROMPTS_LIST: Final = "prompts::mcp-list"
PROMPTS_GET: Final = "prompts::mcp-get"
FUNCTIONS_LIST: Final = "engine::functions::list"
FUNCTIONS_INFO: Final = "engine::functions::info"
SEARCH: Final = "directory::search"
_SHORT_NAMES: Final = {SEARCH: "search"}
"""What is called more shortly than its id, because agents call it first."""

TOOL_NAME: Final = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_TOOL_NAME_CHARS}}}")
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")
_HASH_CHARS: Final = 8


@dataclass(frozen=True, slots=True)
class Hints:
    """What a host may do without asking its user."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True

    def as_annotations(self) -> Row:
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }


READS: Final = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
_ASKS_THE_REGISTRY: Final = Hints(read_only=True, destructive=False, idempotent=True)
_INSTALLS: Final = Hints(idempotent=True)
_WRITES: Final = Hints(open_world=False)
_UNKNOWN: Final = Hints()
"""Of other workers' functions nothing is known, so the worst is said, as the protocol does by default."""

FETCH: Final = "skill::fetch"
FETCHES: Final = (FETCH, "skills::fetch_skill", "directory::skills::fetch-skill")
OFFERED: Final[Mapping[str, Hints]] = {
    # It runs functions behind iii://fn/ links: see `_hints`.
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
    # Where the operator allows them: see `_is_asked_for`.
    "directory::skills::create": _WRITES,
    "directory::skills::update": _WRITES,
    "directory::skills::delete": _WRITES,
}
"""The directory's tools, where the engine has them: the newest door to each thing, not every generation's."""


@dataclass(frozen=True, slots=True)
class Exposed:
    """One function that is a tool."""

    name: str
    function_id: str
    hints: Hints


def is_internal(row: Mapping[str, Any]) -> bool:
    """Whether a function is nobody's tool, whatever was asked for."""
    marked = object_of(row.get("metadata")).get("internal") is True
    return marked or is_guarded(str(row.get("function_id")))


def exposed(
    rows: Iterable[Mapping[str, Any]],
    globs: Sequence[str],
    namespace: str,
    offered: Collection[str] | None = None,
) -> list[Exposed]:
    """The tools of an engine's function list, sorted by name; ``globs`` ask for more than is offered.

    Without ``offered`` every function of `OFFERED` is.
    """
    wanted = OFFERED.keys() if offered is None else offered
    shown = {
        str(row["function_id"]): row
        for row in rows
        if row.get("namespace", namespace) == namespace
        and not is_internal(row)
        and _is_asked_for(row, globs, wanted)
    }
    return [
        Exposed(name, function_id, _hints(function_id, shown[function_id]))
        for name, function_id in sorted(tool_names(shown).items())
    ]


def _hints(function_id: str, row: Mapping[str, Any]) -> Hints:
    """What is known of a function. A fetch only reads where its directory runs no function that does more."""
    if function_id == FETCH and object_of(row.get("metadata")).get("sections") != READ_ONLY:
        return _UNKNOWN
    return OFFERED.get(function_id, _UNKNOWN)


DEFAULTS: Final[Mapping[str, Row]] = {
    # A model reads the names first; the schemas of one worker alone may take 65 KB.
    "directory::registry::workers::info": {"schemas": False, "readme": False},
}
"""What a tool's call means by a field that it leaves out, where that is not what the function means."""


def with_defaults(function_id: str, arguments: Row) -> Row:
    """The arguments of a tool's call as its function is to take them."""
    return {**DEFAULTS.get(function_id, {}), **arguments}


def _schema_of_tool(function_id: str, schema: Row) -> Row:
    """The schema of a tool, which tells its own defaults."""
    properties = object_of(schema.get("properties"))
    defaults = DEFAULTS.get(function_id, {})
    told = {key: {**properties[key], "default": defaults[key]} for key in defaults if key in properties}
    return {**schema, "properties": {**properties, **told}} if told else schema


def tool_row(tool: Exposed, detail: Mapping[str, Any]) -> Row:
    """The tool as ``tools/list`` shows it, from what the engine knows of its function."""
    row: Row = {
        "name": tool.name,
        "inputSchema": _schema_of_tool(tool.function_id, input_schema(detail.get("request_schema"))),
        "title": visible(tool.function_id),
        "annotations": tool.hints.as_annotations(),
    }
    description = detail.get("description")
    known = visible(cut(description, MAX_TOOL_DESCRIPTION_CHARS)) if isinstance(description, str) else ""
    row["description"] = known or f"Calls {visible(tool.function_id)} on the engine."
    return row


def input_schema(schema: object) -> Row:
    """The function's own schema if a client can use it as that of a tool, else one that takes any object."""
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
    )
    return schema if usable and _is_bearable(schema) else anything


def _is_bearable(schema: Row) -> bool:
    """Whether a list of tools can carry a schema; one function must not make the list too large for all."""
    return len(json.dumps(schema, ensure_ascii=False)) <= MAX_TOOL_SCHEMA_CHARS


def result_text(result: object) -> str:
    """What a function answered, for a model: text as it is, anything else as JSON without padding."""
    if isinstance(result, str):
        return result
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))


def _is_asked_for(row: Mapping[str, Any], globs: Sequence[str], offered: Collection[str]) -> bool:
    function_id = str(row["function_id"])
    if object_of(row.get("metadata")).get(WRITING) is False:
        return False
    return function_id in offered or any(fnmatchcase(function_id, glob) for glob in globs)


# Names: what every client takes, one name a function, the same every time


def tool_names(function_ids: Iterable[str]) -> dict[str, str]:
    """A name for every id, from name to id.

    ``a::b`` becomes ``a__b``. An id that cannot be read back from such a name gets a hash of itself at the
    end, so that its name does not depend on which other functions there are.
    """
    ids = sorted(set(function_ids))
    names = {plain_name(one): one for one in ids if _is_reversible(one)}
    for one, short in _SHORT_NAMES.items():
        if one in ids and short not in names:
            del names[plain_name(one)]
            names[short] = one
    for one in ids:
        if not _is_reversible(one):
            names[_hashed_name(one, taken=names)] = one
    return names


def plain_name(function_id: str) -> str:
    """The id with ``__`` for ``::`` and ``_`` for what no client takes; not always unique, nor short."""
    return _FOREIGN.sub("_", function_id.replace("::", "__"))


def _is_reversible(function_id: str) -> bool:
    name = plain_name(function_id)
    return TOOL_NAME.fullmatch(name) is not None and name.replace("__", "::") == function_id


def _hashed_name(function_id: str, taken: dict[str, str]) -> str:
    digest = hashlib.sha256(function_id.encode(errors="surrogatepass")).hexdigest()
    # Longer where somebody took the short one on purpose, with a function of just that name.
    names = (
        f"{plain_name(function_id)[: MAX_TOOL_NAME_CHARS - 1 - length]}_{digest[:length]}"
        for length in range(_HASH_CHARS, MAX_TOOL_NAME_CHARS)
    )
    return next(name for name in names if name not in taken)
