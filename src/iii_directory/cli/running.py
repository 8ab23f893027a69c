"""Running things until somebody says stop: the engine, the worker, or both."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.cli.common import fail, log
from iii_directory.cli.main import end_at_once
from iii_directory.cli.runs import all_runs
from iii_directory.config import real_path
from iii_directory.limits import MAX_ENGINE_CONNECTIONS, MAX_MCP_CONNECTIONS, RESERVED_FILES

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.cli.tokens import TokenRule
    from iii_directory.config import Settings
    from iii_directory.engine.builtins.workers import Dialect
    from iii_directory.engine.server import EngineServer
    from iii_directory.engine.sqlite_store import Database

# The state of a listening socket in /proc/net/tcp.
_LISTENING: Final = "0A"


def raised_file_limit() -> int:
    """The number of files this process may have open, once it has been raised as far as the system lets it.

    Shells give 1,024; a connection is one file, and documents, git and the database need some as well.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_ENGINE_CONNECTIONS + MAX_MCP_CONNECTIONS + RESERVED_FILES
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    return wanted if soft == resource.RLIM_INFINITY else soft


class Room(NamedTuple):
    """How many sockets each listener may have."""

    engine: int
    mcp: int


def room_for_sockets() -> Room:
    """What the files leave, once the limit is raised: two in three for the engine when they are short."""
    files = raised_file_limit()
    if files < RESERVED_FILES:
        # A crowd can take every file for a moment, and no module can be imported then.
        from iii_directory.worker.parts import import_all

        import_all()
    left = files - min(RESERVED_FILES, files // 2)
    return Room(min(MAX_ENGINE_CONNECTIONS, left * 2 // 3), min(MAX_MCP_CONNECTIONS, left // 3))


def open_database(directory: Path | None) -> Database | None:
    """The database of a data directory, or None for memory. A corrupt one is set aside and named."""
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


def new_engine(
    settings: Settings,
    *,
    host: str,
    port: int,
    rule: TokenRule,
    database: Database | None,
    dialect: Dialect = "0.22",
) -> EngineServer:
    """An engine that does not listen yet, or one sentence about why not."""
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
            dialect=dialect,
            limits=SocketLimits(connections=room_for_sockets().engine),
        )
    except ValueError as error:
        fail(f"{error}. Pass --token, which may be auto, or set III_TOKEN", code=2)


async def listen(engine: EngineServer) -> None:
    """Let others in, or say in one sentence why that cannot be."""
    try:
        await engine.start()
    except OSError as error:
        fail(cannot_listen(engine.host, engine.port, error, "--port"))


def end_on_ctrl_c() -> None:
    """Until there is something to stop in order, Ctrl-C ends the process where it stands, as a kill would.

    An exception would first wait for the threads in which things are started.
    """
    signal.signal(signal.SIGINT, lambda number, _frame: end_at_once(128 + number))


def stop_signal() -> asyncio.Event:
    """What Ctrl-C and SIGTERM set from now on: ask for it before saying that there is something to stop.

    Whoever cannot wait for the end in order presses Ctrl-C again.
    """
    stopped = asyncio.Event()

    def ask(number: int) -> None:
        if stopped.is_set():
            end_at_once(128 + number)
        stopped.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ask, number)
    return stopped


def reread_on_hangup(reread: Callable[[], None], stopped: asyncio.Event) -> None:
    """From now on SIGHUP has the settings read again; a terminal that went away stops, as it always did."""
    had_terminal = _has_terminal()

    def hung_up() -> None:
        if had_terminal and not _has_terminal():
            stopped.set()
        else:
            asyncio.get_running_loop().run_in_executor(None, reread)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hung_up)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def cannot_listen(host: str, port: int, error: OSError, option: str) -> str:
    """Why an address cannot be had, by whom it is taken, and the option that chooses another."""
    if error.errno == errno.EADDRINUSE:
        owner = port_owner(port)
        by = f" by {owner}" if owner else ""
        return f"port {port} on {host} is in use{by}; pass {option} to take another"
    return f"cannot listen on {host}:{port}: {error.strerror}"


def port_owner(port: int) -> str | None:
    """The name and process id of who listens on a local TCP port, if it can be told."""
    inodes = _listening_inodes(port)
    if not inodes:
        return None
    wanted = {f"socket:[{inode}]" for inode in inodes}
    for process in Path("/proc").glob("[0-9]*"):
        if _holds(process, wanted):
            return f"{_name(process)} (pid {process.name})"
    return None


def _listening_inodes(port: int) -> set[str]:
    found: set[str] = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in (line.split() for line in lines):
            if fields[3] == _LISTENING and int(fields[1].rsplit(":", 1)[1], 16) == port:
                found.add(fields[9])
    return found


def _holds(process: Path, sockets: set[str]) -> bool:
    try:
        return any(str(handle.readlink()) in sockets for handle in (process / "fd").iterdir())
    except OSError:
        return False


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "a process"
