"""Running things until somebody says stop: the engine, the worker, or both."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from typing import TYPE_CHECKING

from iii_directory.cli.common import fail, log
from iii_directory.cli.port_owner import port_owner

if TYPE_CHECKING:
    from pathlib import Path

    from iii_directory.config import Settings
    from iii_directory.engine.builtins.workers import Dialect
    from iii_directory.engine.server import EngineServer
    from iii_directory.engine.sqlite_store import Database


def open_database(directory: Path | None) -> Database | None:
    """The database of a data directory, or None for memory. A corrupt one is set aside and named."""
    if directory is None:
        return None
    from iii_directory.engine.sqlite_store import Database, DataDirectoryError

    try:
        database = Database(directory)
    except DataDirectoryError as error:
        fail(str(error))
    if database.set_aside is not None:
        log.error(
            "the state database was corrupt; it is kept as %s, a new one was started", database.set_aside
        )
    return database


def new_engine(
    settings: Settings,
    *,
    host: str,
    port: int,
    token: str | None,
    database: Database | None,
    dialect: Dialect = "0.22",
) -> EngineServer:
    """An engine that does not listen yet, or one sentence about why not."""
    from iii_directory.engine.server import EngineServer

    listed = {name: os.environ[name] for name in settings.configuration_env if name in os.environ}
    try:
        return EngineServer(
            host=host, port=port, token=token, database=database, environment=listed, dialect=dialect
        )
    except ValueError as error:
        fail(f"{error}. Pass --token or set III_TOKEN", code=2)


async def listen(engine: EngineServer) -> None:
    """Let others in, or say in one sentence why that cannot be."""
    try:
        await engine.start()
    except OSError as error:
        fail(cannot_listen(engine.host, engine.port, error, "--port"))


def stop_signal() -> asyncio.Event:
    """What Ctrl-C and SIGTERM set from now on: ask for it before saying that there is something to stop."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    return stopped


def cannot_listen(host: str, port: int, error: OSError, option: str) -> str:
    """Why an address cannot be had, by whom it is taken, and the option that chooses another."""
    if error.errno == errno.EADDRINUSE:
        owner = port_owner(port)
        by = f" by {owner}" if owner else ""
        return f"port {port} on {host} is in use{by}; pass {option} to take another"
    return f"cannot listen on {host}:{port}: {error.strerror}"
