"""Derive where each document comes from and whether it is shown. Pure.

Provenance comes from the lock file and the connected workers, visibility from the installed workers and from
the operator's table of levels.
"""

from __future__ import annotations

import re
from fnmatch import translate
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.disk import install_record
from iii_directory.documents.ids import RESERVED_NAMESPACES, folders_above, namespace_of
from iii_directory.documents.model import UNKNOWN, Provenance

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import ParsedFile

    Changes = dict[str, ParsedFile | None]


# Only files of this folder can be installed or written through the directory.
_INSTALLED_ROOT: Final = "skills"


class Origins(NamedTuple):
    """Gives documents their provenance, from the lock file and the connected workers."""

    recorded: Mapping[str, install_record.Entry]
    """The entries of the lock file by namespace."""
    connected: Mapping[str, str | None] | None = None
    """The connected workers by their ids; None when the engine does not tell."""

    def of_entry(self, entry: ParsedFile | None, path: str = "") -> ParsedFile | None:
        """Return a file or a record with the provenance of its document as of now."""
        if entry is None:
            return None
        document = entry.skill or entry.prompt
        if document is None:
            return entry
        provenance = document.provenance
        if provenance.kind != "registered":
            sha256 = None if entry.digest is None else entry.digest.hex()
            provenance = self.of_file(path, provenance, sha256)
        elif provenance.worker_id == UNKNOWN or self.connected is None:
            provenance = provenance._replace(state="unknown")
        else:
            is_here = provenance.worker_id in self.connected
            provenance = provenance._replace(state="connected" if is_here else "gone")
        if provenance == document.provenance:
            return entry
        if entry.skill is not None:
            return entry._replace(skill=entry.skill._replace(provenance=provenance))
        assert entry.prompt is not None  # noqa: S101 (it is one of the two)
        return entry._replace(prompt=entry.prompt._replace(provenance=provenance))

    def of_file(self, path: str, known: Provenance, sha256: str | None) -> Provenance:
        """Return the provenance of a file below the folder, by the hash of its current bytes."""
        if known.root != _INSTALLED_ROOT:
            return known
        entry = self.recorded.get(namespace_of(path))
        found = None if entry is None else _installed(entry, path.partition("/")[2], sha256)
        return Provenance("file", root=known.root) if found is None else found._replace(root=known.root)

    def of_files(self, before: Origins, snapshot: Snapshot, changes: Changes) -> Changes:
        """Return the changed files with their provenance, and files of which only the provenance changed."""
        changed = dict(changes)
        if before.recorded is not self.recorded:
            for namespace in before.recorded.keys() | self.recorded.keys():
                if before.recorded.get(namespace) != self.recorded.get(namespace):
                    for path in snapshot.paths_in(namespace):
                        changed.setdefault(path, snapshot.files[path])
        return {path: self.of_entry(entry, path) for path, entry in changed.items()}


class Registrants:
    """Indexes records by the worker that registered them, to find those of a worker that leaves."""

    def __init__(self) -> None:
        self._keys: dict[str, set[str]] = {}
        self._connected: frozenset[str] | None = frozenset()

    def sourced(self, sources: Origins, snapshot: Snapshot, changes: Changes) -> Changes:
        """Return the changed records with their provenance, and those whose registrant came or left."""
        changed = dict(changes)
        connected = None if sources.connected is None else frozenset(sources.connected)
        if connected != self._connected:
            moved = set(self._keys)
            if connected is not None and self._connected is not None:
                moved &= connected ^ self._connected
            for key in (key for worker_id in moved for key in self._keys[worker_id]):
                changed.setdefault(key, snapshot.registered.get(key))
            self._connected = connected
        for key, entry in changes.items():
            if (old := _registrant(snapshot.registered.get(key))) is not None:
                self._keys[old].discard(key)
                if not self._keys[old]:
                    del self._keys[old]
            if (new := _registrant(entry)) is not None:
                self._keys.setdefault(new, set()).add(key)
        return {key: sources.of_entry(entry) for key, entry in changed.items()}


def _registrant(entry: ParsedFile | None) -> str | None:
    document = None if entry is None else entry.skill or entry.prompt
    return None if document is None else document.provenance.worker_id


def _installed(entry: install_record.Entry, path: str, sha256: str | None) -> Provenance | None:
    """Return the provenance of an installed or written file; None for a file that is not recorded."""
    hashed = entry.files.get(path) or entry.left_behind.get(path)
    verified = sha256 is not None and hashed == f"sha256:{sha256}"
    author = entry.authors.get(path)
    is_written = isinstance(entry.source, install_record.WrittenSource)
    if author is not None and (is_written or not verified):
        # An installed document that a caller overwrote counts as written by that caller.
        state = ("verified" if verified else "edited") if is_written else None
        worker, worker_id = (author.get(name, UNKNOWN) for name in ("worker", "worker_id"))
        return Provenance("written", worker=worker, worker_id=worker_id, state=state)
    if hashed is None:
        return None
    # A file that is too large to be hashed is neither verified nor edited.
    state = None if sha256 is None else "verified" if verified else "edited"
    if is_written:
        return Provenance("written", worker=UNKNOWN, worker_id=UNKNOWN, since=entry.installed_at, state=state)
    origin, address = _origin(entry)
    return Provenance(
        "installed",
        origin=origin,
        address=address,
        version=entry.resolved,
        since=entry.installed_at,
        state=state,
    )


def _origin(entry: install_record.Entry) -> tuple[str, str | None]:
    match entry.source:
        case install_record.RegistrySource() as source:
            return source.kind, source.registry
        case install_record.RepoSource() as source:
            return source.kind, source.repo
        case install_record.SiteSource() as source:
            return source.kind, source.url
        case install_record.FileSource() as source if "://" in source.url:
            return source.kind, source.url
        case install_record.LocalSource() | install_record.FileSource() as source:
            place = source.path if isinstance(source, install_record.LocalSource) else source.url
            # The last two names do not reveal where the folder lies on this machine.
            return source.kind, "/".join(place.rstrip("/").split("/")[-2:])
        case install_record.WrittenSource() as source:
            return source.kind, None


FULL: Final = "full"
NAME: Final = "name"
MANUAL: Final = "manual"
OFF: Final = "off"


class Levels:
    """Applies the setting ``visibility``: how much of each skill is offered; the first match wins."""

    def __init__(self, table: Mapping[str, str] = MappingProxyType({})) -> None:
        self.table = table
        self._rules = [(re.compile(translate(pattern)), pattern, level) for pattern, level in table.items()]

    def rule_for(self, *names: str) -> tuple[str, str] | None:
        """Return the pattern and the level for a document by its path, id or name; None if no rule fits.

        A rule for a skill covers everything below it.
        """
        wanted: set[str] = set()
        for name in names:
            path = name.removesuffix(".md")
            wanted.update((*folders_above(path), path))
        for pattern, written, level in self._rules:
            if any(pattern.match(name) for name in wanted):
                return written, level
        return None

    def shown(self, key: str, entry: ParsedFile | None) -> ParsedFile | None:
        """Return what readers who ask for an entry by name may see of it."""
        return None if entry is not None and self._level(key, entry) == OFF else entry

    def listed(self, key: str, entry: ParsedFile | None) -> ParsedFile | None:
        """Return what lists, indexes and search may show of an entry."""
        level = FULL if entry is None else self._level(key, entry)
        if entry is None or level in (OFF, MANUAL):
            return None
        if level == NAME:
            skill = None if entry.skill is None else entry.skill._replace(description="")
            prompt = None if entry.prompt is None else entry.prompt._replace(description="")
            return entry._replace(skill=skill, prompt=prompt)
        return entry

    def _level(self, key: str, entry: ParsedFile) -> str:
        document = entry.skill or entry.prompt
        names = [key] if document is None or document.path is not None else []
        if entry.skill is not None:
            names.append(entry.skill.id)
        if entry.prompt is not None:
            names.append(entry.prompt.name)
        rule = self.rule_for(*names)
        return FULL if rule is None else rule[1]


class Visibility(NamedTuple):
    """The rule of ``filter_unregistered``; with these defaults it hides nothing."""

    installed: frozenset[str] | None = None
    """The names of the installed workers; None when they are not known, or when nothing is to be hidden."""
    recorded: Mapping[str, install_record.Entry] = MappingProxyType({})
    """The entries of the lock file by namespace."""
    local: frozenset[str] = frozenset()
    """Namespaces that come from ``local_skills_folder``."""

    def shows(self, namespace: str, paths: Iterable[str]) -> bool:
        """Return whether a namespace with documents at ``paths`` below the folder is shown."""
        if self.installed is None or namespace in self.installed:
            return True
        # The engine and this worker, which the reserved names stand for, are wherever the catalogue is.
        if namespace in RESERVED_NAMESPACES or namespace in self.local:
            return True
        record = self.recorded.get(namespace)
        # Only documents that were downloaded automatically are hidden, and only while no file was added.
        if record is None or record.by != "auto":
            return True
        start = len(namespace) + 1
        return any(path[start:] not in record.files for path in paths)
