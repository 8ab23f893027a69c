"""``iii-directory status``: what runs where on this machine, and whose folder it shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iii_directory.cli.common import engine_url, is_named, listens, program, url_option
from iii_directory.cli.output import note, print_json, print_table
from iii_directory.cli.runs import all_runs, directory_at
from iii_directory.cli.tokens import engine_token
from iii_directory.text import shown_url

if TYPE_CHECKING:
    from iii_directory.cli.runs import Run

_CODES = (
    "Exit codes: 0 a directory answers at the address; 1 none does, and one sentence on stderr says so; "
    "2 wrong usage."
)


@click.command(
    help="Say what runs where: the directories and engines of this machine with the folder each shows, and "
    "whether one answers at the address that commands use here.",
    epilog=_CODES,
)
@click.option("--json", "as_json", is_flag=True, help="Print everything about it as JSON.")
@url_option
def command(as_json: bool, url: str | None) -> None:
    address = engine_url(url)
    runs = all_runs()
    state, sentence = _state(address, named=is_named(url))
    if as_json:
        print_json({"url": shown_url(address), "state": state, "runs": [_shown(run) for run in runs]})
    elif runs:
        print_table(("url", "folder", "mcp", "pid"), [_row(run) for run in runs], whole=True)
    note(sentence)
    if state != "directory":
        raise SystemExit(1)


def _state(url: str, *, named: bool) -> tuple[str, str]:
    """What is at the address: a word for programs, and a sentence."""
    if not listens(url):
        return "nothing", f"nothing answers at {shown_url(url)}; start a directory: {program()} up"
    from iii_directory.bus.client import EngineUnreachableError, RemoteError, call_function
    from iii_directory.wire.protocol import FUNCTION_NOT_FOUND

    try:
        token = engine_token(url, named=named)
        index: Any = call_function(url, "directory::skills::list", {}, token=token)
    except EngineUnreachableError as error:
        return "no engine", str(error)
    except RemoteError as error:
        if error.body.get("code") != FUNCTION_NOT_FOUND:
            return "failing", str(error)
        return (
            "engine",
            f"the engine at {shown_url(url)} has no directory; start one there: {program()} serve",
        )
    shown = directory_at(url)
    whose = f"the directory of {shown.home}" if shown else "a directory"
    elsewhere = "" if not shown or shown.home == str(Path.cwd()) else ", which is not this folder,"
    return "directory", f"{whose}{elsewhere} answers at {shown_url(url)}: {len(index['skills'])} documents"


def _shown(run: Run) -> dict[str, Any]:
    return {**run._asdict(), "url": shown_url(run.url)}


def _row(run: Run) -> tuple[str, str, str | None, str]:
    return shown_url(run.url), run.skills_folder or "(an engine alone)", run.mcp, str(run.pid)
