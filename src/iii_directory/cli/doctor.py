"""``iii-directory doctor``: what the directory left out or found odd, and what to do about it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from iii_directory.catalog.diagnostics import finding_of, grouped
from iii_directory.cli.checkup import problems
from iii_directory.cli.output import note, print_json, print_rows
from iii_directory.cli.source import answer, reading_options

if TYPE_CHECKING:
    from iii_directory.cli.source import Where
    from iii_directory.documents.model import Finding

_COLUMNS: Final = ("kind", "subject", "reason", "fix")
_CODES: Final = (
    "Exit codes: 0 nothing needs attention; 1 something does, or it failed, and then stdout is empty and one "
    "sentence on stderr says why; 2 wrong usage."
)


@click.command(
    help="List what was left out or is odd: a broken configuration, a missing folder, program or package, "
    "skipped files, shadowed ids, broken front matter and the like, each with its reason and what to do. "
    "Where that begins with 'nothing', as for the assets of a skill, it needs no attention. On a terminal "
    "many of a sort are one row; in a pipe and in JSON each has its own.",
    epilog=_CODES,
)
@reading_options
def command(as_json: bool, where: Where) -> None:
    reply = answer(where, "directory::diagnostics")
    found = [finding_of(row) for row in reply["findings"]]
    around = problems(where.config_path)
    urgent = sum(finding.urgent for finding in (*found, *around))
    if as_json:
        print_json(reply)
        for problem in around:
            note(f"{problem.subject}: {problem.reason}; {problem.fix}")
    else:
        documents = _grouped_rows(found) if sys.stdout.isatty() else reply["findings"]
        rows = [*(problem._asdict() for problem in around), *documents]
        print_rows(rows, _COLUMNS, empty="nothing was left out and nothing is odd", whole=True)
        if len(documents) < len(found):
            note(f"needing attention: {urgent} of {len(found) + len(around)}; --json names every one")
    if urgent:
        raise SystemExit(1)


def _grouped_rows(found: list[Finding]) -> list[dict[str, Any]]:
    return [
        {
            "kind": group.first.kind,
            "subject": group.named(),
            "reason": group.first.reason,
            "fix": group.first.fix,
        }
        for group in grouped(found)
    ]
