"""``iii-directory up``: everything with one command."""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from iii_directory.access.policy import is_loopback
from iii_directory.cli.common import (
    CONNECT_SECONDS,
    EXIT_CODES,
    config_option,
    default_data,
    engine_url,
    fail,
    is_named,
    listens,
    log,
    program,
    set_up_log,
    settings_from,
    url_option,
)
from iii_directory.cli.mcp import DEFAULT_HOST, DEFAULT_PORT, start_beside
from iii_directory.cli.output import say
from iii_directory.cli.runs import Run, announced, directory_at, run_of
from iii_directory.cli.tokens import TokenRule, engine_token, kept_from_squatters, rule_for, token_option
from iii_directory.config import DEFAULT_URL, at_next_start, real_path
from iii_directory.text import shown_url

if TYPE_CHECKING:
    from iii_directory.cli.mcp import Beside
    from iii_directory.config import Settings
    from iii_directory.engine.server import EngineServer
    from iii_directory.shapes import Json
    from iii_directory.worker.main import DirectoryWorker

READY_SECONDS = 20.0
PORTS_TRIED = 20


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked for. ``url`` is None where nobody named an address, and so may be another one."""

    settings: Settings
    config: Path
    url: str | None
    host: str | None
    data: Path | None
    http_host: str
    http_port: int | None
    rule: TokenRule
    """What the engine and /mcp ask for, if they are started here."""
    at_start: Json | None = None
    """What the file alone said of the settings that only a start applies."""

    def shown_to(self, url: str) -> str | None:
        """The token for an engine that is there: the chosen one; what we made ourselves is for our own."""
        chosen, named = None if self.rule.kept_in else self.rule.token, self.url is not None
        if chosen:
            return kept_from_squatters(url, chosen, named=named)
        return engine_token(url, self.config.parent, named=named)


@click.command(
    help="Join the engine at the address if one answers, else start the embedded one there; then the worker. "
    "Where another folder's directory has the usual address, this one takes the next that is free.",
    epilog=EXIT_CODES,
)
@config_option
@url_option
@click.option("--port", type=click.IntRange(1, 65535), help="The same as --url ws://127.0.0.1:PORT.")
@click.option(
    "--host",
    help="The address the embedded engine listens on. Beyond loopback III_TOKEN is needed, and asked of "
    "everybody.  [default: 127.0.0.1]",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the embedded engine keeps state.  [default: .iii-directory, beside the configuration]",
)
@click.option("--in-memory", is_flag=True, help="Keep state in memory only.")
@token_option
@click.option(
    "--skills-folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of skills and prompts, instead of the configured one.",
)
@click.option(
    "--http-port",
    type=click.IntRange(0, 65535),
    help=f"Where /mcp is served; 0 takes a free port.  [default: {DEFAULT_PORT}, or the next that is free]",
)
@click.option(
    "--http-host",
    default=DEFAULT_HOST,
    show_default=True,
    help="The address /mcp is served on. Beyond loopback III_TOKEN is needed, and asked of every client.",
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
) -> None:
    set_up_log()
    if url is not None and (port is not None or host is not None):
        fail("--url says where the engine is; leave --port and --host out", code=2)
    settings = settings_from(config_path)
    at_start = at_next_start(settings)
    if skills_folder is not None:
        settings = replace(settings, skills_folder=real_path(skills_folder.expanduser()))
    kept = None if in_memory else data or default_data(config_path.parent, settings.skills_folder)
    plan = Plan(
        settings=settings,
        config=real_path(config_path),
        url=_named_address(url, port, host),
        host=host,
        data=kept,
        http_host=http_host,
        http_port=http_port,
        rule=rule_for(token, kept),
        at_start=at_start,
    )
    asyncio.run(_up(plan))


def _named_address(url: str | None, port: int | None, host: str | None) -> str | None:
    """The address that somebody chose, if somebody did."""
    if port is not None or host is not None:
        return f"ws://127.0.0.1:{port or urlsplit(DEFAULT_URL).port}"
    return engine_url(url) if is_named(url) else None


@dataclass(frozen=True, slots=True)
class Place:
    """Where it is to run."""

    url: str
    engine_is_there: bool = False
    token: str | None = None
    """What to show that engine."""
    whose: str | None = None
    """The directory that answers there already, in words."""


@dataclass(frozen=True, slots=True)
class Started:
    """What runs, and what is to be stopped."""

    place: Place
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


async def _up(plan: Plan) -> None:
    from iii_directory.cli.running import end_on_ctrl_c, reread_on_hangup, stop_signal

    end_on_ctrl_c()
    # What the bridge says of its connection, the worker has said.
    log.getChild("mcp").setLevel("WARNING")
    started = await _start(plan)
    stopped = stop_signal()
    reread_on_hangup(started.worker.reread_settings, stopped)
    data = default_data(plan.config.parent, plan.settings.skills_folder)
    with announced(_run(plan, started), data):
        say(_welcome(plan, started))
        await stopped.wait()
        say("stopping")
        await started.stop()


async def _start(plan: Plan) -> Started:
    if not plan.rule.token and not is_loopback(plan.http_host):
        fail(f"serving /mcp on {plan.http_host} needs a token: pass --token auto, or set III_TOKEN", code=2)
    place = await _place(plan)
    server, worker = await engine_and_worker(plan, place)
    if place.whose is not None:
        return Started(place, server, worker, None, f"waits until {place.whose} leaves")
    if not await asyncio.to_thread(worker.wait_ready, READY_SECONDS):
        await Started(place, server, worker, None, "").stop()
        fail(
            f"the worker does not answer on the engine at {shown_url(place.url)}; "
            f"it was given {READY_SECONDS:g} seconds"
        )
    http_port = _first_free(plan.http_host, DEFAULT_PORT) if plan.http_port is None else plan.http_port
    beside = await start_beside(
        place.url, place.token, http_port, plan.rule, host=plan.http_host, inside=server, secret=worker.secret
    )
    return Started(place, server, worker, beside, await asyncio.to_thread(worker.summary))


async def _place(plan: Plan) -> Place:
    """The address that was named, else the usual one, else, if another directory has that, the next one."""
    url = plan.url or DEFAULT_URL
    if plan.host is not None:
        return Place(url)
    if plan.url is None and (own := run_of(plan.config.parent)) is not None:
        fail(
            f"the directory of {plan.config.parent} runs already, at {shown_url(own.url)} (pid {own.pid}); "
            "stop it first, or pass --port to run another beside it"
        )
    whose, token = _known(url), None
    if plan.url is not None or whose is None:
        if plan.url is None and not listens(url):
            # Before a token is spoken of: nobody is there who could be shown one.
            return Place(url)
        token = plan.shown_to(url)
        if not await _engine_answers(url, token):
            return Place(url)
        whose = whose or await asyncio.to_thread(_directory_at, url, token)
    if plan.url is not None or whose is None:
        return Place(url, engine_is_there=True, token=token, whose=whose)
    free = f"ws://127.0.0.1:{_first_free(DEFAULT_HOST, (urlsplit(url).port or 0) + 1)}"
    log.info("%s has %s; this one takes %s", whose, url, free)
    return Place(free)


def _known(url: str) -> str | None:
    """Whose directory is known to run at an address."""
    run = directory_at(url)
    return f"the directory of {run.home} (pid {run.pid})" if run else None


def _directory_at(url: str, token: str | None) -> str | None:
    """Somebody's directory on the engine at an address, if there is one."""
    from iii_directory.bus.client import EngineUnreachableError, RemoteError, call_function

    try:
        call_function(url, "directory::skills::index", {}, timeout=CONNECT_SECONDS, token=token)
    except (EngineUnreachableError, RemoteError):
        return None
    return f"the directory at {shown_url(url)}"


def _first_free(host: str, port: int) -> int:
    """The first port from this one on that nobody listens on; the first itself if there is none."""
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


async def engine_and_worker(plan: Plan, place: Place) -> tuple[EngineServer | None, DirectoryWorker]:
    """The worker on the engine that answers at the address, else inside one that is started there."""
    from iii_directory.cli.running import listen, new_engine, open_database
    from iii_directory.worker.main import DirectoryWorker, bus_inside

    if place.engine_is_there:
        joined = DirectoryWorker.join
        return None, await asyncio.to_thread(
            joined, plan.settings, place.url, token=place.token, config=plan.config, data=plan.data
        )
    host, port = _loopback_address(place.url)
    server = new_engine(
        plan.settings,
        host=plan.host or host,
        port=port,
        rule=plan.rule,
        database=open_database(plan.data),
    )
    # Before it listens, so that no other worker takes this one's place.
    bus = bus_inside(server)
    await listen(server)
    run_on = DirectoryWorker.run_on
    return server, await asyncio.to_thread(run_on, bus, plan.settings, plan.config, plan.data)


async def _engine_answers(url: str, token: str | None) -> bool:
    from iii_directory.bus.client import EngineUnreachableError, probe

    try:
        return await asyncio.to_thread(probe, url, token=token)
    except EngineUnreachableError as error:
        fail(str(error))


def _loopback_address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    host, port = parts.hostname or "127.0.0.1", parts.port or (443 if parts.scheme == "wss" else 80)
    if parts.scheme == "wss" or not is_loopback(host):
        fail(
            f"no iii engine answers at {shown_url(url)}; "
            "an embedded one is started only on this machine's loopback"
        )
    return host, port


def _run(plan: Plan, started: Started) -> Run:
    return Run(
        pid=os.getpid(),
        home=str(plan.config.parent),
        url=started.place.url,
        embedded=started.server is not None,
        skills_folder=str(plan.settings.skills_folder),
        data=str(real_path(plan.data)) if plan.data and started.server else None,
        mcp=started.beside.url if started.beside else None,
        at_start=plan.at_start,
        instance=started.worker.instance,
        secret=started.worker.secret,
    )


def _welcome(plan: Plan, started: Started) -> str:
    url = started.place.url
    if started.server is None:
        engine = f"{shown_url(url)} (already there)"
    else:
        kept = f"in {plan.data}" if plan.data else "in memory only"
        engine = f"{started.server.url} (embedded, state {kept})"
    elsewhere = "" if url == DEFAULT_URL else f" --url {shown_url(url)}"
    everything = "everything" if started.server else "the worker; the engine goes on"
    return "\n".join(
        (
            *((f"page     {started.beside.url.removesuffix('mcp')}",) if started.beside else ()),
            f"engine   {engine}",
            f"worker   {started.summary}",
            f"folder   {plan.settings.skills_folder}",
            *((f"mcp      {started.beside.url}",) if started.beside else ()),
            *((f"token    {plan.rule.told()}",) if plan.rule.kept_in else ()),
            "",
            "Try in another terminal:",
            f"  {program()} skills list{elsewhere}",
            f"  {program()} trigger directory::skills::index{elsewhere}",
            f"Ctrl-C stops {everything}.",
        )
    )
