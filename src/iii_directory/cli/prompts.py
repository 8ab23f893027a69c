"""``iii-directory prompts``: the slash-commands people can run. No engine needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iii_directory.cli.common import EXIT_CODES
from iii_directory.cli.completion import prompt_names
from iii_directory.cli.groups import Group
from iii_directory.cli.output import note_source, print_json, print_markdown, print_rows, with_sources
from iii_directory.cli.source import answer, reading_options

if TYPE_CHECKING:
    from iii_directory.cli.source import Where


@click.group(cls=Group, help="Prompts: slash-command templates for people.", epilog=EXIT_CODES)
def command() -> None:
    """Nothing is common to its commands."""


@command.command("list", help="List prompts, one row each.", epilog=EXIT_CODES)
@reading_options
def list_prompts(as_json: bool, where: Where) -> None:
    reply = answer(where, "directory::prompts::list")
    if as_json:
        print_json(reply)
    else:
        print_rows(with_sources(reply["prompts"]), ("name", "description", "source"), empty="no prompts")


@command.command(help="Show the template of one prompt.", epilog=EXIT_CODES)
@click.argument("name", shell_complete=prompt_names())
@reading_options
def show(name: str, as_json: bool, where: Where) -> None:
    reply = answer(where, "directory::prompts::get", name=name)
    if as_json:
        print_json(reply)
        return
    note_source(reply)
    print_markdown(reply["body"])
