"""``iii-directory skills``: what there is to read, one document, or the index. No engine needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iii_directory.cli import authoring, evaluating, installs
from iii_directory.cli.common import EXIT_CODES
from iii_directory.cli.completion import skill_ids
from iii_directory.cli.groups import Group
from iii_directory.cli.output import print_json, print_markdown, print_rows
from iii_directory.cli.source import answer, reading_options

if TYPE_CHECKING:
    from iii_directory.cli.source import Where


@click.group(
    cls=Group,
    help="Skills: documents that tell agents which function to use for what. Read them, install them from a "
    "registry or a repository, and look after what is installed.",
    epilog=EXIT_CODES,
)
def command() -> None:
    """Further commands of the group live in modules of their own and are added at the end of this one."""


@command.command("list", help="List skills, one row each. Every filter given must hold.", epilog=EXIT_CODES)
@click.option("--search", help="Keep what has this in its id, title or description, in any case.")
@click.option("--prefix", help="Keep ids that start with this; 'db/' finds the overview of db too.")
@click.option("--type", "kind", help="Keep exactly this type, such as how-to.")
@click.option("--no-description", is_flag=True, help="Leave descriptions out, and out of the search.")
@reading_options
def list_skills(
    search: str | None,
    prefix: str | None,
    kind: str | None,
    no_description: bool,
    as_json: bool,
    where: Where,
) -> None:
    reply = answer(
        where,
        "directory::skills::list",
        search=search,
        prefix=prefix,
        type=kind,
        include_description=not no_description,
    )
    if as_json:
        print_json(reply)
    else:
        columns = ("id", "title", "type", *(() if no_description else ("description",)))
        empty = f"no skills; {reply['next']}" if "next" in reply else "no skills"
        print_rows(reply["skills"], columns, empty=empty)


@command.command(help="Show one skill. ID is forgiving, as directory::skills::get is.", epilog=EXIT_CODES)
@click.argument("skill_id", metavar="ID", shell_complete=skill_ids())
@reading_options
def show(skill_id: str, as_json: bool, where: Where) -> None:
    reply = answer(where, "directory::skills::get", id=skill_id)
    print_json(reply) if as_json else print_markdown(reply["body"])


@command.command(help="Show one block per worker, as made for system prompts.", epilog=EXIT_CODES)
@reading_options
def index(as_json: bool, where: Where) -> None:
    reply = answer(where, "directory::skills::index")
    print_json(reply) if as_json else print_markdown(reply["body"])


for further in (*installs.COMMANDS, *authoring.COMMANDS, evaluating.command):
    command.add_command(further)
