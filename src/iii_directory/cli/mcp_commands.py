"""``iii-directory mcp``: serve the directory of a project to MCP clients, over stdio or HTTP.

A directory that runs for the folder (`iii-directory up`) is joined; otherwise the bridge runs one in its own
process, on an embedded engine in memory that never listens. When a directory appears the bridge joins it, and
when that one leaves the bridge serves by itself again. No other folder's directory is ever asked: a run file
must name the folder, and the process that answers must be the one that wrote it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from iii_directory.cli import common
from iii_directory.cli.client_files import CLIENTS, connecting_lines, edit_file, print_config, target_for
from iii_directory.cli.output import say
from iii_directory.cli.processes import cannot_listen, directory_for, socket_shares, stop_signal
from iii_directory.cli.tokens import TokenRule, engine_token, rule_for, token_option
from iii_directory.documents.uris import INSTANCE, INSTANCE_FUNCTION
from iii_directory.limits import MCP_START_SECONDS, MCP_WORK_SECONDS
from iii_directory.mcp.hello import DEFAULT_HOST, DEFAULT_PORT
from iii_directory.shapes import object_of, rows_of
from iii_directory.text import shown_url
from iii_directory.wire.http_server import HttpLimits, Listener

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence

    from iii_directory.bus.seam import Payload, WorkerBus
    from iii_directory.cli.processes import Run
    from iii_directory.engine.server import EngineServer
    from iii_directory.mcp.bridge import Bridge
    from iii_directory.mcp.upstream import Upstream
    from iii_directory.worker.directory_worker import DirectoryWorker

# How often the run files are looked at while no directory is joined; a missing folder costs one system call.
_LOOK_SECONDS: Final = 0.5
_JOIN_SECONDS: Final = 2.0
# A directory that could not be joined, for example because it asks for a token, is tried again this late.
_REFUSED_SECONDS: Final = 15.0


def http_options(*, fixed_port: bool) -> Callable[[common.Command], common.Command]:
    """Add ``--http-port`` and ``--http-host``; without ``fixed_port`` the next free port is taken."""

    def add(command: common.Command) -> common.Command:
        port = click.option(
            "--http-port",
            type=common.PORT,
            default=DEFAULT_PORT if fixed_port else None,
            show_default=fixed_port,
            help="The port of /mcp; 0 takes a free one."
            + ("" if fixed_port else f"  [default: {DEFAULT_PORT}, or the next that is free]"),
        )
        host = click.option(
            "--http-host",
            default=DEFAULT_HOST,
            show_default=True,
            help="The address /mcp is served on. Beyond loopback every client must send a token.",
        )
        return port(host(command))

    return add


@click.command(
    help="Show the skills, prompts and functions of the project in this folder to an MCP client: over stdio, "
    "which is how clients start it, or over HTTP. It joins the directory that runs for the folder, and "
    "serves the folder by itself while none runs."
)
@click.option(
    "--url",
    default=None,
    help="Show the directory of this engine instead of the folder's.  [default: $III_URL]",
)
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration of the project.  [default: that of the nearest project, from this folder upward]",
)
@click.option(
    "--skills-folder",
    type=common.FOLDER,
    help="The folder of skills to show, with the configuration beside it.",
)
@click.option("--http", is_flag=True, help="Serve /mcp over HTTP instead of stdio.")
@http_options(fixed_port=True)
@token_option
@click.option(
    "--expose",
    multiple=True,
    metavar="GLOB",
    help="Offer more functions of the engine as tools, by their ids, such as 'mail::*'. Repeatable.",
)
@click.option(
    "--tools",
    type=click.Choice(["small", "all"]),
    help="Show the few tools for reading skills, or every tool of the directory.  [default: as configured]",
)
# Older configurations of clients have it; the folder is always served.
@click.option("--up", is_flag=True, expose_value=False, hidden=True)
@click.option(
    "--print-config",
    "print_for",
    type=click.Choice(list(CLIENTS)),
    metavar="CLIENT",
    help=f"Print what a client needs in its configuration, and end. CLIENT is {', '.join(CLIENTS)}.",
)
@click.option(
    "--install",
    type=click.Choice(list(CLIENTS)),
    metavar="CLIENT",
    help="Put that into the client's own file, and end.",
)
@click.option(
    "--uninstall", type=click.Choice(list(CLIENTS)), metavar="CLIENT", help="Take it out again, and end."
)
@click.option("--yes", is_flag=True, help="Change the client's file without asking.")
def command(
    url: str | None,
    config_path: Path | None,
    skills_folder: Path | None,
    http: bool,
    http_port: int,
    http_host: str,
    token: str | None,
    expose: tuple[str, ...],
    tools: str | None,
    print_for: str | None,
    install: str | None,
    uninstall: str | None,
    yes: bool,
) -> None:
    common.set_up_log()
    address = common.engine_url(url) if common.is_named(url) else None
    project = common.project_of(config_path, skills_folder)
    client = print_for or install or uninstall
    if client is not None:
        where = (http_host, http_port) if http else None
        target = target_for(client, address, expose, where, project, folder_named=skills_folder is not None)
        if print_for is not None:
            print_config(client, target)
        else:
            edit_file(client, project.home, target if install is not None else None, yes=yes)
        return
    face = Face(address, project, expose, show_all=tools == "all")
    if http:
        asyncio.run(_serve_http(face, http_host, http_port, rule_for(token, project.data)))
        return
    if sys.stdin.isatty():
        say("this is an MCP server; it waits for a client on stdin. Ctrl-C ends it.", err=True)
    asyncio.run(_serve_stdio(face))


class Face(NamedTuple):
    """What a client is to see: the directory of the engine at ``url``, or without one the project's."""

    url: str | None
    project: common.Project
    expose: Sequence[str]
    show_all: bool


async def start_beside(
    url: str,
    token: str | None,
    port: int,
    rule: TokenRule,
    *,
    host: str,
    inside: EngineServer | None,
    secret: str,
    allow_changes: bool,
) -> Beside | None:
    """Serve MCP over HTTP beside a directory that runs; log why if it cannot be served.

    With an engine ``inside`` this process the bridge runs on its loop; otherwise the bridge joins the engine
    at the address, with the token. With ``allow_changes`` the web page may install, update and remove.
    """
    listener = _listener(host, port, rule)
    if isinstance(listener, str):
        common.log.warning("MCP is not served: %s", listener)
        return None
    bridges = await asyncio.to_thread(import_module, "iii_directory.mcp.bridge")
    if inside is not None:
        bus = bridges.bus_inside(inside)
    else:
        bus = bridges.joined_bus(url, token=token, loop=asyncio.get_running_loop())
    bridge = bridges.Bridge.on(bus, secret=secret)
    await bridge.start_http(listener, connecting_lines(listener.url), allow_changes=allow_changes)
    return Beside(listener.url, bridge, bus)


class Beside(NamedTuple):
    """The bridge of a directory that runs, and where clients ask it."""

    url: str
    bridge: Bridge
    bus: WorkerBus

    async def stop(self) -> None:
        await self.bridge.close()
        await asyncio.to_thread(self.bus.close)


async def _serve_http(face: Face, host: str, port: int, rule: TokenRule) -> None:
    stopped = stop_signal()
    listener = _listener(host, port, rule)
    if isinstance(listener, str):
        common.fail(listener)
    async with _bridge(face) as bridge:
        await bridge.start_http(listener, connecting_lines(listener.url))
        if rule.kept_in is not None:
            say(f"token {rule.told()}")
        what = (
            f"the engine at {shown_url(face.url)}" if face.url else str(face.project.settings.skills_folder)
        )
        say(f"MCP at {listener.url} for {what}. Ctrl-C stops it.")
        await stopped.wait()
        await bridge.close()
    say("stopped")


async def _serve_stdio(face: Face) -> None:
    stopping = asyncio.create_task(stop_signal().wait())
    serving = asyncio.create_task(_serve_client(face))
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    if not serving.done():
        serving.cancel()
        await asyncio.wait((serving,))
        # A thread waits for a line of stdin that may never come, and a thread cannot be cancelled.
        os._exit(0)
    stopping.cancel()
    await serving


async def _serve_client(face: Face) -> None:
    """Greet the client of stdin and stdout, and only then import what is needed for the rest."""
    from iii_directory.mcp.hello import Wire

    # The streams are taken first, so that nothing printed by an import reaches the client.
    wire = Wire()
    await asyncio.to_thread(wire.greet)
    async with _bridge(face) as bridge:
        try:
            await bridge.serve_stdio(wire)
        finally:
            await bridge.close()


@asynccontextmanager
async def _bridge(face: Face) -> AsyncGenerator[Bridge]:
    """Make the bridge to the engine that was named, else to the directory of the project."""
    bridges = await asyncio.to_thread(import_module, "iii_directory.mcp.bridge")
    if face.url is not None:
        token = engine_token(face.url, face.project.home, named=True)
        bus = bridges.joined_bus(face.url, token=token, loop=asyncio.get_running_loop())
        try:
            yield bridges.Bridge.on(bus, expose=face.expose, show_all=face.show_all)
        finally:
            await asyncio.to_thread(bus.close)
        return
    upstream = bridges.Upstream(wait_seconds=MCP_START_SECONDS)
    bridge = bridges.Bridge(upstream, expose=face.expose, show_all=face.show_all)
    handover = Handover(upstream, face.project)
    following = asyncio.create_task(handover.follow())
    try:
        yield bridge
    finally:
        following.cancel()
        await asyncio.wait((following,))
        await handover.close()


def _listener(host: str, port: int, rule: TokenRule) -> Listener | str:
    """Take the port of /mcp; return a sentence if it cannot be served."""
    try:
        limits = HttpLimits(connections=socket_shares().mcp)
        return Listener(host, port, rule.token, asks_everybody=rule.asks_everybody, limits=limits)
    except ValueError as error:
        return f"{error}. Pass --token, which may be auto, or set III_TOKEN"
    except OSError as error:
        return cannot_listen(host, port, error, "--http-port")


# Joining the directory of the folder, and serving it without one


class OwnDirectory(NamedTuple):
    """The directory in this process, and the bridge's bus on its engine."""

    engine: EngineServer
    worker: DirectoryWorker
    bus: WorkerBus

    async def stop(self) -> None:
        """Stop the bus first, so that it does not look for its engine."""
        await asyncio.to_thread(self.bus.close)
        await asyncio.to_thread(self.worker.stop)
        await self.engine.stop()


class Handover:
    """Gives ``upstream`` the bus of the project's directory, now and after every change."""

    def __init__(self, upstream: Upstream, project: common.Project) -> None:
        self._upstream = upstream
        self._project = project
        self._own: OwnDirectory | None = None
        self._joined: WorkerBus | None = None
        self._refused: tuple[str | None, float] = None, 0.0
        """The instance that could not be joined last, and until when it is left alone."""
        self._leaving: set[asyncio.Task[None]] = set()

    async def follow(self) -> None:
        """Serve for as long as this runs; `close` afterwards."""
        while True:
            run = directory_for(self._project.home, self._project.settings.skills_folder, self._project.data)
            lost = None if run is None else await self._join(run)
            if lost is not None:
                # Imported beforehand, so that requests wait less once this directory leaves.
                await _import_directory()
                await lost.wait()
                # The run file is looked at again at once: another directory may have taken over.
                continue
            # Looked for again and again, since a directory announces itself by its run file alone.
            if self._own is None:
                self._own = await self._start_own()
                self._upstream.attach(self._own.bus)
                self._upstream.use(self._own.bus, secret=self._own.worker.secret)
            await asyncio.sleep(_LOOK_SECONDS)

    async def close(self) -> None:
        """Leave the directory that was joined, and stop the own one."""
        self._upstream.use(None)
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=_JOIN_SECONDS)
        if self._joined is not None:
            await asyncio.to_thread(self._joined.close)
        if self._own is not None:
            await self._own.stop()

    async def _join(self, run: Run) -> asyncio.Event | None:
        """Join a directory and return the event of its leaving; None if it cannot be joined."""
        loop = asyncio.get_running_loop()
        refused, until = self._refused
        if run.instance == refused and loop.time() < until:
            return None
        bridges = await asyncio.to_thread(import_module, "iii_directory.mcp.bridge")
        if not await asyncio.to_thread(common.listens, run.url):
            return None
        token = engine_token(run.url, self._project.home, named=True)
        bus: WorkerBus = bridges.joined_bus(run.url, token=token, loop=loop)
        lost = asyncio.Event()

        def left() -> None:
            lost.set()
            # At once, before the bus finds another engine at the address.
            if self._joined is bus:
                self._joined = None
                self._upstream.use(None)
                self._later(self._close(bus))

        def functions_changed(event: Payload) -> None:
            # An engine that is not the directory's own goes on without it.
            if not any(_instance(row) == run.instance for row in rows_of(event, "functions")):
                left()

        bus.on_lost.append(left)
        listener, told = f"{bus.name}::directory-left", "Tells a bridge that its directory left."
        bus.register_listener(listener, functions_changed, description=told)
        bus.bind("engine::functions-available", listener, {})
        self._upstream.attach(bus)
        if not await _is_same(bus, run) or lost.is_set():
            self._refused = run.instance, loop.time() + _REFUSED_SECONDS
            await self._close(bus)
            return None
        common.log.info("joined the directory of %s at %s", run.home, run.url)
        self._joined = bus
        self._upstream.use(bus, secret=run.secret)
        # The own directory may still be answering; new calls go to the one that was joined.
        if self._own is not None:
            self._later(self._retire(self._own))
            self._own = None
        return lost

    async def _start_own(self) -> OwnDirectory:
        """Start the directory in this process, on an engine in memory that has no port."""
        await _import_directory()
        from iii_directory.cli.engine_commands import new_engine
        from iii_directory.mcp.bridge import bus_inside as bridge_inside
        from iii_directory.worker.directory_worker import DirectoryWorker, bus_inside

        settings = self._project.settings
        engine = new_engine(settings, host="127.0.0.1", port=0, rule=TokenRule(None), database=None)
        bus = bus_inside(engine)
        worker = await asyncio.to_thread(DirectoryWorker.run_on, bus, settings, self._project.config)
        common.log.info("serving %s", settings.skills_folder)
        return OwnDirectory(engine, worker, bridge_inside(engine))

    async def _retire(self, own: OwnDirectory) -> None:
        """Stop the own directory once it has answered what it was asked."""
        await self._upstream.release(own.bus, MCP_WORK_SECONDS)
        await own.stop()

    async def _close(self, bus: WorkerBus) -> None:
        await self._upstream.release(bus)
        await asyncio.to_thread(bus.close)

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)


async def _import_directory() -> None:
    """Import what a directory takes, which is most of a second; the loop answers the client meanwhile."""
    for name in ("mcp.bridge", "worker.directory_worker", "cli.engine_commands", "engine.server"):
        await asyncio.to_thread(import_module, f"iii_directory.{name}")


async def _is_same(bus: WorkerBus, run: Run) -> bool:
    """Return whether the process that answers is the one that wrote the run file."""
    from iii_directory.bus.seam import CallError

    try:
        async with asyncio.timeout(_JOIN_SECONDS):
            answer = await bus.call(
                "engine::functions::info",
                {"function_id": INSTANCE_FUNCTION, "namespace": bus.namespace},
                timeout_ms=int(_JOIN_SECONDS * 1000),
            )
    except (CallError, TimeoutError):
        return False
    return run.instance is not None and _instance(answer) == run.instance


def _instance(function: object) -> object:
    """Return the id of the directory that offers a function; each process draws a new one."""
    return object_of(object_of(function).get("metadata")).get(INSTANCE)
