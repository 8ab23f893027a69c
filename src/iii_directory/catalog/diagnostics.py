"""Report what was left out or looks wrong, and group similar findings for people. Pure.

``directory::diagnostics`` has a row for each finding, which says whether it needs attention.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.catalog.skill_folders import every_skill, paths_of_skill, skill_at
from iii_directory.catalog.snapshot import once_per_snapshot, outranked_by
from iii_directory.documents.ids import RESERVED_IDS, namespace_of, path_to_id
from iii_directory.documents.model import UNKNOWN, Finding, Prompt, Skill
from iii_directory.documents.payload_fields import count, flag
from iii_directory.limits import MAX_BUNDLE_BYTES, MAX_BUNDLE_FILES, MAX_LOGGED_FINDINGS, MAX_SUGGESTIONS
from iii_directory.text import escaped, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Provenance

log = logging.getLogger("iii_directory.catalog")

# Up to this many findings of one kind are named one by one; of more, this many are given as examples.
FEW: Final = 3
_PRECEDENCE: Final = "files come before registrations, and the first path in order before the others"


# The answer of directory::diagnostics


def report(snapshot: Snapshot, found: Iterable[Finding], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Answer ``directory::diagnostics``: the counts of all findings, and the rows that were asked for.

    Findings that need attention come first where not all are shown, so that ``limit`` cuts the least
    important ones.
    """
    everything, urgent_only = list(found), flag(asked, "attention", default=False)
    shown = [finding for finding in everything if finding.urgent or not urgent_only]
    limit = count(asked, "limit", default=len(shown))
    if limit < len(shown):
        shown = sorted(shown, key=lambda finding: not finding.urgent)[:limit]
    reply: dict[str, Any] = {
        "counts": dict(sorted(Counter(finding.kind for finding in everything).items())),
        "attention": sum(finding.urgent for finding in everything),
        "findings": [row_of(finding, provenance_of(snapshot, finding)) for finding in shown],
    }
    if len(shown) < len(everything):
        reply["left_out"] = len(everything) - len(shown)
    return reply


def row_of(finding: Finding, provenance: Provenance | None = None) -> dict[str, Any]:
    """Build the row of a finding, with the provenance of the document that it is about."""
    row: dict[str, Any] = {
        "kind": finding.kind,
        "subject": escaped(finding.subject),
        "reason": escaped(finding.reason),
        "fix": escaped(finding.fix),
        "attention": finding.urgent,
        **({"forbidden": True} if finding.forbidden else {}),
    }
    if provenance is not None:
        row["provenance"] = provenance.as_json()
    return row


def finding_of(row: Mapping[str, Any]) -> Finding:
    """Read a finding back from its row."""
    kind, subject, reason, fix = (row[name] for name in ("kind", "subject", "reason", "fix"))
    return Finding(kind, subject, reason, fix, row.get("attention", True), row.get("forbidden", False))


def provenance_of(snapshot: Snapshot, finding: Finding) -> Provenance | None:
    """Return the provenance of the document that a finding is about, if it is about one."""
    entry = snapshot.files.get(finding.subject)
    document = None if entry is None else entry.skill or entry.prompt
    document = document or _registered_by_name(snapshot).get(finding.subject)
    return None if document is None else document.provenance


@once_per_snapshot
def _registered_by_name(snapshot: Snapshot) -> dict[str, Skill | Prompt]:
    """Map the names that findings use for registered documents, with and without words before them."""
    found = [document for entry in snapshot.registered.values() if (document := entry.skill or entry.prompt)]
    named = {(one.id if isinstance(one, Skill) else one.name): one for one in found}
    return named | {origin_of(one): one for one in found}


def origin_of(entry: Skill | Prompt) -> str:
    """Describe where a document comes from, in words."""
    if entry.path is not None:
        return entry.path
    return f"registered skill {entry.id}" if isinstance(entry, Skill) else f"registered prompt {entry.name}"


# The findings of a snapshot


@once_per_snapshot
def findings(snapshot: Snapshot) -> list[Finding]:
    """Return all findings about the catalogue, sorted."""
    entries = (*snapshot.files.values(), *snapshot.registered.values())
    found = [finding for entry in entries for finding in entry.findings]
    found += strays(snapshot, snapshot.files)
    found += _shadowed(snapshot)
    found += _in_namespaces_of_folders(snapshot)
    winners = snapshot.skill_claims.winners
    for key in sorted(RESERVED_IDS):
        if key in winners:
            reason = f"no address leads to the id {quoted(key)}: the index of all skills is served there"
            fix = "give it another id; until then directory::skills::get reads it"
            found.append(Finding("unreachable", origin_of(winners[key]), reason, fix))
    found += [
        Finding(
            "hidden",
            namespace,
            "no worker of this name is installed, and the worker downloaded these documents by itself",
            "nothing, if that is meant; else install the worker, download them by a call, or set "
            "filter_unregistered to false",
            urgent=False,
        )
        for namespace in snapshot.hidden
    ]
    found += _oversized(snapshot)
    return sorted(found, key=lambda finding: (finding.kind, finding.subject, finding.reason))


def strays(snapshot: Snapshot, paths: Iterable[str]) -> list[Finding]:
    """Find plain files that belong to no skill; Markdown files have one finding each, others one together."""
    others: list[str] = []
    found: list[Finding] = []
    in_skill: dict[str, bool] = {}
    for path in paths:
        entry = snapshot.file(path)
        if entry is None or not entry.is_plain:
            continue
        folder = path.rpartition("/")[0]
        if folder not in in_skill:
            in_skill[folder] = skill_at(snapshot, path) is not None
        if in_skill[folder]:
            continue
        if not path.endswith(".md"):
            others.append(path)
            continue
        stem = path.rpartition("/")[2].removesuffix(".md")
        if stem.isupper() and stem not in ("SKILL", "SKILLS"):
            reason = "names in capitals are for files that are not documents; ids are lowercase"
            fix = "nothing, if it is one of those, as a README is; else rename it"
            found.append(Finding("skipped", path, reason, fix, urgent=False))
        else:
            problem = path_to_id(path).problem or "it makes no id"
            fix = "rename or move it if it should be a skill or a prompt"
            found.append(Finding("skipped", path, problem, fix))
    if others:
        # One finding for all of them, so that a folder of pictures does not fill a page.
        count = f"{len(others)} files" if len(others) > 1 else "one file"
        reason = f"{count} below no folder with a SKILL.md, so of no skill: {_some(sorted(others))}"
        fix = "nothing, if that is meant; else give the folder above a SKILL.md"
        found.append(Finding("skipped", min(others), reason, fix, urgent=False))
    return found


def _some(names: list[str]) -> str:
    named = ", ".join(map(quoted, names[:MAX_SUGGESTIONS]))
    more = len(names) - MAX_SUGGESTIONS
    return f"{named} and {more} more" if more > 0 else named


def _shadowed(snapshot: Snapshot) -> Iterator[Finding]:
    """Find the documents in whose place another is served."""
    fix = f"rename or remove one of the two; {_PRECEDENCE}"
    for claims, what in ((snapshot.skill_claims, "id"), (snapshot.prompt_claims, "name")):
        for key, losers in claims.losers.items():
            winner = origin_of(claims.winners[key])
            for loser in losers:
                reason = f"{winner} has the same {what} {quoted(key)} and is served instead"
                yield Finding("shadowed", origin_of(loser), reason, fix)
    # Registrations read at the address of a file: an overview, or the document above it.
    for entry in snapshot.registered.values():
        skill = entry.skill
        file = None if skill is None else outranked_by(snapshot.skill_claims.winners, skill)
        if skill is not None and file is not None:
            winner = origin_of(file)
            reason = f"{winner} is read by the same address as {quoted(skill.id)} and is served instead"
            yield Finding("shadowed", origin_of(skill), reason, fix)


def _in_namespaces_of_folders(snapshot: Snapshot) -> Iterator[Finding]:
    """Make one finding for each namespace of a folder in which workers registered documents."""
    inside: dict[str, list[Skill]] = {}
    for entry in snapshot.registered.values():
        if entry.skill is not None and snapshot.is_apart(entry.skill):
            inside.setdefault(namespace_of(entry.skill.id), []).append(entry.skill)
    for namespace, skills in inside.items():
        workers = sorted({skill.provenance.worker or UNKNOWN for skill in skills})
        yield Finding(
            "foreign",
            namespace,
            f"a folder has the namespace {quoted(namespace)}, and the worker {_some(workers)} registered "
            f"{_some(sorted(skill.id for skill in skills))} in it; they are listed apart, under their own "
            "ids and with their source",
            "nothing, if that is meant; else have the worker register under another namespace, or call "
            "skills::unregister",
            # A worker may well add to the documents that were installed for it.
            urgent=workers != [namespace],
        )


def _oversized(snapshot: Snapshot) -> Iterator[Finding]:
    """Find the skills that a host may refuse to take whole."""
    for key, skill in every_skill(snapshot):
        paths = paths_of_skill(snapshot, skill)
        size = sum(snapshot.files[path].size or 0 for path in paths)
        if len(paths) > MAX_BUNDLE_FILES:
            has, limit = f"{len(paths)} files", MAX_BUNDLE_FILES
        elif size > MAX_BUNDLE_BYTES:
            has, limit = f"{size} bytes", MAX_BUNDLE_BYTES
        else:
            continue
        reason = (
            f"the skill has {has}, and one that is served whole at most {limit}; "
            "its files are read one by one"
        )
        fix = "to have it served whole, take out what is not needed"
        yield Finding("oversized", key, reason, fix, urgent=False)


# For people


class FindingGroup(NamedTuple):
    """Findings that differ only in their subjects."""

    first: Finding
    subjects: tuple[str, ...]

    def named(self) -> str:
        """Return the only subject, or the number of subjects with examples from different folders."""
        if len(self.subjects) == 1:
            return self.subjects[0]
        folders: dict[str, str] = {}
        for subject in self.subjects:
            folders.setdefault(subject.rpartition("/")[0], subject)
        examples = list(dict.fromkeys([*folders.values(), *self.subjects]))[:FEW]
        return f"{len(self.subjects)}, such as {', '.join(examples)}"


def grouped(found: Iterable[Finding]) -> list[FindingGroup]:
    """Group many findings of one kind for one reason; those that need attention come first."""
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in found:
        alike.setdefault((finding.kind, finding.reason, finding.fix), []).append(finding)
    groups: list[FindingGroup] = []
    for same in alike.values():
        if len(same) > FEW:
            groups.append(FindingGroup(same[0], tuple(finding.subject for finding in same)))
        else:
            groups += [FindingGroup(finding, (finding.subject,)) for finding in same]
    return sorted(groups, key=lambda group: not group.first.urgent)


def log_lines(found: Iterable[Finding]) -> Iterator[tuple[bool, str]]:
    """Yield a line for each finding, or for many of one kind, and whether it needs attention."""
    kinds: dict[tuple[bool, str], list[Finding]] = {}
    for finding in found:
        kinds.setdefault((finding.urgent, finding.kind), []).append(finding)
    for (urgent, kind), same in kinds.items():
        if len(same) <= FEW:
            yield from ((urgent, f"{one.subject}: {one.reason} ({one.fix})") for one in same)
            continue
        # An example for each of the first few reasons.
        reasons: dict[str, Finding] = {}
        for finding in sorted(same, key=lambda finding: finding.subject):
            reasons.setdefault(finding.reason, finding)
        examples = "; ".join([f"{one.subject}: {one.reason}" for one in reasons.values()][:FEW])
        counted = f"{len(same)} findings, such as {examples}"
        yield urgent, f"{kind}: {counted} (directory::diagnostics names them all)"


class Notes:
    """Findings that belong neither to a document nor to a folder, by keys of the parts that made them."""

    def __init__(self) -> None:
        self._noted: dict[str, Finding] = {}
        self.findings: tuple[Finding, ...] = ()
        """All of them, as one object for as long as nothing changes."""
        self.logged: frozenset[Finding] = frozenset()
        """The findings that the caller of `put` has logged."""

    def put(self, key: str, finding: Finding, *, logged: bool = False) -> None:
        """Replace the note under a key; ``logged`` means that the log has the finding already."""
        self._noted[key] = finding
        if logged:
            self.logged = frozenset((*(self.logged & frozenset(self._noted.values())), finding))
        self.findings = tuple(self._noted.values())

    def drop(self, *starts: str) -> None:
        """Remove all notes whose key starts with one of ``starts``."""
        for key in [key for key in self._noted if key.startswith(starts)]:
            del self._noted[key]
            self.findings = tuple(self._noted.values())


class FindingLog:
    """Logs each finding once, and many of one kind in one line."""

    def __init__(self) -> None:
        self._logged: dict[Finding, None] = {}
        """The newest is last; a finding that was logged long ago may be logged again."""

    def __len__(self) -> int:
        """Return how many findings it remembers."""
        return len(self._logged)

    def say(self, found: Iterable[Finding]) -> None:
        new = [finding for finding in dict.fromkeys(found) if finding not in self._logged]
        for urgent, line in log_lines(new):
            log.log(logging.WARNING if urgent else logging.INFO, "%s", escaped(line))
        self._logged.update(dict.fromkeys(new))
        if len(self._logged) > MAX_LOGGED_FINDINGS:
            # Forget many at once: finding the oldest key of a large dictionary again and again is quadratic.
            self._logged = dict.fromkeys(list(self._logged)[-MAX_LOGGED_FINDINGS:])
