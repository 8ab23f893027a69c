"""``iii-directory skills check`` and ``skills new``: for authors of skills. No engine needed."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iii_directory.cli.common import EXIT_CODES, config_option, fail, folder_options, settings_from
from iii_directory.cli.output import note, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from iii_directory.authoring.check import Objection


@click.command(
    help="Say what the Agent Skills standard and the hosts that load skills object to: in the skills at "
    "PATH, or in every skill of the skills folder. Only what the standard forbids fails the command.",
    epilog=f"{EXIT_CODES} Here 1 also means that something is forbidden.",
)
@click.argument("paths", metavar="[PATH…]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the objections as JSON.")
@config_option
@folder_options
def check(paths: tuple[Path, ...], as_json: bool, config_path: Path) -> None:
    from iii_directory.authoring.folder import AuthoringError

    if not paths:
        paths = (settings_from(config_path).skills_folder,)
    try:
        found = _objections(paths)
    except AuthoringError as error:
        fail(str(error))
    rows = [(folder, objection) for folder, objections in found.items() for objection in objections]
    if as_json:
        print_json({"skills": len(found), "objections": [{"skill": f, **asdict(o)} for f, o in rows]})
    elif rows:
        print_table(("file", "objection", "fix"), list(_shown(found)), whole=True)
    forbidden = sum(objection.forbidden for _, objection in rows)
    if not as_json:
        note(f"{_count(len(found), 'skill')}, {_count(len(rows), 'objection')}, {forbidden} forbidden")
    raise SystemExit(1 if forbidden else 0)


@click.command(
    help="Write a new skill into the skills folder, with example requests for skills eval. The check objects "
    "until its placeholders are replaced.",
    epilog=EXIT_CODES,
)
@click.argument("name")
@config_option
@folder_options
def new(name: str, config_path: Path) -> None:
    from iii_directory.authoring.folder import AuthoringError, write_skeleton

    try:
        path = write_skeleton(str(settings_from(config_path).skills_folder), name)
    except AuthoringError as error:
        fail(str(error))
    note(f"wrote {path}: fill it in, then run iii-directory skills check")


COMMANDS = (check, new)


def _objections(paths: tuple[Path, ...]) -> dict[str, list[Objection]]:
    from iii_directory.authoring.check import check as objections_to
    from iii_directory.authoring.folder import AuthoringError, skills_below

    found = {folder: objections_to(skill) for path in paths for folder, skill in skills_below(str(path))}
    if not found:
        where = ", ".join(map(str, paths))
        raise AuthoringError(f"there is no skill in {where}: a skill is a folder with a SKILL.md")
    return found


def _shown(found: Mapping[str, Sequence[Objection]]) -> Iterator[tuple[str, str, str]]:
    """Give the rows by skill: below its name on a terminal, each with its whole relative name in a pipe."""
    is_grouped = sys.stdout.isatty()
    for folder, objections in found.items():
        below = os.path.relpath(folder)
        if is_grouped and objections:
            yield below, "", ""
        for one in objections:
            yield f"  {one.path}" if is_grouped else os.path.join(below, one.path), one.words, one.fix


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
