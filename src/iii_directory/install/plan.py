"""What an install would change, decided before any of it is done. Pure.

The shell reads the disk into a `Disk`, asks for a `Plan` and carries it out, or only shows it: the same
plan stands behind ``--dry-run`` and the real thing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from iii_directory.errors import refused
from iii_directory.lockfile.format import By, Entry, RegistrySource
from iii_directory.registry.versions import is_older, is_version
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from iii_directory.install.bundle import Bundle
    from iii_directory.lockfile.format import Source

Node = Literal["file", "folder", "link", "other"]
EditedFiles = Literal["overwrite", "keep"]


@dataclass(frozen=True, slots=True)
class Disk:
    """A namespace as it lies on the disk: every path below it, and the hashes of the files that matter."""

    exists: bool = False
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    hashes: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class FileChanges:
    """What happens to each path; every tuple is sorted."""

    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    overwritten: tuple[str, ...] = ()
    """Edited by hand, and replaced because the caller asked for it."""
    kept: tuple[str, ...] = ()
    """Edited by hand, and left as they are."""
    left_behind: tuple[str, ...] = ()
    """No longer part of the source, and left where they are."""
    removed: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, list[str]]:
        """For people and scripts: only what there is."""
        names = ("added", "replaced", "overwritten", "kept", "left_behind", "removed", "unchanged")
        return {name: list(getattr(self, name)) for name in names if getattr(self, name)}


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is needed to bring one namespace from what it is to what it shall be."""

    namespace: str
    entry: Entry | None
    """The record afterwards; None when the namespace is given up."""
    writes: Mapping[str, bytes]
    deletes: frozenset[str]
    changes: FileChanges
    edits_win: bool
    """A file edited while the plan is carried out is kept instead of replaced."""

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
    allow_downgrade: bool = False,
) -> Plan:
    """Bring a namespace to what a bundle holds; files that are not in the bundle stay."""
    if known is not None and disk.exists:
        _check_moves_on(bundle, known, allow_downgrade=allow_downgrade)
    _check_places(bundle.files, disk)
    recorded: Mapping[str, str] = {} if known is None else known.files
    new = bundle.hashes
    sorted_out = {path: _state(path, new[path], disk, recorded, edited) for path in new}
    gone = {path for path in recorded if path not in new and disk.hashes.get(path) == recorded[path]}
    writes = {
        path: bundle.files[path]
        for path, state in sorted_out.items()
        if state in ("added", "replaced", "overwritten")
    }
    changes = FileChanges(
        **{state: _where(sorted_out, state) for state in _STATES},
        left_behind=() if prune else tuple(sorted(gone)),
        removed=tuple(sorted(gone)) if prune else (),
    )
    # What someone asked for once stays theirs, whoever brings it up to date.
    asked_for: By = "call" if known is not None and known.by == "call" else by
    entry = Entry(bundle.source, bundle.resolved, now, asked_for, new)
    deletes = frozenset(gone if prune else ())
    return Plan(bundle.namespace, entry, writes, deletes, changes, edits_win=edited == "keep")


def plan_restore(bundle: Bundle, disk: Disk, known: Entry, *, edited: EditedFiles) -> Plan:
    """Bring the files back that the record names, and leave the record as it is."""
    if bundle.hashes != known.files:
        raise refused(f"the source has other content for {quoted(known.resolved)} than was recorded")
    plan = plan_install(bundle, disk, known, edited=edited, by=known.by, now=known.installed_at)
    return Plan(plan.namespace, known, plan.writes, plan.deletes, plan.changes, plan.edits_win)


def plan_remove(namespace: str, disk: Disk, known: Entry, *, force: bool) -> Plan:
    """Take away what the record names; what was edited by hand stays unless forced."""
    there = {path for path in known.files if path in disk.hashes}
    edited = {path for path in there if disk.hashes[path] != known.files[path]}
    removed = there if force else there - edited
    changes = FileChanges(removed=tuple(sorted(removed)), kept=tuple(sorted(there - removed)))
    return Plan(namespace, None, {}, frozenset(removed), changes, edits_win=not force)


_STATES: Final = ("added", "replaced", "unchanged", "overwritten", "kept")


def _state(path: str, new: str, disk: Disk, recorded: Mapping[str, str], edited: EditedFiles) -> str:
    now = disk.hashes.get(path)
    if now is None:
        return "added"
    if now == new:
        return "unchanged"
    if now == recorded.get(path):
        return "replaced"
    return "kept" if edited == "keep" else "overwritten"


def _where(states: Mapping[str, str], wanted: str) -> tuple[str, ...]:
    return tuple(sorted(path for path, state in states.items() if state == wanted))


def _check_moves_on(bundle: Bundle, known: Entry, *, allow_downgrade: bool) -> None:
    """A source does not take back what it brought, by an older version or by other bytes of the same."""
    if bundle.resolved == known.resolved:
        if _origin(bundle.source) == _origin(known.source) and bundle.hashes != known.files:
            way = f"remove {bundle.namespace} first if that is meant"
            raise refused(
                f"the source has other content for {quoted(bundle.resolved)} than was installed: {way}"
            )
    elif not allow_downgrade and isinstance(bundle.source, RegistrySource) and is_version(known.resolved):
        if is_version(bundle.resolved) and not is_older(bundle.resolved, known.resolved):
            return
        way = "use iii-directory skills add or update with --allow-downgrade if that is meant"
        found, there = quoted(bundle.resolved), quoted(known.resolved)
        raise refused(
            f"the source has {found}, which is older than the installed {there} or no version: {way}"
        )


def _origin(source: Source) -> tuple[str, ...]:
    """Whose versions they are, whatever was asked of it."""
    if isinstance(source, RegistrySource):
        return ("registry", source.worker)
    return ("repository", source.repo, source.skill)


def _check_places(paths: Iterable[str], disk: Disk) -> None:
    """Nothing is written through or over a link, and no folder gives way to a file."""
    for path in paths:
        if disk.nodes.get(path, "file") != "file":
            raise refused(f"a {disk.nodes[path]} stands where {quoted(path)} belongs")
        parts = path.split("/")[:-1]
        for length in range(1, len(parts) + 1):
            above = "/".join(parts[:length])
            if disk.nodes.get(above, "folder") != "folder":
                raise refused(f"a {disk.nodes[above]} stands where the folder {quoted(above)} belongs")


def verify_entry(known: Entry, disk: Disk) -> dict[str, list[str]]:
    """Each recorded file as ``clean``, ``edited`` or ``missing``; others, the user's, as ``own``."""
    clean = sorted(path for path, digest in known.files.items() if disk.hashes.get(path) == digest)
    missing = sorted(path for path in known.files if path not in disk.hashes)
    edited = sorted(known.files.keys() - set(clean) - set(missing))
    theirs = sorted(path for path, node in disk.nodes.items() if node != "folder" and path not in known.files)
    return {"clean": clean, "edited": edited, "missing": missing, "own": theirs}
