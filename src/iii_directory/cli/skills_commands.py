"""``iii-directory skills`` and ``prompts``: read documents, files and the index. No engine needed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

import click

from iii_directory.cli import authoring_commands, installs, inventory, linking, offering, output
from iii_directory.cli.command_help import (
    CommandGroup,
    complete_files,
    complete_hosts,
    complete_prompts,
    complete_skills,
)
from iii_directory.cli.common import FOLDER, fail, program
from iii_directory.cli.source import answer, place_of, reading_options
from iii_directory.documents.file_pages import media_type as media_type_of
from iii_directory.limits import MAX_BUNDLE_BYTES
from iii_directory.text import counted, quoted

if TYPE_CHECKING:
    from pathlib import Path

    from iii_directory.cli.source import Where


MARKDOWN: Final = "text/markdown"


@click.group(
    cls=CommandGroup,
    help="Skills: folders with a SKILL.md that tell agents how to do a task. Read them, install and update "
    "them, write your own, and decide what agents see.",
)
def skills() -> None:
    """Group the commands of this module and those that are added at its end."""


@skills.command(
    "list",
    help="List skills, one row each, with their number of documents and files; with --all every document. "
    "Several filters must all match.",
)
@click.option("--all", "every_document", is_flag=True, help="List every document of every skill.")
@click.option("--search", help="Keep rows with this text in id, title or description, ignoring case.")
@click.option("--prefix", help="Keep ids that start with this; 'db/' finds the overview of db too.")
@click.option("--type", "kind", help="Keep exactly this type, such as how-to.")
@click.option("--no-description", is_flag=True, help="Leave descriptions out, and out of the search.")
@reading_options
def list_skills(
    every_document: bool,
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
        kind=None if every_document else "skill",
    )
    if as_json:
        output.print_json(reply)
        return
    described = () if no_description else ("description",)
    if every_document:
        columns = ("id", "title", "type", *described, "source")
    else:
        columns = ("id", *described, "documents", "files", "source")
    empty = "no skills" if every_document else "no skills; --all looks at every document"
    if search is not None and "next" in reply:
        empty += f"; {program()} {shlex.join(('search', search))} looks for the words one by one"
    output.print_rows(output.with_sources(reply["skills"]), columns, empty=empty)


@skills.command(
    help="Show one skill, or one document or text file of it. Small differences in ID are forgiven; PATH is "
    "a file below the skill's folder.",
)
@click.argument("skill_id", metavar="ID", shell_complete=complete_skills)
@click.argument("path", metavar="[PATH]", required=False, shell_complete=complete_files)
@reading_options
def show(skill_id: str, path: str | None, as_json: bool, where: Where) -> None:
    if path is None:
        reply = answer(where, "directory::skills::get", id=skill_id)
        media_type = MARKDOWN if reply["type"] != "file" else media_type_of(reply["id"])
    else:
        reply = answer(where, "directory::skills::file", id=skill_id, path=path)
        media_type = reply["media_type"]
    if as_json:
        output.print_json(reply)
        return
    output.note_source(reply)
    body = reply["body"] if path is None else _whole(where, reply)
    output.print_markdown(body) if media_type == MARKDOWN else output.print_string(body)


@skills.command(help="List every file of a skill: its documents, scripts, references and assets.")
@click.argument("skill_id", metavar="ID", shell_complete=complete_skills)
@reading_options
def files(skill_id: str, as_json: bool, where: Where) -> None:
    reply = answer(where, "directory::skills::files", id=skill_id)
    if as_json:
        output.print_json(reply)
        return
    columns = ("path", "bytes", "media_type", "executable", "document", "source")
    rows = [
        {**row, "executable": "executable" if row["executable"] else ""}
        for row in output.with_sources(reply["files"])
    ]
    output.print_rows(rows, columns, empty="no files")


@skills.command(
    help="Print the path of a skill on this machine, or of one file, so that its scripts can be run. An "
    "engine is asked only if --url names one, and answers only with show_paths in its configuration.",
)
@click.argument("skill_id", metavar="ID", shell_complete=complete_skills)
@click.argument("path", metavar="[PATH]", required=False, shell_complete=complete_files)
@reading_options
def path(skill_id: str, path: str | None, as_json: bool, where: Where) -> None:
    reply = place_of(where, skill_id, path)
    output.print_json(reply) if as_json else output.print_place(reply["path"])


@skills.command(help="Copy a whole skill to DIR/ID. A file there that differs is never overwritten.")
@click.argument("skill_id", metavar="ID", shell_complete=complete_skills)
@click.argument("folder", metavar="DIR", type=FOLDER)
@reading_options
def export(skill_id: str, folder: Path, as_json: bool, where: Where) -> None:
    from iii_directory.cli.inventory import write_skill

    reply = answer(where, "directory::skills::archive", id=skill_id)
    place, count = write_skill(reply["content"], folder)
    if as_json:
        output.print_json({"id": reply["id"], "path": str(place), "files": count})
    else:
        output.say(f"wrote {count} files to {place}")


@skills.command(
    help="Estimate how many tokens skills cost a model: each skill's line, overview and whole text, the "
    "index, the tools and resources of MCP, and what hosts would cut.",
)
@click.option("--host", shell_complete=complete_hosts, help="Show what this host would cut, line by line.")
@reading_options
def budget(host: str | None, as_json: bool, where: Where) -> None:
    reply = answer(where, "directory::skills::budget")
    hosts = {row["name"]: row for row in reply["hosts"]}
    if host is not None and host not in hosts:
        fail(f"{quoted(host)} is not a known host; the known ones are {', '.join(hosts)}", code=2)
    if as_json:
        output.print_json(reply if host is None else {**hosts[host], "answered_by": reply["answered_by"]})
    elif host is None:
        _print_costs(reply)
    else:
        lines = {row["id"]: row["line"] for row in reply["skills"]}
        if hosts[host]["cut"]:
            cut = [(key, str(lines[key]["tokens"])) for key in hosts[host]["cut"]]
            output.print_table(("id", "line"), cut)
        output.note(_fate(hosts[host]))


@skills.command(
    help="Show how often each skill was offered, read and used on this machine, and which searches found "
    "nothing. A running directory counts in its data folder; nothing is sent anywhere.",
)
@click.option("--unused", is_flag=True, help="Only skills that were never read or used.")
@reading_options
def usage(unused: bool, as_json: bool, where: Where) -> None:
    reply = answer(where, "directory::skills::usage")
    if unused:
        reply["skills"] = [row for row in reply["skills"] if not row["read"] and not row["used"]]
    if as_json:
        output.print_json(reply)
        return
    output.print_rows(reply["skills"], ("id", "offered", "read", "used"), empty="nothing was counted")
    for miss in () if unused else reply["misses"][:10]:
        times = counted(miss["count"], "time")
        output.note(f"nothing was found for {quoted(miss['words'])}, {times}, last {miss['last']}")


@skills.command(help="Show the index of all skills, made for system prompts.")
@reading_options
def index(as_json: bool, where: Where) -> None:
    reply = answer(where, "directory::skills::index")
    output.print_json(reply) if as_json else output.print_markdown(reply["body"])


@click.group(cls=CommandGroup, help="Prompts: slash-command templates for people.")
def prompts() -> None:
    """Group the commands; they have no option in common."""


@prompts.command("list", help="List prompts, one row each.")
@reading_options
def list_prompts(as_json: bool, where: Where) -> None:
    reply = answer(where, "directory::prompts::list")
    if as_json:
        output.print_json(reply)
        return
    rows = output.with_sources(reply["prompts"])
    output.print_rows(rows, ("name", "description", "source"), empty="no prompts")


@prompts.command("show", help="Show the template of one prompt.")
@click.argument("name", shell_complete=complete_prompts)
@reading_options
def show_prompt(name: str, as_json: bool, where: Where) -> None:
    reply = answer(where, "directory::prompts::get", name=name)
    if as_json:
        output.print_json(reply)
        return
    output.note_source(reply)
    output.print_markdown(reply["body"])


def _whole(where: Where, page: dict[str, Any]) -> str:
    """Return the text of a file from its first page on; a binary or too long file ends the command."""
    if page["encoding"] != "utf-8" or page["bytes"] > MAX_BUNDLE_BYTES:
        reason = "it is not text" if page["encoding"] != "utf-8" else "it is too long"
        typed = shlex.join(("skills", "path", page["id"], page["path"]))
        fail(
            f"{quoted(page['path'])} of {quoted(page['id'])} has {page['bytes']} bytes and cannot be shown: "
            f"{reason}; run {program()} {typed} to see where it is"
        )
    pieces = [page["content"]]
    while page["next_offset"] is not None:
        asked = {"id": page["id"], "path": page["path"], "offset": page["next_offset"]}
        page = answer(where, "directory::skills::file", once_more=True, **asked)
        pieces.append(page["content"])
    return "".join(pieces)


def _print_costs(reply: dict[str, Any]) -> None:
    parts = ("line", "overview", "whole")
    others = {"the index": "index", "MCP tools": "tools", "MCP resources": "resources"}
    costs = [(row["id"], *(str(row[part]["tokens"]) for part in parts)) for row in reply["skills"]]
    costs += [(name, "", "", str(reply[key]["tokens"])) for name, key in others.items()]
    output.print_table(("skill", *parts), costs)
    for host in reply["hosts"]:
        output.note(_fate(host))
    output.note(f"in tokens, which are estimated: {reply['estimate']}")


def _fate(host: dict[str, Any]) -> str:
    room = f"{host['name']} has room for {host['limit_chars']} characters"
    cut = f"{counted(len(host['cut']), 'skill')} {'is' if len(host['cut']) == 1 else 'are'} cut"
    return f"{room}, the list has {host['used_chars']}: {'nothing is cut' if host['fits'] else cut}"


FURTHER: Final = (
    *installs.COMMANDS,
    *authoring_commands.COMMANDS,
    *linking.COMMANDS,
    *offering.COMMANDS,
    inventory.facts,
    inventory.use,
)
for further in FURTHER:
    skills.add_command(further)
