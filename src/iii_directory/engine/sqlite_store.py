"""State that outlives the engine: one SQLite file in the data directory.

What a write promises: once it is answered, killing the engine cannot lose it. It reached the operating
system, not yet the disk, so a power cut may take the newest writes but never leaves a torn one.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from typing import TYPE_CHECKING, Any, Final

from iii_directory.engine.store import StoreError
from iii_directory.engine.wire_json import ABSENT

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME: Final = "engine.db"


class DataDirectoryError(Exception):
    """The data directory cannot be used; the text says which and why."""


class Database:
    """The open file. It is held for one engine alone, so that two never write past each other."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE_NAME
        self.set_aside: Path | None = None
        """Where a corrupt file was moved to, if one was found."""
        _make_usable(directory)
        _keep_private(self.path)
        try:
            self._connection = _open(self.path)
        except sqlite3.OperationalError as error:
            raise DataDirectoryError(_cannot_open(directory, error)) from None
        except sqlite3.DatabaseError:
            self.set_aside = _move_aside(self.path)
            self._connection = _open(self.path)

    def store(self, owner: str) -> SqliteStore:
        return SqliteStore(self._connection, owner)

    def close(self) -> None:
        self._connection.close()


class SqliteStore:
    """The values of one owner in the database, as a :class:`~iii_directory.engine.store.Store`."""

    def __init__(self, connection: sqlite3.Connection, owner: str) -> None:
        self._connection = connection
        self._owner = owner

    def get(self, scope: str, key: str) -> object:
        rows = self._run("SELECT value FROM entries WHERE owner = ? AND scope = ? AND key = ?", scope, key)
        return _parsed(rows[0][0]) if rows else ABSENT

    def set(self, scope: str, key: str, value: object) -> None:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        self._run(
            "INSERT INTO entries (owner, scope, key, value) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (owner, scope, key) DO UPDATE SET value = excluded.value",
            scope,
            key,
            text,
        )

    def delete(self, scope: str, key: str) -> None:
        self._run("DELETE FROM entries WHERE owner = ? AND scope = ? AND key = ?", scope, key)

    def values(self, scope: str) -> list[object]:
        rows = self._run("SELECT value FROM entries WHERE owner = ? AND scope = ? ORDER BY position", scope)
        # One parse of one array is much faster than a parse per row.
        return _parsed(f"[{','.join(row[0] for row in rows)}]")

    def size(self, scope: str) -> int:
        # As a blob its length is known without reading it.
        rows = self._run(
            "SELECT TOTAL(LENGTH(CAST(value AS BLOB)) + 1) FROM entries WHERE owner = ? AND scope = ?", scope
        )
        return int(rows[0][0])

    def scopes(self) -> list[str]:
        return [row[0] for row in self._run("SELECT DISTINCT scope FROM entries WHERE owner = ?")]

    def _run(self, statement: str, *values: str) -> list[tuple[str]]:
        try:
            return self._connection.execute(statement, (self._owner, *values)).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"the state database refused: {error}") from None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise StoreError("the state database holds a value that cannot be read") from None


def _open(path: Path) -> sqlite3.Connection:
    # Opened where an engine is started, used where its loop runs: one thread at a time, not always the same.
    connection = sqlite3.connect(path, isolation_level=None, timeout=1.0, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS entries (position INTEGER PRIMARY KEY AUTOINCREMENT, "
            "owner TEXT NOT NULL, scope TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, "
            "UNIQUE (owner, scope, key))"
        )
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _make_usable(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DataDirectoryError(f"the data directory {directory} cannot be made: {error.strerror}") from None
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        raise DataDirectoryError(f"the data directory {directory} cannot be used: Permission denied")


def _keep_private(path: Path) -> None:
    """What is kept is its owner's alone, whatever the umask; SQLite gives its log the mode of the file."""
    try:
        if all(entry.name.startswith(FILE_NAME) for entry in path.parent.iterdir()):
            # Nothing else is there, so it is a data directory, made by an older version perhaps.
            path.parent.chmod(0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        for suffix in ("", "-wal", "-shm"):
            part = path.with_name(path.name + suffix)
            if part.exists():
                part.chmod(0o600)
    except OSError:
        # Not ours to change, or no regular file: SQLite says what is wrong with it, if something is.
        return


def _cannot_open(directory: Path, error: sqlite3.OperationalError) -> str:
    if "locked" in str(error):
        return f"the data directory {directory} is in use by another engine"
    return f"the data directory {directory} cannot be used: {error}"


def _move_aside(path: Path) -> Path:
    """Keep a corrupt database, and its log, under a name that says when it was found."""
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    target = path.with_name(f"{path.name}.corrupt-{stamp}")
    count = 1
    while target.exists():
        count += 1
        target = path.with_name(f"{path.name}.corrupt-{stamp}-{count}")
    for suffix in ("-wal", "-shm", ""):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(target.with_name(target.name + suffix))
    return target
