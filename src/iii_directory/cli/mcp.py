"""``iii-directory mcp``: the directory for MCP clients, over stdio or HTTP."""

from __future__ import annotations

import asyncio
import difflib
import os
import shlex
import stat
import sys
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from iii_directory.access.http_server import HttpLimits, Listener, endpoint_url
from iii_directory.cli.client_files import CLIENTS, Address, Launch, UnusableFileError, command_line
from iii_directory.cli.common import PROGRAM, engine_url, fail, is_named, log, set_up_log
from iii_directory.cli.output import say
from iii_directory.cli.project import project_of
from iii_directory.cli.tokens import engine_token, rule_for, token_option
from iii_directory.config import TOKEN_VARIABLE
from iii_directory.limits import MCP_START_SECONDS
from iii_directory.mcp.http import DEFAULT_HOST, DEFAULT_PORT
from iii_directory.text import shown_url

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from iii_directory.bus.seam import WorkerBus
    from iii_directory.cli.project import Project
    from iii_directory.cli.tokens import TokenRule
    from iii_directory.engine.server import EngineServer
    from iii_directory.mcp.bridge import Bridge


def http_port_option(command: click.decorators.FC) -> click.decorators.FC:
    return click.option(
        "--http-port",
        type=click.IntRange(0, 65535),
        default=DEFAULT_PORT,
        show_default=True,
        help="Where /mcp is served; 0 takes a free port.",
    )(command)


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
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of skills to show, with the configuration beside it.",
)
@click.option("--http", is_flag=True, help="Serve /mcp over HTTP instead of stdio.")
@http_port_option
@click.option(
    "--http-host",
    default=DEFAULT_HOST,
    show_default=True,
    help="The address to listen on. Beyond loopback III_TOKEN is needed, and asked of every client.",
)
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
@click.option("--up", is_flag=True, help="Accepted for older configurations; the folder is always served.")
@click.option(
    "--print-config",
    type=click.Choice(list(CLIENTS)),
    help="Print what this client needs in its configuration, and end.",
)
@click.option(
    "--install", type=click.Choice(list(CLIENTS)), help="Put that into the client's own file, and end."
)
@click.option("--uninstall", type=click.Choice(list(CLIENTS)), help="Take it out again, and end.")
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
    up: bool,
    print_config: str | None,
    install: str | None,
    uninstall: str | None,
    yes: bool,
) -> None:
    del up
    set_up_log()
    address = engine_url(url) if is_named(url) else None
    project = project_of(config_path, skills_folder)
    client = print_config or install or uninstall
    if client is not None:
        where = (http_host, http_port) if http else None
        target = _target(client, address, expose, where, project, folder_named=skills_folder is not None)
        if print_config is not None:
            _print_config(client, target)
        else:
            _edit_file(client, project.home, target if install is not None else None, yes=yes)
        return
    face = Face(address, project, expose, show_all=tools == "all")
    if http:
        asyncio.run(_serve_http(face, http_host, http_port, rule_for(token, project.data)))
        return
    if sys.stdin.isatty():
        say("this is an MCP server; it waits for a client on stdin. Ctrl-C ends it.", err=True)
    asyncio.run(_serve_stdio(face))


class Face(NamedTuple):
    """What a client is to see: the directory of the engine at an address, or without one the project's."""

    url: str | None
    project: Project
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
) -> Beside | None:
    """Serve MCP over HTTP beside a directory that runs; if it cannot be served, say why.

    On an engine of this process it runs on its loop; otherwise it joins the engine at the address, and shows
    it the token.
    """
    try:
        listener = _listener(host, port, rule)
    except _NotServedError as error:
        log.warning("MCP is not served: %s", error)
        return None
    bridges = await asyncio.to_thread(import_module, "iii_directory.mcp.bridge")
    if inside is not None:
        bus = bridges.bus_inside(inside)
    else:
        bus = bridges.joined_bus(url, token=token, loop=asyncio.get_running_loop())
    bridge = bridges.Bridge.on(bus, secret=secret)
    await bridge.start_http(listener)
    return Beside(listener.url, bridge, bus)


class Beside(NamedTuple):
    """The bridge of a directory that runs, and where clients ask it."""

    url: str
    bridge: Bridge
    bus: WorkerBus

    async def stop(self) -> None:
        await self.bridge.close()
        await asyncio.to_thread(self.bus.close)


class _NotServedError(Exception):
    """Why there is no MCP, in one sentence."""


def _print_config(name: str, target: Launch | Address) -> None:
    client = CLIENTS[name]
    where = "at home" if client.is_users else "in the project"
    say(f"This goes into {client.file} {where}:", err=True)
    say(client.installed("", client.entry(target)).rstrip("\n"))
    if (typed := command_line(name, target)) is not None:
        say(f"Or run: {shlex.join(typed)}", err=True)


def _edit_file(name: str, home: Path, target: Launch | Address | None, *, yes: bool) -> None:
    """Put the entry into the client's own file, or without a target take it out; show the change and ask."""
    client = CLIENTS[name]
    path = (Path.home() if client.is_users else home) / client.file
    try:
        # A link stays a link: what it leads to is written.
        path = path.resolve() if path.exists() else path
        old = path.read_bytes().decode() if path.exists() else ""
        new = client.uninstalled(old) if target is None else client.installed(old, client.entry(target))
    except (OSError, UnicodeDecodeError, UnusableFileError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        fail(f"{path} was not changed: {reason}")
    if new is None or new == old:
        say(f"{path} {'has no entry of ours' if target is None else 'has this entry already'}")
        return
    changes = difflib.unified_diff(old.splitlines(), new.splitlines(), str(path), str(path), lineterm="", n=1)
    say("\n".join(changes))
    if not yes and not (sys.stdin.isatty() and click.confirm(f"Change {path}?")):
        fail("nothing was changed; pass --yes to change it without being asked")
    _write_file(path, new)
    say(f"changed {path}" if new else f"removed {path}")


def _write_file(path: Path, text: str) -> None:
    """Replace a file whole, with the mode it had; an empty one is removed."""
    try:
        if not text:
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_bytes(text.encode())
        if path.exists():
            draft.chmod(stat.S_IMODE(path.stat().st_mode))
        draft.replace(path)
    except OSError as error:
        fail(f"{path} was not changed: {error.strerror}")


def _target(
    client: str,
    url: str | None,
    expose: Sequence[str],
    http: tuple[str, int] | None,
    project: Project,
    *,
    folder_named: bool,
) -> Launch | Address:
    """What the client is to start, or where it is to ask.

    A file of the project is shared with others and read by a client that starts servers there: it names the
    command alone. A file of the user names the program and the folder, wherever the client starts it.
    """
    if http is not None:
        return Address(endpoint_url(*http), needs_token=bool(os.environ.get(TOKEN_VARIABLE)))
    needs_token = url is not None and engine_token(url, named=True) is not None
    words = [] if url is None else ["--url", shown_url(url)]
    start = [PROGRAM]
    if CLIENTS[client].is_users:
        program = Path(sys.executable).with_name(PROGRAM)
        start = [str(program)] if program.exists() else [sys.executable, "-m", "iii_directory"]
    if folder_named or (CLIENTS[client].is_users and url is None):
        words += ["--skills-folder", str(project.settings.skills_folder)]
    globs = (part for glob in expose for part in ("--expose", glob))
    return Launch(start[0], [*start[1:], "mcp", *words, *globs], needs_token)


async def _serve_http(face: Face, host: str, port: int, rule: TokenRule) -> None:
    from iii_directory.cli.running import stop_signal

    stopped = stop_signal()
    try:
        listener = _listener(host, port, rule)
    except _NotServedError as error:
        fail(str(error))
    async with _bridge(face) as bridge:
        await bridge.start_http(listener)
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
    from iii_directory.cli.running import stop_signal

    stopping = asyncio.create_task(stop_signal().wait())
    serving = asyncio.create_task(_serve_client(face))
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    if not serving.done():
        serving.cancel()
        await asyncio.wait((serving,))
        # A thread waits for a line of stdin that may never come, and there is no way to call it off.
        os._exit(0)
    stopping.cancel()
    await serving


async def _serve_client(face: Face) -> None:
    """Greet the client of stdin and stdout, and only then import what is needed for the rest."""
    from iii_directory.mcp.hello import Wire

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
    from iii_directory.cli.handover import Handover

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


def _listener(host: str, port: int, rule: TokenRule) -> Listener:
    """Take the port of /mcp."""
    from iii_directory.cli.running import cannot_listen, room_for_sockets

    try:
        limits = HttpLimits(connections=room_for_sockets().mcp)
        return Listener(host, port, rule.token, asks_everybody=rule.asks_everybody, limits=limits)
    except ValueError as error:
        raise _NotServedError(f"{error}. Pass --token, which may be auto, or set III_TOKEN") from None
    except OSError as error:
        raise _NotServedError(cannot_listen(host, port, error, "--http-port")) from None
