"""Decide what an install changes before any of it is done. Pure.

The shell reads the disk into a `Disk`, asks for an `InstallPlan`, and carries it out or shows it: the same
plan is behind ``--dry-run`` and the real install.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Final, Literal

from iii_directory.disk.install_record import Entry, RegistrySource, RepoSource, WrittenSource, content_hash
from iii_directory.documents.ids import RESERVED_NAMESPACES, folders_above, new_namespace_problem
from iii_directory.errors import refused
from iii_directory.install.requests import is_commit
from iii_directory.registry.registry_messages import is_older, is_version
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from iii_directory.disk.install_record import By, Source
    from iii_directory.install.bundle import Bundle

Node = Literal["file", "folder", "link", "other"]
EditedFiles = Literal["overwrite", "keep"]


@dataclass(frozen=True, slots=True)
class Disk:
    """A namespace as it lies on the disk: every path below it, and the hashes of the files that matter."""

    exists: bool = False
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    hashes: Mapping[str, str] = field(default_factory=dict[str, str])
    executable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FileChanges:
    """What happens to each path; every tuple is sorted. As a dict it has only what there is."""

    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    overwritten: tuple[str, ...] = ()
    """Edited by hand, and replaced because the caller asked for it."""
    merged: tuple[str, ...] = ()
    """Edited by hand, and brought together with what the source changed."""
    conflicts: tuple[str, ...] = ()
    """Edited by hand where the source changed the same lines; left as they are, with a file beside."""
    kept: tuple[str, ...] = ()
    """Edited by hand, and left as they are."""
    left_behind: tuple[str, ...] = ()
    """No longer part of the source, and left where they are."""
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, list[str]]:
        found = {field.name: list(getattr(self, field.name)) for field in fields(self)}
        return {name: paths for name, paths in found.items() if paths}


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """All that is needed to bring one namespace from what it is to what it shall be."""

    namespace: str
    entry: Entry | None
    """The record afterwards; None when the namespace is given up."""
    writes: Mapping[str, bytes]
    deletes: frozenset[str]
    changes: FileChanges
    edits_win: bool
    """A file edited while the plan is carried out is kept instead of replaced."""
    executable: frozenset[str] = frozenset()
    """Which of the writes are programs."""
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    """The hashes of the writes."""

    @property
    def touches_files(self) -> bool:
        return bool(self.writes or self.deletes)


def plan_install(
    bundle: Bundle,
    disk: Disk,
    known: Entry | None,
    *,
    edited: EditedFiles,
    by: By,
    now: str,
    prune: bool = False,
    explicit: bool = False,
    allow_downgrade: bool = False,
) -> InstallPlan:
    """Bring a namespace to what a bundle holds; files that are not in the bundle stay.

    ``explicit`` says that the caller named the version, so an older one is what they want.
    """
    if known is not None and known.by == "create":
        # Documents written through the directory count like documents made by hand.
        known = None
    if known is not None and disk.exists and not allow_downgrade:
        check_registry(bundle.source, known.source)
        _check_moves_forward(bundle, known, explicit=explicit)
    _check_places(bundle.files, disk)
    before = known or Entry(bundle.source, bundle.resolved, now, by, {})
    sorted_out = {path: _state(path, bundle, disk, before.files, edited) for path in bundle.files}
    writes = {
        path: bundle.files[path]
        for path, state in sorted_out.items()
        if state in ("added", "replaced", "overwritten")
    }
    # The files of an earlier state of the source that this one lacks and that still exist.
    left = {
        path: digest
        for path, digest in {**before.left_behind, **before.files}.items()
        if path not in bundle.files and path in disk.hashes
    }
    clean = frozenset(path for path, digest in left.items() if disk.hashes[path] == digest)
    changes = FileChanges(
        **{
            wanted: tuple(sorted(path for path, state in sorted_out.items() if state == wanted))
            for wanted in _STATES
        },
        left_behind=() if prune else tuple(sorted(clean)),
        removed=tuple(sorted(clean)) if prune else (),
    )
    # What kept files had been before they were edited.
    origins = {path: before.edited_from.get(path, before.files.get(path)) for path in changes.kept}
    entry = Entry(
        source=bundle.source,
        resolved=bundle.resolved,
        installed_at=now,
        # What a caller asked for stays theirs when the worker brings it up to date.
        by="call" if before.by == "call" else by,
        files=bundle.hashes,
        executable=bundle.executable,
        edited_from={
            path: origin
            for path, origin in origins.items()
            if origin is not None and origin != bundle.hashes[path]
        },
        left_behind={path: digest for path, digest in left.items() if not prune or path not in clean},
        authors={path: before.authors[path] for path in changes.kept if path in before.authors},
        facts_baseline=before.facts_baseline,
    )
    if not writes and (before.resolved, before.files) == (entry.resolved, entry.files):
        # Nothing is installed anew, so the time of the install stays.
        entry = entry._replace(installed_at=before.installed_at)
    return InstallPlan(
        namespace=bundle.namespace,
        entry=entry,
        writes=writes,
        deletes=clean if prune else frozenset(),
        changes=changes,
        edits_win=edited == "keep",
        executable=bundle.executable,
        digests={path: bundle.hashes[path] for path in writes},
    )


def plan_restore(bundle: Bundle, disk: Disk, known: Entry, *, edited: EditedFiles) -> InstallPlan:
    """Bring the files back that the record names, and leave the record as it is."""
    if bundle.hashes != known.files:
        raise refused(f"the source has other content for {quoted(known.resolved)} than was recorded")
    plan = plan_install(
        bundle, disk, known, edited=edited, by=known.by, now=known.installed_at, allow_downgrade=True
    )
    entry = known._replace(executable=bundle.executable)
    if edited == "overwrite":
        entry = entry._replace(edited_from={})
    return replace(plan, entry=known if entry == known else entry)


def plan_remove(namespace: str, disk: Disk, known: Entry, *, force: bool) -> InstallPlan:
    """Remove what the record names; files that were edited by hand stay unless forced."""
    recorded = {**known.left_behind, **known.files}
    there = {path for path in recorded if path in disk.hashes}
    edited = {path for path in there if disk.hashes[path] != recorded[path]}
    removed = there if force else there - edited
    changes = FileChanges(removed=tuple(sorted(removed)), kept=tuple(sorted(there - removed)))
    return InstallPlan(namespace, None, {}, frozenset(removed), changes, edits_win=not force)


def plan_write(
    namespace: str,
    path: str,
    content: bytes | None,
    disk: Disk,
    known: Entry | None,
    *,
    now: str,
    author: Mapping[str, str] | None = None,
    executable: bool | None = None,
) -> InstallPlan:
    """Write one file, or (None) delete it. A file saved there by hand meanwhile wins.

    A namespace without a record is recorded as written here, with the hashes of the written files only. In an
    installed namespace the record keeps the installed hashes, so the file counts as edited. Both name the
    author of the file. Without ``executable`` a file keeps its mode.
    """
    programs = disk.executable & {path} if executable is None else frozenset({path} if executable else ())
    digest = None if content is None else content_hash(content)
    entry = known
    if entry is None and digest is not None:
        entry = Entry(WrittenSource(), _WRITTEN, now, "create", {})
    if entry is not None:
        authors = {name: caller for name, caller in entry.authors.items() if name != path}
        if author is not None and digest is not None:
            authors[path] = author
        entry = entry._replace(authors=authors)
    if entry is not None and entry.by == "create":
        files = {name: hashed for name, hashed in entry.files.items() if name in disk.hashes and name != path}
        if digest is not None:
            files[path] = digest
        recorded = (entry.executable - {path} | programs) & files.keys()
        entry = entry._replace(files=files, executable=frozenset(recorded)) if files else None
    if content is None or digest is None:
        changes = FileChanges(removed=(path,))
        return InstallPlan(namespace, entry, {}, frozenset((path,)), changes, edits_win=True)
    _check_places((path,), disk)
    return InstallPlan(
        namespace,
        entry,
        {path: content},
        frozenset(),
        FileChanges(replaced=(path,)) if path in disk.nodes else FileChanges(added=(path,)),
        edits_win=True,
        executable=programs,
        digests={path: digest},
    )


_WRITTEN: Final = "written"
_ACCEPT: Final = "use iii-directory skills add or update with --allow-downgrade if that is meant"
_STATES: Final = ("added", "replaced", "unchanged", "overwritten", "kept")


def _state(path: str, bundle: Bundle, disk: Disk, recorded: Mapping[str, str], edited: EditedFiles) -> str:
    now, new = disk.hashes.get(path), bundle.hashes[path]
    if now is None:
        return "added"
    if now == new:
        same_mode = (path in disk.executable) == (path in bundle.executable)
        return "unchanged" if same_mode else "replaced"
    if now == recorded.get(path):
        return "replaced"
    return "kept" if edited == "keep" else "overwritten"


def check_registry(source: Source, known: Source) -> None:
    """Refuse a namespace from another registry than the recorded one; a record without one takes any."""
    if not isinstance(source, RegistrySource) or not isinstance(known, RegistrySource):
        return
    if known.registry not in (None, source.registry):
        here, there = quoted(str(source.registry)), quoted(str(known.registry))
        problem = f"{quoted(source.worker)} was installed from the registry {there}, not from {here}"
        raise refused(f"{problem}: set registry_url back, or {_ACCEPT}")


def _check_moves_forward(bundle: Bundle, known: Entry, *, explicit: bool) -> None:
    """Refuse a newest version that went backwards, and other content under the installed version."""
    found, there = bundle.resolved, known.resolved
    is_same_source = _origin(bundle.source) == _origin(known.source)
    if found == there and is_same_source and bundle.hashes != known.files:
        raise refused(f"the source has other content for {quoted(there)} than was installed: {_ACCEPT}")
    if found == there or explicit or not isinstance(bundle.source, RegistrySource) or not is_version(there):
        return
    if not is_version(found) or is_older(found, there):
        problem = f"the source has {quoted(found)}, which is older than the installed {quoted(there)}"
        raise refused(f"{problem} or not a version: name that version, or {_ACCEPT}")


def _origin(source: Source) -> tuple[str, ...]:
    """Return what identifies the publisher of a source's versions."""
    if isinstance(source, RegistrySource):
        return ("registry", source.worker)
    if isinstance(source, RepoSource):
        return ("repository", source.repo, source.folder)
    return tuple(source.as_dict().values())


def _check_places(paths: Iterable[str], disk: Disk) -> None:
    """Refuse to write through or over a link, or to replace a folder by a file."""
    for path in paths:
        if disk.nodes.get(path, "file") != "file":
            raise refused(f"a {disk.nodes[path]} stands where {quoted(path)} belongs")
        for above in folders_above(path):
            if disk.nodes.get(above, "folder") != "folder":
                raise refused(f"a {disk.nodes[above]} stands where the folder {quoted(above)} belongs")


def verify_entry(known: Entry, disk: Disk) -> dict[str, list[str]]:
    """Sort recorded files into ``clean``, ``edited`` and ``missing``, and name clean ones with another mode.

    What left the source is ``left_behind``; everything else is the user's ``own``.
    """
    clean = sorted(path for path, digest in known.files.items() if disk.hashes.get(path) == digest)
    missing = sorted(path for path in known.files if path not in disk.hashes)
    edited = sorted(known.files.keys() - set(clean) - set(missing))
    left = sorted(path for path in known.left_behind if path in disk.hashes)
    recorded = {*known.files, *left}
    theirs = sorted(path for path, node in disk.nodes.items() if node != "folder" and path not in recorded)
    mode = [path for path in clean if (path in disk.executable) != (path in known.executable)]
    return {
        "clean": clean,
        "edited": edited,
        "missing": missing,
        "mode": mode,
        "left_behind": left,
        "own": theirs,
    }


def check_namespace(name: str) -> None:
    """Refuse a name that no source may install under."""
    if name in RESERVED_NAMESPACES:
        raise refused(f"the namespace {quoted(name)} is reserved: nothing is downloaded into it")
    if (problem := new_namespace_problem(name)) is not None:
        raise refused(f"nothing is installed under the name {quoted(name)}: {problem}")


def is_pinned(entry: Entry) -> bool:
    """Return whether the source names one state for good, so that there is nothing to update to."""
    source = entry.source
    if isinstance(source, RegistrySource):
        return source.version is not None
    if isinstance(source, WrittenSource):
        return True
    return isinstance(source, RepoSource) and is_commit(source.branch)
