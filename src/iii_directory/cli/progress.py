"""How far long work is: a bar on a terminal, lines in the log otherwise."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from iii_directory.cli.common import log
from iii_directory.text import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from iii_directory.install.tree import Progress

_LINE_SECONDS: Final = 1.0


@contextmanager
def progress_shown(say: Callable[[str], str], *, is_quiet: bool = False) -> Generator[Progress]:
    """Give something to report progress to; ``say`` puts a phase into words.

    With ``is_quiet`` nothing is drawn, because questions are asked meanwhile.
    """
    if is_quiet:
        yield lambda _phase, _done, _total: None
        return
    if not sys.stderr.isatty():
        yield _lines(say)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    # The words may hold an address somebody typed, which is no markup.
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(phase: str, done: int, total: int) -> None:
            bar.update(task, description=escaped(say(phase)), completed=done, total=total or None)

        yield show


def _lines(say: Callable[[str], str]) -> Progress:
    """A line for the start and the end of a phase, and now and then between them."""
    last = 0.0

    def show(phase: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done in (0, total) or now - last >= _LINE_SECONDS:
            last = now
            log.info("%s%s", say(phase), f" ({done} of {total})" if total else "")

    return show
