"""What each thing of the directory says to search: skills, prompts, functions, bindings, workers. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iii_directory.documents.ids import namespace_of
from iii_directory.documents.uris import WRITING
from iii_directory.search.fields import Document
from iii_directory.shapes import is_text_list, object_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from iii_directory.documents.model import Prompt, Skill

    Row = Mapping[str, Any]


def of_skill(display_id: str, skill: Skill) -> Document:
    """A skill without its body. The functions it is about are said like arguments."""
    functions = skill.functions if skill.function_id is None else (skill.function_id, *skill.functions)
    return Document(
        display_id,
        skill.title,
        skill.description,
        worker=skill.provenance.worker or namespace_of(display_id),
        keywords=skill.keywords,
        arguments=functions,
        provenance=skill.provenance,
    )


def of_prompt(prompt: Prompt) -> Document:
    return Document(
        prompt.name,
        description=prompt.description,
        worker=prompt.provenance.worker or namespace_of(prompt.path or ""),
        arguments=tuple(argument.name for argument in prompt.arguments),
        provenance=prompt.provenance,
    )


def of_function(row: Row) -> Document:
    """A function with the names of its arguments, and what its owner says it should be found by."""
    metadata = object_of(row.get("metadata"))
    keywords = metadata.get("keywords")
    return Document(
        str(row["function_id"]),
        description=text_of(row.get("description")) or "",
        worker=text_of(row.get("worker_name")) or "",
        keywords=tuple(keywords) if is_text_list(keywords) else (),
        arguments=tuple(object_of(object_of(row.get("request_schema")).get("properties"))),
        switched_off=metadata.get(WRITING) is False,
    )


def of_binding(row: Row) -> Document:
    """A trigger that already calls a function."""
    return Document(
        str(row["id"]),
        title=text_of(row.get("trigger_type")) or "",
        description=f"calls {row.get('function_id')} on {row.get('trigger_type')}",
        worker=text_of(row.get("worker_name")) or "",
        arguments=(*object_of(row.get("config")), str(row.get("function_id"))),
    )


def of_worker(row: Row, functions: Iterable[str]) -> Document:
    """A connected worker; what its functions are called counts like arguments."""
    name = str(row["name"])
    return Document(
        name, description=text_of(row.get("description")) or "", worker=name, arguments=tuple(functions)
    )


def of_published(row: Row) -> Document:
    """A worker of the registry that could be installed."""
    name = str(row["name"])
    return Document(name, description=text_of(row.get("description")) or "", worker=name)
