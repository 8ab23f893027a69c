"""What callers may ask a registry for, checked before anything is sent. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory import limits
from iii_directory.documents.payload_fields import optional_word
from iii_directory.errors import BAD_REGISTRY_REQUEST, DirectoryError, invalid_field
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORKER: Final = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{limits.MAX_SEGMENT_CHARS - 1}}}")
_VERSION: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._+-]{{0,{limits.MAX_VERSION_CHARS - 1}}}")


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
        """What goes out as ``version``: registries take versions and tags in the same place."""
        return self.version or self.tag or "latest"


def is_worker(name: str) -> bool:
    return _WORKER.fullmatch(name) is not None


def page_request(payload: Mapping[str, Any]) -> PageRequest:
    """``{search?, cursor?}``."""
    request = PageRequest(optional_word(payload, "search"), optional_word(payload, "cursor"))
    for field, value in (("search", request.search), ("cursor", request.cursor)):
        if value is not None and len(value) > limits.MAX_REGISTRY_QUERY_CHARS:
            raise invalid_field(field, f"at most {limits.MAX_REGISTRY_QUERY_CHARS} characters long")
    return request


def info_request(payload: Mapping[str, Any]) -> WorkerRequest:
    """``{name, version? xor tag?}``."""
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
        if value is not None and not _VERSION.fullmatch(value):
            raise DirectoryError(BAD_REGISTRY_REQUEST, f"{quoted(value)} is not a {field}")
    return WorkerRequest(worker, version, tag if version is not None else tag or "latest")
