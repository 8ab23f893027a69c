"""What the directory's MCP-shaped functions answer, made safe to pass on. Pure.

Titles, names and descriptions reach people and models in lists, so they are cleaned of what cannot be seen;
bodies are served as they are. A row that is no row is left out: one of them must not cost a client the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from iii_directory.documents.ids import segments_problem
from iii_directory.documents.provenance import META_KEY
from iii_directory.documents.uris import SCHEME
from iii_directory.exposure import is_internal
from iii_directory.limits import MAX_COMPLETIONS
from iii_directory.shapes import is_count, is_object, object_of, rows_of
from iii_directory.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = dict[str, Any]
_LABELS: Final = ("name", "title", "description")


def resources(answer: object) -> list[Row]:
    """The entries of ``skills::resources-list``."""
    found = (row for row in rows_of(answer, "resources") if _handles(row, "uri") and _texts(row, "name"))
    return [_labelled(row, "uri", "mimeType") | _about(row) for row in found]


def templates(answer: object) -> list[Row]:
    """The entries of ``skills::resources-templates``."""
    found = rows_of(answer, "resourceTemplates")
    return [
        _labelled(row, "uriTemplate", "mimeType")
        for row in found
        if _handles(row, "uriTemplate") and _texts(row, "name")
    ]


def prompts(answer: object) -> list[Row]:
    """The entries of ``prompts::mcp-list``."""
    return [
        _with_meta({**_labelled(row), "arguments": _arguments(row)}, row)
        for row in rows_of(answer, "prompts")
        if _handles(row, "name")
    ]


def prompt(answer: object) -> Row:
    """The answer of ``prompts::mcp-get``; its messages are the prompt's body and stay as they are."""
    found = object_of(answer)
    return _with_meta(_labelled(found) | {"messages": found.get("messages")}, found)


def contents(answer: object) -> list[Row] | None:
    """The entries of ``skills::resources-read`` as they are, or None for an answer of another shape."""
    found = rows_of(answer, "contents")
    usable = (_texts(row, "uri", "text") or _texts(row, "uri", "blob") for row in found)
    return found if found and all(usable) else None


def skill_ids(answer: object) -> list[str]:
    """What ``{skill_id}`` can stand for, from the list of resources."""
    return [uri.removeprefix(SCHEME) for row in resources(answer) if (uri := row["uri"]).startswith(SCHEME)]


def function_paths(answer: object) -> list[str]:
    """What ``{function_path}`` can stand for: functions that have an address and may back a section."""
    ids = {str(row.get("function_id")) for row in rows_of(answer, "functions") if not is_internal(row)}
    paths = (one.replace("::", "/") for one in ids if "/" not in one)
    return sorted(path for path in paths if segments_problem(path, "function path") is None)


def completion(typed: str, candidates: Iterable[str]) -> Row:
    """The candidates that start with what was typed, then those that contain it; at most 100."""
    needle = typed.strip().lower()
    found = [one for one in candidates if needle in one]
    found.sort(key=lambda one: not one.startswith(needle))
    return {
        "values": found[:MAX_COMPLETIONS],
        "total": len(found),
        "hasMore": len(found) > MAX_COMPLETIONS,
    }


def _labelled(row: Row, *others: str) -> Row:
    cleaned = {key: visible(row[key]) for key in _LABELS if isinstance(row.get(key), str)}
    return cleaned | {key: row[key] for key in others if isinstance(row.get(key), str)}


def _about(row: Row) -> Row:
    """The size of a resource, and what clients and other programs are told beside it."""
    told = {key: row[key] for key in ("annotations", "_meta") if is_object(row.get(key))}
    return told | ({"size": row["size"]} if is_count(row.get("size")) else {})


def fetched(answer: object) -> tuple[object, Row]:
    """The text of ``skill::fetch`` and the ``_meta`` of its result: the provenance of each address."""
    found = object_of(answer)
    sources = object_of(found.get("provenance"))
    if not isinstance(found.get("content"), str):
        return answer, {}
    return found["content"], {META_KEY: sources} if sources else {}


def provenance_meta(answer: object) -> Row:
    """The ``_meta`` of a result that says where one document comes from."""
    source = object_of(object_of(answer).get("provenance"))
    return {META_KEY: source} if source else {}


def _with_meta(made: Row, row: Row) -> Row:
    """The row with the provenance that the directory gave; nothing else of ``_meta`` is passed on."""
    source = object_of(object_of(row.get("_meta")).get(META_KEY))
    return made | {"_meta": {META_KEY: source}} if source else made


def _arguments(row: Row) -> list[Row]:
    return [
        {**_labelled(argument), "required": argument.get("required") is True}
        for argument in rows_of(row, "arguments")
        if _handles(argument, "name")
    ]


def _handles(row: Row, key: str) -> bool:
    """Whether the field can be sent back to ask for the thing: it is text that cleaning would not change."""
    value = row.get(key)
    return isinstance(value, str) and value == visible(value) != ""


def _texts(row: Row, *keys: str) -> bool:
    return all(isinstance(row.get(key), str) for key in keys)
