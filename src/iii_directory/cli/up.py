"""``iii-directory up``: everything with one command."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from iii_directory.cli.common import (
    config_option,
    engine_token,
    engine_url,
    fail,
    set_up_log,
    settings_from,
    url_option,
)
from iii_directory.cli.mcp import http_port_option, start_beside
from iii_directory.config import DEFAULT_URL

if TYPE_CHECKING:
    from iii_directory.config import Settings
    from iii_directory.engine.server import EngineServer
    from iii_directory.worker.main import DirectoryWorker

READY_SECONDS = 20.0


@click.command(
    help="Join the engine at the address if one answers, else start the embedded one there; then the worker."
)
@config_option
@url_option
@click.option("--port", type=click.IntRange(1, 65535), help="The same as --url ws://127.0.0.1:PORT.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the embedded engine keeps state.  [default: data, beside the configuration]",
)
@click.option("--in-memory", is_flag=True, help="Keep state in memory only.")
@click.option(
    "--skills-folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of skills and prompts, instead of the configured one.",
)
@http_port_option
def command(
    config_path: Path,
    url: str | None,
    port: int | None,
    data: Path | None,
    in_memory: bool,
    skills_folder: Path | None,
    http_port: int,
) -> None:
    set_up_log()
    if url is not None and port is not None:
        fail("--url and --port say the same thing; give one of them", code=2)
    address = f"ws://127.0.0.1:{port}" if port is not None else engine_url(url)
    settings = settings_from(config_path)
    if skills_folder is not None:
        settings = replace(settings, skills_folder=skills_folder.expanduser().resolve())
    directory = None if in_memory else data or config_path.parent / "data"
    asyncio.run(_up(settings, address, directory, http_port))


async def _up(settings: Settings, url: str, data: Path | None, http_port: int) -> None:
    from iii_directory.cli.running import stop_signal

    stopped = stop_signal()
    token = engine_token()
    server, worker = await _engine_and_worker(settings, url, token, data)
    address = server.url if server else url
    await asyncio.to_thread(worker.wait_ready, READY_SECONDS)
    beside = await start_beside(address, http_port, inside=server)
    summary = await asyncio.to_thread(worker.summary)
    click.echo(_welcome(server, address, data, settings, summary, beside[1] if beside else None))
    await stopped.wait()
    click.echo("stopping")
    if beside is not None:
        await asyncio.to_thread(beside[0].close)
    await asyncio.to_thread(worker.stop)
    if server is not None:
        await server.stop()


async def _engine_and_worker(
    settings: Settings, url: str, token: str | None, data: Path | None
) -> tuple[EngineServer | None, DirectoryWorker]:
    """The worker on the engine that answers at the address, else inside one that is started there."""
    from iii_directory.cli.running import listen, new_engine, open_database
    from iii_directory.worker.main import DirectoryWorker, bus_inside

    if await _engine_answers(url, token):
        return None, await asyncio.to_thread(DirectoryWorker.started, settings, url, token=token)
    host, port = _loopback_address(url)
    server = new_engine(settings, host=host, port=port, token=token, database=open_database(data))
    # Before it listens, so that no other worker takes this one's place.
    bus = bus_inside(server)
    await listen(server)
    return server, await asyncio.to_thread(DirectoryWorker.started_on, bus, settings)


async def _engine_answers(url: str, token: str | None) -> bool:
    from iii_directory.bus.client import EngineUnreachableError, probe

    try:
        return await asyncio.to_thread(probe, url, token=token)
    except EngineUnreachableError as error:
        fail(str(error))


def _loopback_address(url: str) -> tuple[str, int]:
    from iii_directory.access.policy import is_loopback

    parts = urlsplit(url)
    host, port = parts.hostname or "127.0.0.1", parts.port or (443 if parts.scheme == "wss" else 80)
    if parts.scheme == "wss" or not is_loopback(host):
        fail(f"no iii engine answers at {url}; an embedded one is started only on this machine's loopback")
    return host, port


def _welcome(
    server: EngineServer | None,
    url: str,
    data: Path | None,
    settings: Settings,
    summary: str,
    mcp_url: str | None,
) -> str:
    if server is None:
        engine = f"{url} (already there)"
    else:
        engine = f"{url} (embedded, state {f'in {data}' if data else 'in memory only'})"
    elsewhere = "" if url == DEFAULT_URL else f" --url {url}"
    return "\n".join(
        (
            f"engine   {engine}",
            f"worker   {summary}",
            f"folder   {settings.skills_folder}",
            *((f"mcp      {mcp_url}",) if mcp_url else ()),
            "",
            "Try in another terminal:",
            f"  iii-directory trigger directory::skills::index{elsewhere}",
            f"  iii-directory trigger directory::skills::get id=iii-directory{elsewhere}",
            "Ctrl-C stops everything.",
        )
    )
