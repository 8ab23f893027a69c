"""What installs tell those who asked for them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from iii_directory.documents.model import Finding
from iii_directory.install.plan import Changes
from iii_directory.lockfile.format import RepoSource
from iii_directory.lockfile.names import kind_of

if TYPE_CHECKING:
    from iii_directory.install.bundle import Bundle
    from iii_directory.install.plan import Plan

Status = Literal["updated", "current", "edited", "outdated", "restored", "removed", "failed"]


@dataclass(frozen=True, slots=True)
class Installed:
    """A download that was carried out: the reply to its caller, and what people need."""

    reply: dict[str, Any]
    resolved: str
    """The version or commit that was installed."""
    changes: Changes
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """A download that was only planned."""

    namespace: str
    resolved: str
    changes: Changes
    diff: str
    left_out: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "resolved": self.resolved,
            "changes": self.changes.as_dict(),
            "left_out": list(self.left_out),
            "diff": self.diff,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one namespace in an update, a restore or a look for newer versions."""

    namespace: str
    status: Status
    installed: str | None = None
    """The version or commit that was recorded before."""
    available: str | None = None
    """The version or commit the source has."""
    pinned: bool = False
    changes: Changes = field(default_factory=Changes)
    reason: str | None = None
    """Why it failed: the sentence of the error."""

    def as_dict(self) -> dict[str, Any]:
        known = {"installed": self.installed, "available": self.available, "reason": self.reason}
        shown = {name: value for name, value in known.items() if value is not None}
        changes = {"changes": self.changes.as_dict()} if self.changes != Changes() else {}
        pinned = {"pinned": True} if self.pinned else {}
        return {"namespace": self.namespace, "status": self.status, **shown, **pinned, **changes}


def installed(bundle: Bundle, plan: Plan) -> Installed:
    """The reply of a download; what was kept is not among what was written."""
    kept = set(plan.changes.kept)
    written = [path for path in bundle.files if path not in kept]
    kinds = {path: kind_of(bundle.namespace, path) for path in written}
    reply: dict[str, Any] = {
        "namespace": bundle.namespace,
        "skills_written": [path for path in written if kinds[path] == "skill"],
        "prompts_written": [bundle.prompt_name(path) for path in written if kinds[path] == "prompt"],
        "files_written": [path for path in written if kinds[path] == "file"],
        "source": bundle.source.as_dict(),
    }
    return Installed(reply, bundle.resolved, plan.changes, (*bundle.findings, *_findings(bundle, plan)))


def edited_file(path: str) -> Finding:
    """A file of somebody's own making in the place of an installed one."""
    return Finding(
        "edited",
        path,
        "it was edited by hand and is kept, so it is not what its source has",
        "nothing, if that is meant; else merge the two by hand, or replace it with an explicit download",
    )


def _findings(bundle: Bundle, plan: Plan) -> list[Finding]:
    origin = "repository" if isinstance(bundle.source, RepoSource) else "registry"
    edited = [edited_file(f"{bundle.namespace}/{path}") for path in plan.changes.kept]
    hidden = [
        Finding(
            "skipped",
            f"{bundle.namespace}/{path}",
            f"it is a dot file of the {origin}, and those are not installed",
            "nothing, unless it was meant to be installed: then it needs another name in the source",
        )
        for path in bundle.left_out
    ]
    return edited + hidden
