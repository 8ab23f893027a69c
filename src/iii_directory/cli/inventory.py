"""``iii-directory skills facts``: what a skill can do, without a verdict. No engine needed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from iii_directory.cli.common import EXIT_CODES, fail
from iii_directory.cli.completion import skill_ids
from iii_directory.cli.output import note, print_json, print_table
from iii_directory.cli.source import answer, reading_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iii_directory.cli.source import Where


@click.command(
    "facts",
    help="List what a skill can do, without a verdict: scripts, hosts, environment variables, tools, hooks, "
    "functions of the engine and whether they exist there. ID is a skill, or PATH a folder with a SKILL.md. "
    "What benign skills almost never have is found; finding nothing does not mean that a skill is safe.",
    epilog=EXIT_CODES,
)
@click.argument("skill", metavar="ID|PATH", shell_complete=skill_ids())
@reading_options
def command(skill: str, as_json: bool, where: Where) -> None:
    is_path = skill.startswith((".", "/", "~")) or skill.endswith("SKILL.md")
    replies = _of_path(skill) if is_path else [answer(where, "directory::skills::facts", id=skill)]
    if as_json:
        print_json(replies[0] if len(replies) == 1 else {"skills": replies})
        return
    for reply in replies:
        print_table(("fact", "what"), list(fact_rows(reply)))
        count = len(reply["findings"])
        note(f"{reply['id']}: {count or 'nothing'} to look at; that does not make it safe")


def fact_rows(reply: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give a row for each fact and finding of a reply."""
    for finding in reply["findings"]:
        place = f"{finding['path']}:{finding['line']}" if "line" in finding else finding["path"]
        yield "finding", f"{place}: {finding['words']} ({finding['rule']})"
    for kind, values in reply["facts"].items():
        # The hosts of addresses are listed; the addresses are for --json.
        if kind != "urls":
            yield from ((kind.replace("_", " "), _words(value)) for value in values)
    for kind, count in reply.get("left_out", {}).items():
        yield kind.replace("_", " "), f"… {count} more"


def _words(value: str | dict[str, Any]) -> str:
    if isinstance(value, str):
        return value
    if "exists" in value:
        state = {True: "", False: " (does not exist on this engine)", None: ""}[value["exists"]]
        return f"{value['id']}{state}"
    return f"{value['path']} ({value.get('interpreter') or value.get('reason')})"


def _of_path(path: str) -> list[dict[str, Any]]:
    from iii_directory.authoring.folder import AuthoringError, skills_below
    from iii_directory.documents.facts import facts_of

    try:
        found = list(skills_below(os.path.expanduser(path)))
    except AuthoringError as error:
        fail(str(error))
    if not found:
        fail(f"there is no skill in {path}: a skill is a folder with a SKILL.md")
    return [{"id": skill.folder, **facts_of(skill.contents).as_dict()} for _, skill in found]
