"""``iii-directory up``: engine, worker, web page and MCP endpoint with one command."""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import click

from iii_directory.cli import common, processes, tokens
from iii_directory.cli.common import FOLDER
from iii_directory.cli.mcp_commands import DEFAULT_HOST, DEFAULT_PORT, http_options, start_beside
from iii_directory.cli.output import say
from iii_directory.config import DEFAULT_URL, at_next_start, real_path
from iii_directory.text import shown_url
from iii_directory.wire.access import is_loopback

if TYPE_CHECKING:
    from pathlib import Path

    from iii_directory.cli.mcp_commands import Beside
    from iii_directory.config import Settings
    from iii_directory.engine.server import EngineServer
    from iii_directory.shapes import Json
    from iii_directory.worker.directory_worker import DirectoryWorker

READY_SECONDS: Final = 20.0
PORTS_TRIED: Final = 20


class UpOptions(NamedTuple):
    """What the command line and the configuration ask for."""

    settings: Settings
    config: Path
    url: str | None
    """The engine's address if one was named; otherwise another free address may be taken."""
    host: str | None
    data: Path | None
    http_host: str
    http_port: int | None
    rule: tokens.TokenRule
    """The token that the engine and /mcp require, if they are started here."""
    allow_changes: bool
    """Whether the web page may install, update and remove."""
    at_start: Json
    """The settings that only a start applies, as the file alone has them."""


class EngineAddress(NamedTuple):
    """Where the worker is to run."""

    url: str
    engine_answers: bool = False
    token: str | None = None
    """The token to send to the engine that answers."""
    owner: str | None = None
    """The directory that answers there already, in words."""


class RunningDirectory(NamedTuple):
    """Everything that was started, and has to be stopped."""

    address: EngineAddress
    server: EngineServer | None
    worker: DirectoryWorker
    beside: Beside | None
    summary: str

    async def stop(self) -> None:
        if self.beside is not None:
            await self.beside.stop()
        await asyncio.to_thread(self.worker.stop)
        if self.server is not None:
            await self.server.stop()


@click.command(
    help="Run the directory of this folder: join the engine at the address if one answers, else start the "
    "embedded engine there. If another folder's directory already uses the default address, the next free "
    "port is taken.",
)
@common.config_option
@common.url_option
@click.option("--port", type=click.IntRange(1, 65535), help="Short for --url ws://127.0.0.1:PORT.")
@tokens.engine_options
@click.option(
    "--skills-folder", type=FOLDER, help="The folder of skills and prompts, instead of the configured one."
)
@http_options(fixed_port=False)
@click.option(
    "--allow-changes", is_flag=True, help="Let the web page install, update and remove published skills."
)
def command(
    config_path: Path,
    url: str | None,
    port: int | None,
    host: str | None,
    data: Path | None,
    in_memory: bool,
    token: str | None,
    skills_folder: Path | None,
    http_port: int | None,
    http_host: str,
    allow_changes: bool,
) -> None:
    common.set_up_log()
    if url is not None and (port is not None or host is not None):
        common.fail("--url says where the engine is; leave --port and --host out", code=2)
    if port is not None or host is not None:
        named: str | None = f"ws://127.0.0.1:{port or urlsplit(DEFAULT_URL).port}"
    else:
        named = common.engine_url(url) if common.is_named(url) else None
    settings = common.settings_from(config_path)
    at_start = at_next_start(settings)
    if skills_folder is not None:
        settings = replace(settings, skills_folder=real_path(skills_folder.expanduser()))
    kept = None if in_memory else data or common.default_data(config_path.parent, settings.skills_folder)
    rule = tokens.rule_for(token, kept)
    if not rule.token and not is_loopback(http_host):
        common.fail(f"serving /mcp on {http_host} needs a token: pass --token auto, or set III_TOKEN", code=2)
    options = UpOptions(
        settings=settings,
        config=real_path(config_path),
        url=named,
        host=host,
        data=kept,
        http_host=http_host,
        http_port=http_port,
        rule=rule,
        allow_changes=allow_changes,
        at_start=at_start,
    )
    asyncio.run(_up(options))


async def _up(options: UpOptions) -> None:
    processes.end_on_ctrl_c()
    # The worker has already logged what the bridge would log about the connection.
    common.log.getChild("mcp").setLevel("WARNING")
    running = await _start(options)
    stopped = processes.stop_signal()
    processes.reread_on_hangup(running.worker.reread_settings, stopped)
    run = processes.Run(
        pid=os.getpid(),
        home=str(options.config.parent),
        url=running.address.url,
        embedded=running.server is not None,
        skills_folder=str(options.settings.skills_folder),
        data=str(real_path(options.data)) if options.data and running.server else None,
        mcp=running.beside.url if running.beside else None,
        at_start=options.at_start,
        instance=running.worker.instance,
        secret=running.worker.secret,
    )
    with processes.announced(run, common.default_data(options.config.parent, options.settings.skills_folder)):
        say(_welcome(options, running))
        await stopped.wait()
        say("stopping")
        await running.stop()


async def _start(options: UpOptions) -> RunningDirectory:
    address = await _address(options)
    server, worker = await _engine_and_worker(options, address)
    if address.owner is not None:
        return RunningDirectory(address, server, worker, None, f"waits until {address.owner} leaves")
    if not await asyncio.to_thread(worker.wait_ready, READY_SECONDS):
        await RunningDirectory(address, server, worker, None, "").stop()
        common.fail(
            f"the worker does not answer on the engine at {shown_url(address.url)}; "
            f"it was given {READY_SECONDS:g} seconds"
        )
    port = _first_free(options.http_host, DEFAULT_PORT) if options.http_port is None else options.http_port
    beside = await start_beside(
        address.url,
        address.token,
        port,
        options.rule,
        host=options.http_host,
        inside=server,
        secret=worker.secret,
        allow_changes=options.allow_changes,
    )
    return RunningDirectory(address, server, worker, beside, await asyncio.to_thread(worker.summary))


async def _address(options: UpOptions) -> EngineAddress:
    """Choose the named address, else the default one, or the next free port if a directory has that one."""
    url = options.url or DEFAULT_URL
    if options.host is not None:
        return EngineAddress(url)
    if options.url is None and (own := processes.run_of(options.config.parent)) is not None:
        common.fail(
            f"the directory of {own.home} runs already, at {shown_url(own.url)} (pid {own.pid}); "
            "stop it first, or pass --port to run another beside it"
        )
    run = processes.directory_at(url)
    owner, token = f"the directory of {run.home} (pid {run.pid})" if run else None, None
    if options.url is not None or owner is None:
        # Look first: where nothing listens, a withheld token is not worth a warning.
        if options.url is None and not common.listens(url):
            return EngineAddress(url)
        from iii_directory.bus.client import EngineUnreachableError, probe

        named = options.url is not None
        # A generated token is only for an engine of our own.
        if options.rule.token and not options.rule.kept_in:
            token = tokens.withheld_from_strangers(url, options.rule.token, named=named)
        else:
            token = tokens.engine_token(url, options.config.parent, named=named)
        try:
            if not await asyncio.to_thread(probe, url, token=token):
                return EngineAddress(url)
        except EngineUnreachableError as error:
            common.fail(str(error))
        owner = owner or await asyncio.to_thread(_directory_at, url, token)
    if options.url is not None or owner is None:
        return EngineAddress(url, engine_answers=True, token=token, owner=owner)
    free = f"ws://127.0.0.1:{_first_free(DEFAULT_HOST, (urlsplit(url).port or 0) + 1)}"
    common.log.info("%s has %s; this one takes %s", owner, url, free)
    return EngineAddress(free)


def _directory_at(url: str, token: str | None) -> str | None:
    """Ask the engine whether it has a directory that wrote no run file here, such as another user's."""
    from iii_directory.bus.client import EngineUnreachableError, RemoteError, call_function

    try:
        call_function(url, "directory::skills::index", {}, timeout=common.CONNECT_SECONDS, token=token)
    except (EngineUnreachableError, RemoteError):
        return None
    return f"the directory at {shown_url(url)}"


def _first_free(host: str, port: int) -> int:
    """Find the first free port from ``port`` on; if all that are tried are taken, return ``port`` itself."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in range(port, port + PORTS_TRIED):
        with socket.socket(family) as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind((host, candidate))
            except OSError:
                continue
            return candidate
    return port


async def _engine_and_worker(
    options: UpOptions, address: EngineAddress
) -> tuple[EngineServer | None, DirectoryWorker]:
    """Start the worker on the engine that answers at the address, else inside one that is started there."""
    from iii_directory.cli.engine_commands import listen, new_engine, open_database
    from iii_directory.worker.directory_worker import DirectoryWorker, bus_inside

    if address.engine_answers:
        join = DirectoryWorker.join
        return None, await asyncio.to_thread(
            join, options.settings, address.url, token=address.token, config=options.config, data=options.data
        )
    parts = urlsplit(address.url)
    host, port = parts.hostname or "127.0.0.1", parts.port or (443 if parts.scheme == "wss" else 80)
    if parts.scheme == "wss" or not is_loopback(host):
        common.fail(
            f"no iii engine answers at {shown_url(address.url)}; "
            "an embedded one is started only on this machine's loopback"
        )
    server = new_engine(
        options.settings,
        host=options.host or host,
        port=port,
        rule=options.rule,
        database=open_database(options.data),
    )
    # The worker joins before the engine listens, so that no other worker can register these functions first.
    bus = bus_inside(server)
    await listen(server)
    run_on = DirectoryWorker.run_on
    return server, await asyncio.to_thread(run_on, bus, options.settings, options.config, options.data)


def _welcome(options: UpOptions, running: RunningDirectory) -> str:
    url, beside = running.address.url, running.beside
    if running.server is None:
        engine = f"{shown_url(url)} (already there)"
    else:
        kept = f"in {options.data}" if options.data else "in memory only"
        engine = f"{running.server.url} (embedded, state {kept})"
    elsewhere = "" if url == DEFAULT_URL else f" --url {shown_url(url)}"
    everything = "everything" if running.server else "the worker; the engine goes on"
    return "\n".join(
        (
            *((f"page     {beside.url.removesuffix('mcp')}",) if beside else ()),
            f"engine   {engine}",
            f"worker   {running.summary}",
            f"folder   {options.settings.skills_folder}",
            *((f"mcp      {beside.url}",) if beside else ()),
            *((f"token    {options.rule.told()}",) if options.rule.kept_in else ()),
            "",
            "Try in another terminal:",
            f"  {common.program()} skills list{elsewhere}",
            f"  {common.program()} skills index{elsewhere}",
            f"Ctrl-C stops {everything}.",
        )
    )
