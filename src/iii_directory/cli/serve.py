"""``iii-directory serve``, and bare ``iii-directory``: the worker alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from iii_directory.cli.common import (
    config_option,
    engine_token,
    engine_url,
    set_up_log,
    settings_from,
    url_option,
)

if TYPE_CHECKING:
    from pathlib import Path

    from iii_directory.config import Settings


@click.command(
    help="Run the worker on an engine that is already there; it waits and reconnects if it is not."
)
@config_option
@url_option
def command(config_path: Path, url: str | None) -> None:
    set_up_log()
    asyncio.run(_serve(settings_from(config_path), engine_url(url)))


async def _serve(settings: Settings, url: str) -> None:
    from iii_directory.cli.running import stop_signal
    from iii_directory.worker.main import DirectoryWorker

    stopped = stop_signal()
    worker = await asyncio.to_thread(DirectoryWorker.started, settings, url, token=engine_token())
    click.echo(f"worker iii-directory for the engine at {url}. Ctrl-C stops it.")
    await stopped.wait()
    await asyncio.to_thread(worker.stop)
    click.echo("stopped")
