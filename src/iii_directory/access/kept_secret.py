"""Secrets that this program makes once and keeps in files that only their owner can read."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from iii_directory.limits import MAX_TOKEN_FILE_BYTES, MIN_TOKEN_CHARS

if TYPE_CHECKING:
    from pathlib import Path

_RANDOM_BYTES: Final = 32


class ExposedError(Exception):
    """A file of a secret that other users may have read or written."""


def new_secret() -> str:
    """A secret of 32 random bytes."""
    return secrets.token_urlsafe(_RANDOM_BYTES)


def kept_secret(folder: Path, name: str) -> str:
    """The secret in a file of a folder; `ExposedError` if the file is not private, else an `OSError`."""
    path = folder / name
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        private = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
        secret = os.read(handle, MAX_TOKEN_FILE_BYTES).decode("ascii", "replace").strip()
    finally:
        os.close(handle)
    if not private or len(secret) < MIN_TOKEN_CHARS:
        raise ExposedError(f"{path} is no {name} that you alone can read")
    return secret


def made_secret(folder: Path, name: str) -> str:
    """The secret in a file of a folder, made and written there if it is missing."""
    with suppress(FileNotFoundError):
        return kept_secret(folder, name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The file is whole before it has its name. Two processes that make one at the same time use the first.
    draft = folder / f".{name}-{os.getpid()}"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, new_secret().encode())
        with suppress(FileExistsError):
            os.link(draft, folder / name)
    finally:
        os.close(handle)
        draft.unlink()
    return kept_secret(folder, name)
