"""Giving every document its provenance: from the record of installs, and from who is connected. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.documents.ids import namespace_of
from iii_directory.documents.provenance import UNKNOWN, Provenance
from iii_directory.lockfile.format import (
    LocalSource,
    RegistrySource,
    RepoSource,
    SiteSource,
    WrittenSource,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import ParsedFile
    from iii_directory.lockfile.format import Entry

    Changes = dict[str, ParsedFile | None]

# Only files of this folder can be installed or written through the directory.
_INSTALLED_ROOT: Final = "skills"
_DIGEST: Final = "sha256:"


class Sources(NamedTuple):
    """What is known beside the documents themselves of where they come from."""

    recorded: Mapping[str, Entry]
    """What the lock file says of each namespace."""
    connected: Mapping[str, str | None] | None = None
    """The connected workers by their ids; None when the engine does not tell."""

    def of_entry(self, entry: ParsedFile | None, path: str = "") -> ParsedFile | None:
        """A file or a record with the provenance of its document as of now."""
        if entry is None:
            return None
        document = entry.skill or entry.prompt
        if document is None:
            return entry
        if document.provenance.kind == "registered":
            provenance = self._registered(document.provenance)
        else:
            provenance = self.of_file(path, document.provenance, entry.digest)
        if provenance == document.provenance:
            return entry
        if entry.skill is not None:
            return entry._replace(skill=entry.skill._replace(provenance=provenance))
        assert entry.prompt is not None  # noqa: S101 (it is one of the two)
        return entry._replace(prompt=entry.prompt._replace(provenance=provenance))

    def of_file(self, path: str, known: Provenance, digest: bytes | None) -> Provenance:
        """The provenance of a file below the folder, by the hash of its bytes as it is now."""
        if known.root != _INSTALLED_ROOT:
            return known
        entry = self.recorded.get(namespace_of(path))
        found = None if entry is None else _installed(entry, path.partition("/")[2], digest)
        return Provenance("file", root=known.root) if found is None else found._replace(root=known.root)

    def of_files(self, before: Sources, snapshot: Snapshot, changes: Changes) -> Changes:
        """The changed files with their provenance, and those whose provenance alone changed."""
        changed = dict(changes)
        if before.recorded is not self.recorded:
            for namespace in before.recorded.keys() | self.recorded.keys():
                if before.recorded.get(namespace) != self.recorded.get(namespace):
                    for path in snapshot.paths_in(namespace):
                        changed.setdefault(path, snapshot.files[path])
        return {path: self.of_entry(entry, path) for path, entry in changed.items()}

    def _registered(self, known: Provenance) -> Provenance:
        if known.worker_id == UNKNOWN or self.connected is None:
            return known._replace(state="unknown")
        return known._replace(state="connected" if known.worker_id in self.connected else "gone")


class Registrants:
    """Which records each worker registered, so that those of a worker that leaves are found quickly."""

    def __init__(self) -> None:
        self._keys: dict[str, set[str]] = {}
        self._connected: frozenset[str] | None = frozenset()

    def sourced(self, sources: Sources, snapshot: Snapshot, changes: Changes) -> Changes:
        """The changed records with their provenance, and those whose registrant came or left."""
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
            self._file(key, snapshot.registered.get(key), entry)
        return {key: sources.of_entry(entry) for key, entry in changed.items()}

    def _file(self, key: str, before: ParsedFile | None, after: ParsedFile | None) -> None:
        if (old := _registrant(before)) is not None:
            self._keys[old].discard(key)
            if not self._keys[old]:
                del self._keys[old]
        if (new := _registrant(after)) is not None:
            self._keys.setdefault(new, set()).add(key)


def _registrant(entry: ParsedFile | None) -> str | None:
    document = None if entry is None else entry.skill or entry.prompt
    return None if document is None else document.provenance.worker_id


def _installed(entry: Entry, path: str, digest: bytes | None) -> Provenance | None:
    """What the record of a namespace says of one of its files; None of a file that is not in it."""
    hashed = entry.files.get(path) or entry.left_behind.get(path)
    verified = digest is not None and hashed == f"{_DIGEST}{digest.hex()}"
    author = entry.authors.get(path)
    is_written = isinstance(entry.source, WrittenSource)
    if author is not None and (is_written or not verified):
        # An installed document that was written over is what its author wrote.
        state = ("verified" if verified else "edited") if is_written else None
        worker, worker_id = (author.get(name, UNKNOWN) for name in ("worker", "worker_id"))
        return Provenance("written", worker=worker, worker_id=worker_id, state=state)
    if hashed is None:
        return None
    # A file that is too large to be hashed is neither.
    state = None if digest is None else "verified" if verified else "edited"
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


def _origin(entry: Entry) -> tuple[str, str | None]:
    match entry.source:
        case RegistrySource() as source:
            return source.kind, source.registry
        case RepoSource() as source:
            return source.kind, source.repo
        case SiteSource() as source:
            return source.kind, source.url
        case LocalSource() as source:
            # The last two names tell nobody where the folder lies on this machine.
            return source.kind, "/".join(source.path.rstrip("/").split("/")[-2:])
        case WrittenSource() as source:
            return source.kind, None
