"""Which directories and engines of this person run here: where each answers, and for which folder.

Whoever runs one says so in a file of a folder that is private to the person, and holds the file locked: one
that can be locked is of a process that died. Everything here is a help and no more: where that folder cannot
be had, commands ask at the usual address as if nothing were known.
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
    """The settings of its file that only a start applies, as they were at its own; None if nobody says."""


@contextmanager
def announced(run: Run) -> Generator[None]:
    """Others on this machine know of the run meanwhile."""
    held = _announce(run)
    try:
        yield
    finally:
        if held is not None:
            path, handle = held
            with suppress(OSError):
                path.unlink()
            os.close(handle)


def all_runs() -> list[Run]:
    """Everything that runs, what was started last at the end."""
    folder = _private_folder()
    if folder is None:
        return []
    with suppress(OSError):
        files = sorted(folder.glob(f"*{_SUFFIX}"), key=_started)
        return [run for run in map(_live, files) if run is not None]
    return []


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


def _announce(run: Run) -> tuple[Path, int] | None:
    folder = _private_folder()
    if folder is None:
        return None
    # Under a name that nobody looks at until it is locked and whole.
    new = folder / f".{run.pid}"
    try:
        handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
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
    """What a file says; None if its process is gone, or it says nothing we know."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
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
