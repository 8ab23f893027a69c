"""What was left out or is odd: nothing is skipped in silence, and many alike are few words for people. Pure.

``directory::diagnostics`` has a row for each finding, which says whether it needs attention.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.catalog.skills import every_skill, paths_of_skill, skill_at
from iii_directory.catalog.snapshot import outranked_by
from iii_directory.documents.ids import RESERVED_IDS, namespace_of, path_to_id
from iii_directory.documents.model import Finding, Prompt, Skill
from iii_directory.documents.payload_fields import count, flag
from iii_directory.documents.provenance import UNKNOWN
from iii_directory.limits import MAX_BUNDLE_BYTES, MAX_BUNDLE_FILES, MAX_SUGGESTIONS
from iii_directory.text import escaped, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from iii_directory.catalog.shelf import Claims, Pages
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import ParsedFile
    from iii_directory.documents.provenance import Provenance

# So many of a sort are named one by one; of more, so many stand for all.
FEW: Final = 3
_PRECEDENCE: Final = "files come before registrations, and the first path in order before the others"


def findings(snapshot: Snapshot) -> list[Finding]:
    """Everything there is to say about the catalogue, sorted; computed once a snapshot."""
    return snapshot.once(_findings)


def report(
    found: Iterable[Finding],
    asked: Mapping[str, Any] | None = None,
    provenance_of: Callable[[Finding], Provenance | None] = lambda _: None,
) -> dict[str, Any]:
    """The answer of ``directory::diagnostics``: the counts of everything, and the rows that were asked for.

    What needs attention comes first where not all is shown, so that ``limit`` cuts what matters least.
    """
    asked = asked or {}
    everything = list(found)
    shown = [
        finding for finding in everything if finding.urgent or not flag(asked, "attention", default=False)
    ]
    limit = count(asked, "limit", default=len(shown))
    if limit < len(shown):
        shown = sorted(shown, key=lambda finding: not finding.urgent)[:limit]
    reply: dict[str, Any] = {
        "counts": dict(sorted(Counter(finding.kind for finding in everything).items())),
        "attention": sum(finding.urgent for finding in everything),
        "findings": [row_of(finding, provenance_of(finding)) for finding in shown],
    }
    if len(shown) < len(everything):
        reply["left_out"] = len(everything) - len(shown)
    return reply


def row_of(finding: Finding, provenance: Provenance | None = None) -> dict[str, Any]:
    """A finding as it is answered, with the provenance of the document that it is about."""
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


def provenance_of(snapshot: Snapshot, finding: Finding) -> Provenance | None:
    """The provenance of the document that a finding is about, if it is about one."""
    entry = snapshot.files.get(finding.subject)
    document = None if entry is None else entry.skill or entry.prompt
    document = document or snapshot.once(_registered_by_name).get(finding.subject)
    return None if document is None else document.provenance


def _registered_by_name(snapshot: Snapshot) -> dict[str, Skill | Prompt]:
    """Registered documents by what findings call them: their ids, and those with words before them."""
    found = [document for entry in snapshot.registered.values() if (document := entry.skill or entry.prompt)]
    named = {(one.id if isinstance(one, Skill) else one.name): one for one in found}
    return named | {origin_of(one): one for one in found}


def finding_of(row: Mapping[str, Any]) -> Finding:
    """Read a row of the answer back."""
    return Finding(
        row["kind"],
        row["subject"],
        row["reason"],
        row["fix"],
        urgent=row.get("attention", True),
        forbidden=row.get("forbidden", False),
    )


def _findings(snapshot: Snapshot) -> list[Finding]:
    found = _of_entries(snapshot.files) + _of_entries(snapshot.registered)
    found += strays(snapshot, snapshot.files)
    winners = snapshot.skill_claims.winners
    found += _shadowed(snapshot.skill_claims, "id")
    found += _outranked(snapshot)
    found += _in_namespaces_of_folders(snapshot)
    found += _shadowed(snapshot.prompt_claims, "name")
    found += [_unreachable(winners[key]) for key in sorted(RESERVED_IDS) if key in winners]
    found += [_hidden(namespace) for namespace in snapshot.hidden]
    found += _oversized(snapshot)
    return sorted(found, key=lambda finding: (finding.kind, finding.subject, finding.reason))


def strays(snapshot: Snapshot, paths: Iterable[str]) -> list[Finding]:
    """What to say of plain files that belong to no skill: of markdown one by one, of the others together."""
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
        if path.endswith(".md"):
            found.append(_no_document(path))
        else:
            others.append(path)
    if others:
        found.append(_belong_nowhere(sorted(others)))
    return found


def _no_document(path: str) -> Finding:
    stem = path.rpartition("/")[2].removesuffix(".md")
    if stem.isupper() and stem not in ("SKILL", "SKILLS"):
        reason = "names in capitals are for files that are no documents; ids are lowercase"
        fix = "nothing, if it is one of those, as a README is; else rename it"
        return Finding("skipped", path, reason, fix, urgent=False)
    problem = path_to_id(path).problem or "it makes no id"
    return Finding("skipped", path, problem, "rename or move it if it should be a skill or a prompt")


def _belong_nowhere(paths: list[str]) -> Finding:
    """One finding for all of them: a folder of pictures is no reason for a page of lines."""
    named = ", ".join(map(quoted, paths[:MAX_SUGGESTIONS]))
    more = len(paths) - MAX_SUGGESTIONS
    which = f"{named} and {more} more" if more > 0 else named
    count = f"{len(paths)} files" if len(paths) > 1 else "one file"
    return Finding(
        "skipped",
        paths[0],
        f"{count} below no folder with a SKILL.md, so of no skill: {which}",
        "nothing, if that is meant; else give the folder above a SKILL.md",
        urgent=False,
    )


def _of_entries(entries: Pages[ParsedFile]) -> list[Finding]:
    return [finding for entry in entries.values() for finding in entry.findings]


def _shadowed(claims: Claims[Skill] | Claims[Prompt], what: str) -> list[Finding]:
    return [
        Finding(
            "shadowed",
            origin_of(loser),
            f"{origin_of(claims.winners[key])} has the same {what} {quoted(key)} and is served instead",
            f"rename or remove one of the two; {_PRECEDENCE}",
        )
        for key, losers in claims.losers.items()
        for loser in losers
    ]


def _outranked(snapshot: Snapshot) -> list[Finding]:
    """Registrations that would be read in the place of a file: an overview, or the document above it."""
    winners = snapshot.skill_claims.winners
    pairs = [
        (skill, file)
        for entry in snapshot.registered.values()
        if (skill := entry.skill) is not None and (file := outranked_by(winners, skill)) is not None
    ]
    return [
        Finding(
            "shadowed",
            origin_of(skill),
            f"{origin_of(file)} is read by the same address as {quoted(skill.id)} and is served instead",
            f"rename or remove one of the two; {_PRECEDENCE}",
        )
        for skill, file in pairs
    ]


def _in_namespaces_of_folders(snapshot: Snapshot) -> list[Finding]:
    """One finding for each namespace of a folder that workers registered documents in."""
    inside: dict[str, list[Skill]] = {}
    for entry in snapshot.registered.values():
        if entry.skill is not None and snapshot.is_apart(entry.skill):
            inside.setdefault(namespace_of(entry.skill.id), []).append(entry.skill)
    return [_foreign(namespace, skills) for namespace, skills in inside.items()]


def _foreign(namespace: str, skills: list[Skill]) -> Finding:
    skills.sort(key=lambda skill: skill.id)
    workers = sorted({skill.provenance.worker or UNKNOWN for skill in skills})
    named = ", ".join(quoted(skill.id) for skill in skills[:MAX_SUGGESTIONS])
    more = f" and {len(skills) - MAX_SUGGESTIONS} more" if len(skills) > MAX_SUGGESTIONS else ""
    others = f" and {len(workers) - MAX_SUGGESTIONS} more" if len(workers) > MAX_SUGGESTIONS else ""
    return Finding(
        "foreign",
        namespace,
        f"a folder has the namespace {quoted(namespace)}, and the worker "
        f"{', '.join(map(quoted, workers[:MAX_SUGGESTIONS]))}{others} registered {named}{more} in it; "
        "they are listed apart, under their own ids and with their source",
        "nothing, if that is meant; else have the worker register under another namespace, or call "
        "skills::unregister",
        # A worker may well add to the documents that were installed for it.
        urgent=workers != [namespace],
    )


def origin_of(entry: Skill | Prompt) -> str:
    """Where a document comes from, in words."""
    if entry.path is not None:
        return entry.path
    return f"registered skill {entry.id}" if isinstance(entry, Skill) else f"registered prompt {entry.name}"


def _unreachable(skill: Skill) -> Finding:
    reason = f"no address leads to the id {quoted(skill.id)}: the index of all skills is served there"
    fix = "give it another id; until then directory::skills::get reads it"
    return Finding("unreachable", origin_of(skill), reason, fix)


def _hidden(namespace: str) -> Finding:
    return Finding(
        "hidden",
        namespace,
        "no worker of this name is installed, and the worker downloaded these documents by itself",
        "nothing, if that is meant; else install the worker, download them by a call, or set "
        "filter_unregistered to false",
        urgent=False,
    )


def _oversized(snapshot: Snapshot) -> list[Finding]:
    """Skills that no host need take whole."""
    found: list[Finding] = []
    for key, skill in every_skill(snapshot):
        paths = paths_of_skill(snapshot, skill)
        if len(paths) > MAX_BUNDLE_FILES:
            found.append(_too_much(key, f"{len(paths)} files", f"{MAX_BUNDLE_FILES}"))
            continue
        size = sum(snapshot.files[path].size or 0 for path in paths)
        if size > MAX_BUNDLE_BYTES:
            found.append(_too_much(key, f"{size} bytes", f"{MAX_BUNDLE_BYTES}"))
    return found


def _too_much(key: str, what: str, limit: str) -> Finding:
    return Finding(
        "oversized",
        key,
        f"the skill has {what}, and one that is served whole at most {limit}; its files are read one by one",
        "to have it served whole, take out what is not needed",
        urgent=False,
    )


# For people


class Group(NamedTuple):
    """Findings that differ in their subjects alone."""

    first: Finding
    subjects: tuple[str, ...]

    def named(self) -> str:
        """The subject of one; of several how many there are, and some of different folders."""
        if len(self.subjects) == 1:
            return self.subjects[0]
        folders: dict[str, str] = {}
        for subject in self.subjects:
            folders.setdefault(subject.rpartition("/")[0], subject)
        examples = list(dict.fromkeys([*folders.values(), *self.subjects]))[:FEW]
        return f"{len(self.subjects)}, such as {', '.join(examples)}"


def grouped(found: Iterable[Finding]) -> list[Group]:
    """What needs attention first; many findings of one kind for one reason are one group."""
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in found:
        alike.setdefault((finding.kind, finding.reason, finding.fix), []).append(finding)
    groups: list[Group] = []
    for same in alike.values():
        if len(same) > FEW:
            groups.append(Group(same[0], tuple(finding.subject for finding in same)))
        else:
            groups += [Group(finding, (finding.subject,)) for finding in same]
    return sorted(groups, key=lambda group: not group.first.urgent)


def log_lines(found: Iterable[Finding]) -> Iterator[tuple[bool, str]]:
    """A line for each finding, or for all of a kind if they are many; and whether it needs attention."""
    kinds: dict[tuple[bool, str], list[Finding]] = {}
    for finding in found:
        kinds.setdefault((finding.urgent, finding.kind), []).append(finding)
    for (urgent, kind), same in kinds.items():
        if len(same) <= FEW:
            yield from ((urgent, f"{one.subject}: {one.reason} ({one.fix})") for one in same)
        else:
            yield urgent, f"{kind}: {_counted(same)} (directory::diagnostics names them all)"


def _counted(found: list[Finding]) -> str:
    """How many they are, with an example for each of the first few reasons."""
    reasons: dict[str, Finding] = {}
    for finding in sorted(found, key=lambda finding: finding.subject):
        reasons.setdefault(finding.reason, finding)
    examples = [f"{one.subject}: {one.reason}" for one in reasons.values()][:FEW]
    return f"{len(found)} findings, such as {'; '.join(examples)}"
