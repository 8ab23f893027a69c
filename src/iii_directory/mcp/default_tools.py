"""The few tools that every MCP client sees: their words, what they call, and how their answers read. Pure.

A model that has never heard of iii reads these words before its first question, so they are few. Answers are
text: a document is not escaped into JSON, and a list has one line per row. What a program may want beside the
text is in ``structuredContent``. The next steps of answers and errors name tools that the client can see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.documents.model import META_KEY, Provenance
from iii_directory.documents.uris import READ_ONLY, SCHEME, UNREADABLE, is_guarded, says_it_only_reads
from iii_directory.errors import INVALID_FIELD, DirectoryError, Step
from iii_directory.limits import MAX_LIST_DESCRIPTION_CHARS, MAX_LISTED_CHARS, MAX_LISTED_DOCUMENT_CHARS
from iii_directory.mcp.exposure import FETCH, SEARCH, Hints, is_internal
from iii_directory.shapes import object_of, rows_of
from iii_directory.text import cut_at_word, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.mcp.exposure import Exposed

Row = dict[str, Any]
CALL: Final = "directory__function__call"
GET: Final = "directory::skills::get"
LIST: Final = "directory::skills::list"
FILES: Final = "directory::skills::files"
OFF: Final = "off"
# How long the function's answer to a search may be, and what is told of one hit; the text is half as long.
_SEARCH_CHARS: Final = 1_100
_HIT_CHARS: Final = 120
# What to do instead of calling a function that is not among the tools.
_WITHOUT_TOOL: Final = {
    "directory::engine::functions::info": Step("with the function id to read about the function", SEARCH),
    "directory::function-list": Step("with words for what is wanted", SEARCH),
    "directory::prompts::list": Step("choose one of the prompts that this server lists"),
}


class ClientView(NamedTuple):
    """What clients can use: which functions they may call, by the operator's setting, and which are tools."""

    setting: str = OFF
    functions: Mapping[str, Mapping[str, Any]] = {}
    """The engine's functions by their ids, as it lists them."""
    tools: Mapping[str, str] = {}
    """The names of tools by the ids of their functions."""

    def refusal(self, function_id: str) -> str | None:
        """Return why a function cannot be called with the tool for calls, or None if it can."""
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

    def told(self, error: DirectoryError) -> str:
        """Write an error for a model, with next steps that it can take.

        A step names a tool instead of its function. A step whose function is not a tool here is replaced, or
        left out if there is nothing to put in its place.
        """
        steps: list[Step] = []
        for step in error.next_steps:
            possible = step
            if step.function and step.function not in self.tools:
                possible = _WITHOUT_TOOL.get(step.function)
            if error.kind is INVALID_FIELD and step.function:
                # The fields of a tool are in the list that the client already has.
                possible = Step("see the input schema of the tool")
            if possible is not None:
                name = self.tools.get(possible.function, possible.function)
                steps.append(possible._replace(function=name))
        meant = error.did_you_mean
        return str(DirectoryError(error.kind, error.problem, did_you_mean=meant, next_steps=steps))


class ToolAnswer(NamedTuple):
    """A tool's result: text for the model, and what programs want beside it."""

    text: str
    structured: Row | None = None
    links: tuple[Row, ...] = ()


class DefaultTool(NamedTuple):
    """One tool: the function it calls, what clients are told of it, and how its answer reads."""

    name: str
    function_id: str
    title: str
    description: str
    properties: Row
    required: tuple[str, ...]
    render: Callable[[Any, Row, ClientView], ToolAnswer]
    fixed: Mapping[str, Any] = {}
    """Fields that every call of the function has."""

    def row(self, hints: Hints) -> Row:
        """Describe the tool as ``tools/list`` shows it."""
        schema: Row = {"type": "object", "properties": self.properties}
        if self.required:
            schema["required"] = list(self.required)
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": schema,
            "annotations": hints.as_annotations(),
        }

    def payload(self, arguments: Row) -> Row:
        """Return the payload of the function for the arguments of a call."""
        payload = {key: value for key, value in arguments.items() if key != "cursor"} | dict(self.fixed)
        if self.function_id == SEARCH:
            payload.setdefault("budget_chars", _SEARCH_CHARS)
        if self.function_id == LIST and not payload.get("search") and not payload.get("prefix"):
            payload.setdefault("kind", "skill")
        return payload


# How answers read


def _searched(answer: Any, _: Row, view: ClientView) -> ToolAnswer:
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
        fits = result.get("fits") is True
        if not fits:
            nearest = [(str(hit.get("kind")), hit) for hit in rows_of(result, "nearest")]
            lines.append("Nothing fits." + (" These are the nearest, and may not help:" if nearest else ""))
            found += nearest
        lines += [_hit_line(kind, hit, view) for kind, hit in found]
        for hit in (hit for kind, hit in found if kind == "skill"):
            uri = f"{SCHEME}{hit.get('in') or hit.get('id')}"
            source = object_of(hit.get("provenance"))
            links[uri] = {
                "type": "resource_link",
                "uri": uri,
                "name": visible(str(hit.get("title") or uri)),
                **({"_meta": {META_KEY: source}} if source else {}),
            }
        functions = [str(hit.get("id")) for kind, hit in found if kind == "function"]
        refusals = (view.refusal(one) for one in functions if one not in view.tools)
        lines += [f"Not callable: {refusal}." for refusal in dict.fromkeys(filter(None, refusals))]
        steps: list[str] = []
        if any(kind == "skill" for kind, _ in found):
            steps.append('read skills with skill__fetch {"uris": ["<id>", …]}')
        if functions and view.setting != OFF:
            steps.append(f'call a function with {CALL} {{"function_id": "<id>", "payload": {{…}}}}')
        if not fits:
            steps.append("ask search in other words, or see everything with directory__skills__list")
        lines += [f"Next: {'; '.join(steps)}."] if steps else []
    taken = object_of(object_of(answer).get("corrected"))
    lines += [f"'{visible(word)}' was taken for '{visible(str(meant))}'." for word, meant in taken.items()]
    return ToolAnswer("\n".join(lines), links=tuple(links.values()))


def _hit_line(kind: str, hit: Row, view: ClientView) -> str:
    key = visible(str(hit.get("id")))
    line = f"- {kind} {visible(str(hit['in']))} (page of {key})" if hit.get("in") else f"- {kind} {key}"
    line += _source(hit)
    if hit.get("confidence"):
        line += f" [{hit['confidence']}: {visible(str(hit.get('why') or ''))}]"
    title = visible(str(hit.get("title") or ""))
    said = cut_at_word(visible(str(hit.get("description") or "")), _HIT_CHARS)
    shown = title if kind == "skill" and title.lower() != hit.get("id") else ""
    told = ". ".join(filter(None, (shown, said)))
    line += f": {told}" if told else ""
    if hit.get("path"):
        line += f" Lies at {hit['path']}"
    if kind == "function":
        tool = view.tools.get(str(hit.get("id")))
        is_callable = tool is not None or view.refusal(str(hit.get("id"))) is None
        line += f" callable: {str(is_callable).lower()}{f', with the tool {tool}' if tool else ''}"
    return line


def _source(row: Row) -> str:
    """Return a short mark of who wrote a document, where the directory says so."""
    told = object_of(row.get("provenance"))
    return f" ({Provenance.parse(told).mark()})" if told else ""


def _listed(answer: Any, arguments: Row, _: ClientView) -> ToolAnswer:
    rows = rows_of(answer, "skills")
    by_document = arguments.get("search") or arguments.get("prefix") or arguments.get("kind") == "document"
    room = MAX_LISTED_DOCUMENT_CHARS if by_document else MAX_LISTED_CHARS
    after = arguments.get("cursor")
    lines: list[str] = []
    last = None
    for row in rows:
        key = str(row.get("id"))
        if isinstance(after, str) and key <= after:
            continue
        words = visible(str(row.get("description") or row.get("title") or ""))
        said = cut_at_word(words, MAX_LIST_DESCRIPTION_CHARS)
        line = f"{visible(key)}{_source(row)}: {said}" if said else f"{visible(key)}{_source(row)}"
        room -= len(line) + 1
        if room < 0:
            lines.append(f'More: directory__skills__list {{"cursor": "{last}"}}')
            return ToolAnswer("\n".join(lines), {"total": len(rows), "next_cursor": last})
        lines.append(line)
        last = key
    text = "\n".join(lines) or "No skill matches. Next: call search with words for what is wanted."
    return ToolAnswer(text, {"total": len(rows), "next_cursor": None})


def _got(answer: Any, _: Row, __: ClientView) -> ToolAnswer:
    if isinstance(answer, str):
        return ToolAnswer(answer)
    found = object_of(answer)
    told = {key: value for key, value in found.items() if key not in ("body", "raw")}
    return ToolAnswer(str(found.get("raw") or found.get("body") or ""), told)


def _files(answer: Any, _: Row, __: ClientView) -> ToolAnswer:
    found = object_of(answer)
    rows = rows_of(answer, "files")
    key, place = visible(str(found.get("id"))), found.get("path")
    lines = [f"{len(rows)} files of {key}" + (f", which lies at {place}:" if place else ":")]
    for row in rows:
        mark = " executable" if row.get("executable") else ""
        lines.append(f"{visible(str(row.get('path')))} {row.get('bytes')}{mark}")
    first = visible(str(rows[0].get("path"))) if rows else ""
    lines.append(f'Next: read some with skill__fetch {{"uris": ["{key}/{first}", …]}}.')
    told = {name: found[name] for name in ("id", "uri", "path") if name in found}
    return ToolAnswer("\n".join(lines), told)


_ID: Final[Row] = {"type": "string", "description": "As search or the list prints it."}
TOOLS: Final = (
    DefaultTool(
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
    DefaultTool(
        "skill__fetch",
        FETCH,
        "Read skills and files",
        "Read one or many at once, as text: skills and their pages by id (pdf, pdf/forms), files of skills "
        "by path (pdf/scripts/fill.py), and iii:// or skill:// addresses.",
        {"uris": {"type": "array", "items": {"type": "string"}, "description": "Ids, paths or addresses."}},
        (),
        _got,
        {"sections": READ_ONLY, UNREADABLE: "name"},
    ),
    DefaultTool(
        LIST.replace("::", "__"),
        LIST,
        "List skills",
        "One line per skill, in pages. With search or prefix: every document that matches.",
        {
            "search": {"type": "string", "description": "A part of an id, title or description."},
            "prefix": {"type": "string", "description": "How ids start, such as pdf/."},
            "kind": {"enum": ["skill", "document"], "description": "document lists every page."},
            "cursor": {"type": "string", "description": "next_cursor of the page before."},
        },
        (),
        _listed,
    ),
    DefaultTool(
        GET.replace("::", "__"),
        GET,
        "Read one document",
        "One document as text, with its metadata (title, front matter, skill, path) as structured content.",
        {"id": _ID, "raw": {"type": "boolean", "description": "With the front matter in the text."}},
        ("id",),
        _got,
    ),
    DefaultTool(
        FILES.replace("::", "__"),
        FILES,
        "List the files of a skill",
        "The files of a skill with their sizes in bytes, and the skill's folder on this machine, so that its "
        "scripts can be run.",
        {"id": _ID},
        ("id",),
        _files,
    ),
)
BY_FUNCTION: Final = {tool.function_id: tool for tool in TOOLS}


def default_of(tool: Exposed) -> DefaultTool | None:
    """Return the default tool that an exposed function is; None if it is shown like any other function."""
    default = BY_FUNCTION.get(tool.function_id)
    return default if default is not None and default.name == tool.name else None


def call_tool_row(setting: str) -> Row:
    """Describe the tool that calls a function; its hints depend on what may be called."""
    only_reads = setting == READ_ONLY
    which = "a function that only reads" if only_reads else "any function that search finds"
    words = f"Call {which}, and get what it answers. search shows which functions can be called."
    properties = {
        "function_id": {"type": "string", "description": "The id, such as mail::send."},
        "payload": {"type": "object", "description": "What the function takes."},
    }
    tool = DefaultTool(CALL, "", "Call a function", words, properties, ("function_id",), _got)
    return tool.row(Hints(read_only=only_reads, destructive=not only_reads, idempotent=only_reads))
