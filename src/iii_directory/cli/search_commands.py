"""``iii-directory search``: find skills, prompts, functions and workers by words. No engine needed."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from iii_directory.cli.output import note, print_json, print_table, show_lines, with_sources
from iii_directory.cli.source import answer, reading_options
from iii_directory.search.search_request import KINDS
from iii_directory.search.words import fold
from iii_directory.text import escaped, one_line

if TYPE_CHECKING:
    from rich.text import Text

    from iii_directory.cli.source import Where

    Row = dict[str, Any]


@click.command(
    help="Find what helps with a task: skills with their bodies, prompts, and on an engine its functions, "
    "triggers and workers too. Say it in words, or type an id.",
)
@click.argument("words", metavar="WORDS…", nargs=-1, required=True)
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Look only among these.")
@click.option("--limit", type=int, help="Rows of each kind; 5 by default.")
@reading_options
def command(
    words: tuple[str, ...], kinds: tuple[str, ...], limit: int | None, as_json: bool, where: Where
) -> None:
    reply = answer(
        where,
        "directory::search",
        query=" ".join(words),
        kinds=list(kinds) or None,
        limit=limit,
        detail="brief",
    )
    if as_json:
        print_json(reply)
        return
    (result,) = reply["results"]
    for typed, taken in reply["corrected"].items():
        note(f"{typed} was taken for {taken}")
    if not reply["complete"]:
        note("the bodies of some documents were not taken in yet")
    rows = _rows(result)
    if not result["fits"]:
        note("nothing fits" + ("; this came nearest" if rows else ""))
    if sys.stdout.isatty():
        _draw(rows)
    else:
        columns = ("kind", "id", "description", "why", "source")
        print_table(columns, [[row[column] for column in columns] for row in rows])


def _rows(result: Row) -> list[Row]:
    """Show the hits, or the nearest rows, each with its kind and its description or the matching line."""
    found = [{"kind": section["kind"], **hit} for section in result["sections"] for hit in section["hits"]]
    return [
        {**row, "id": row.get("in") or row["id"], "description": row.get("snippet") or row["description"]}
        for row in with_sources(found or result["nearest"])
    ]


def _draw(rows: list[Row]) -> None:
    """Draw the rows of each kind below its name on a terminal, the words that matched in bold."""
    from rich.text import Text

    kind = None
    lines: list[tuple[int, Text]] = []
    for row in rows:
        if row["kind"] != kind:
            kind = row["kind"]
            lines.append((0, Text(f"{kind}s", style="dim")))
        matched = matched_words(row["why"])
        why = Text("  ".join(filter(None, (escaped(row["why"]), row["source"]))), style="dim")
        lines.append((2, Text("  ").join((marked(row["id"], matched), why))))
        if row["description"]:
            lines.append((6, marked(one_line(row["description"]), matched)))
    show_lines(lines)


def matched_words(why: str) -> list[str]:
    """Return the words that a reason names: of ``photo→image, resize (name)`` image and resize."""
    said = re.sub(r" \([a-z]+\)", ",", why).replace(";", ",").split(",")
    return [word.rpartition("→")[2].strip() for word in said if word.strip()]


def marked(text: str, words: list[str]) -> Text:
    """Return ``text`` escaped, with every word in bold that starts like one of ``words``."""
    from rich.text import Text

    shown = escaped(text)
    line = Text(shown)
    folded = fold(shown).lower()
    if words and len(folded) == len(shown):
        for found in re.finditer("|".join(map(re.escape, words)), folded):
            line.stylize("bold", *found.span())
    return line
