"""Run files: which directories and engines of this user run here, where each answers, and for which folder.

A process that runs one writes a file into a folder that is private to the user, and holds the file locked: a
file that can be locked belongs to a process that died. A directory also writes one into the data directory of
its project, because an MCP client may start the bridge with another environment and so without the private
folder. Where a run file cannot be written, commands ask at the default address as if nothing were known.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.config import real_path
from iii_directory.limits import MAX_RUN_FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Generator

    from iii_directory.shapes import Json

_SUFFIX: Final = ".json"
_IN_DATA: Final = "runs"


class Run(NamedTuple):
    """A directory that runs, or an engine alone."""

    pid: int
    home: str
    """The folder it was started for, which is that of its configuration."""
    url: str
    embedded: bool
    skills_folder: str | None
    """What it shows; an engine alone shows none, and is no directory."""
    data: str | None
    mcp: str | None
    at_start: Json | None = None
    """The settings of its file that only a start applies, as they were at its own; None if not known."""
    instance: str | None = None
    """The random id that this directory tells with its functions; None of an engine alone."""
    secret: str | None = None
    """What a bridge of the same user shows to be told paths."""


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
    """Everything that runs, what was started last at the end."""
    folder = _private_folder()
    return [] if folder is None else _runs_in(folder)


def directory_for(home: Path, skills_folder: Path, data: Path) -> Run | None:
    """The directory that runs for a project and this folder, by the run files of its data directory."""
    wanted = str(home), str(skills_folder)
    runs = _runs_in(data / _IN_DATA)
    return next((run for run in reversed(runs) if (run.home, run.skills_folder) == wanted), None)


def run_of(home: Path) -> Run | None:
    """The directory that runs for a folder."""
    wanted = str(real_path(home))
    return next((run for run in directories() if run.home == wanted), None)


def directory_at(url: str) -> Run | None:
    """The directory that runs at an address."""
    return next((run for run in directories() if run.url == url), None)


def directories() -> list[Run]:
    """Every directory that runs, without the engines that run alone."""
    return [run for run in all_runs() if run.skills_folder is not None]


def _runs_in(folder: Path) -> list[Run]:
    with suppress(OSError):
        files = sorted(folder.glob(f"*{_SUFFIX}"), key=_started)
        return [run for run in map(_live, files) if run is not None]
    return []


def _announce(folder: Path, run: Run) -> tuple[Path, int] | None:
    # Under a name that no reader looks at until it is locked and whole.
    new = folder / f".{run.pid}"
    try:
        handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(handle, _told(run))
        path = new.rename(folder / f"{run.pid}{_SUFFIX}")
    except OSError:
        os.close(handle)
        return None
    return path, handle


def _told(run: Run) -> bytes:
    """What others are told of a run; where that is more than they read, its settings are left out."""
    everything = json.dumps(run._asdict()).encode()
    if len(everything) <= MAX_RUN_FILE_BYTES:
        return everything
    return json.dumps(run._replace(at_start=None)._asdict()).encode()


def _live(path: Path) -> Run | None:
    """What a file says; None if its process is gone, or another user may have written it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        # A repository may bring a file of this name, but neither this mode nor a process that holds it.
        if found.st_uid != os.getuid() or found.st_mode & 0o077 or not stat.S_ISREG(found.st_mode):
            return None
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        with suppress(ValueError, TypeError, OSError):
            return Run(**json.loads(os.read(handle, MAX_RUN_FILE_BYTES)))
        return None
    finally:
        os.close(handle)
    with suppress(OSError):
        path.unlink()
    return None


def _started(path: Path) -> float:
    return path.stat().st_mtime


def _private_folder() -> Path | None:
    """The folder, made if it is missing; None if it is not ours alone."""
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
