"""The few tools that every MCP client sees: their words, what they call, and how their answers read. Pure.

A model that has never heard of iii reads these words before its first question, so they are few. Answers are
text: a document is not escaped into JSON, and a list has one line per row. What a program may want beside the
text is in ``structuredContent``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.documents.provenance import META_KEY, Provenance
from iii_directory.documents.uris import READ_ONLY, SCHEME, UNREADABLE, is_guarded, says_it_only_reads
from iii_directory.exposure import FETCH, READS, SEARCH, Hints, is_internal
from iii_directory.limits import MAX_LIST_DESCRIPTION_CHARS, MAX_LISTED_CHARS, MAX_LISTED_DOCUMENT_CHARS
from iii_directory.shapes import object_of, rows_of
from iii_directory.text import cut_at_word, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Row = dict[str, Any]
CALL: Final = "directory__function__call"
GET: Final = "directory::skills::get"
LIST: Final = "directory::skills::list"
FILES: Final = "directory::skills::files"
OFF: Final = "off"
# How long the answer of a search may be; descriptions are shortened first.
_SEARCH_CHARS: Final = 750


class Calls(NamedTuple):
    """Which functions clients may call, by the operator's setting."""

    setting: str = OFF
    functions: Mapping[str, Mapping[str, Any]] = {}
    """The engine's functions by their ids, as it lists them."""

    def problem(self, function_id: str) -> str | None:
        """Why a function cannot be called, or None."""
        if self.setting == OFF:
            return "calling functions is off; a person sets mcp_calls in config.yaml to allow it"
        row = self.functions.get(function_id)
        if is_guarded(function_id) or (row is not None and is_internal(row)):
            return "functions of the engine and of the directory's bridges cannot be called from here"
        if row is None:
            return f"function '{visible(function_id)}' not found on the engine; find one with the tool search"
        if self.setting == READ_ONLY and not says_it_only_reads(row.get("metadata")):
            return (
                "it does not say that it only reads (readOnlyHint); a person sets mcp_calls to all in "
                "config.yaml to allow it"
            )
        return None


class Answer(NamedTuple):
    """A tool's result: text for the model, and what programs want beside it."""

    text: str
    structured: Row | None = None
    links: tuple[Row, ...] = ()


class FaceTool(NamedTuple):
    """One tool: the function it calls, what clients are told of it, and how its answer reads."""

    name: str
    function_id: str
    title: str
    description: str
    properties: Row
    required: tuple[str, ...]
    render: Callable[[Any, Row, Calls], Answer]
    fixed: Mapping[str, Any] = {}
    """Fields that every call of the function has."""
    hints: Hints = READS

    def row(self) -> Row:
        """The tool as ``tools/list`` shows it."""
        schema: Row = {"type": "object", "properties": self.properties}
        if self.required:
            schema["required"] = list(self.required)
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": schema,
            "annotations": self.hints.as_annotations(),
        }


def call_tool_row(setting: str) -> Row:
    """The tool that calls a function; its hints depend on what may be called."""
    only_reads = setting == READ_ONLY
    hints = Hints(read_only=only_reads, destructive=not only_reads, idempotent=only_reads)
    which = "a function that only reads" if only_reads else "any function that search finds"
    return {
        "name": CALL,
        "title": "Call a function",
        "description": f"Call {which}, and get what it answers. search shows which functions can be called.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "function_id": {"type": "string", "description": "The id, such as mail::send."},
                "payload": {"type": "object", "description": "What the function takes."},
            },
            "required": ["function_id"],
        },
        "annotations": hints.as_annotations(),
    }


# How answers read


def _searched(answer: Any, _: Row, calls: Calls) -> Answer:
    lines: list[str] = []
    links: dict[str, Row] = {}
    results = rows_of(answer, "results")
    for result in results:
        if len(results) > 1:
            lines.append(f"## {visible(str(result.get('capability')))}")
        found = [
            (str(section.get("kind")), hit)
            for section in rows_of(result, "sections")
            for hit in rows_of(section, "hits")
        ]
        if result.get("fits") is not True:
            lines.append(
                "Nothing fits. Nearest, which may be of no use:"
                if rows_of(result, "nearest")
                else "Nothing fits."
            )
            found += [(str(hit.get("kind")), hit) for hit in rows_of(result, "nearest")]
        lines += [_hit_line(kind, hit, calls) for kind, hit in found]
        for kind, hit in found:
            if kind == "skill":
                uri = f"{SCHEME}{hit.get('in') or hit.get('id')}"
                source = object_of(hit.get("provenance"))
                links[uri] = {
                    "type": "resource_link",
                    "uri": uri,
                    "name": visible(str(hit.get("title") or uri)),
                    **({"_meta": {META_KEY: source}} if source else {}),
                }
        problems = (calls.problem(str(hit.get("id"))) for kind, hit in found if kind == "function")
        lines += [f"Not callable: {problem}." for problem in dict.fromkeys(filter(None, problems))]
        lines.append(_next_call(found, calls, fits=result.get("fits") is True))
    taken = object_of(object_of(answer).get("corrected"))
    lines += [f"'{visible(word)}' was taken for '{visible(str(meant))}'." for word, meant in taken.items()]
    return Answer("\n".join(lines), links=tuple(links.values()))


def _hit_line(kind: str, hit: Row, calls: Calls) -> str:
    key = visible(str(hit.get("id")))
    line = f"- {kind} {visible(str(hit['in']))} (page of {key})" if hit.get("in") else f"- {kind} {key}"
    line += _source(hit)
    if hit.get("confidence"):
        line += f" [{hit['confidence']}: {visible(str(hit.get('why') or ''))}]"
    title, said = visible(str(hit.get("title") or "")), visible(str(hit.get("description") or ""))
    told = ". ".join(
        part for part in (title if kind == "skill" and title.lower() != hit.get("id") else "", said) if part
    )
    line += f": {told}" if told else ""
    if hit.get("path"):
        line += f" Lies at {hit['path']}"
    if kind == "function":
        line += f" callable: {str(calls.problem(str(hit.get('id'))) is None).lower()}"
    return line


def _source(row: Row) -> str:
    """A short mark of who wrote a document, where the directory says so."""
    told = object_of(row.get("provenance"))
    return f" ({Provenance.parse(told).mark()})" if told else ""


def _next_call(found: Iterable[tuple[str, Row]], calls: Calls, *, fits: bool) -> str:
    kinds = {kind for kind, _ in found}
    steps: list[str] = []
    if "skill" in kinds:
        steps.append('read skills with skill__fetch {"uris": ["<id>", …]}')
    if "function" in kinds and calls.setting != OFF:
        steps.append(f'call a function with {CALL} {{"function_id": "<id>", "payload": {{…}}}}')
    if not fits:
        steps.append("ask search in other words, or see everything with directory__skills__list")
    return f"Next: {'; '.join(steps)}." if steps else ""


def _listed(answer: Any, arguments: Row, _: Calls) -> Answer:
    rows = rows_of(answer, "skills")
    documents = bool(
        arguments.get("search") or arguments.get("prefix") or arguments.get("kind") == "document"
    )
    room = MAX_LISTED_DOCUMENT_CHARS if documents else MAX_LISTED_CHARS
    after = arguments.get("cursor")
    lines: list[str] = []
    last = None
    for row in rows:
        key = str(row.get("id"))
        if isinstance(after, str) and key <= after:
            continue
        said = cut_at_word(
            visible(str(row.get("description") or row.get("title") or "")), MAX_LIST_DESCRIPTION_CHARS
        )
        line = f"{visible(key)}{_source(row)}: {said}" if said else f"{visible(key)}{_source(row)}"
        room -= len(line) + 1
        if room < 0:
            lines.append(f'More: directory__skills__list {{"cursor": "{last}"}}')
            return Answer("\n".join(lines), {"total": len(rows), "next_cursor": last})
        lines.append(line)
        last = key
    if not lines:
        lines.append("No skill matches. Next: ask search in words.")
    return Answer("\n".join(lines), {"total": len(rows), "next_cursor": None})


def _got(answer: Any, _: Row, __: Calls) -> Answer:
    found = object_of(answer)
    told = {key: value for key, value in found.items() if key not in ("body", "raw")}
    return Answer(str(found.get("raw") or found.get("body") or ""), told)


def _files(answer: Any, _: Row, __: Calls) -> Answer:
    found = object_of(answer)
    rows = rows_of(answer, "files")
    key, place = visible(str(found.get("id"))), found.get("path")
    head = f"{len(rows)} files of {key}" + (f", which lies at {place}" if place else "")
    lines = (
        f"{visible(str(row.get('path')))} {row.get('bytes')}{' executable' if row.get('executable') else ''}"
        for row in rows
    )
    first = visible(str(rows[0].get("path"))) if rows else ""
    step = f'Next: read some with skill__fetch {{"uris": ["{key}/{first}", …]}}.'
    told = {name: found[name] for name in ("id", "uri", "path") if name in found}
    return Answer("\n".join((f"{head}:", *lines, step)), told)


def _fetched(answer: Any, _: Row, __: Calls) -> Answer:
    return Answer(str(answer))


_ID: Final[Row] = {"type": "string", "description": "As search or the list prints it."}
TOOLS: Final = (
    FaceTool(
        "search",
        SEARCH,
        "Search",
        "Start here. Say in words what is needed; finds skills (instructions, often with scripts), prompts, "
        "functions and workers, says why each fits, or that nothing does.",
        {
            "query": {"type": "string", "description": "What is needed, in words."},
            "kinds": {
                "type": "array",
                "items": {"enum": ["skill", "prompt", "function", "worker"]},
                "description": "Only these kinds.",
            },
            "limit": {"type": "integer", "description": "Hits of each kind."},
        },
        ("query",),
        _searched,
    ),
    FaceTool(
        "skill__fetch",
        FETCH,
        "Read skills and files",
        "Read one or many at once, as text: skills and their pages by id (pdf, pdf/forms), files of skills "
        "by path (pdf/scripts/fill.py), and iii:// or skill:// addresses.",
        {"uris": {"type": "array", "items": {"type": "string"}, "description": "Ids, paths or addresses."}},
        (),
        _fetched,
        {"sections": READ_ONLY, UNREADABLE: "name"},
    ),
    FaceTool(
        LIST.replace("::", "__"),
        LIST,
        "List skills",
        "One line per skill, in pages. With search or prefix: every matching document.",
        {
            "search": {"type": "string", "description": "A part of an id, title or description."},
            "prefix": {"type": "string", "description": "How ids start, such as pdf/."},
            "kind": {"enum": ["skill", "document"], "description": "document lists every page."},
            "cursor": {"type": "string", "description": "next_cursor of the page before."},
        },
        (),
        _listed,
    ),
    FaceTool(
        GET.replace("::", "__"),
        GET,
        "Read one document",
        "One document as text, with its metadata (title, front matter, skill, path) as structured content.",
        {"id": _ID, "raw": {"type": "boolean", "description": "With the front matter in the text."}},
        ("id",),
        _got,
    ),
    FaceTool(
        FILES.replace("::", "__"),
        FILES,
        "List the files of a skill",
        "The files of a skill with their sizes, and where the skill lies on this machine, so that its "
        "scripts can be run.",
        {"id": _ID},
        ("id",),
        _files,
    ),
)
BY_FUNCTION: Final = {tool.function_id: tool for tool in TOOLS}


def payload_of(tool: FaceTool, arguments: Row) -> Row:
    """The payload of the function that a tool calls."""
    payload = {key: value for key, value in arguments.items() if key != "cursor"} | dict(tool.fixed)
    if tool.function_id == SEARCH:
        payload.setdefault("budget_chars", _SEARCH_CHARS)
    if tool.function_id == LIST and not payload.get("search") and not payload.get("prefix"):
        payload.setdefault("kind", "skill")
    return payload
