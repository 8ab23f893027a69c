"""``iii-directory skills link`` and ``unlink``: skills in the folders where hosts look. No engine needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from iii_directory.cli import common
from iii_directory.cli.command_help import complete_skills
from iii_directory.cli.output import note, print_json, print_table
from iii_directory.config import home_folder, real_path
from iii_directory.errors import DirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from iii_directory.config import Settings
    from iii_directory.install.hosts import HostFolders, KnownHost, Placed

_HOSTS: Final = "claude-code, codex, cursor, gemini, vscode, goose, windsurf or agents"


def to_option(help_text: str, *, required: bool = False) -> Callable[[common.Command], common.Command]:
    return click.option(
        "--to", "hosts", multiple=True, required=required, metavar="HOST", help=f"{help_text}: {_HOSTS}."
    )


@click.command(
    help="Make skills of the skills folder appear where a host looks for skills: all of them, or some. Each "
    "is a relative link where the host follows links, else a copy that skills update keeps current. What is "
    "there already stays. With -g, your own skills appear in your own folder of the host.",
    epilog=f"{common.EXIT_CODES} 1 also when something else was in the way.",
)
@click.argument("skills", metavar="[SKILL]...", nargs=-1, shell_complete=complete_skills)
@to_option("The host, repeatable", required=True)
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@common.config_option
@common.folder_options
def link(skills: tuple[str, ...], hosts: tuple[str, ...], as_json: bool, config_path: Path) -> None:
    settings = common.settings_from(config_path)
    finish(placed_for(settings, skills or _every_skill(settings), hosts), as_json=as_json)


@click.command(
    help="Remove the links and copies that skills link made: of all skills, or of some. Nothing else is "
    "removed, and neither are files of a copy that were edited.",
)
@click.argument("skills", metavar="[SKILL]...", nargs=-1, shell_complete=complete_skills)
@to_option("Only from this host, repeatable")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@common.config_option
@common.folder_options
def unlink(skills: tuple[str, ...], hosts: tuple[str, ...], as_json: bool, config_path: Path) -> None:
    from iii_directory.install.hosts import HOSTS

    settings = common.settings_from(config_path)
    folders, chosen = host_folders(settings), hosts_named(hosts) or HOSTS
    names = skills or _every_skill(settings)
    placed = [one for skill in names for one in folders.take_away(skill, chosen)]
    finish(placed, as_json=as_json)


COMMANDS: Final = (link, unlink)


def hosts_named(names: Iterable[str]) -> list[KnownHost]:
    """Find the hosts of ``--to``; an unknown one ends the command."""
    from iii_directory.install.hosts import host_named

    try:
        return [host_named(name) for name in names]
    except DirectoryError as error:
        common.fail(error.problem, code=2)


def host_folders(settings: Settings) -> HostFolders:
    """Give the hosts' folders of the project that the command works for, and of the user."""
    from iii_directory.install.hosts import HostFolders

    project = real_path(click.get_current_context().params["config_path"]).parent
    return HostFolders(settings.skills_folder, project, home_folder())


def placed_for(settings: Settings, skills: Iterable[str], hosts: Iterable[str]) -> list[Placed]:
    """Put skills into the folders of hosts: the user's with ``-g``, else the project's."""
    chosen, found = common.chosen_folder(), hosts_named(hosts)
    folders = host_folders(settings)
    is_user = chosen is not None and chosen[1]
    try:
        return [one for skill in skills for one in folders.place(skill, found, is_user=is_user)]
    except DirectoryError as error:
        common.fail(error.problem)


def finish(placed: Sequence[Placed], *, as_json: bool) -> None:
    """Show what became of each place; the exit code is 1 where something was in the way."""
    if as_json:
        print_json({"places": [one._asdict() for one in placed]})
    elif placed:
        shown = [(one.skill, one.outcome, one.place, one.reason) for one in placed]
        print_table(("skill", "status", "place", "reason"), shown, whole=True)
    else:
        note("nothing to do")
    if any(one.outcome == "refused" for one in placed):
        raise SystemExit(1)


def _every_skill(settings: Settings) -> list[str]:
    from iii_directory.documents.ids import OVERVIEW

    return sorted(path.parent.name for path in settings.skills_folder.glob(f"*/{OVERVIEW}"))
