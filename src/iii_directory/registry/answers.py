"""What a workers registry answers, taken apart. Pure.

Registries are other people's: a malformed row, function or trigger loses only itself, a missing field
gets its default, and only an answer that is not the thing asked for at all is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeGuard, cast

from iii_directory.errors import REGISTRY_FAILED, DirectoryError

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


def parse_page(answer: object) -> dict[str, Any]:
    """``GET /w``: rows and where the next page starts."""
    if not _is_object(answer) or not isinstance(answer.get("workers"), list):
        raise _unusable("it has no list of workers")
    rows = [parse_row(value) for value in answer["workers"]]
    pagination = answer.get("pagination")
    return {
        "workers": [row for row in rows if row is not None],
        "pagination": _pagination(pagination if _is_object(pagination) else {}),
    }


def parse_detail(answer: object, name: str) -> dict[str, Any]:
    """``GET /w/{name}``: ``worker``, ``readme`` when there is one, and ``api_reference``."""
    if not _is_object(answer):
        raise _unusable("it is not an object")
    wrapped = answer.get("worker")
    fields = wrapped if _is_object(wrapped) else answer
    row = parse_row(fields)
    if row is None:
        raise _unusable("it describes no worker")
    _check_name(row["name"], name)
    # Older registries put these beside the worker's own fields.
    extra = {**answer, **fields}
    detail: dict[str, Any] = {"worker": row}
    if isinstance(extra.get("readme"), str):
        detail["readme"] = extra["readme"]
    reference = extra.get("api_reference")
    detail["api_reference"] = _api_reference(reference if _is_object(reference) else extra)
    return detail


def parse_bundle(answer: object, name: str, asked: str) -> BundleAnswer:
    """``GET /w/{name}/skills``; every entry must be whole, because all of them are going to be written."""
    if not _is_object(answer):
        raise _unusable("it is not an object")
    if answer.get("name") is not None:
        _check_name(answer["name"], name)
    version = answer.get("version")
    if version is not None and not isinstance(version, str):
        raise _unusable("its version is not a string")
    skills = tuple(_skill(value) for value in _listed(answer, "skills"))
    prompts = tuple(_prompt(value) for value in _listed(answer, "prompts"))
    return BundleAnswer(version or asked, skills, prompts)


def skills_tree(bundle: BundleAnswer | None) -> dict[str, Any]:
    """The names in a bundle without their contents; None is a worker that published none."""
    if bundle is None:
        return {"skills": [], "prompts": []}
    prompts = [{"name": one.name, "description": one.description or None} for one in bundle.prompts]
    return {"skills": [{"path": one.path} for one in bundle.skills], "prompts": prompts}


def parse_row(value: object) -> dict[str, Any] | None:
    """One worker as every list shows it, or None when it has no name."""
    if not _is_object(value) or not isinstance(value.get("name"), str) or not value["name"]:
        return None
    downloads = value.get("total_downloads")
    row: dict[str, Any] = {
        "name": value["name"],
        "description": _text(value.get("description")),
        "type": _text(value.get("type")),
        "version": _text(value.get("version")),
        "repo": _text(value.get("repo")),
        "config": value["config"] if value.get("config") is not None else {},
        "supported_targets": [
            item for item in _items(value.get("supported_targets")) if isinstance(item, str)
        ],
        "total_downloads": downloads if _is_count(downloads) else 0,
        "dependencies": [one for one in map(_dependency, _items(value.get("dependencies"))) if one],
        "author": _author(value.get("author")),
    }
    if isinstance(value.get("image"), str):
        row["image"] = value["image"]
    return row


def _api_reference(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "functions": _references(fields.get("functions"), _FUNCTION_FIELDS),
        "triggers": _references(fields.get("triggers"), _TRIGGER_FIELDS),
    }


def _references(value: object, fields: tuple[str, ...]) -> list[dict[str, Any]]:
    named = [one for one in _items(value) if _is_object(one) and _text(one.get("name"))]
    return [{"name": one["name"], **{field: one.get(field) for field in fields}} for one in named]


def _pagination(value: dict[str, Any]) -> dict[str, Any]:
    cursor, size = value.get("next_cursor"), value.get("page_size")
    return {
        "next_cursor": cursor if isinstance(cursor, str) and cursor else None,
        "has_more": value.get("has_more") is True,
        "page_size": size if _is_count(size) else 0,
    }


def _dependency(value: object) -> dict[str, str] | None:
    if not _is_object(value) or not isinstance(value.get("name"), str):
        return None
    version = value.get("version")
    return {"name": value["name"], "version": version if isinstance(version, str) else "*"}


def _author(value: object) -> dict[str, Any] | None:
    if not _is_object(value):
        return None
    verified = value.get("verified") is True
    return {"name": _text(value.get("name")), "pfp": _text(value.get("pfp")), "verified": verified}


def _skill(value: object) -> SkillAnswer:
    if not _is_object(value) or not _has_texts(value, "path", "content"):
        raise _unusable("a skill in it has no path or no content")
    return SkillAnswer(value["path"], value["content"])


def _prompt(value: object) -> PromptAnswer:
    if not _is_object(value) or not _has_texts(value, "name", "content"):
        raise _unusable("a prompt in it has no name or no content")
    return PromptAnswer(
        value["name"], _text(value.get("description")) or "", value.get("args_schema"), value["content"]
    )


def _listed(answer: dict[str, Any], field: str) -> list[object]:
    if answer.get(field) is not None and not isinstance(answer[field], list):
        raise _unusable(f"its {field} are not a list")
    return _items(answer.get(field))


def _check_name(answered: object, asked: str) -> None:
    if answered != asked:
        raise _unusable(f"it is about another worker than '{asked}'")


def _unusable(reason: str) -> DirectoryError:
    return DirectoryError(REGISTRY_FAILED, f"the answer of the registry cannot be used: {reason}")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _has_texts(value: dict[str, Any], *fields: str) -> bool:
    return all(isinstance(value.get(field), str) for field in fields)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)
