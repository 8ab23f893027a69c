"""``iii-directory serve``, and bare ``iii-directory``: the worker alone."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from iii_directory.cli.common import (
    CONNECT_SECONDS,
    EXIT_CODES,
    config_option,
    default_data,
    engine_url,
    is_named,
    program,
    set_up_log,
    settings_from,
    url_option,
)
from iii_directory.cli.output import say
from iii_directory.cli.runs import Run, announced
from iii_directory.cli.tokens import engine_token
from iii_directory.config import at_next_start, real_path
from iii_directory.text import shown_url

if TYPE_CHECKING:
    from pathlib import Path

    from iii_directory.config import Settings
    from iii_directory.worker.main import DirectoryWorker

_LOOK_SECONDS: Final = 0.5


@click.command(
    help="Run the worker on an engine that is already there; it waits and reconnects if it is not.",
    epilog=EXIT_CODES,
)
@config_option
@url_option
def command(config_path: Path, url: str | None) -> None:
    set_up_log()
    settings, address = settings_from(config_path), engine_url(url)
    asyncio.run(_serve(settings, real_path(config_path), address, named=is_named(url)))


async def _serve(settings: Settings, config: Path, url: str, *, named: bool) -> None:
    from iii_directory.cli.running import end_on_ctrl_c, reread_on_hangup, stop_signal

    end_on_ctrl_c()
    from iii_directory.worker.main import DirectoryWorker

    token = engine_token(url, config.parent, named=named)
    data = default_data(config.parent, settings.skills_folder)
    worker = await asyncio.to_thread(
        DirectoryWorker.join, settings, url, token=token, config=config, data=data
    )
    stopped = stop_signal()
    reread_on_hangup(worker.reread_settings, stopped)
    say(f"worker iii-directory for the engine at {shown_url(url)}. Ctrl-C stops it.")
    data = default_data(config.parent, settings.skills_folder)
    with announced(_run(settings, config.parent, url, worker), data):
        # Not by waiting in a thread, which Ctrl-C would have to wait for.
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), CONNECT_SECONDS)
        if not stopped.is_set() and not await asyncio.to_thread(worker.wait_ready, _LOOK_SECONDS):
            say(await asyncio.to_thread(_what_is_waited_for, url, token))
        await stopped.wait()
    await asyncio.to_thread(worker.stop)
    say("stopped")


def _run(settings: Settings, home: Path, url: str, worker: DirectoryWorker) -> Run:
    return Run(
        pid=os.getpid(),
        home=str(home),
        url=url,
        embedded=False,
        skills_folder=str(settings.skills_folder),
        data=None,
        mcp=None,
        at_start=at_next_start(settings),
        instance=worker.instance,
        secret=worker.secret,
    )


def _what_is_waited_for(url: str, token: str | None) -> str:
    """Why the worker has not joined yet, and what to do."""
    from iii_directory.bus.client import EngineUnreachableError, probe

    try:
        there = probe(url, token=token)
    except EngineUnreachableError as error:
        return f"waiting: {error}"
    if there:
        return f"waiting: the engine at {shown_url(url)} answers, but not for this worker yet"
    return f"waiting for an engine at {shown_url(url)}; start one: {program()} engine"
