"""How results are shown: drawn on a terminal, plain text in a pipe, or JSON.

Documents are other people's text. On a terminal, and in every list, what could act on a terminal or hide from
the eye is shown as an escape; in a pipe a body goes through as it is. Only a terminal makes us import rich.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from iii_directory.documents.provenance import Provenance
from iii_directory.shapes import is_object
from iii_directory.text import escaped, has_unsafe, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def note(sentence: str) -> None:
    """A line on stderr that is no failure."""
    click.echo(f"iii-directory: {escaped(sentence)}", err=True)


def say(lines: str, *, err: bool = False) -> None:
    """Lines of our own. What others wrote into them cannot act on a terminal."""
    click.echo("\n".join(map(escaped, lines.split("\n"))), err=err)


def json_text(value: Any) -> str:
    """A reply as JSON; in ASCII alone if it holds characters that act on a terminal or hide."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return json.dumps(value, indent=2) if has_unsafe(text.replace("\n", "")) else text


def print_json(value: Any) -> None:
    print_text(json_text(value))


def shown_commit(resolved: str) -> str:
    """What a source resolved to: short on a terminal where it is the id of a commit, whole in a pipe."""
    if not sys.stdout.isatty():
        return resolved
    from iii_directory.cli import terminal

    return terminal.with_short_commits(resolved)


def print_string(text: str) -> None:
    """A reply that is one string: paged and harmless on a terminal, verbatim in a pipe; a newline ends it."""
    ended = text if text.endswith("\n") else f"{text}\n"
    if sys.stdout.isatty():
        from iii_directory.cli import terminal

        terminal.show_text(ended)
    else:
        print_verbatim(ended)


def print_place(path: str) -> None:
    """A path on this machine: whole on one line, verbatim in a pipe and harmless on a terminal."""
    if sys.stdout.isatty():
        print_text(escaped(path))
    else:
        sys.stdout.buffer.write(os.fsencode(f"{path}\n"))
        sys.stdout.flush()


def print_text(text: str) -> None:
    """Text and a newline; letters that the other end has no code for become escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str | None]], *, whole: bool = False) -> None:
    """Rows under headings; in a pipe one line each, tabs between the cells.

    On a terminal a row is one line too, cut where it is full, unless ``whole`` asks for every word.
    """
    cells = [[escaped(one_line(cell or "")) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from iii_directory.cli import terminal

        terminal.show_table(columns, cells, whole=whole)
    elif cells:
        print_text("\n".join("\t".join(row) for row in cells))


def print_rows(
    rows: Sequence[Mapping[str, str | int | None]], columns: Sequence[str], *, empty: str, whole: bool = False
) -> None:
    """Some fields of the rows a function answered, as a table; or a note that there are none."""
    if rows:
        cells = ([_cell(row[column]) for column in columns] for row in rows)
        print_table(columns, cells, whole=whole)
    else:
        note(empty)


def _cell(value: str | int | None) -> str | None:
    return str(value) if isinstance(value, int) else value


def print_markdown(body: str) -> None:
    """A document: rendered on a terminal, verbatim in a pipe."""
    if sys.stdout.isatty():
        from iii_directory.cli import terminal

        terminal.show_markdown(body)
    else:
        print_verbatim(body)


def with_sources(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a reply with the mark of their provenance as a column ``source``."""
    return [{**row, "source": source_of(row)} for row in rows]


def note_source(reply: Mapping[str, Any]) -> None:
    """Say beside a document where it comes from, unless it is a file of the operator."""
    shown = reply.get("provenance")
    if is_object(shown) and shown.get("kind") != "file":
        note(source_of(reply))


def source_of(reply: Mapping[str, Any]) -> str:
    """The mark of the provenance that a reply shows; empty for an engine that tells of none."""
    shown = reply.get("provenance")
    return Provenance.parse(shown).mark() if is_object(shown) else ""


def print_patch(patch: str) -> None:
    """A difference: in the usual colours on a terminal, verbatim in a pipe."""
    if sys.stdout.isatty():
        from iii_directory.cli import terminal

        terminal.show_patch(patch)
    else:
        print_verbatim(patch)


def print_verbatim(text: str) -> None:
    """Text with nothing done to it, for a pipe or a file."""
    # Bytes, because a document is UTF-8 whatever this machine prefers, and its line ends are its own.
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.flush()
