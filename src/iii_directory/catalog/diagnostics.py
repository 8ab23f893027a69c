"""What was left out or is odd, for ``directory::diagnostics``: nothing is skipped in silence. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from iii_directory.documents.ids import RESERVED_IDS
from iii_directory.documents.model import Finding, Prompt, Skill
from iii_directory.text import escaped, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from iii_directory.catalog.shelf import Claims, Pages
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import ParsedFile

_PRECEDENCE: Final = "files come before registrations, and the first path in order before the others"


def findings(snapshot: Snapshot) -> list[Finding]:
    """Everything there is to say about the catalogue, sorted; computed once a snapshot."""
    return snapshot.once(_findings)


def report(found: Iterable[Finding]) -> dict[str, Any]:
    """The answer of ``directory::diagnostics``."""
    rows = [
        {
            "kind": finding.kind,
            "subject": escaped(finding.subject),
            "reason": escaped(finding.reason),
            "fix": escaped(finding.fix),
        }
        for finding in found
    ]
    counts = Counter(row["kind"] for row in rows)
    return {"counts": dict(sorted(counts.items())), "findings": rows}


def _findings(snapshot: Snapshot) -> list[Finding]:
    found = _of_entries(snapshot.files) + _of_entries(snapshot.registered)
    winners = snapshot.skill_claims.winners
    found += _shadowed(snapshot.skill_claims, "id")
    found += _shadowed(snapshot.prompt_claims, "name")
    found += [_unreachable(winners[key]) for key in sorted(RESERVED_IDS) if key in winners]
    found += [_hidden(namespace) for namespace in snapshot.hidden]
    return sorted(found, key=lambda finding: (finding.kind, finding.subject, finding.reason))


def _of_entries(entries: Pages[ParsedFile]) -> list[Finding]:
    return [finding for entry in entries.values() for finding in entry.findings]


def _shadowed(claims: Claims[Skill] | Claims[Prompt], what: str) -> list[Finding]:
    return [
        Finding(
            "shadowed",
            _origin(loser),
            f"{_origin(claims.winners[key])} has the same {what} {quoted(key)} and is served instead",
            f"rename or remove one of the two; {_PRECEDENCE}",
        )
        for key, losers in claims.losers.items()
        for loser in losers
    ]


def _origin(entry: Skill | Prompt) -> str:
    """Where a document comes from, in words."""
    if entry.path is not None:
        return entry.path
    return f"registered skill {entry.id}" if isinstance(entry, Skill) else f"registered prompt {entry.name}"


def _unreachable(skill: Skill) -> Finding:
    reason = f"no address leads to the id {quoted(skill.id)}: the index of all skills is served there"
    fix = "give it another id; until then directory::skills::get reads it"
    return Finding("unreachable", _origin(skill), reason, fix)


def _hidden(namespace: str) -> Finding:
    return Finding(
        "hidden",
        namespace,
        "no worker of this name is installed, and the worker downloaded these documents by itself",
        "nothing, if that is meant; else install the worker, download them by a call, or set "
        "filter_unregistered to false",
    )
