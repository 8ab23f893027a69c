"""``iii-directory engine``, ``serve``, ``status`` and ``open``: one half alone, and what runs here.

`new_engine` and its neighbours make the embedded engine for ``up`` and for MCP clients as well.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

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
from iii_directory.cli.output import note, print_json, print_table, say
from iii_directory.cli.processes import (
    Run,
    all_runs,
    announced,
    cannot_listen,
    directories,
    directory_at,
    end_on_ctrl_c,
    reread_on_hangup,
    socket_shares,
    stop_signal,
)
from iii_directory.cli.tokens import engine_options, engine_token, rule_for
from iii_directory.config import at_next_start, real_path
from iii_directory.text import shown_url

if TYPE_CHECKING:
    from iii_directory.cli.tokens import TokenRule
    from iii_directory.config import Settings
    from iii_directory.engine.server import EngineServer
    from iii_directory.engine.sqlite_store import Database

_READY_SECONDS: Final = 0.5


@click.command(
    help="Run the embedded engine alone. Workers and clients connect to it as to any iii engine.",
    epilog=EXIT_CODES,
)
@config_option
@click.option(
    "--port", type=click.IntRange(0, 65535), default=49134, show_default=True, help="0 takes a free one."
)
@engine_options
def engine(
    config_path: Path, host: str | None, port: int, data: Path | None, in_memory: bool, token: str | None
) -> None:
    import asyncio

    set_up_log()
    settings = settings_from(config_path)
    kept = None if in_memory else data or default_data(config_path.parent, settings.skills_folder)
    rule = rule_for(token, kept)
    server = new_engine(
        settings, host=host or "127.0.0.1", port=port, rule=rule, database=open_database(kept)
    )
    asyncio.run(_run_engine(server, real_path(config_path).parent, kept, rule))


async def _run_engine(server: EngineServer, home: Path, kept: Path | None, rule: TokenRule) -> None:
    stopped = stop_signal()
    await listen(server)
    if rule.kept_in is not None:
        say(f"token {rule.told()}")
    run = Run(
        pid=os.getpid(),
        home=str(home),
        # Commands on this machine write the address so, and compare it with theirs.
        url=server.url.replace("//0.0.0.0:", "//127.0.0.1:"),
        embedded=True,
        skills_folder=None,
        data=str(real_path(kept)) if kept else None,
        mcp=None,
    )
    with announced(run):
        say(f"engine at {server.url}, state {f'in {kept}' if kept else 'in memory'}. Ctrl-C stops it.")
        await stopped.wait()
        await server.stop()
    say("stopped")


def new_engine(
    settings: Settings, *, host: str, port: int, rule: TokenRule, database: Database | None
) -> EngineServer:
    """Make an engine that does not listen yet; a missing token ends the command with one sentence."""
    from iii_directory.engine.peer import SocketLimits
    from iii_directory.engine.server import EngineServer

    listed = {name: os.environ[name] for name in settings.configuration_env if name in os.environ}
    try:
        return EngineServer(
            host=host,
            port=port,
            token=rule.token,
            asks_everybody=rule.asks_everybody,
            database=database,
            environment=listed,
            limits=SocketLimits(connections=socket_shares().engine),
        )
    except ValueError as error:
        fail(f"{error}. Pass --token, which may be auto, or set III_TOKEN", code=2)


async def listen(server: EngineServer) -> None:
    """Open the engine's port; a port that cannot be opened ends the command with one sentence."""
    try:
        await server.start()
    except OSError as error:
        fail(cannot_listen(server.host, server.port, error, "--port"))


def open_database(directory: Path | None) -> Database | None:
    """Open the database of a data directory; None for memory. A corrupt one is renamed and logged."""
    if directory is None:
        return None
    from iii_directory.engine.sqlite_store import Database, DataDirectoryError

    try:
        database = Database(directory)
    except DataDirectoryError as error:
        owner = next((run for run in all_runs() if run.data == str(real_path(directory))), None)
        by = f" (pid {owner.pid}, at {owner.url})" if owner else ""
        fail(f"{error}{by}; pass --data to keep state elsewhere")
    if database.set_aside is not None:
        log.error(
            "the state database was corrupt; it is kept as %s, what can be read of it goes on in a new one",
            database.set_aside,
        )
    return database


@click.command(
    help="Run the worker on an engine that is already running. While no engine answers, the worker waits, "
    "and it reconnects.",
    epilog=EXIT_CODES,
)
@config_option
@url_option
def serve(config_path: Path, url: str | None) -> None:
    import asyncio

    set_up_log()
    settings, address = settings_from(config_path), engine_url(url)
    asyncio.run(_run_worker(settings, real_path(config_path), address, named=is_named(url)))


async def _run_worker(settings: Settings, config: Path, url: str, *, named: bool) -> None:
    import asyncio

    end_on_ctrl_c()
    from iii_directory.worker.directory_worker import DirectoryWorker

    token = engine_token(url, config.parent, named=named)
    data = default_data(config.parent, settings.skills_folder)
    worker = await asyncio.to_thread(
        DirectoryWorker.join, settings, url, token=token, config=config, data=data
    )
    stopped = stop_signal()
    reread_on_hangup(worker.reread_settings, stopped)
    say(f"worker iii-directory for the engine at {shown_url(url)}. Ctrl-C stops it.")
    run = Run(
        pid=os.getpid(),
        home=str(config.parent),
        url=url,
        embedded=False,
        skills_folder=str(settings.skills_folder),
        data=None,
        mcp=None,
        at_start=at_next_start(settings),
        instance=worker.instance,
        secret=worker.secret,
    )
    with announced(run, data):
        # Waiting in a thread would make Ctrl-C wait for that thread.
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), CONNECT_SECONDS)
        if not stopped.is_set() and not await asyncio.to_thread(worker.wait_ready, _READY_SECONDS):
            say(await asyncio.to_thread(_why_not_joined, url, token))
        await stopped.wait()
    await asyncio.to_thread(worker.stop)
    say("stopped")


def _why_not_joined(url: str, token: str | None) -> str:
    from iii_directory.bus.client import EngineUnreachableError, probe

    try:
        answers = probe(url, token=token)
    except EngineUnreachableError as error:
        return f"waiting: {error}"
    if answers:
        return f"waiting: the engine at {shown_url(url)} answers, but not for this worker yet"
    return f"waiting for an engine at {shown_url(url)}; start one: {program()} engine"


@click.command(
    help="Say what runs where: the directories and engines of this machine with the folder each one serves, "
    "and whether a directory answers at the address that commands use here.",
    epilog="Exit codes: 0 a directory answers at the address; 1 no directory answers, and one sentence on "
    "stderr says so; 2 wrong usage.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything about each as JSON.")
@url_option
def status(as_json: bool, url: str | None) -> None:
    address = engine_url(url)
    runs = all_runs()
    state, sentence = _state_of(address, named=is_named(url))
    if as_json:
        shown = [{**run._asdict(), "url": shown_url(run.url)} for run in runs]
        print_json({"url": shown_url(address), "state": state, "runs": shown})
    elif runs:
        rows = [
            (shown_url(run.url), run.skills_folder or "(an engine alone)", run.mcp, str(run.pid))
            for run in runs
        ]
        print_table(("url", "folder", "mcp", "pid"), rows, whole=True)
    note(sentence)
    if state != "directory":
        raise SystemExit(1)


def _state_of(url: str, *, named: bool) -> tuple[str, str]:
    """Say what answers at an address: one word for programs, and a sentence."""
    if not listens(url):
        return "nothing", f"nothing answers at {shown_url(url)}; start a directory: {program()} up"
    from iii_directory.bus.client import EngineUnreachableError, RemoteError, call_function
    from iii_directory.wire.protocol import FUNCTION_NOT_FOUND

    try:
        token = engine_token(url, named=named)
        index: Any = call_function(url, "directory::skills::list", {}, token=token)
    except EngineUnreachableError as error:
        return "no engine", str(error)
    except RemoteError as error:
        if error.body.get("code") != FUNCTION_NOT_FOUND:
            return "failing", str(error)
        sentence = f"the engine at {shown_url(url)} has no directory; start one there: {program()} serve"
        return "engine", sentence
    run = directory_at(url)
    whose = f"the directory of {run.home}" if run else "a directory"
    elsewhere = "" if not run or run.home == str(Path.cwd()) else ", which is not this folder,"
    return "directory", f"{whose}{elsewhere} answers at {shown_url(url)}: {len(index['skills'])} documents"


@click.command(
    help="Open the web page of the directory that runs for this project, or of the only one that runs.",
    epilog=EXIT_CODES,
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON and open nothing.")
def open_page(as_json: bool) -> None:
    address = page_address(_nearest_run())
    if as_json:
        print_json({"url": address})
        return
    import webbrowser

    say(address)
    webbrowser.open(address)


def page_address(run: Run) -> str:
    """Return the address of the page beside the MCP endpoint of a running directory."""
    return (run.mcp or "").removesuffix("mcp")


def _nearest_run() -> Run:
    """Return the directory of the nearest folder upward, or the only one that runs."""
    found = [run for run in directories() if run.mcp is not None]
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        for run in found:
            if run.home == str(folder):
                return run
    if len(found) != 1:
        which = "no directory runs" if not found else f"{len(found)} directories run, none for this folder"
        fail(f"{which}; start one here: {program()} up")
    return found[0]
