"""Read and write below a folder so that no link, however late it appears, can lead outside.

Each component is opened relative to the one before it without following links, and the type of an opened file
is checked after opening. A path consists of names joined by ``/``; ``..`` is refused. A file that cannot be
read raises `RefusedError`, an OSError with a reason.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from iii_directory.disk.files import (
    GONE,
    NOT_SUPPORTED,
    POSIX,
    SPECIAL,
    TOO_LARGE,
    RefusedError,
    closing_fd,
    refusal,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from iii_directory.disk.files import FileOps

_CHUNK: Final = 1 << 20
# A folder may be exchanged between two system calls; each further try is for one exchange.
_TRIES: Final = 3
_NO_NAMES: Final = ("", ".", "..")


def open_directory(name: str, parent: int | None = None, files: FileOps = POSIX) -> int:
    """Open a directory that is not a link, by path or by name within ``parent``."""
    try:
        return files.open_folder(name, parent)
    except (OSError, ValueError) as error:
        raise refusal(error) from None


@contextmanager
def opened_folder(files: FileOps, name: str, folder: int) -> Generator[int]:
    with closing_fd(open_directory(name, folder, files)) as opened:
        yield opened


@contextmanager
def directory_below(root: str | int, names: Sequence[str], files: FileOps = POSIX) -> Generator[int]:
    """Open the directory that ``names`` lead to from ``root``, one component at a time.

    A root given as a descriptor stays open.
    """
    current = os.dup(root) if isinstance(root, int) else open_directory(root, None, files)
    try:
        for name in names:
            if name in _NO_NAMES:
                raise RefusedError(GONE)
            following = open_directory(name, current, files)
            os.close(current)
            current = following
        yield current
    finally:
        os.close(current)


def status_or_none(files: FileOps, name: str, folder: int) -> os.stat_result | None:
    try:
        return files.status(name, folder)
    except FileNotFoundError:
        return None


def read_regular(
    directory: int, name: str, limit: int, files: FileOps = POSIX
) -> tuple[os.stat_result, bytes]:
    """Read a regular file of at most ``limit`` bytes; also return its status just before the read."""
    try:
        file = files.open_file(name, directory)
    except (OSError, ValueError) as error:
        raise refusal(error) from None
    with closing_fd(file):
        return _whole(files, file, limit)


def _whole(files: FileOps, file: int, limit: int) -> tuple[os.stat_result, bytes]:
    try:
        state = _regular(file)
        if state.st_size > limit:
            raise RefusedError(TOO_LARGE)
        raw = files.read(file, state.st_size + 1)
        if len(raw) == state.st_size:
            return state, raw
        # The size changed meanwhile, or the file is returned in pieces.
        while piece := files.read(file, limit + 1):
            raw += piece
            if len(raw) > limit:
                raise RefusedError(TOO_LARGE)
        return state, raw
    except OSError as error:
        raise refusal(error) from None


def _regular(file: int) -> os.stat_result:
    state = os.fstat(file)
    if not stat.S_ISREG(state.st_mode):
        raise RefusedError(SPECIAL)
    return state


def read_below(root: str | int, path: str, limit: int, files: FileOps = POSIX) -> bytes:
    """Read the regular file at ``path`` below ``root``."""
    with closing_fd(_open_below(root, path, files)) as file:
        return _whole(files, file, limit)[1]


@contextmanager
def regular_below(root: str, path: str) -> Generator[int]:
    """Open the regular file at ``path`` below ``root``."""
    with closing_fd(_open_below(root, path, POSIX)) as file:
        _regular(file)
        yield file


def _open_below(root: str | int, path: str, files: FileOps) -> int:
    """Open a path, again if it is missing: its folder may just have been exchanged for another."""
    *names, name = path.split("/")
    if name in _NO_NAMES:
        raise RefusedError(GONE)
    tries = _TRIES
    while True:
        tries -= 1
        try:
            with directory_below(root, names, files) as directory:
                return files.open_file(name, directory)
        except (OSError, ValueError) as error:
            refused = refusal(error)
            if not refused.is_absence or not tries:
                raise refused from None


def read_file(files: FileOps, name: str, folder: int, limit: int) -> bytes | None:
    """Read a regular file of at most ``limit`` bytes; return None if it does not exist."""
    try:
        return read_regular(folder, name, limit, files)[1]
    except RefusedError as refused:
        if refused.is_absence:
            return None
        raise


def hash_file(files: FileOps, name: str, folder: int) -> tuple[str, os.stat_result]:
    """Return the SHA-256 of a regular file of any size and its status before the read."""
    try:
        with closing_fd(files.open_file(name, folder)) as file:
            state = _regular(file)
            digest = hashlib.sha256()
            left = state.st_size + _CHUNK
            while left > 0 and (chunk := files.read(file, min(left, _CHUNK))):
                left -= len(chunk)
                digest.update(chunk)
    except OSError as error:
        raise refusal(error) from None
    return f"sha256:{digest.hexdigest()}", state


def write_file(
    files: FileOps,
    name: str,
    folder: int,
    content: bytes,
    *,
    executable: bool = False,
    like: os.stat_result | None = None,
) -> None:
    """Create a file and sync its content; its name is durable once the folder is synced."""
    with closing_fd(files.create(name, folder, 0o755 if executable else 0o644)) as opened:
        files.write(opened, content)
        if like is not None:
            files.adopt(opened, like)
        files.sync(opened)


def carry(files: FileOps, name: str, folder: int, new_name: str, new_folder: int) -> None:
    """Give a file a second name: a hard link, or a copy where links are not supported."""
    try:
        files.link(name, folder, new_name, new_folder)
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise
        like = files.status(name, folder)
        content = read_file(files, name, folder, like.st_size)
        write_file(files, new_name, new_folder, content or b"", like=like)


def remove_tree(files: FileOps, name: str, folder: int) -> None:
    """Remove a name and everything below it, if it exists; links are removed, not followed."""
    state = status_or_none(files, name, folder)
    if state is None:
        return
    if not stat.S_ISDIR(state.st_mode):
        files.unlink(name, folder)
        return
    if state.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        files.make_writable(name, folder)
    with opened_folder(files, name, folder) as opened:
        for inner in files.list_folder(opened):
            remove_tree(files, inner, opened)
    files.remove_folder(name, folder)
