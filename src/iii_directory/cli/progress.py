"""How far long work is: a bar on a terminal, lines in the log otherwise."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from iii_directory.cli.common import log
from iii_directory.text import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from rich.progress import Progress as Bar

    from iii_directory.install.bundle import Approve
    from iii_directory.install.tree import Progress

_LINE_SECONDS: Final = 1.0


@contextmanager
def progress_shown(
    say: Callable[[str], str], approve: Approve | None = None
) -> Generator[tuple[Progress, Approve | None]]:
    """Give a function to report progress to, and ``approve`` such that no bar is drawn while it asks.

    ``say`` puts a phase into words.
    """
    if not sys.stderr.isatty():
        yield _lines(say), approve
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    # The words may hold an address that a person typed; it must not be read as markup.
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(phase: str, done: int, total: int) -> None:
            bar.update(task, description=escaped(say(phase)), completed=done, total=total or None)

        yield show, approve and _below_no_bar(bar, approve)


def _below_no_bar(bar: Bar, approve: Approve) -> Approve:
    """Ask one question at a time, with the bar taken off the terminal meanwhile."""
    turn = threading.Lock()

    def ask(name: str, news: Mapping[str, list[str]]) -> bool:
        with turn:
            bar.stop()
            answer = approve(name, news)
            bar.start()
        return answer

    return ask


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
