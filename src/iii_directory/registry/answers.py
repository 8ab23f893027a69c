"""What a workers registry answers, taken apart. Pure.

Registries are other people's: a malformed row, function or trigger loses only itself, a missing field
gets its default, and only an answer that is not the thing asked for at all is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iii_directory.errors import REGISTRY_FAILED, DirectoryError
from iii_directory.shapes import Json, is_count, is_list, is_object, items_of, object_of, rows_of, text_of

_FUNCTION_FIELDS: Final = ("description", "request_schema", "response_schema", "metadata")
_TRIGGER_FIELDS: Final = ("description", "invocation_schema", "return_schema", "metadata")


@dataclass(frozen=True, slots=True)
class SkillAnswer:
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class PromptAnswer:
    name: str
    description: str
    args_schema: object | None
    content: str


@dataclass(frozen=True, slots=True)
class BundleAnswer:
    """``GET /w/{name}/skills``: the documents of one version."""

    version: str
    skills: tuple[SkillAnswer, ...]
    prompts: tuple[PromptAnswer, ...]


def parse_page(answer: object) -> Json:
    """``GET /w``: rows and where the next page starts."""
    if not is_object(answer) or not is_list(answer.get("workers")):
        raise _unusable("it has no list of workers")
    rows = [parse_row(value) for value in answer["workers"]]
    return {
        "workers": [row for row in rows if row is not None],
        "pagination": _pagination(object_of(answer.get("pagination"))),
    }


def parse_detail(answer: object, name: str) -> Json:
    """``GET /w/{name}``: ``worker``, ``readme`` when there is one, and ``api_reference``."""
    if not is_object(answer):
        raise _unusable("it is not an object")
    wrapped = answer.get("worker")
    fields = wrapped if is_object(wrapped) else answer
    row = parse_row(fields)
    if row is None:
        raise _unusable("it describes no worker")
    _check_name(row["name"], name)
    # Older registries put these beside the worker's own fields.
    extra = {**answer, **fields}
    detail: Json = {"worker": row}
    if isinstance(extra.get("readme"), str):
        detail["readme"] = extra["readme"]
    reference = extra.get("api_reference")
    detail["api_reference"] = _api_reference(reference if is_object(reference) else extra)
    return detail


def parse_bundle(answer: object, name: str, asked: str) -> BundleAnswer:
    """``GET /w/{name}/skills``; every entry must be whole, because all of them are going to be written."""
    if not is_object(answer):
        raise _unusable("it is not an object")
    if answer.get("name") is not None:
        _check_name(answer["name"], name)
    version = answer.get("version")
    if version is not None and not isinstance(version, str):
        raise _unusable("its version is not a string")
    skills = tuple(_skill(value) for value in _listed(answer, "skills"))
    prompts = tuple(_prompt(value) for value in _listed(answer, "prompts"))
    return BundleAnswer(version or asked, skills, prompts)


def skills_tree(bundle: BundleAnswer | None) -> Json:
    """The names in a bundle without their contents; None is a worker that published none."""
    if bundle is None:
        return {"skills": [], "prompts": []}
    prompts = [{"name": one.name, "description": one.description or None} for one in bundle.prompts]
    return {"skills": [{"path": one.path} for one in bundle.skills], "prompts": prompts}


def parse_row(value: object) -> Json | None:
    """One worker as every list shows it, or None when it has no name."""
    if not is_object(value) or not isinstance(value.get("name"), str) or not value["name"]:
        return None
    downloads = value.get("total_downloads")
    row: Json = {
        "name": value["name"],
        "description": text_of(value.get("description")),
        "type": text_of(value.get("type")),
        "version": text_of(value.get("version")),
        "repo": text_of(value.get("repo")),
        "config": value["config"] if value.get("config") is not None else {},
        "supported_targets": [
            item for item in items_of(value.get("supported_targets")) if isinstance(item, str)
        ],
        "total_downloads": downloads if is_count(downloads) else 0,
        "dependencies": [one for one in map(_dependency, items_of(value.get("dependencies"))) if one],
        "author": _author(value.get("author")),
    }
    if isinstance(value.get("image"), str):
        row["image"] = value["image"]
    return row


def _api_reference(fields: Json) -> Json:
    return {
        "functions": _references(fields, "functions", _FUNCTION_FIELDS),
        "triggers": _references(fields, "triggers", _TRIGGER_FIELDS),
    }


def _references(reference: Json, key: str, fields: tuple[str, ...]) -> list[Json]:
    named = [one for one in rows_of(reference, key) if text_of(one.get("name"))]
    return [{"name": one["name"], **{field: one.get(field) for field in fields}} for one in named]


def _pagination(value: Json) -> Json:
    cursor, size = value.get("next_cursor"), value.get("page_size")
    return {
        "next_cursor": cursor if isinstance(cursor, str) and cursor else None,
        "has_more": value.get("has_more") is True,
        "page_size": size if is_count(size) else 0,
    }


def _dependency(value: object) -> dict[str, str] | None:
    if not is_object(value) or not isinstance(value.get("name"), str):
        return None
    version = value.get("version")
    return {"name": value["name"], "version": version if isinstance(version, str) else "*"}


def _author(value: object) -> Json | None:
    if not is_object(value):
        return None
    verified = value.get("verified") is True
    return {"name": text_of(value.get("name")), "pfp": text_of(value.get("pfp")), "verified": verified}


def _skill(value: object) -> SkillAnswer:
    if not is_object(value) or not _has_texts(value, "path", "content"):
        raise _unusable("a skill in it has no path or no content")
    return SkillAnswer(value["path"], value["content"])


def _prompt(value: object) -> PromptAnswer:
    if not is_object(value) or not _has_texts(value, "name", "content"):
        raise _unusable("a prompt in it has no name or no content")
    return PromptAnswer(
        value["name"], text_of(value.get("description")) or "", value.get("args_schema"), value["content"]
    )


def _listed(answer: Json, field: str) -> list[object]:
    if answer.get(field) is not None and not isinstance(answer[field], list):
        raise _unusable(f"its {field} are not a list")
    return items_of(answer.get(field))


def _check_name(answered: object, asked: str) -> None:
    if answered != asked:
        raise _unusable(f"it is about another worker than '{asked}'")


def _unusable(reason: str) -> DirectoryError:
    return DirectoryError(REGISTRY_FAILED, f"the answer of the registry cannot be used: {reason}")


def _has_texts(value: Json, *fields: str) -> bool:
    return all(isinstance(value.get(field), str) for field in fields)
