"""Report what installs did, and show changes of files as a patch a person can read. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from iii_directory.disk.install_record import NamespaceChange, RegistrySource, content_hash
from iii_directory.documents.ids import kind_of
from iii_directory.documents.model import Finding
from iii_directory.errors import DirectoryError
from iii_directory.install.plan import FileChanges
from iii_directory.limits import MAX_DIFF_BYTES
from iii_directory.text import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from iii_directory.install.bundle import Bundle, Offer, Selection
    from iii_directory.install.plan import InstallPlan

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
    new_facts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    installed: str | None = None
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
    installed: tuple[Installation, ...] = ()
    previews: tuple[Preview, ...] = ()
    failed: Mapping[str, DirectoryError] = field(default_factory=dict[str, DirectoryError])
    """Why a skill was not installed, by its name."""
    is_complete: bool = True


def added(selection: Selection, done: Mapping[Offer, Installation | Preview | DirectoryError]) -> Added:
    """Report on each of the chosen skills, in their order."""
    results = [(offer, done[offer]) for offer in selection.chosen]
    failed = {offer.name: result for offer, result in results if isinstance(result, DirectoryError)}
    return Added(
        selection=selection,
        installed=tuple(result for _, result in results if isinstance(result, Installation)),
        previews=tuple(result for _, result in results if isinstance(result, Preview)),
        failed=failed,
        is_complete=not (failed or selection.ambiguous or selection.unfit),
    )


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
    return Installation(
        namespace=bundle.namespace,
        reply=reply,
        resolved=bundle.resolved,
        changes=changes,
        findings=(*bundle.findings, *_findings(bundle, plan)),
        is_current=not (changes.added or changes.replaced or changes.overwritten or changes.kept),
    )


def edited_file(path: str) -> Finding:
    """Return the finding for an installed file that was edited by hand."""
    return Finding(
        "edited",
        path,
        "it was edited by hand and is kept, so it is not what its source has",
        "nothing, if that is meant; else merge the two by hand, or replace it with an explicit download",
        urgent=False,
    )


def _findings(bundle: Bundle, plan: InstallPlan) -> list[Finding]:
    origin = "registry" if isinstance(bundle.source, RegistrySource) else "source"
    edited = [edited_file(f"{bundle.namespace}/{path}") for path in plan.changes.kept]
    hidden = [
        Finding(
            "skipped",
            f"{bundle.namespace}/{path}",
            f"it is a dot file of the {origin}, and those are not installed",
            "nothing, unless it was meant to be installed: then it needs another name in the source",
            urgent=False,
        )
        for path in bundle.left_out
    ]
    return edited + hidden


def unified_diff(namespace: str, changes: Sequence[tuple[str, bytes | None, bytes | None]]) -> str:
    """Show changes of files as a patch a person can read; None stands for a missing file."""
    return "".join(_file_diff(f"{namespace}/{path}", old, new) for path, old, new in sorted(changes))


def _file_diff(path: str, old: bytes | None, new: bytes | None) -> str:
    before, after = _lines(old), _lines(new)
    if before is None or after is None:
        was, will = _described(old), _described(new)
        return "" if was == will else f"Binary file {escaped(path)}: {was} -> {will}\n"
    import difflib

    name_before = _NOTHING if old is None else escaped(f"a/{path}")
    name_after = _NOTHING if new is None else escaped(f"b/{path}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(before, after, name_before, name_after)
    )


def _lines(content: bytes | None) -> list[str] | None:
    """Split a text into lines that are safe on a terminal; None if it is binary or too large to show."""
    if content is None:
        return []
    if len(content) > MAX_DIFF_BYTES:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    parts = text.split("\n")
    whole = [f"{escaped(part.removesuffix(chr(13)))}\n" for part in parts[:-1]]
    return whole + ([escaped(parts[-1])] if parts[-1] else [])


def _described(content: bytes | None) -> str:
    return "nothing" if content is None else f"{len(content)} bytes, {content_hash(content)}"
