"""Report what installs did, show changes of files as a patch, and merge two changes of one text. Pure."""

from __future__ import annotations

import difflib
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from iii_directory.disk.install_record import NamespaceChange, RegistrySource, content_hash
from iii_directory.documents.ids import MERGE_SUFFIX, kind_of
from iii_directory.documents.model import Finding
from iii_directory.install.plan import Disk, FileChanges, InstallPlan
from iii_directory.limits import MAX_DIFF_BYTES, MAX_MERGE_LINES
from iii_directory.text import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from iii_directory.disk.install_record import Entry
    from iii_directory.errors import DirectoryError
    from iii_directory.install.bundle import Bundle, Selection

_NOTHING: Final = "/dev/null"

Status = Literal[
    "updated", "current", "edited", "merged", "conflict", "outdated", "restored", "removed", "failed"
]


@dataclass(frozen=True, slots=True)
class Installation:
    """A download that was carried out: the reply to its caller, and what people need."""

    namespace: str
    reply: dict[str, Any]
    resolved: str
    """The version or commit that was installed."""
    changes: FileChanges
    findings: tuple[Finding, ...]
    is_current: bool
    """True if everything was there already, so that nothing was written."""

    @property
    def change(self) -> NamespaceChange:
        """Return the install as events announce it."""
        kind = "registry" if self.reply["source"]["kind"] == "registry" else "repo"
        skills, prompts = bool(self.reply["skills_written"]), bool(self.reply["prompts_written"])
        return NamespaceChange(self.namespace, kind, skills, prompts)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it, for scripts."""
        return {
            **self.reply,
            "status": "current" if self.is_current else "installed",
            "resolved": self.resolved,
            "changes": self.changes.as_dict(),
            "findings": [
                {"subject": one.subject, "reason": one.reason, "fix": one.fix} for one in self.findings
            ],
        }


@dataclass(frozen=True, slots=True)
class Preview:
    """A download that was only planned."""

    namespace: str
    resolved: str
    changes: FileChanges
    left_out: tuple[str, ...]
    diff: str
    new_facts: dict[str, list[str]]
    installed: str | None
    """The version or commit that is installed now."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"changes": self.changes.as_dict(), "left_out": list(self.left_out)}


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one namespace in an update, a restore or a look for newer versions."""

    namespace: str
    status: Status
    installed: str | None = None
    """The version or commit that was recorded before."""
    available: str | None = None
    """The version or commit the source has."""
    error: DirectoryError | None = None
    """Why it failed."""
    pinned: bool = False
    behind: tuple[str, ...] = ()
    """Files that were edited by hand, and that the source has changed since."""
    changes: FileChanges = field(default_factory=FileChanges)
    new_facts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """What the newer files can do that the installed ones cannot."""

    def as_dict(self) -> dict[str, Any]:
        whole = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "error"}
        whole |= {"behind": list(self.behind), "changes": self.changes.as_dict()}
        return {
            **{name: value for name, value in whole.items() if value},
            **({"reason": str(self.error)} if self.error else {}),
        }


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a source of many skills: each was installed by itself, and some may have failed."""

    selection: Selection
    installed: tuple[Installation, ...]
    previews: tuple[Preview, ...]
    failed: Mapping[str, DirectoryError]
    """Why a skill was not installed, by its name."""
    is_complete: bool


def with_merges(report: Report, merges: FileChanges) -> Report:
    """Add to the report of an update what a merge made of the files it had kept."""
    kept = tuple(path for path in report.changes.kept if path not in (*merges.merged, *merges.conflicts))
    changes = replace(report.changes, kept=kept, merged=merges.merged, conflicts=merges.conflicts)
    status = report.status
    if status != "failed" and merges.conflicts:
        status = "conflict"
    elif status != "failed" and merges.merged and not kept:
        status = "merged"
    return replace(report, status=status, changes=changes)


def installation(bundle: Bundle, plan: InstallPlan, news: dict[str, list[str]]) -> Installation:
    """Report a download; a file that was kept does not count as written."""
    changes, kept = plan.changes, set(plan.changes.kept)
    written = [path for path in bundle.files if path not in kept]
    kinds = {path: kind_of(bundle.namespace, path) for path in written}
    reply: dict[str, Any] = {
        "namespace": bundle.namespace,
        "skills_written": [path for path in written if kinds[path] == "skill"],
        "prompts_written": [bundle.prompt_name(path) for path in written if kinds[path] == "prompt"],
        "files_written": [path for path in written if kinds[path] == "file"],
        "source": {key: value for key, value in bundle.source.as_dict().items() if key != "registry"},
        **({"new_facts": news} if news else {}),
    }
    origin = "registry" if isinstance(bundle.source, RegistrySource) else "source"
    reason = f"it is a dot file of the {origin}, and those are not installed"
    fix = "nothing, unless it was meant to be installed: then it needs another name in the source"
    edited = [edited_file(f"{bundle.namespace}/{path}") for path in changes.kept]
    hidden = [
        Finding("skipped", f"{bundle.namespace}/{path}", reason, fix, urgent=False)
        for path in bundle.left_out
    ]
    return Installation(
        namespace=bundle.namespace,
        reply=reply,
        resolved=bundle.resolved,
        changes=changes,
        findings=(*bundle.findings, *edited, *hidden),
        is_current=not (changes.added or changes.replaced or changes.overwritten or changes.kept),
    )


def edited_file(path: str) -> Finding:
    """Return the finding for an installed file that was edited by hand."""
    return Finding(
        "edited",
        path,
        "it was edited by hand and is kept, so it is not what its source has",
        "nothing, if that is meant; else iii-directory skills update --merge takes in what the source "
        "changed, and skills restore --force undoes the edits",
        urgent=False,
    )


def unified_diff(namespace: str, changes: Sequence[tuple[str, bytes | None, bytes | None]]) -> str:
    """Show changes of files as a patch a person can read; None stands for a missing file."""
    shown: list[str] = []
    for name, old, new in sorted(changes):
        path = f"{namespace}/{name}"
        before, after = _shown_lines(old), _shown_lines(new)
        if before is None or after is None:
            was, will = _described(old), _described(new)
            shown += [] if was == will else [f"Binary file {escaped(path)}: {was} -> {will}\n"]
            continue
        name_before = _NOTHING if old is None else escaped(f"a/{path}")
        name_after = _NOTHING if new is None else escaped(f"b/{path}")
        for line in difflib.unified_diff(before, after, name_before, name_after):
            shown.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(shown)


def _shown_lines(content: bytes | None) -> list[str] | None:
    """Split a text into lines that are safe on a terminal; None if it is binary or too large to show."""
    lines = None if content and len(content) > MAX_DIFF_BYTES else _lines(content or b"")
    if lines is None:
        return None
    return [
        f"{escaped(line[:-1].removesuffix(chr(13)))}\n" if line.endswith("\n") else escaped(line)
        for line in lines
    ]


def _lines(content: bytes) -> list[str] | None:
    """Split a text after its line feeds; None if it is binary."""
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError:
        return None
    if b"\0" in content:
        return None
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _described(content: bytes | None) -> str:
    return "nothing" if content is None else f"{len(content)} bytes, {content_hash(content)}"


# Merging

# Both sides are compared with what they were made from. Where only one of them changed something, its lines
# are taken; where both made the same change, it is made once; where they differ, that is a conflict, and the
# text has both with markers around them, as git writes them.


class Sides(NamedTuple):
    """A file as it was installed, as it was edited by hand, and as its source has it now."""

    base: bytes
    mine: bytes
    theirs: bytes


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged text; with conflicts it holds their markers."""

    content: bytes
    conflicts: int = 0


def plan_merge(namespace: str, disk: Disk, known: Entry, sides: Mapping[str, Sides]) -> InstallPlan:
    """Write what can be merged; what cannot stays as it is, with the markers in a file beside it."""
    found = {path: merged(*three) for path, three in sides.items()}
    clean = {path: one.content for path, one in found.items() if one is not None and not one.conflicts}
    marked = {
        f"{path}{MERGE_SUFFIX}": one.content
        for path, one in found.items()
        if one is not None and one.conflicts and disk.nodes.get(f"{path}{MERGE_SUFFIX}", "file") == "file"
    }
    writes = {**clean, **marked}
    edited_from = {path: origin for path, origin in known.edited_from.items() if path not in clean}
    return InstallPlan(
        namespace=namespace,
        entry=known._replace(edited_from=edited_from),
        writes=writes,
        deletes=frozenset(
            f"{path}{MERGE_SUFFIX}" for path in clean if disk.nodes.get(f"{path}{MERGE_SUFFIX}") == "file"
        ),
        changes=FileChanges(
            merged=tuple(sorted(clean)), conflicts=tuple(sorted(path for path in found if path not in clean))
        ),
        edits_win=True,
        executable=disk.executable & clean.keys(),
        digests={path: content_hash(content) for path, content in writes.items()},
    )


def merged(base: bytes, mine: bytes, theirs: bytes) -> Merged | None:
    """Return the text with both changes; None if a side is binary or too long to compare."""
    old, own, new = _lines(base), _lines(mine), _lines(theirs)
    if old is None or own is None or new is None:
        return None
    if max(len(old), len(own), len(new)) > MAX_MERGE_LINES:
        return None
    out: list[str] = []
    conflicts = 0
    at = own_at = new_at = 0
    for start, end, own_start, new_start in _common(old, own, new):
        was, ours, others = old[at:start], own[own_at:own_start], new[new_at:new_start]
        if ours in (was, others):
            out += others
        elif others == was:
            out += ours
        else:
            conflicts += 1
            out += ["<<<<<<< yours\n", *_ended(ours), "=======\n", *_ended(others), ">>>>>>> upstream\n"]
        out += old[start:end]
        at, own_at, new_at = end, own_start + end - start, new_start + end - start
    return Merged("".join(out).encode(), conflicts)


def _ended(lines: list[str]) -> list[str]:
    """Return lines the last of which ends, so that a marker stands on a line of its own."""
    return lines if not lines or lines[-1].endswith("\n") else [*lines[:-1], f"{lines[-1]}\n"]


def _common(
    old: Sequence[str], mine: Sequence[str], theirs: Sequence[str]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield runs of old lines that both sides kept: start and end, and their starts on each side."""
    ours = difflib.SequenceMatcher(None, old, mine, autojunk=False).get_matching_blocks()
    others = difflib.SequenceMatcher(None, old, theirs, autojunk=False).get_matching_blocks()
    here = there = 0
    while here < len(ours) and there < len(others):
        a, b = ours[here], others[there]
        start, end = max(a.a, b.a), min(a.a + a.size, b.a + b.size)
        if start < end:
            yield start, end, a.b + start - a.a, b.b + start - b.a
        if a.a + a.size < b.a + b.size:
            here += 1
        else:
            there += 1
    yield len(old), len(old), len(mine), len(theirs)
