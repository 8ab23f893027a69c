"""What installs tell those who asked for them, and changes of files as a patch a person can read. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from iii_directory.documents.model import Finding
from iii_directory.errors import DirectoryError
from iii_directory.install.plan import FileChanges
from iii_directory.limits import MAX_DIFF_BYTES
from iii_directory.lockfile.format import NamespaceChange, RegistrySource, content_hash
from iii_directory.lockfile.names import kind_of
from iii_directory.text import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from iii_directory.install.bundle import Bundle, Offer, Selection
    from iii_directory.install.plan import Plan

_NOTHING: Final = "/dev/null"

Status = Literal[
    "updated", "current", "edited", "merged", "conflict", "outdated", "restored", "removed", "failed"
]


@dataclass(frozen=True, slots=True)
class Installation:
    """A download that was carried out: the reply to its caller, and what people need."""

    reply: dict[str, Any]
    resolved: str
    """The version or commit that was installed."""
    changes: FileChanges
    findings: tuple[Finding, ...]

    @property
    def namespace(self) -> str:
        return self.reply["namespace"]

    @property
    def change(self) -> NamespaceChange:
        """The install as events announce it."""
        kind = "registry" if self.reply["source"]["kind"] == "registry" else "repo"
        skills, prompts = bool(self.reply["skills_written"]), bool(self.reply["prompts_written"])
        return NamespaceChange(self.namespace, kind, skills, prompts)

    @property
    def is_current(self) -> bool:
        """Whether everything was there already, so that nothing was written."""
        changes = self.changes
        return not (changes.added or changes.replaced or changes.overwritten or changes.kept)

    def as_dict(self) -> dict[str, Any]:
        """All of it, for scripts."""
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
    reason: str | None = None
    """Why it failed: the sentence of the error."""
    pinned: bool = False
    behind: tuple[str, ...] = ()
    """Files that were edited by hand, and that the source has changed since."""
    changes: FileChanges = field(default_factory=FileChanges)
    new_facts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """What the newer files can do that the installed ones cannot."""

    def as_dict(self) -> dict[str, Any]:
        whole = asdict(self) | {"behind": list(self.behind), "changes": self.changes.as_dict()}
        return {name: value for name, value in whole.items() if value}


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a source of many skills: each was installed by itself, and some may have failed."""

    selection: Selection
    installed: tuple[Installation, ...] = ()
    previews: tuple[Preview, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why a skill was not installed, by its name."""

    @property
    def is_complete(self) -> bool:
        return not (self.failed or self.selection.ambiguous or self.selection.unfit)


def added(selection: Selection, done: Mapping[Offer, Installation | Preview | DirectoryError]) -> Added:
    """What became of each of the chosen, in their order."""
    results = [(offer, done[offer]) for offer in selection.chosen]
    return Added(
        selection=selection,
        installed=tuple(result for _, result in results if isinstance(result, Installation)),
        previews=tuple(result for _, result in results if isinstance(result, Preview)),
        failed={offer.name: str(result) for offer, result in results if isinstance(result, DirectoryError)},
    )


def with_merges(report: Report, merges: FileChanges) -> Report:
    """A report of an update, with what a merge made of the files it had kept."""
    kept = tuple(path for path in report.changes.kept if path not in (*merges.merged, *merges.conflicts))
    changes = replace(report.changes, kept=kept, merged=merges.merged, conflicts=merges.conflicts)
    status = report.status
    if status != "failed" and merges.conflicts:
        status = "conflict"
    elif status != "failed" and merges.merged and not kept:
        status = "merged"
    return replace(report, status=status, changes=changes)


def installation(bundle: Bundle, plan: Plan, news: dict[str, list[str]]) -> Installation:
    """The reply of a download; what was kept is not among what was written."""
    kept = set(plan.changes.kept)
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
    return Installation(reply, bundle.resolved, plan.changes, (*bundle.findings, *_findings(bundle, plan)))


def edited_file(path: str) -> Finding:
    """A file of somebody's own making in the place of an installed one."""
    return Finding(
        "edited",
        path,
        "it was edited by hand and is kept, so it is not what its source has",
        "nothing, if that is meant; else merge the two by hand, or replace it with an explicit download",
        urgent=False,
    )


def _findings(bundle: Bundle, plan: Plan) -> list[Finding]:
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
    """The changes of files as a patch a person can read; None is a file that is not there."""
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
    """The lines of a text, terminal-safe; None when it is not one that is worth showing."""
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
