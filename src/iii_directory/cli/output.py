"""Show results: drawn on a terminal, as plain text in a pipe, or as JSON.

Documents are other people's text. On a terminal and in every list, characters that could act on a terminal or
hide from the eye are escaped; in a pipe a document's body is written unchanged. rich is imported only for a
terminal. ``NO_COLOR`` and a dumb terminal get no colours. The pager is ``$PAGER``, else less with
``LESS=-FRX`` (as git sets it), which shows colours and leaves when everything fits on the screen.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from iii_directory.documents.model import Provenance
from iii_directory.shapes import is_object
from iii_directory.text import cut_at_word, escaped, has_unsafe, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text

_GAP: Final = "  "
_LEAST_COLUMN: Final = 20
_COMMIT: Final = re.compile(r"\b[0-9a-f]{40}\b")
_COMMIT_CHARS: Final = 9
# Colours of words in the columns `status` and `kind`.
_STATES: Final = {
    **dict.fromkeys(("clean", "current", "installed", "updated", "restored", "removed", "ok"), "green"),
    **dict.fromkeys(("edited", "outdated", "warning", "skipped"), "yellow"),
    **dict.fromkeys(("failed", "missing", "error"), "red"),
}
_PATCH_STYLES: Final = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))


def _choose_pager(_context: click.Context, _option: click.Parameter, is_off: bool) -> None:
    if is_off:
        os.environ["PAGER"] = "cat"


# For commands that may print more than fits on the screen.
no_pager_option = click.option(
    "--no-pager",
    is_flag=True,
    expose_value=False,
    callback=_choose_pager,
    help="Print long output at once instead of page by page.",
)


def note(sentence: str) -> None:
    """Print a remark on stderr; the command goes on."""
    click.echo(f"iii-directory: {escaped(sentence)}", err=True)


def say(lines: str, *, err: bool = False) -> None:
    """Print lines of this program, escaped so that text quoted in them cannot act on a terminal."""
    click.echo("\n".join(map(escaped, lines.split("\n"))), err=err)


def json_text(value: Any, indent: int | None = 2) -> str:
    """Render a value as JSON; in ASCII alone if it holds characters that act on a terminal or hide."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return json.dumps(value, indent=indent) if has_unsafe(text.replace("\n", "")) else text


def print_json(value: Any) -> None:
    print_text(json_text(value))


def print_text(text: str) -> None:
    """Print text and a newline; characters that the output's encoding lacks become escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding))


def print_place(path: str) -> None:
    """Print a path of this machine: escaped on a terminal, its exact bytes in a pipe."""
    if sys.stdout.isatty():
        print_text(escaped(path))
    else:
        sys.stdout.buffer.write(os.fsencode(f"{path}\n"))
        sys.stdout.flush()


def _print_verbatim(text: str) -> None:
    # Bytes, because a document is UTF-8 whatever this machine prefers, and its line ends are its own.
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.flush()


def print_string(text: str) -> None:
    """Print one string and a newline: escaped and paged on a terminal, verbatim in a pipe."""
    ended = text if text.endswith("\n") else f"{text}\n"
    if not sys.stdout.isatty():
        _print_verbatim(ended)
        return
    from rich.text import Text

    # Lines stay whole, because the text may be code that someone copies.
    _show(Text(_escaped_lines(ended), no_wrap=True, overflow="ignore"))


def print_markdown(body: str) -> None:
    """Print a document: rendered on a terminal, verbatim in a pipe."""
    if not sys.stdout.isatty():
        _print_verbatim(body)
        return
    from rich.markdown import CodeBlock, Markdown
    from rich.syntax import Syntax

    class DrawnCode(CodeBlock):
        """Draws code in the terminal's own colours, and without breaking or padding its lines."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
            code = Syntax("", self.lexer_name, theme="ansi_dark").highlight(str(self.text).rstrip())
            code.no_wrap, code.overflow = True, "ignore"
            yield code

    class DrawnMarkdown(Markdown):
        elements = Markdown.elements | {"fence": DrawnCode, "code_block": DrawnCode}

    # Without hyperlinks a link shows its address instead of hiding it.
    _show(DrawnMarkdown(_escaped_lines(body), hyperlinks=False))


def print_patch(patch: str) -> None:
    """Print a diff: in the usual colours on a terminal, verbatim in a pipe."""
    if not sys.stdout.isatty():
        _print_verbatim(patch)
        return
    from rich.text import Text

    drawn = Text(no_wrap=True, overflow="ignore")
    for line in _escaped_lines(patch.rstrip("\n")).split("\n"):
        style = next((style for start, style in _PATCH_STYLES if line.startswith(start)), "")
        drawn.append(f"{line}\n", style=style)
    _show(drawn)


def show_lines(lines: Iterable[tuple[int, Text]]) -> None:
    """Show styled lines on a terminal, each wrapped at its edge and indented by so many columns."""
    from rich.console import Group
    from rich.padding import Padding

    _show(Group(*(Padding(line, (0, 0, 0, indent)) for indent, line in lines)))


def shown_commit(resolved: str) -> str:
    """Shorten commit ids in ``resolved`` on a terminal; a pipe gets them whole."""
    return _COMMIT.sub(lambda found: found[0][:_COMMIT_CHARS], resolved) if sys.stdout.isatty() else resolved


# Tables


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str | None]], *, whole: bool = False) -> None:
    """Print rows: on a terminal under headings, in a pipe one line each with tabs between the cells.

    On a terminal a row is one line, cut at the edge, unless ``whole`` asks for every word.
    """
    cells = [[escaped(one_line(cell or "")) for cell in row] for row in rows]
    if sys.stdout.isatty():
        short = [list(map(shown_commit, row)) for row in cells]
        _show(_wrapped(columns, short) if whole else _one_line_each(columns, short))
    elif cells:
        print_text("\n".join("\t".join(row) for row in cells))


def print_rows(
    rows: Sequence[Mapping[str, str | int | None]], columns: Sequence[str], *, empty: str, whole: bool = False
) -> None:
    """Print some fields of a reply's rows as a table, or the note ``empty`` without rows."""
    if rows:
        values = ([row[column] for column in columns] for row in rows)
        cells = ([str(value) if isinstance(value, int) else value for value in row] for row in values)
        print_table(columns, cells, whole=whole)
    else:
        note(empty)


def with_sources(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Add a column ``source`` to the rows of a reply, with the mark of each row's provenance."""
    # On a terminal other columns need the room that the usual beginning of an address takes.
    usual = "installed from https://github.com/" if sys.stdout.isatty() else ""
    return [{**row, "source": source_of(row).removeprefix(usual)} for row in rows]


def note_source(reply: Mapping[str, Any]) -> None:
    """Say on stderr where a document comes from, unless it is a file of the operator."""
    shown = reply.get("provenance")
    if is_object(shown) and shown.get("kind") != "file":
        note(source_of(reply))


def source_of(reply: Mapping[str, Any]) -> str:
    """Return the mark of the provenance in a reply; empty if the engine's directory sends no provenance."""
    shown = reply.get("provenance")
    return Provenance.parse(shown).mark() if is_object(shown) else ""


def _wrapped(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    first = max(len(row[0]) for row in cells) if cells else 0
    for at, name in enumerate(columns):
        # The first column is what people type again, so it is narrowed last, unless it holds sentences.
        no_wrap = at == 0 and first <= shutil.get_terminal_size().columns // 2
        table.add_column(name.upper(), no_wrap=no_wrap, overflow="fold")
    for row in cells:
        # Text, because a plain string would be read as rich's own markup.
        styles = _styles(columns, row)
        table.add_row(*(Text(cell, style=style) for cell, style in zip(row, styles, strict=True)))
    return table


def _one_line_each(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> RenderableType:
    """Draw one line per row. An id that is longer than its column has a line to itself: ids are never cut.

    ``rich.table`` cuts or breaks such ids, leaves out no column, and takes 1.2 s for 1,000 rows (this: 0.18).
    """
    from rich.cells import cell_len
    from rich.text import Text

    heads = [name.upper() for name in columns]
    natural = [max(cell_len(row[at]) for row in (heads, *cells)) for at in range(len(columns))]
    widths = _column_widths(natural, shutil.get_terminal_size().columns)

    def draw(row: Sequence[str], styles: Sequence[str]) -> Iterator[Text]:
        first, *rest = (Text(cell, style=style) for cell, style in zip(row, styles, strict=True))
        if first.cell_len > widths[0]:
            yield first
            first = Text()
        parts = [first, *rest][: len(widths)]
        for at, (part, width) in enumerate(zip(parts, widths, strict=True)):
            if at and part.cell_len > width:
                part.plain = cut_at_word(part.plain, width)
            part.truncate(width, overflow="ellipsis", pad=True)
        line = Text(_GAP).join(parts)
        line.rstrip()
        if line.plain:
            yield line

    lines = list(draw(heads, ["bold"] * len(heads)))
    for row in cells:
        lines.extend(draw(row, _styles(columns, row)))
    return Text("\n", no_wrap=True, overflow="fold").join(lines)


def _column_widths(natural: Sequence[int], available: int) -> list[int]:
    """Divide the terminal's width among the columns; the last columns are left out where they do not fit.

    The first column, which people type again, takes what it needs up to half of the width. Each other one has
    at least ``_LEAST_COLUMN`` characters or what it needs, and those that need more share what is left.
    """
    first = min(natural[0], max(_LEAST_COLUMN, available // 2 if len(natural) > 1 else available))
    widths = [first]
    left = available - first
    for wanted in natural[1:]:
        least = min(wanted, _LEAST_COLUMN)
        if left < len(_GAP) + least:
            break
        widths.append(least)
        left -= len(_GAP) + least
    # One character at a time, so that columns of different lengths end equally wide.
    needy = [at for at in range(1, len(widths)) if widths[at] < natural[at]]
    while needy and left > 0:
        for at in needy[:left]:
            widths[at] += 1
        left -= min(left, len(needy))
        needy = [at for at in needy if widths[at] < natural[at]]
    widths[0] = min(natural[0], first + left)
    return widths


def _styles(columns: Sequence[str], row: Sequence[str]) -> list[str]:
    return [
        _STATES.get(cell, "") if name in ("status", "kind") else "cyan" if at == 0 else ""
        for at, (name, cell) in enumerate(zip(columns, row, strict=True))
    ]


# The screen


def _show(content: RenderableType) -> None:
    from rich.console import Console
    from rich.segment import Segment, Segments

    console = Console(highlight=False)
    # Escape once more what was rendered: markdown can write a character as an entity.
    segments = [
        Segment(_escaped_lines(segment.text), segment.style, segment.control)
        for segment in console.render(content)
    ]
    colours: Any = None if os.environ.get("NO_COLOR") else console.color_system
    drawn = Console(
        file=io.StringIO(), force_terminal=True, color_system=colours, width=console.width, highlight=False
    )
    with drawn.capture() as captured:
        drawn.print(Segments(segments), end="", crop=False)
    # Tables fill their lines with blanks, which would be copied along.
    text = "\n".join(line.rstrip(" ") for line in captured.get().split("\n"))
    fits = text.count("\n") < shutil.get_terminal_size().lines
    if fits or os.environ.get("PAGER") in ("", "cat") or not sys.stdin.isatty():
        click.echo(text.rstrip("\n"), color=True)
        return
    os.environ.setdefault("LESS", "-FRX")
    # click knows by their options which pagers show colours, and removes the colours for the others.
    click.echo_via_pager(text)


def _escaped_lines(text: str) -> str:
    lines = text.expandtabs(4).replace("\r\n", "\n").split("\n")
    return "\n".join(map(escaped, lines))
