"""``iii-directory engine``, ``serve``, ``status``, ``open`` and ``trigger``: one half alone, and what runs.

`new_engine` and its neighbours make the embedded engine for ``up`` and for MCP clients as well.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from iii_directory.cli import common, output, processes
from iii_directory.cli.command_help import complete_functions
from iii_directory.cli.common import engine_url, fail, is_named, listens, program, url_option
from iii_directory.cli.tokens import engine_options, engine_token, rule_for
from iii_directory.config import at_next_start, real_path
from iii_directory.shapes import is_object
from iii_directory.text import counted, shown_url

if TYPE_CHECKING:
    from iii_directory.cli.tokens import TokenRule
    from iii_directory.config import Settings
    from iii_directory.engine.server import EngineServer
    from iii_directory.engine.sqlite_store import Database

_READY_SECONDS: Final = 0.5


@click.command(help="Run the embedded engine alone. Workers and clients connect to it as to any iii engine.")
@common.config_option
@click.option("--port", type=common.PORT, default=49134, show_default=True, help="0 takes a free one.")
@engine_options
def engine(
    config_path: Path, host: str | None, port: int, data: Path | None, in_memory: bool, token: str | None
) -> None:
    import asyncio

    common.set_up_log()
    settings = common.settings_from(config_path)
    kept = None if in_memory else data or common.default_data(config_path.parent, settings.skills_folder)
    rule = rule_for(token, kept)
    server = new_engine(
        settings, host=host or "127.0.0.1", port=port, rule=rule, database=open_database(kept)
    )
    asyncio.run(_run_engine(server, real_path(config_path).parent, kept, rule))


async def _run_engine(server: EngineServer, home: Path, kept: Path | None, rule: TokenRule) -> None:
    stopped = processes.stop_signal()
    await listen(server)
    if rule.kept_in is not None:
        output.say(f"token {rule.told()}")
    run = processes.Run(
        pid=os.getpid(),
        home=str(home),
        # Commands on this machine write the address so, and compare it with theirs.
        url=server.url.replace("//0.0.0.0:", "//127.0.0.1:"),
        embedded=True,
        data=str(real_path(kept)) if kept else None,
    )
    with processes.announced(run):
        output.say(f"engine at {server.url}, state {f'in {kept}' if kept else 'in memory'}. Ctrl-C stops it.")
        await stopped.wait()
        await server.stop()
    output.say("stopped")


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
            limits=SocketLimits(connections=processes.socket_shares().engine),
        )
    except ValueError as error:
        common.fail(f"{error}. Pass --token, which may be auto, or set III_TOKEN", code=2)


async def listen(server: EngineServer) -> None:
    """Open the engine's port; a port that cannot be opened ends the command with one sentence."""
    try:
        await server.start()
    except OSError as error:
        common.fail(processes.cannot_listen(server.host, server.port, error, "--port"))


def open_database(directory: Path | None) -> Database | None:
    """Open the database of a data directory; None for memory. A corrupt one is renamed and logged."""
    if directory is None:
        return None
    from iii_directory.engine.sqlite_store import Database, DataDirectoryError

    try:
        database = Database(directory)
    except DataDirectoryError as error:
        owner = next((run for run in processes.all_runs() if run.data == str(real_path(directory))), None)
        by = f" (pid {owner.pid}, at {owner.url})" if owner else ""
        common.fail(f"{error}{by}; pass --data to keep state elsewhere")
    if database.set_aside is not None:
        common.log.error(
            "the state database was corrupt; it is kept as %s, what can be read of it goes on in a new one",
            database.set_aside,
        )
    return database


@click.command(
    help="Run the worker on an engine that is already running. While no engine answers, the worker waits, "
    "and it reconnects.",
)
@common.config_option
@common.url_option
def serve(config_path: Path, url: str | None) -> None:
    import asyncio

    common.set_up_log()
    settings, address = common.settings_from(config_path), common.engine_url(url)
    asyncio.run(_run_worker(settings, real_path(config_path), address, named=common.is_named(url)))


async def _run_worker(settings: Settings, config: Path, url: str, *, named: bool) -> None:
    import asyncio

    processes.end_on_ctrl_c()
    from iii_directory.worker.directory_worker import DirectoryWorker

    token = engine_token(url, config.parent, named=named)
    data = common.default_data(config.parent, settings.skills_folder)
    worker = await asyncio.to_thread(
        DirectoryWorker.join, settings, url, token=token, config=config, data=data
    )
    stopped = processes.stop_signal()
    processes.reread_on_hangup(worker.reread_settings, stopped)
    output.say(f"worker iii-directory for the engine at {shown_url(url)}. Ctrl-C stops it.")
    run = processes.Run(
        pid=os.getpid(),
        home=str(config.parent),
        url=url,
        embedded=False,
        skills_folder=str(settings.skills_folder),
        at_start=at_next_start(settings),
        instance=worker.instance,
        secret=worker.secret,
    )
    with processes.announced(run, data):
        # Waiting in a thread would make Ctrl-C wait for that thread.
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), common.CONNECT_SECONDS)
        if not stopped.is_set() and not await asyncio.to_thread(worker.wait_ready, _READY_SECONDS):
            output.say(await asyncio.to_thread(_why_not_joined, url, token))
        await stopped.wait()
    await asyncio.to_thread(worker.stop)
    output.say("stopped")


def _why_not_joined(url: str, token: str | None) -> str:
    from iii_directory.bus.client import EngineUnreachableError, probe

    try:
        answers = probe(url, token=token)
    except EngineUnreachableError as error:
        return f"waiting: {error}"
    if answers:
        return f"waiting: the engine at {shown_url(url)} answers, but not for this worker yet"
    return f"waiting for an engine at {shown_url(url)}; start one: {common.program()} engine"


@click.command(
    help="Say what runs where: the directories and engines of this machine with the folder each one serves, "
    "and whether a directory answers at the address that commands use here.",
    epilog="Exit codes: 0 a directory answers at the address; 1 no directory answers, and one sentence on "
    "stderr says so; 2 wrong usage.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything about each as JSON.")
@common.url_option
def status(as_json: bool, url: str | None) -> None:
    address = common.engine_url(url)
    runs = processes.all_runs()
    state, sentence = _state_of(address, named=common.is_named(url))
    if as_json:
        shown = [{**run._asdict(), "url": shown_url(run.url)} for run in runs]
        output.print_json({"url": shown_url(address), "state": state, "runs": shown})
    elif runs:
        rows = [
            (shown_url(run.url), run.skills_folder or "(an engine alone)", run.mcp, str(run.pid))
            for run in runs
        ]
        output.print_table(("url", "folder", "mcp", "pid"), rows, whole=True)
    output.note(sentence)
    if state != "directory":
        raise SystemExit(1)


def _state_of(url: str, *, named: bool) -> tuple[str, str]:
    """Say what answers at an address: one word for programs, and a sentence."""
    there = shown_url(url)
    if not common.listens(url):
        return "nothing", f"nothing answers at {there}; start a directory: {program()} up"
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
        return "engine", f"the engine at {there} has no directory; start one there: {program()} serve"
    run = processes.directory_at(url)
    whose = f"the directory of {run.home}" if run else "a directory"
    elsewhere = "" if not run or run.home == str(Path.cwd()) else ", which is not this folder,"
    documents = counted(len(index["skills"]), "document")
    return "directory", f"{whose}{elsewhere} answers at {there}: {documents}"


@click.command(
    help="Open the web page of the directory that runs for this project, or of the only one that runs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON and open nothing.")
def open_page(as_json: bool) -> None:
    # The page is beside the MCP endpoint.
    pages = [
        (run.home, run.mcp.removesuffix("mcp")) for run in processes.directories() if run.mcp is not None
    ]
    here = Path.cwd().resolve()
    upward = [page for folder in (here, *here.parents) for home, page in pages if home == str(folder)]
    if not upward and len(pages) != 1:
        which = "no directory runs" if not pages else f"{len(pages)} directories run, none for this folder"
        common.fail(f"{which}; start one here: {common.program()} up")
    address = upward[0] if upward else pages[0][1]
    if as_json:
        output.print_json({"url": address})
        return
    import webbrowser

    output.say(address)
    webbrowser.open(address)


# Calling any function


class _Trigger(click.Command):
    """Accepts ``--json PAYLOAD`` as well, the spelling before ``--payload``, with a hint on stderr."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words: list[str] = []
        for word in args:
            # `--json` alone asks for JSON output today; only a word that looks like JSON was a payload.
            is_json = word.startswith(("{", "[", '"')) or word in ("null", "true", "false") or word.isdigit()
            if word.startswith("--json="):
                words += ["--payload", word.removeprefix("--json=")]
            elif is_json and words[-1:] == ["--json"]:
                words[-1:] = ["--payload", word]
            else:
                words.append(word)
        if words != args:
            output.note("--json prints the whole reply now; a payload is given with --payload")
        return super().parse_args(ctx, words)


@click.command(
    cls=_Trigger,
    help="Call FUNCTION with the given fields and print its answer: text as text, everything else as JSON. A "
    "VALUE that is valid JSON is sent as JSON, else as text.",
)
@click.argument("function", required=False, shell_complete=complete_functions)
@click.argument("fields", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--payload", help="The payload as JSON; KEY=VALUE fields are set in it.")
@click.option("--json", "as_json", is_flag=True, help="Print the exact reply as JSON, an error's too.")
# How the documents of published workers still write it, from the time before `iii trigger` took words.
@click.option("--function-id", help="FUNCTION, as older documents of workers write it.")
@click.option("--namespace", "-n", help="The namespace of the function.")
@click.option(
    "--timeout-ms",
    type=click.IntRange(min=1),
    default=30_000,
    show_default=True,
    help="How long to wait for the answer.",
)
@output.no_pager_option
@url_option
def trigger(
    function: str | None,
    fields: tuple[str, ...],
    payload: str | None,
    as_json: bool,
    function_id: str | None,
    namespace: str | None,
    timeout_ms: int,
    url: str | None,
) -> None:
    if function_id is not None and function is not None:
        # With --function-id every positional word is a field.
        fields = (function, *fields)
        function = None
    target = function_id or function
    if target is None:
        fail("which function? For example: iii-directory trigger directory::skills::index", code=2)
    from iii_directory.bus.client import EngineUnreachableError, RemoteError, call_function

    address = engine_url(url)
    named = is_named(url)
    # Without a listener a withheld token is not worth a warning; a named address is tried in any case.
    wanted = named or listens(address)
    try:
        result = call_function(
            address,
            target,
            build_payload(payload, fields),
            timeout=timeout_ms / 1000,
            token=engine_token(address, named=named) if wanted else None,
            namespace=namespace,
        )
    except EngineUnreachableError as error:
        way_out = "" if listens(address) else f"; start one: {program()} up"
        fail(f"{error}{way_out}")
    except RemoteError as error:
        body = {key: value for key, value in error.body.items() if key != "stacktrace"}
        if as_json:
            output.say(output.json_text(body), err=True)
            raise SystemExit(1) from None
        fail(str(error))
    if isinstance(result, str) and not as_json:
        output.print_string(result)
    elif result is not None or as_json:
        output.print_json(result)


def build_payload(document: str | None, fields: tuple[str, ...]) -> Any:
    """Build the payload: a JSON document, with the KEY=VALUE fields set in it if it is an object."""
    base: Any = {}
    if document is not None:
        try:
            base = json.loads(document)
        except ValueError as error:
            fail(f"the payload is not JSON: {error}", code=2)
    if not fields:
        return base
    if not is_object(base):
        fail("KEY=VALUE fields need a payload that is an object", code=2)
    merged = dict(base)
    for field in fields:
        key, separator, value = field.partition("=")
        if not separator or not key:
            fail(f"'{field}' is not KEY=VALUE", code=2)
        try:
            merged[key] = json.loads(value)
        except ValueError:
            merged[key] = value
    return merged
