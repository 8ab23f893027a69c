"""Processes of this user: the run files that announce them, and how one of them runs until it is stopped.

A process that runs a directory or an engine writes a run file into a folder that is private to the user, and
keeps the file locked: a run file that can be locked belongs to a process that died. A directory also writes
one into the data directory of its project, because an MCP client may start the bridge with another
environment and so without the private folder. Where a run file cannot be written, commands ask at the default
address as if no directory were known.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import stat
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory import limits
from iii_directory.cli.main import end_at_once
from iii_directory.config import real_path

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator

    from iii_directory.shapes import Json

_SUFFIX: Final = ".json"
_IN_DATA: Final = "runs"
# The state of a listening socket in /proc/net/tcp.
_LISTENING: Final = "0A"


class Run(NamedTuple):
    """A running directory, or an engine that runs without one."""

    pid: int
    home: str
    """The folder of its configuration."""
    url: str
    embedded: bool
    skills_folder: str | None = None
    """None for an engine without a directory."""
    data: str | None = None
    mcp: str | None = None
    at_start: Json | None = None
    """The settings that only a start applies, as the file had them at the start; None if not known."""
    instance: str | None = None
    """The random id that this directory sends with its functions; None for an engine without a directory."""
    secret: str | None = None
    """What a bridge of the same user sends in order to be sent paths."""


@contextmanager
def announced(run: Run, data: Path | None = None) -> Generator[None]:
    """Keep a run file of the user and, with ``data``, one of the project, until the block ends."""
    private = _private_folder()
    held = [_announce(private, run)] if private else []
    in_data = None if data is None else data / _IN_DATA
    with suppress(OSError):
        if in_data is not None:
            in_data.mkdir(mode=0o700, parents=True, exist_ok=True)
            held.append(_announce(in_data, run))
    try:
        yield
    finally:
        for path, handle in filter(None, held):
            with suppress(OSError):
                path.unlink()
            os.close(handle)
        with suppress(OSError):
            if in_data is not None:
                in_data.rmdir()
                # A directory in memory had no data directory before.
                in_data.parent.rmdir()


def all_runs() -> list[Run]:
    """List every running directory and engine of this user, the one started last at the end."""
    folder = _private_folder()
    return [] if folder is None else _runs_in(folder)


def directories() -> list[Run]:
    """List every running directory, without the engines that run alone."""
    return [run for run in all_runs() if run.skills_folder is not None]


def run_of(home: Path) -> Run | None:
    """Find the directory that runs for the project in ``home``."""
    wanted = str(real_path(home))
    return next((run for run in directories() if run.home == wanted), None)


def directory_at(url: str) -> Run | None:
    """Find the directory that runs at an address."""
    return next((run for run in directories() if run.url == url), None)


def directory_for(home: Path, skills_folder: Path, data: Path) -> Run | None:
    """Find the directory of a project and skills folder, by the run files in its data directory."""
    wanted = str(home), str(skills_folder)
    runs = _runs_in(data / _IN_DATA)
    return next((run for run in reversed(runs) if (run.home, run.skills_folder) == wanted), None)


def _runs_in(folder: Path) -> list[Run]:
    with suppress(OSError):
        files = sorted(folder.glob(f"*{_SUFFIX}"), key=lambda path: path.stat().st_mtime)
        return [run for run in map(_live, files) if run is not None]
    return []


def _announce(folder: Path, run: Run) -> tuple[Path, int] | None:
    # Under a name that readers ignore until the file is locked and complete.
    new = folder / f".{run.pid}"
    try:
        handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    content = json.dumps(run._asdict()).encode()
    if len(content) > limits.MAX_RUN_FILE_BYTES:
        # Readers stop at that size; the settings are the part that can be large.
        content = json.dumps(run._replace(at_start=None)._asdict()).encode()
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(handle, content)
        path = new.rename(folder / f"{run.pid}{_SUFFIX}")
    except OSError:
        os.close(handle)
        return None
    return path, handle


def _live(path: Path) -> Run | None:
    """Read a run file; None if its process has ended, or another user may have written it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        # A repository may contain a file of this name, but not with this mode, and no process holds it.
        if found.st_uid != os.getuid() or found.st_mode & 0o077 or not stat.S_ISREG(found.st_mode):
            return None
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        with suppress(ValueError, TypeError, OSError):
            return Run(**json.loads(os.read(handle, limits.MAX_RUN_FILE_BYTES)))
        return None
    finally:
        os.close(handle)
    with suppress(OSError):
        path.unlink()
    return None


def _private_folder() -> Path | None:
    """Return the folder of the user's run files, and create it if missing; None if others may write to it."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    temporary = Path(os.environ.get("TMPDIR") or "/tmp") / f"iii-directory-{os.getuid()}"  # noqa: S108 (0700)
    folder = Path(runtime) / "iii-directory" if runtime else temporary
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return folder if private else None


# Signals


def end_on_ctrl_c() -> None:
    """Make Ctrl-C end the process at once, as a kill would, until there is something to stop in order.

    An exception would first wait for the threads in which the directory is being started. Call this inside
    the running event loop.
    """
    import asyncio

    # The event loop must be woken by the signal: one that comes in the moment before the loop begins to wait
    # would only be seen when the wait is over. A handler of the loop arranges that; the second handler does
    # not depend on the loop, which may be busy with an import.
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, end_at_once, 128 + signal.SIGINT)
    signal.signal(signal.SIGINT, lambda number, _frame: end_at_once(128 + number))


def stop_signal() -> asyncio.Event:
    """Return an event that Ctrl-C and SIGTERM set; a second signal ends the process at once.

    Call this before the program says that it can be stopped.
    """
    import asyncio

    stopped = asyncio.Event()

    def stop(number: int) -> None:
        if stopped.is_set():
            end_at_once(128 + number)
        stopped.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    return stopped


def reread_on_hangup(reread: Callable[[], None], stopped: asyncio.Event) -> None:
    """Make SIGHUP read the settings again; a hang-up because the terminal was closed stops the program."""
    import asyncio

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


# Files and sockets


def raised_file_limit() -> int:
    """Raise the number of files this process may open as far as the system allows, and return it.

    Shells give 1,024; a connection is one file, and documents, git and the database need some as well.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.MAX_ENGINE_CONNECTIONS + limits.MAX_MCP_CONNECTIONS + limits.RESERVED_FILES
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    return wanted if soft == resource.RLIM_INFINITY else soft


class SocketShares(NamedTuple):
    """How many connections each listener may accept."""

    engine: int
    mcp: int


def socket_shares() -> SocketShares:
    """Divide the files that may be open: two thirds for the engine and one for MCP when they are short."""
    files = raised_file_limit()
    if files < limits.RESERVED_FILES:
        # Many clients at once can take every file for a moment, and no module can be imported then.
        import_module("iii_directory.worker.services")
    left = files - min(limits.RESERVED_FILES, files // 2)
    return SocketShares(
        min(limits.MAX_ENGINE_CONNECTIONS, left * 2 // 3), min(limits.MAX_MCP_CONNECTIONS, left // 3)
    )


def cannot_listen(host: str, port: int, error: OSError, option: str) -> str:
    """Say why a port cannot be opened, which process has it, and the option that chooses another."""
    if error.errno == errno.EADDRINUSE:
        owner = port_owner(port)
        by = f" by {owner}" if owner else ""
        return f"port {port} on {host} is in use{by}; pass {option} to take another"
    return f"cannot listen on {host}:{port}: {error.strerror}"


def port_owner(port: int) -> str | None:
    """Name the process that listens on a local TCP port; None where /proc does not say."""
    sockets: set[str] = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            lines = Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]
            for fields in (line.split() for line in lines):
                if fields[3] == _LISTENING and int(fields[1].rsplit(":", 1)[1], 16) == port:
                    sockets.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").glob("[0-9]*") if sockets else ():
        # A process may end, or belong to another user, while its files are looked at.
        with suppress(OSError):
            if any(str(handle.readlink()) in sockets for handle in (process / "fd").iterdir()):
                name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return f"{name} (pid {process.name})"
    return None
