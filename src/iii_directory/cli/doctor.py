"""``iii-directory doctor``: what the directory left out or found odd, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iii_directory.cli.common import EXIT_CODES
from iii_directory.cli.output import print_json, print_rows
from iii_directory.cli.source import answer, reading_options

if TYPE_CHECKING:
    from iii_directory.cli.source import Where


@click.command(
    help="List what was left out or is odd: skipped files, shadowed ids, broken front matter and the like, "
    "each with its reason and what to do.",
    epilog=EXIT_CODES,
)
@reading_options
def command(as_json: bool, where: Where) -> None:
    reply = answer(where, "directory::diagnostics")
    if as_json:
        print_json(reply)
    else:
        columns = ("kind", "subject", "reason", "fix")
        print_rows(reply["findings"], columns, empty="nothing was left out and nothing is odd", whole=True)
