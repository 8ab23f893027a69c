"""``iii-directory mcp``: the directory for MCP clients, over stdio or HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iii_directory.cli.common import (
    default_data,
    engine_url,
    fail,
    is_named,
    listens,
    log,
    set_up_log,
    settings_from,
    url_option,
)
from iii_directory.cli.config_snippets import CLIENTS, Address, Launch, snippet
from iii_directory.cli.output import say
from iii_directory.cli.tokens import AUTO, engine_token, rule_for, token_option
from iii_directory.config import real_path
from iii_directory.mcp.http import DEFAULT_HOST, DEFAULT_PORT, HttpLimits, Listener, endpoint_url
from iii_directory.text import shown_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iii_directory.cli.tokens import TokenRule
    from iii_directory.engine.server import EngineServer
    from iii_directory.mcp.bridge import Bridge
    from iii_directory.worker.main import DirectoryWorker


def http_port_option(command: click.decorators.FC) -> click.decorators.FC:
    return click.option(
        "--http-port",
        type=click.IntRange(0, 65535),
        default=DEFAULT_PORT,
        show_default=True,
        help="Where /mcp is served; 0 takes a free port.",
    )(command)


@click.command(
    help="Show the skills, prompts and functions of an engine to MCP clients: over stdio, which is how "
    "clients start it, or over HTTP. It waits for the engine and reconnects by itself."
)
@url_option
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
    "--up",
    is_flag=True,
    help="If no engine answers, run the directory here, for as long as the client is there.",
)
@click.option(
    "--skills-folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder that --up shows.  [default: as configured]",
)
@click.option(
    "--print-config",
    type=click.Choice(list(CLIENTS)),
    help="Print what this client needs in its configuration, and end.",
)
def command(
    url: str | None,
    http: bool,
    http_port: int,
    http_host: str,
    token: str | None,
    expose: tuple[str, ...],
    up: bool,
    skills_folder: Path | None,
    print_config: str | None,
) -> None:
    set_up_log()
    if up and http:
        fail("--up is for clients that start the bridge; iii-directory up serves the same over HTTP", code=2)
    address, named = engine_url(url), is_named(url)
    if print_config is not None:
        words = _up_words(skills_folder) if up else []
        _print_config(print_config, _target(address, expose, (http_host, http_port) if http else None, words))
    elif http:
        shown = engine_token(address, named=named)
        asyncio.run(_serve_http(address, shown, expose, http_host, http_port, _rule(token)))
    else:
        asyncio.run(_serve_stdio(address, expose, _home(skills_folder) if up else None, named=named))


def _rule(token: str | None) -> TokenRule:
    """What /mcp asks for; a token that nobody chose is that of the directory in this folder."""
    here = Path()
    data = default_data(here, settings_from(here / "config.yaml").skills_folder) if token == AUTO else None
    return rule_for(token, data)


def _home(skills_folder: Path | None) -> Path:
    """The folder with the configuration: beside the skills, as `iii-directory up` would find it there."""
    return real_path(skills_folder.expanduser()).parent if skills_folder else Path.cwd()


def _up_words(skills_folder: Path | None) -> list[str]:
    """``--up`` for a client, which starts us wherever it stands."""
    folder = skills_folder or settings_from(Path("config.yaml")).skills_folder
    return ["--up", "--skills-folder", str(real_path(folder.expanduser()))]


async def start_beside(
    url: str, token: str | None, port: int, rule: TokenRule, *, host: str, inside: EngineServer | None
) -> tuple[Bridge, str] | None:
    """MCP over HTTP beside something that runs, and where. If it cannot be had, that is said, and all.

    On an engine of this process it is a guest of its loop; otherwise it joins the one at the address,
    and shows it the token.
    """
    try:
        return await _listening(url, token, (), host, port, rule, inside=inside)
    except _NotServedError as error:
        log.warning("MCP is not served: %s", error)
        return None


class _NotServedError(Exception):
    """Why there is no MCP, in one sentence."""


def _print_config(client: str, target: Launch | Address) -> None:
    found = snippet(client, target)
    say(f"This goes into {found.file}:", err=True)
    say(found.text)


def _target(
    url: str, expose: Sequence[str], http: tuple[str, int] | None, words: Sequence[str]
) -> Launch | Address:
    # What is printed names the address.
    needs_token = engine_token(url, named=True) is not None
    if http is not None:
        return Address(endpoint_url(*http), needs_token)
    # Beside the interpreter, since a client knows nothing of the environment this was installed in.
    program = Path(sys.executable).with_name("iii-directory")
    start = [str(program)] if program.exists() else [sys.executable, "-m", "iii_directory"]
    globs = (part for glob in expose for part in ("--expose", glob))
    return Launch(start[0], [*start[1:], "mcp", "--url", shown_url(url), *words, *globs], needs_token)


async def _serve_http(
    url: str, token: str | None, expose: Sequence[str], host: str, port: int, rule: TokenRule
) -> None:
    from iii_directory.cli.running import stop_signal

    stopped = stop_signal()
    try:
        bridge, address = await _listening(url, token, expose, host, port, rule)
    except _NotServedError as error:
        fail(str(error))
    if rule.kept_in is not None:
        say(f"token {rule.told()}")
    say(f"MCP at {address} for the engine at {shown_url(url)}. Ctrl-C stops it.")
    await stopped.wait()
    await asyncio.to_thread(bridge.close)
    say("stopped")


async def _serve_stdio(url: str, expose: Sequence[str], home: Path | None, *, named: bool) -> None:
    from iii_directory.cli.running import stop_signal

    stopping = asyncio.create_task(stop_signal().wait())
    serving = asyncio.create_task(_serve_client(url, expose, home, named=named))
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    if not serving.done():
        serving.cancel()
        await asyncio.wait((serving,))
        # A thread waits for a line of stdin that may never come, and there is no way to call it off.
        os._exit(0)
    stopping.cancel()
    await serving


async def _serve_client(url: str, expose: Sequence[str], home: Path | None, *, named: bool) -> None:
    """Greet the client of stdin and stdout, and only then import what is needed for the rest.

    With a home, its directory is started here if no engine answers.
    """
    from iii_directory.mcp.hello import Wire

    wire = Wire()
    await asyncio.to_thread(wire.greet)
    bridges = await asyncio.to_thread(import_module, "iii_directory.mcp.bridge")
    inside = await _started_here(url, home) if home and not listens(url) else None
    if inside is not None:
        bus = bridges.bus_inside(inside[0])
    else:
        token = engine_token(url, home, named=named)
        bus = await asyncio.to_thread(bridges.joined_bus, url, token=token)
    bridge = bridges.Bridge(bus, expose=expose)
    try:
        await asyncio.to_thread(bridge.serve_stdio, wire)
    finally:
        await asyncio.to_thread(bridge.close)
        if inside is not None:
            await asyncio.to_thread(inside[1].stop)
            await inside[0].stop()


async def _started_here(url: str, home: Path) -> tuple[EngineServer, DirectoryWorker]:
    """The engine and the worker that `iii-directory up` would start in a folder."""
    from iii_directory.cli.up import Place, Plan, engine_and_worker

    config = home / "config.yaml"
    settings = settings_from(config)
    data = default_data(home, settings.skills_folder)
    plan = Plan(settings, config, url, None, data, DEFAULT_HOST, None, rule_for(None, data))
    server, worker = await engine_and_worker(plan, Place(url))
    assert server is not None  # noqa: S101 - nothing answered at the address
    return server, worker


async def _listening(
    url: str,
    token: str | None,
    expose: Sequence[str],
    host: str,
    port: int,
    rule: TokenRule,
    *,
    inside: EngineServer | None = None,
) -> tuple[Bridge, str]:
    """A bridge that serves HTTP, and where."""
    from iii_directory.cli.running import cannot_listen, room_for_sockets

    try:
        limits = HttpLimits(connections=room_for_sockets().mcp)
        listener = Listener(host, port, rule.token, asks_everybody=rule.asks_everybody, limits=limits)
    except ValueError as error:
        raise _NotServedError(f"{error}. Pass --token, which may be auto, or set III_TOKEN") from None
    except OSError as error:
        raise _NotServedError(cannot_listen(host, port, error, "--http-port")) from None
    bridges = await asyncio.to_thread(import_module, "iii_directory.mcp.bridge")
    if inside is not None:
        bus = bridges.bus_inside(inside)
    else:
        bus = await asyncio.to_thread(bridges.joined_bus, url, token=token)
    bridge = bridges.Bridge(bus, expose=expose)
    await asyncio.to_thread(bridge.start_http, listener)
    return bridge, listener.url
