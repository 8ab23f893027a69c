"""What is seen on a terminal: tables as wide as it is, colour where it helps, and the pager for what is long.

``NO_COLOR`` and a dumb terminal get letters alone. The pager is ``$PAGER``, else less, told by ``LESS=-FRX``
(as git does) to show our colours and to leave when everything fits; ``--no-pager`` does without.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from iii_directory.text import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType
    from rich.text import Text

_GAP: Final = "  "
_LEAST: Final = 20
_COMMIT: Final = re.compile(r"\b[0-9a-f]{40}\b")
_COMMIT_CHARS: Final = 9
_STATES: Final = {
    **dict.fromkeys(("clean", "current", "installed", "updated", "restored", "removed", "ok"), "green"),
    **dict.fromkeys(("edited", "outdated", "warning", "skipped"), "yellow"),
    **dict.fromkeys(("failed", "missing", "error"), "red"),
}
"""Words of the columns ``status`` and ``kind`` that have a colour."""
_PATCH_STYLES: Final = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))


def no_pager_option(command: click.decorators.FC) -> click.decorators.FC:
    """``--no-pager``, for commands that may show more than fits."""

    def chosen(_context: click.Context, _option: click.Parameter, value: bool) -> None:
        if value:
            use_no_pager()

    return click.option(
        "--no-pager",
        is_flag=True,
        expose_value=False,
        callback=chosen,
        help="Print everything at once, also what is longer than the screen.",
    )(command)


def use_no_pager() -> None:
    """From now on, as if the person had asked for none."""
    os.environ["PAGER"] = "cat"


def show_table(columns: Sequence[str], cells: Sequence[Sequence[str]], *, whole: bool) -> None:
    """Harmless cells under headings: a line each, or every word of them."""
    short = [[with_short_commits(cell) for cell in row] for row in cells]
    _show(_wrapped(columns, short) if whole else _lines(columns, short))


def with_short_commits(text: str) -> str:
    """The text with the ids of commits as people write them."""
    return _COMMIT.sub(lambda found: found[0][:_COMMIT_CHARS], text)


def show_markdown(body: str) -> None:
    from rich.markdown import Markdown

    # A link shows where it leads instead of hiding it.
    _show(Markdown(_harmless(body), hyperlinks=False))


def show_patch(patch: str) -> None:
    from rich.text import Text

    def styled(line: str) -> Text:
        style = next((style for start, style in _PATCH_STYLES if line.startswith(start)), "")
        return Text(line, style=style)

    _show(Text("\n").join(map(styled, _harmless(patch.rstrip("\n")).split("\n"))))


def show_lines(lines: Iterable[Text]) -> None:
    """Show styled lines, wrapped where the terminal is full."""
    from rich.text import Text

    _show(Text("\n").join(lines))


def show_text(text: str) -> None:
    """Somebody's text as it is, but harmless."""
    from rich.text import Text

    _show(Text(_harmless(text)))


def column_widths(natural: Sequence[int], available: int, *, gap: int) -> list[int]:
    """How wide the columns of a table with a line for each row are; the last ones may have no place.

    The first column has what one types again. It takes what it needs, up to half of the width when there are
    others; the others are never cut below ``_LEAST`` characters. What is left goes to those that need more.
    """
    first = min(natural[0], max(_LEAST, available // 2 if len(natural) > 1 else available))
    widths = [first]
    left = available - first
    for wanted in natural[1:]:
        least = min(wanted, _LEAST)
        if left < gap + least:
            break
        widths.append(least)
        left -= gap + least
    needy = [at for at in range(1, len(widths)) if widths[at] < natural[at]]
    while needy and left > 0:
        for at in needy[:left]:
            widths[at] += 1
        left -= min(left, len(needy))
        needy = [at for at in needy if widths[at] < natural[at]]
    widths[0] = min(natural[0], first + left)
    return widths


def _wrapped(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for at, name in enumerate(columns):
        # The first column is what one types again: it gives way last.
        table.add_column(name.upper(), no_wrap=at == 0, overflow="fold")
    for row in cells:
        # Text, because a plain string would be read as rich's own markup.
        styles = _styles(columns, row)
        table.add_row(*(Text(cell, style=style) for cell, style in zip(row, styles, strict=True)))
    return table


def _lines(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> RenderableType:
    """A line for each row. An id that is longer than its column has a line to itself: it is never cut."""
    from rich.cells import cell_len
    from rich.text import Text

    heads = [name.upper() for name in columns]
    natural = [max(cell_len(row[at]) for row in (heads, *cells)) for at in range(len(columns))]
    widths = column_widths(natural, shutil.get_terminal_size().columns, gap=len(_GAP))

    def drawn(row: Sequence[str], styles: Sequence[str]) -> Iterator[Text]:
        first, *rest = (Text(cell, style=style) for cell, style in zip(row, styles, strict=True))
        if first.cell_len > widths[0]:
            yield first
            first = Text()
        parts = [first, *rest][: len(widths)]
        for part, width in zip(parts, widths, strict=True):
            part.truncate(width, overflow="ellipsis", pad=True)
        line = Text(_GAP).join(parts)
        line.rstrip()
        if line.plain:
            yield line

    found = list(drawn(heads, ["bold"] * len(heads)))
    for row in cells:
        found.extend(drawn(row, _styles(columns, row)))
    return Text("\n", no_wrap=True, overflow="fold").join(found)


def _styles(columns: Sequence[str], row: Sequence[str]) -> list[str]:
    return [
        _STATES.get(cell, "") if name in ("status", "kind") else "cyan" if at == 0 else ""
        for at, (name, cell) in enumerate(zip(columns, row, strict=True))
    ]


def _show(content: RenderableType) -> None:
    from rich.console import Console
    from rich.segment import Segment, Segments

    console = Console(highlight=False)
    # Once more, on what was rendered: markdown has its own ways of writing a character.
    segments = [
        Segment(_harmless(segment.text), segment.style, segment.control)
        for segment in console.render(content)
    ]
    colours: Any = None if os.environ.get("NO_COLOR") else console.color_system
    drawn = Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system=colours,
        width=console.width,
        highlight=False,
    )
    with drawn.capture() as text:
        drawn.print(Segments(segments), end="")
    _page(text.get())


def _page(text: str) -> None:
    """On the screen if it fits or nobody wants a pager, else through that."""
    fits = text.count("\n") < shutil.get_terminal_size().lines
    if fits or os.environ.get("PAGER") in ("", "cat") or not sys.stdin.isatty():
        click.echo(text.rstrip("\n"), color=True)
        return
    os.environ.setdefault("LESS", "-FRX")
    # click knows which pagers take colours, by their options, and sends the others none.
    click.echo_via_pager(text)


def _harmless(text: str) -> str:
    """Text of several lines with nothing in it that acts on a terminal."""
    lines = text.expandtabs(4).replace("\r\n", "\n").split("\n")
    return "\n".join(map(escaped, lines))
