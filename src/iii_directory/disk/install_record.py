"""Parse and render ``skills.lock.json``: where each namespace came from, and what it held when it came. Pure.

A malformed entry is reported, left out, and carried through unchanged when the file is written again, so that
a newer or a damaged record is never lost to an install of something else.
"""

from __future__ import annotations

import hashlib
import json
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from iii_directory.documents.ids import is_namespace, is_safe_path, kind_of
from iii_directory.documents.model import Finding
from iii_directory.errors import refused
from iii_directory.shapes import is_object, is_text_list, is_text_map, object_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LOCKFILE: Final = "skills.lock.json"
_FORMAT: Final = 1
_install_of: Final = attrgetter("installed_at", "resolved", "files")
_FIX: Final = "restore the file from a backup, or download the namespace again"

_NONE: Final[Mapping[str, str]] = MappingProxyType({})

By = Literal["call", "auto", "create"]
"""Who asked for a namespace: a caller, the worker itself, or ("create") its documents were written here."""


def _as_dict(source: Source) -> dict[str, str]:
    """Return the source as the file has it: its kind, and every field that is set."""
    set_fields = {name: value for name, value in source._asdict().items() if value is not None}
    return {"kind": source.kind, **set_fields}


class RegistrySource(NamedTuple):
    """A worker of a registry, at an exact version or at whatever a tag names; one of the two is set."""

    worker: str
    version: str | None = None
    tag: str | None = None
    registry: str | None = None
    """The address of the registry, without credentials; None in records older than this field."""
    kind: Literal["registry"] = "registry"
    as_dict = _as_dict


class RepoSource(NamedTuple):
    """A folder of a git repository; ``branch`` may be a tag, a commit id or HEAD too."""

    repo: str
    skill: str
    branch: str
    commit: str
    path: str | None = None
    """The folder, where it is not ``skills/<skill>``; ``.`` is the whole repository."""
    kind: Literal["repo"] = "repo"
    as_dict = _as_dict

    @property
    def folder(self) -> str:
        return self.path or f"skills/{self.skill}"


class LocalSource(NamedTuple):
    """A folder of the machine it was installed on; of a git work tree with the commit it was at."""

    path: str
    skill: str
    commit: str | None = None
    kind: Literal["folder"] = "folder"
    as_dict = _as_dict


class SiteSource(NamedTuple):
    """A skill in the well-known index of a site."""

    url: str
    skill: str
    kind: Literal["site"] = "site"
    as_dict = _as_dict


class FileSource(NamedTuple):
    """A skill in one file: a SKILL.md at an address, or an archive there or on the machine it came from."""

    url: str
    """The address, or an absolute path."""
    skill: str
    kind: Literal["file"] = "file"
    as_dict = _as_dict


class WrittenSource(NamedTuple):
    """No source: the documents were written here, by ``directory::skills::create``."""

    kind: Literal["written"] = "written"
    as_dict = _as_dict


Source = RegistrySource | RepoSource | LocalSource | SiteSource | FileSource | WrittenSource
_SOURCES: Final[dict[str, type[Source]]] = {kind._field_defaults["kind"]: kind for kind in get_args(Source)}


class FactsBaseline(NamedTuple):
    """What the operator accepted of the facts of a namespace, and why."""

    accepted_at: str
    reason: str
    facts: Mapping[str, list[str]]


class Entry(NamedTuple):
    """One namespace as its source had it; ``files`` maps paths below it to ``sha256:<hex>``."""

    source: Source
    resolved: str
    installed_at: str
    by: By
    files: Mapping[str, str]
    executable: frozenset[str] = frozenset()
    """Which of them the source has as programs."""
    edited_from: Mapping[str, str] = _NONE
    """What files that were edited by hand had been, where the source has something newer by now."""
    left_behind: Mapping[str, str] = _NONE
    """Files that left the source and are still here, as they were installed."""
    authors: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """The caller that last wrote a file through the directory, by the path of the file.

    Each is ``{"worker_id", "worker"}``, "unknown" where the engine did not name the caller.
    """

    facts_baseline: FactsBaseline | None = None

    def as_dict(self) -> dict[str, object]:
        more: dict[str, object] = {
            "executable": sorted(self.executable),
            "edited_from": dict(sorted(self.edited_from.items())),
            "left_behind": dict(sorted(self.left_behind.items())),
            "authors": dict(sorted(self.authors.items())),
            "facts-baseline": None if self.facts_baseline is None else self.facts_baseline._asdict(),
        }
        return {
            "source": self.source.as_dict(),
            "resolved": self.resolved,
            "installed_at": self.installed_at,
            "by": self.by,
            "files": dict(sorted(self.files.items())),
            **{name: value for name, value in more.items() if value},
        }


class LockFile(NamedTuple):
    """The whole file. ``carried`` holds what could not be read; ``broken`` forbids writing over it."""

    namespaces: Mapping[str, Entry] = MappingProxyType({})
    carried: Mapping[str, Any] = _NONE
    findings: tuple[Finding, ...] = ()
    broken: bool = False

    def with_entry(self, namespace: str, entry: Entry | None) -> LockFile:
        """Return the record with one namespace set, or taken out when ``entry`` is None."""
        kept = {name: value for name, value in self.namespaces.items() if name != namespace}
        carried = {name: value for name, value in self.carried.items() if name != namespace}
        if entry is not None:
            kept[namespace] = entry
        return self._replace(namespaces=kept, carried=carried)


class NamespaceChange(NamedTuple):
    """What another process did to one namespace, as far as events are concerned."""

    namespace: str
    source: Literal["repo", "registry"]
    skills: bool
    prompts: bool


def unbroken(lock: LockFile) -> LockFile:
    """Return the record unless it cannot be read, which is D340."""
    if lock.broken:
        raise refused(f"{lock.findings[0].reason}; repair or remove it first")
    return lock


def content_hash(content: bytes) -> str:
    """Hash bytes in the form in which records, manifests and indexes show it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def render_lock(lock: LockFile) -> bytes:
    """Render the file; equal records give equal bytes."""
    namespaces: dict[str, object] = dict(lock.carried)
    namespaces.update({name: entry.as_dict() for name, entry in lock.namespaces.items()})
    document = {"version": _FORMAT, "namespaces": dict(sorted(namespaces.items()))}
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def parse_lock(content: bytes | None) -> LockFile:
    """Parse the bytes of the file; None stands for a missing file."""
    if content is None:
        return LockFile()
    try:
        document = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return broken_lock("it is not JSON")
    if not is_object(document) or not is_object(document.get("namespaces")):
        return broken_lock("it has no namespaces")
    if document.get("version") != _FORMAT:
        return broken_lock(f"it is not of version {_FORMAT}")
    read: dict[str, Entry] = {}
    carried: dict[str, Any] = {}
    for name, value in document["namespaces"].items():
        entry = parse_entry(value) if is_namespace(name) else None
        if entry is None:
            carried[name] = value
        else:
            read[name] = entry
    problem = "the record of this namespace is malformed"
    findings = (Finding("undecodable", f"{LOCKFILE}: {name}", problem, _FIX) for name in sorted(carried))
    return LockFile(read, carried, tuple(findings))


def parse_entry(value: object) -> Entry | None:
    """Parse the record of one namespace; None if it is malformed."""
    if not is_object(value):
        return None
    source = _parse_source(value.get("source"))
    resolved, installed_at, by = value.get("resolved"), value.get("installed_at"), value.get("by")
    files = value.get("files")
    if source is None or not is_text_map(files) or by not in ("call", "auto", "create"):
        return None
    if not isinstance(resolved, str) or not isinstance(installed_at, str):
        return None
    executable, edited_from = value.get("executable", []), value.get("edited_from", {})
    left_behind, authors = value.get("left_behind", {}), value.get("authors", {})
    if not is_text_list(executable) or not is_text_map(edited_from) or not is_text_map(left_behind):
        return None
    if not is_object(authors) or not all(is_safe_path(path) for path in (*files, *left_behind)):
        return None
    accepted, baseline = value.get("facts-baseline"), None
    if accepted is not None and (baseline := _parse_baseline(accepted)) is None:
        return None
    return Entry(
        source=source,
        resolved=resolved,
        installed_at=installed_at,
        by=by,
        files=dict(files),
        executable=frozenset(executable) & files.keys(),
        edited_from={path: digest for path, digest in edited_from.items() if path in files},
        left_behind={path: digest for path, digest in left_behind.items() if path not in files},
        authors={path: author for path, author in authors.items() if is_text_map(author)},
        facts_baseline=baseline,
    )


def _parse_baseline(value: object) -> FactsBaseline | None:
    said = object_of(value)
    facts = {kind: rows for kind, rows in object_of(said.get("facts")).items() if is_text_list(rows)}
    accepted_at, reason = said.get("accepted_at"), said.get("reason")
    if not isinstance(accepted_at, str) or not isinstance(reason, str):
        return None
    return FactsBaseline(accepted_at, reason, facts)


def changed_namespaces(
    before: LockFile, after: LockFile, is_as_installed: Callable[[str, str], bool]
) -> list[NamespaceChange]:
    """List the namespaces that were installed or changed between two readings of the file.

    ``is_as_installed`` is asked whether a path below the folder has the content with a hash: a file that was
    edited by hand, and kept for that, was not written. It is asked until one was, for skills and for prompts.
    """
    rows: list[NamespaceChange] = []
    for name, entry in sorted(after.namespaces.items()):
        was = before.namespaces.get(name)
        # Notes about one install may differ.
        is_same = was is not None and _install_of(was) == _install_of(entry)
        if is_same or isinstance(entry.source, WrittenSource):
            continue
        kind = "registry" if isinstance(entry.source, RegistrySource) else "repo"
        skills, prompts = (
            any(
                is_as_installed(f"{name}/{path}", digest)
                for path, digest in entry.files.items()
                if kind_of(name, path) == wanted
            )
            for wanted in ("skill", "prompt")
        )
        rows.append(NamespaceChange(name, kind, skills, prompts))
    return rows


def _parse_source(value: object) -> Source | None:
    """Return the source in a record; fields that its kind does not have are left out."""
    if not is_text_map(value) or (make := _SOURCES.get(value.get("kind", ""))) is None:
        return None
    given: dict[str, Any] = {name: text for name, text in value.items() if name in make._fields}
    try:
        return make(**given)
    except TypeError:
        return None


def broken_lock(reason: str) -> LockFile:
    """Return the record that stands for a file that cannot be read."""
    finding = Finding("undecodable", LOCKFILE, f"{LOCKFILE} cannot be read: {reason}", _FIX)
    return LockFile(findings=(finding,), broken=True)
