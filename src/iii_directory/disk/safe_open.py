"""Reading what lies below a folder so that no link, however late it appears, can lead outside.

Each component is opened relative to the one before it and never followed when it is a link; what was
opened is looked at again after opening. A path is only ever names joined by ``/``: ``..`` is refused.
Everything not read raises `RefusedError`, which is an OSError with a reason.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from iii_directory.disk.files import POSIX, closing_fd
from iii_directory.disk.reasons import GONE, SPECIAL, TOO_LARGE, RefusedError, refusal

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from iii_directory.disk.files import FileOps

_CHUNK: Final = 1 << 20
# Every further one is for an exchange that came in between two system calls.
_TRIES: Final = 3
_NO_NAMES: Final = ("", ".", "..")


def open_directory(name: str, parent: int | None = None, files: FileOps = POSIX) -> int:
    """The descriptor of a directory that is no link, by path or, within ``parent``, by name."""
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
    """A descriptor of the directory that ``names`` lead to from ``root``, one safe step at a time.

    An open root stays open.
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
    """The whole of one regular file of at most ``limit`` bytes, with its state just before the read."""
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
        if len(raw) != state.st_size:
            raw = _read_on(files, file, raw, limit)
        return state, raw
    except OSError as error:
        raise refusal(error) from None


def _regular(file: int) -> os.stat_result:
    state = os.fstat(file)
    if not stat.S_ISREG(state.st_mode):
        raise RefusedError(SPECIAL)
    return state


def _read_on(files: FileOps, file: int, raw: bytes, limit: int) -> bytes:
    """The rest of a file whose size changed under us, or that the system hands out in pieces."""
    while piece := files.read(file, limit + 1):
        raw += piece
        if len(raw) > limit:
            raise RefusedError(TOO_LARGE)
    return raw


def read_below(root: str | int, path: str, limit: int, files: FileOps = POSIX) -> bytes:
    """The bytes of the regular file at ``path`` below ``root`` as they are now."""
    with closing_fd(_open_below(root, path, files)) as file:
        return _whole(files, file, limit)[1]


@contextmanager
def regular_below(root: str | int, path: str, files: FileOps = POSIX) -> Generator[int]:
    """A descriptor of the regular file at ``path`` below ``root``."""
    with closing_fd(_open_below(root, path, files)) as file:
        _regular(file)
        yield file


def _open_below(root: str | int, path: str, files: FileOps) -> int:
    """What is at a path. A folder that was just exchanged loses its files: the other is looked for then."""
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
    """The content of a regular file, None when there is none; a larger one is refused."""
    try:
        return read_regular(folder, name, limit, files)[1]
    except RefusedError as refused:
        if refused.is_absence:
            return None
        raise


def hash_file(files: FileOps, name: str, folder: int) -> tuple[str, os.stat_result]:
    """The SHA-256 of a regular file of any size, and its state before the first byte was read."""
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
