"""What callers may ask a workers registry for, its versions, and its answers taken apart. Pure.

Requests are checked before anything is sent. Registries belong to others: a malformed row, function or
trigger loses only itself, a missing field gets its default, and only an answer that is not the thing asked
for at all is an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory import limits
from iii_directory.documents.payload_fields import optional_word
from iii_directory.errors import BAD_REGISTRY_REQUEST, REGISTRY_FAILED, DirectoryError, invalid_field
from iii_directory.shapes import Json, is_count, is_list, is_object, items_of, object_of, rows_of, text_of
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


_WORKER: Final = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{limits.MAX_SEGMENT_CHARS - 1}}}")
_ASKED_VERSION: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._+-]{{0,{limits.MAX_VERSION_CHARS - 1}}}")


class PageRequest(NamedTuple):
    """One page of the registry's workers."""

    search: str | None = None
    cursor: str | None = None


class WorkerRequest(NamedTuple):
    """One worker, at an exact version or at what a tag names; exactly one of the two is set."""

    worker: str
    version: str | None = None
    tag: str | None = None

    @property
    def asked(self) -> str:
        """Return what is sent as ``version``: registries take versions and tags in the same place."""
        return self.version or self.tag or "latest"


def is_worker(name: str) -> bool:
    return _WORKER.fullmatch(name) is not None


def page_request(payload: Mapping[str, Any]) -> PageRequest:
    """Check the payload ``{search?, cursor?}``."""
    request = PageRequest(optional_word(payload, "search"), optional_word(payload, "cursor"))
    for field, value in (("search", request.search), ("cursor", request.cursor)):
        if value is not None and len(value) > limits.MAX_REGISTRY_QUERY_CHARS:
            raise invalid_field(field, f"at most {limits.MAX_REGISTRY_QUERY_CHARS} characters long")
    return request


def info_request(payload: Mapping[str, Any]) -> WorkerRequest:
    """Check the payload ``{name, version? xor tag?}``."""
    name = optional_word(payload, "name")
    if name is None:
        raise invalid_field("name", "the name of a worker in the registry")
    return worker_request(name, optional_word(payload, "version"), optional_word(payload, "tag"))


def worker_request(worker: str, version: str | None = None, tag: str | None = None) -> WorkerRequest:
    """Check a worker's name and that at most one of version and tag is given; the default tag is latest."""
    if not is_worker(worker):
        rule = "a worker's name starts with a lowercase letter or digit and goes on with those, '-' and '_'"
        raise DirectoryError(BAD_REGISTRY_REQUEST, f"{quoted(worker)} is not the name of a worker: {rule}")
    if version is not None and tag is not None:
        raise DirectoryError(BAD_REGISTRY_REQUEST, "pass either version or tag, not both")
    for field, value in (("version", version), ("tag", tag)):
        if value is not None and not _ASKED_VERSION.fullmatch(value):
            raise DirectoryError(BAD_REGISTRY_REQUEST, f"{quoted(value)} is not a {field}")
    return WorkerRequest(worker, version, tag if version is not None else tag or "latest")


_NUMBER: Final = r"(?:0|[1-9][0-9]{0,17})"
_LABEL: Final = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMANTIC: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_LABEL}(?:\.{_LABEL})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)

_WORD: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]*")

# A release sorts after its pre-releases; within one, numbers sort before words.
_Label = tuple[int, int, str]
Order = tuple[int, int, int, bool, tuple[_Label, ...]]


def order_of(version: str) -> Order | None:
    """Return a key by which versions sort as semver.org says; None if the text is not a version."""
    found = _SEMANTIC.fullmatch(version) if len(version) <= limits.MAX_VERSION_CHARS else None
    if found is None:
        return None
    major, minor, patch, labels = found.groups()
    parts = labels.split(".") if labels else ()
    rest = tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)
    return int(major), int(minor), int(patch), not labels, rest


def is_version(text: str) -> bool:
    return order_of(text) is not None


def can_be_version(text: str) -> bool:
    """Return whether a registry may give a release this version: a short word, semantic or not."""
    return len(text) <= limits.MAX_VERSION_CHARS and _WORD.fullmatch(text) is not None


def is_older(version: str, than: str) -> bool:
    """Return whether both are versions and the first comes before the second."""
    first, second = order_of(version), order_of(than)
    return first is not None and second is not None and first < second


def highest_stable(versions: Iterable[str]) -> str | None:
    stable = [(order, version) for version in versions if (order := order_of(version)) and order[3]]
    return max(stable)[1] if stable else None


_FUNCTION_FIELDS: Final = ("description", "request_schema", "response_schema", "metadata")
_TRIGGER_FIELDS: Final = ("description", "invocation_schema", "return_schema", "metadata")


class SkillAnswer(NamedTuple):
    path: str
    content: str


class PromptAnswer(NamedTuple):
    name: str
    description: str
    args_schema: object | None
    content: str


class BundleAnswer(NamedTuple):
    """The answer to ``GET /w/{name}/skills``: the documents of one version."""

    version: str
    skills: tuple[SkillAnswer, ...]
    prompts: tuple[PromptAnswer, ...]


def parse_page(answer: object) -> Json:
    """Read the answer to ``GET /w``: rows and where the next page starts."""
    if not is_object(answer) or not is_list(answer.get("workers")):
        raise _unusable("it has no list of workers")
    rows = [parse_row(value) for value in answer["workers"]]
    pagination = object_of(answer.get("pagination"))
    size = pagination.get("page_size")
    return {
        "workers": [row for row in rows if row is not None],
        "pagination": {
            "next_cursor": text_of(pagination.get("next_cursor")) or None,
            "has_more": pagination.get("has_more") is True,
            "page_size": size if is_count(size) else 0,
        },
    }


def parse_detail(answer: object, name: str) -> Json:
    """Read the answer to ``GET /w/{name}``: ``worker``, ``readme`` if any, and ``api_reference``."""
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
    versions = [
        {
            "version": one["version"],
            "tags": [tag for tag in items_of(one.get("tags")) if isinstance(tag, str)],
            "published_at": text_of(one.get("published_at")),
        }
        for one in rows_of(extra, "versions")
        if can_be_version(str(one.get("version")))
    ]
    if versions:
        detail["versions"] = versions
    reference = extra.get("api_reference")
    fields = reference if is_object(reference) else extra
    detail["api_reference"] = {
        "functions": _references(fields, "functions", _FUNCTION_FIELDS),
        "triggers": _references(fields, "triggers", _TRIGGER_FIELDS),
    }
    return detail


def parse_bundle(answer: object, name: str, asked: str) -> BundleAnswer:
    """Read the answer to ``GET /w/{name}/skills``; every entry must be whole, since all are written."""
    if not is_object(answer):
        raise _unusable("it is not an object")
    if answer.get("name") is not None:
        _check_name(answer["name"], name)
    version = answer.get("version")
    if version is not None and not isinstance(version, str):
        raise _unusable("its version is not a string")
    skills = tuple(
        SkillAnswer(one["path"], one["content"]) for one in _whole_rows(answer, "skills", "path", "content")
    )
    prompts = tuple(
        PromptAnswer(
            one["name"], text_of(one.get("description")) or "", one.get("args_schema"), one["content"]
        )
        for one in _whole_rows(answer, "prompts", "name", "content")
    )
    return BundleAnswer(version or asked, skills, prompts)


def _whole_rows(answer: Json, field: str, *keys: str) -> Iterator[Json]:
    """Yield the objects of a list, each of which must have strings at ``keys``."""
    rows = answer.get(field)
    if rows is not None and not is_list(rows):
        raise _unusable(f"its {field} are not a list")
    for row in map(object_of, rows or ()):
        if not all(isinstance(row.get(key), str) for key in keys):
            raise _unusable(f"one of its {field} has no {' or no '.join(keys)}")
        yield row


def skills_tree(bundle: BundleAnswer | None) -> Json:
    """Return the names in a bundle without the contents; None stands for a worker without documents."""
    if bundle is None:
        return {"skills": [], "prompts": []}
    prompts = [{"name": one.name, "description": one.description or None} for one in bundle.prompts]
    return {"skills": [{"path": one.path} for one in bundle.skills], "prompts": prompts}


def parse_row(value: object) -> Json | None:
    """Read one worker as every list shows it; None if it has no name."""
    if not is_object(value) or not isinstance(value.get("name"), str) or not value["name"]:
        return None
    downloads, author = value.get("total_downloads"), value.get("author")
    if is_object(author):
        names = {key: text_of(author.get(key)) for key in ("name", "pfp")}
        author = {**names, "verified": author.get("verified") is True}
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
        "dependencies": [
            {"name": one["name"], "version": text_of(one.get("version")) or "*"}
            for one in rows_of(value, "dependencies")
            if isinstance(one.get("name"), str)
        ],
        "author": author if is_object(author) else None,
    }
    if isinstance(value.get("image"), str):
        row["image"] = value["image"]
    return row


def _references(reference: Json, key: str, fields: tuple[str, ...]) -> list[Json]:
    named = [one for one in rows_of(reference, key) if text_of(one.get("name"))]
    return [{"name": one["name"], **{field: one.get(field) for field in fields}} for one in named]


def _check_name(answered: object, asked: str) -> None:
    if answered != asked:
        raise _unusable(f"it is about another worker than '{asked}'")


def _unusable(reason: str) -> DirectoryError:
    return DirectoryError(REGISTRY_FAILED, f"the answer of the registry cannot be used: {reason}")
