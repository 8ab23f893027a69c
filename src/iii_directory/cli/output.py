"""How results are shown: tables and rendered markdown on a terminal, plain text in a pipe, or JSON.

Documents are other people's text. On a terminal, and in every list, what could act on a terminal or hide from
the eye is shown as an escape; in a pipe a body goes through as it is. Only a terminal makes us import rich.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from iii_directory.text import escaped, has_unsafe, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import RenderableType


def note(sentence: str) -> None:
    """A line on stderr that is no failure."""
    click.echo(f"iii-directory: {escaped(sentence)}", err=True)


def print_json(value: Any) -> None:
    """A reply as JSON; in ASCII alone if it holds characters that act on a terminal or hide."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    print_text(json.dumps(value, indent=2) if has_unsafe(text.replace("\n", "")) else text)


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
        _print_rich(_rich_table(columns, cells, whole=whole))
    elif cells:
        print_text("\n".join("\t".join(row) for row in cells))


def print_rows(
    rows: Sequence[Mapping[str, str | None]], columns: Sequence[str], *, empty: str, whole: bool = False
) -> None:
    """Some fields of the rows a function answered, as a table; or a note that there are none."""
    if rows:
        print_table(columns, ([row[column] for column in columns] for row in rows), whole=whole)
    else:
        note(empty)


def print_markdown(body: str) -> None:
    """A document: rendered on a terminal, verbatim in a pipe."""
    if sys.stdout.isatty():
        from rich.markdown import Markdown

        # A link shows where it leads instead of hiding it.
        _print_rich(Markdown(_harmless(body), hyperlinks=False))
        return
    # Bytes, because the document is UTF-8 whatever this machine prefers, and its line ends are its own.
    sys.stdout.buffer.write(body.encode("utf-8", "backslashreplace"))
    sys.stdout.flush()


def _rich_table(columns: Sequence[str], cells: list[list[str]], *, whole: bool) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for at, name in enumerate(columns):
        # The first column is what one types again: it gives way last.
        table.add_column(name.upper(), no_wrap=at == 0, overflow="fold")
    for row in cells:
        # Text, because a plain string would be read as rich's own markup.
        table.add_row(
            *(Text(cell, no_wrap=not whole, overflow=None if whole else "ellipsis") for cell in row)
        )
    return table


def _print_rich(content: RenderableType) -> None:
    from rich.console import Console
    from rich.segment import Segment, Segments

    console = Console(highlight=False)
    # Once more, on what was rendered: markdown has its own ways of writing a character.
    segments = [
        Segment(_harmless(segment.text), segment.style, segment.control)
        for segment in console.render(content)
    ]
    drawn = Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system=console.color_system,  # pyright: ignore[reportArgumentType] (it is one of those names)
        width=console.width,
        highlight=False,
        no_color=console.no_color,
    )
    with drawn.capture() as text:
        drawn.print(Segments(segments), end="")
    _page(text.get())


def _page(text: str) -> None:
    """On the screen if it fits, else through the pager."""
    if text.count("\n") < shutil.get_terminal_size().lines:
        click.echo(text.rstrip("\n"), color=True)
    else:
        click.echo_via_pager(text, color=True)


def _harmless(text: str) -> str:
    """Text of several lines with nothing in it that acts on a terminal."""
    lines = text.expandtabs(4).replace("\r\n", "\n").split("\n")
    return "\n".join(map(escaped, lines))
