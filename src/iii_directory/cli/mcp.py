"""``iii-directory mcp``: the directory for MCP clients, over stdio or HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iii_directory.cli.common import engine_token, engine_url, fail, log, set_up_log, url_option
from iii_directory.cli.config_snippets import CLIENTS, Address, Launch, snippet
from iii_directory.mcp.http import DEFAULT_HOST, DEFAULT_PORT, Listener, endpoint_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iii_directory.engine.server import EngineServer
    from iii_directory.mcp.bridge import Bridge

HOW_TO_INSTALL = "pip install 'iii-directory[mcp]'"


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
@click.option(
    "--expose",
    multiple=True,
    metavar="GLOB",
    help="Offer more functions of the engine as tools, by their ids, such as 'mail::*'. Repeatable.",
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
    expose: tuple[str, ...],
    print_config: str | None,
) -> None:
    set_up_log()
    address = engine_url(url)
    if print_config is not None:
        _print_config(print_config, _target(address, expose, (http_host, http_port) if http else None))
    elif http:
        asyncio.run(_serve_http(address, expose, http_host, http_port))
    else:
        asyncio.run(_serve_stdio(address, expose))


async def start_beside(
    url: str, port: int, *, host: str = DEFAULT_HOST, inside: EngineServer | None = None
) -> tuple[Bridge, str] | None:
    """MCP over HTTP beside something that runs, and where. If it cannot be had, that is said, and all.

    On an engine of this process it is a guest of its loop; otherwise it joins the one at the address.
    """
    try:
        return await _listening(url, (), host, port, inside=inside)
    except _NotServedError as error:
        log.warning("MCP is not served: %s", error)
        return None


class _NotServedError(Exception):
    """Why there is no MCP, in one sentence."""


def _print_config(client: str, target: Launch | Address) -> None:
    found = snippet(client, target)
    click.echo(f"This goes into {found.file}:", err=True)
    click.echo(found.text)


def _target(url: str, expose: Sequence[str], http: tuple[str, int] | None) -> Launch | Address:
    needs_token = engine_token() is not None
    if http is not None:
        return Address(endpoint_url(*http), needs_token)
    # Beside the interpreter, since a client knows nothing of the environment this was installed in.
    program = Path(sys.executable).with_name("iii-directory")
    start = [str(program)] if program.exists() else [sys.executable, "-m", "iii_directory"]
    globs = (part for glob in expose for part in ("--expose", glob))
    return Launch(start[0], [*start[1:], "mcp", "--url", url, *globs], needs_token)


async def _serve_http(url: str, expose: Sequence[str], host: str, port: int) -> None:
    from iii_directory.cli.running import stop_signal

    stopped = stop_signal()
    try:
        bridge, address = await _listening(url, expose, host, port)
    except _NotServedError as error:
        fail(str(error))
    click.echo(f"MCP at {address} for the engine at {url}. Ctrl-C stops it.")
    await stopped.wait()
    await asyncio.to_thread(bridge.close)
    click.echo("stopped")


async def _serve_stdio(url: str, expose: Sequence[str]) -> None:
    from iii_directory.cli.running import stop_signal

    try:
        _need_part_for_mcp()
    except _NotServedError as error:
        fail(str(error))
    stopping = asyncio.create_task(stop_signal().wait())
    serving = asyncio.create_task(_serve_client(url, expose))
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    if not serving.done():
        serving.cancel()
        await asyncio.wait((serving,))
        # A thread waits for a line of stdin that may never come, and there is no way to call it off.
        os._exit(0)
    stopping.cancel()
    await serving


async def _serve_client(url: str, expose: Sequence[str]) -> None:
    """Greet the client of stdin and stdout, and only then import what is needed for the rest."""
    from iii_directory.mcp.hello import Wire

    wire = Wire()
    await asyncio.to_thread(wire.greet)
    bridges = await asyncio.to_thread(import_module, "iii_directory.mcp.bridge")
    bus = await asyncio.to_thread(bridges.joined_bus, url, token=engine_token())
    bridge = bridges.Bridge(bus, expose=expose)
    try:
        await asyncio.to_thread(bridge.serve_stdio, wire)
    finally:
        await asyncio.to_thread(bridge.close)


async def _listening(
    url: str, expose: Sequence[str], host: str, port: int, *, inside: EngineServer | None = None
) -> tuple[Bridge, str]:
    """A bridge that serves HTTP, and where."""
    from iii_directory.cli.running import cannot_listen

    _need_part_for_mcp()
    token = engine_token()
    try:
        listener = Listener(host, port, token)
    except ValueError as error:
        raise _NotServedError(f"{error}. Set III_TOKEN") from None
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


def _need_part_for_mcp() -> None:
    if find_spec("mcp") is None:
        raise _NotServedError(f"the part for MCP is not installed; get it with: {HOW_TO_INSTALL}")
