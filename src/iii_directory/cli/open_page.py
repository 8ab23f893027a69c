"""``iii-directory open``: open the web page of the running directory in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iii_directory.cli.common import EXIT_CODES, fail, program
from iii_directory.cli.output import print_json, say
from iii_directory.cli.runs import directories

if TYPE_CHECKING:
    from iii_directory.cli.runs import Run


@click.command(
    help="Open the web page of the directory that runs for this project, or of the only one that runs.",
    epilog=EXIT_CODES,
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON and open nothing.")
def command(as_json: bool) -> None:
    address = page_address(_running())
    if as_json:
        print_json({"url": address})
        return
    import webbrowser

    say(address)
    webbrowser.open(address)


def page_address(run: Run) -> str:
    """Return the address of the page beside the MCP endpoint of a running directory."""
    return (run.mcp or "").removesuffix("mcp")


def _running() -> Run:
    """Return the directory of the nearest folder upward, or the only one that runs."""
    found = [run for run in directories() if run.mcp is not None]
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        for run in found:
            if run.home == str(folder):
                return run
    if len(found) != 1:
        which = "no directory runs" if not found else f"{len(found)} directories run, none for this folder"
        fail(f"{which}; start one here: {program()} up")
    return found[0]
