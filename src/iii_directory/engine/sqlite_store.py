"""State that outlives the engine: one SQLite file in the data directory.

What a write promises: once it is answered, killing the engine cannot lose it. It reached the operating
system, not yet the disk, so a power cut may take the newest writes but never leaves a torn one.

Small values are written on the event loop, all that come in one pass of it in one transaction: a transaction
takes four times as long as a write in it. Large values are read and written in a thread, while SQLite lets go
of the interpreter and other clients are served (goal ``beside.values``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from iii_directory.engine.store import StoreError, UnreadableError
from iii_directory.limits import LARGE_VALUE_BYTES, MAX_SLOW_STORE_WORK
from iii_directory.wire.access import KEPT_TOKEN, REGISTRANTS_KEY
from iii_directory.wire.json_text import ABSENT, encode_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from iii_directory.wire.json_text import Text

log = logging.getLogger("iii_directory.engine")
T = TypeVar("T")

FILE_NAME: Final = "engine.db"
_GIT_IGNORES: Final = ".gitignore"
_OURS: Final = (FILE_NAME, KEPT_TOKEN, REGISTRANTS_KEY, _GIT_IGNORES)
# As a blob its length is known without reading it.
_SIZE: Final = "LENGTH(CAST(value AS BLOB))"
_COLUMNS: Final = ("position", "owner", "scope", "key", "value")
_REFUSED: Final = "the state database refused: {}"


class DataDirectoryError(Exception):
    """The data directory cannot be used; the text says which and why."""


class Database:
    """The open file. It is held for one engine alone, so that two never write past each other.

    Other programs may still delete, replace or overwrite it. Before every write it is checked: what is not as
    this database left it is kept beside under another name, and what can be read goes on in a new file.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE_NAME
        self.set_aside: Path | None = None
        """Where a file was moved to that was damaged, or not the one that was opened; the last of them."""
        self._parts = tuple(str(directory / (FILE_NAME + suffix)) for suffix in ("", "-wal"))
        _check_usable(directory)
        _keep_private(self.path)
        try:
            self._connection = _open(self.path)
        except sqlite3.OperationalError as error:
            is_locked = "locked" in str(error)
            why = "is in use by another engine" if is_locked else f"cannot be used: {error}"
            raise DataDirectoryError(f"the data directory {directory} {why}") from None
        except sqlite3.DatabaseError:
            self._begin_anew([])
        try:
            columns = tuple(row[1] for row in self._connection.execute("PRAGMA table_info(entries)"))
            kinds = {row[0] for row in self._connection.execute("SELECT type FROM sqlite_master")}
        except sqlite3.Error:
            columns, kinds = (), set[str]()
        # Views and triggers act by themselves when something is read or written.
        if columns != _COLUMNS or kinds & {"view", "trigger"}:
            self._connection.close()
            raise DataDirectoryError(
                f"{self.path} is a database of another program or version: "
                "move it away, or choose another data directory"
            )
        self._stamp = self._look()
        # The state's values may be read and written in another thread than the configuration's.
        self._lock = threading.Lock()
        self.keeps_open = False
        """Whether writes stay in an open transaction until :meth:`commit`."""
        self._lost: StoreError | None = None
        """Why the writes of the last transaction are not kept."""

    @property
    def is_open(self) -> bool:
        """Return whether there is a transaction whose writes are not kept yet, or are lost."""
        return self._connection.in_transaction or self._lost is not None

    def store(self, owner: str) -> SqliteStore:
        return SqliteStore(self, owner)

    def read(self, statement: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the rows of a query.

        Raises:
            StoreError: the database cannot be read.
        """
        try:
            with self._lock:
                return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(_REFUSED.format(error)) from None

    def write(self, statement: str, values: Sequence[str | Text]) -> None:
        """Change something, once it is known that the file is still the one that keeps it.

        Raises:
            StoreError: the database cannot be written.
        """
        connection, was_open = self._connection, self._connection.in_transaction
        try:
            with self._lock:
                if not was_open:
                    self._put_right()
                    connection = self._connection
                    if self.keeps_open:
                        connection.execute("BEGIN")
                connection.execute(statement, values)
                if not connection.in_transaction:
                    self._stamp = self._look()
        except sqlite3.Error as error:
            if was_open and not connection.in_transaction:
                # SQLite takes everything back when, for example, the disk is full.
                self._lost = StoreError(_REFUSED.format(error))
            raise StoreError(_REFUSED.format(error)) from None
        except OSError as error:
            raise StoreError(f"the state database cannot be kept: {error.strerror}") from None
        if was_open and not self.keeps_open:
            self.commit()

    def commit(self) -> None:
        """Keep the writes of the open transaction, if there is one.

        Raises:
            StoreError: they could not be kept, now or before.
        """
        with self._lock:
            if self._connection.in_transaction:
                try:
                    self._connection.execute("COMMIT")
                    self._stamp = self._look()
                except sqlite3.Error as error:
                    self._lost = StoreError(_REFUSED.format(error))
                    with contextlib.suppress(sqlite3.Error):
                        self._connection.execute("ROLLBACK")
        if self._lost is not None:
            raise self._lost

    def finish(self) -> StoreError | None:
        """End a transaction; return why its writes are not kept, or None if they are."""
        with contextlib.suppress(StoreError):
            self.commit()
        lost, self._lost = self._lost, None
        return lost

    def close(self) -> None:
        with contextlib.suppress(sqlite3.ProgrammingError):  # it may be closed twice
            self.finish()
        self._connection.close()

    def _look(self) -> tuple[tuple[int, ...] | None, ...]:
        """Return what changes when another program touches the file or its log."""
        stamps: list[tuple[int, ...] | None] = []
        for part in self._parts:
            try:
                found = os.lstat(part)
                stamps.append((found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns))
            except OSError:
                stamps.append(None)
        return tuple(stamps)

    def _put_right(self) -> None:
        if self._look() == self._stamp:
            return
        before, now = self._stamp[0], self._look()[0]
        if before is not None and now is not None and before[:2] == now[:2]:
            with contextlib.suppress(sqlite3.DatabaseError):
                if self._connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok":
                    return  # touched, and as good as before
        # The connection still holds what was there, even of a file that is gone.
        rows = _readable_rows(self._connection)
        self._connection.close()
        self._begin_anew(rows)
        log.error(
            "the state database was changed by another program; %d values go on in a new file%s",
            len(rows),
            f", what was there is kept as {self.set_aside.name}" if self.set_aside is not None else "",
        )

    def _begin_anew(self, rows: list[tuple[Any, ...]]) -> None:
        if self.path.exists():
            self.set_aside = _move_aside(self.path)
            if not rows:
                # What can be read of a damaged file; nothing if it is not a database.
                address = f"{self.set_aside.absolute().as_uri()}?mode=ro"
                with (
                    contextlib.suppress(sqlite3.Error),
                    contextlib.closing(sqlite3.connect(address, uri=True)) as damaged,
                ):
                    rows = _readable_rows(damaged)
        for suffix in ("-wal", "-shm"):
            self.path.with_name(FILE_NAME + suffix).unlink(missing_ok=True)
        _keep_private(self.path)
        self._connection = _open(self.path)
        self._connection.executemany(
            "INSERT OR REPLACE INTO entries (position, owner, scope, key, value) VALUES (?, ?, ?, ?, ?)", rows
        )


class SqliteStore:
    """The values of one owner in the database, with the methods of a `MemoryStore`."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner
        rows = self._run(
            f"SELECT scope, key FROM entries WHERE owner = ? AND {_SIZE} > {LARGE_VALUE_BYTES}"  # noqa: S608
        )
        self.large: set[tuple[str, str]] = {(scope, key) for scope, key in rows}
        """The places of large values, so that the database is not asked for the size of a value."""

    def get(self, scope: str, key: str) -> object:
        # As a blob it is not decoded on the way.
        rows = self._run(
            "SELECT CAST(value AS BLOB) FROM entries WHERE owner = ? AND scope = ? AND key = ?", scope, key
        )
        if not rows:
            return ABSENT
        content: bytes = rows[0][0]
        return _decoded(content) if len(content) <= LARGE_VALUE_BYTES else _decoded(content, msgspec.Raw)

    def set(self, scope: str, key: str, value: object) -> None:
        text = memoryview(value) if type(value) is msgspec.Raw else encode_value(value)
        self._database.write(
            "INSERT INTO entries (owner, scope, key, value) VALUES (?, ?, ?, CAST(? AS TEXT)) "
            "ON CONFLICT (owner, scope, key) DO UPDATE SET value = excluded.value",
            (self._owner, scope, key, text),
        )
        if len(text) > LARGE_VALUE_BYTES:
            self.large.add((scope, key))
        else:
            self.large.discard((scope, key))

    def delete(self, scope: str, key: str) -> None:
        statement = "DELETE FROM entries WHERE owner = ? AND scope = ? AND key = ?"
        self._database.write(statement, (self._owner, scope, key))
        self.large.discard((scope, key))

    def values(self, scope: str) -> list[object]:
        rows = self._run("SELECT value FROM entries WHERE owner = ? AND scope = ? ORDER BY position", scope)
        if sum(len(row[0]) for row in rows) > LARGE_VALUE_BYTES:
            return [_decoded(row[0].encode(), msgspec.Raw) for row in rows]
        # One parse of one array is much faster than a parse per row.
        return _decoded(f"[{','.join(row[0] for row in rows)}]")

    def size(self, scope: str) -> int:
        rows = self._run(f"SELECT TOTAL({_SIZE} + 1) FROM entries WHERE owner = ? AND scope = ?", scope)  # noqa: S608
        return int(rows[0][0])

    def scopes(self) -> list[str]:
        return [row[0] for row in self._run("SELECT DISTINCT scope FROM entries WHERE owner = ?")]

    def _run(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        return self._database.read(statement, (self._owner, *values))


class DatabaseQueue:
    """Runs work on the state of an engine, one piece after the other in the order in which it came."""

    def __init__(self, database: Database | None, carry_on: Callable[[Callable[[], None]], None]) -> None:
        """``carry_on`` is given, on the loop, what is to be done after slow work.

        Without a database the state is in memory, and all work is done at once.
        """
        self._database = database
        self._carry_on = carry_on
        # One thread, which is made with the first slow work: what came first is done first.
        self._thread = ThreadPoolExecutor(1, "state")
        self._slow = 0
        self._waiting: deque[Callable[[], None]] = deque()
        self.uncommitted: list[Callable[[StoreError | None], None]] = []
        self.committed: list[Callable[[], None]] = []
        """What :meth:`commit` has to do, if it has anything to do: what writes wait for, and what follows."""
        self.made = 0
        """How much slow work there has been."""

    @property
    def is_busy(self) -> bool:
        """Whether slow work is under way: the store must not be used except through the queue."""
        return self._slow > 0

    @property
    def is_behind(self) -> bool:
        """Return whether so much is under way that its clients must wait: each piece holds a value."""
        return self._slow > MAX_SLOW_STORE_WORK

    def when_caught_up(self, action: Callable[[], None]) -> None:
        """Do something once little enough is under way: now, if it is."""
        if self.is_behind:
            self._waiting.append(action)
        else:
            action()

    def run(self, work: Callable[[], T], then: Callable[[Callable[[], T]], None], *, is_slow: bool) -> None:
        """Do some work; once its writes are kept, call ``then`` with a function that returns its result.

        That function raises what the work raised, or a :class:`StoreError` if its writes were lost.
        """
        database = self._database
        if database is None:
            then(work)
            return
        if is_slow or self._slow:
            self._run_in_thread(work, then)
            return
        result, failure = None, None
        database.keeps_open = True
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 (raised again where the result is asked for)
            failure = error
        finally:
            database.keeps_open = False

        def finish(lost: StoreError | None) -> None:
            then(lambda: _result_or_raise(result, failure or lost))

        if self.uncommitted or database.is_open:
            # Also what only reads waits, so that it never tells of a write that is lost.
            self.uncommitted.append(finish)
        else:
            finish(None)

    def commit(self) -> list[Callable[[], None]]:
        """Keep what was written in this pass of the loop; return what is to be done now, in order."""
        if self.uncommitted and self._database is not None:
            lost = self._database.finish()
            self.committed += [partial(finish, lost) for finish in self.uncommitted]
            self.uncommitted.clear()
        done, self.committed = self.committed, []
        return done

    def _run_in_thread(self, work: Callable[[], T], then: Callable[[Callable[[], T]], None]) -> None:
        loop = asyncio.get_running_loop()
        # The thread must not find an open transaction, and the loop must not wait for the thread later.
        self.committed = self.commit()

        try:
            submitted = self._thread.submit(work)
        except RuntimeError:  # the thread has ended
            then(lambda: _result_or_raise(None, StoreError("the engine is stopping")))
            return
        self._slow += 1
        self.made += 1
        submitted.add_done_callback(
            lambda done: loop.call_soon_threadsafe(self._finished, lambda: then(done.result))
        )

    async def close(self) -> None:
        """Wait until everything is done. Nothing more may come."""
        await asyncio.to_thread(self._thread.shutdown)

    def _finished(self, then: Callable[[], None]) -> None:
        self._slow -= 1
        self._carry_on(then)
        while self._waiting and not self.is_behind:
            self._waiting.popleft()()


def _result_or_raise(result: Any, failure: Exception | None) -> Any:
    if failure is not None:
        raise failure
    return result


def _readable_rows(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return the rows before the first damage and after the last, in the order they were first set."""
    found: dict[int, tuple[Any, ...]] = {}
    for order in ("ASC", "DESC"):
        # A reader stops at the first page it cannot use.
        with contextlib.suppress(sqlite3.Error):
            for row in connection.execute(
                f"SELECT position, owner, scope, key, value FROM entries ORDER BY position {order}"  # noqa: S608
            ):
                if all(isinstance(part, str) for part in row[1:]):
                    found.setdefault(row[0], row)
    return [found[position] for position in sorted(found)]


def _decoded(text: str | bytes, kind: Any = Any) -> Any:
    """Read a value, or only check that it is JSON, if its ``kind`` is :class:`msgspec.Raw`."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (ValueError, RecursionError):
        raise UnreadableError("the state database holds a value that cannot be read") from None


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


def _check_usable(directory: Path) -> None:
    """Make the data directory if it is missing; refuse one that cannot be used, or whose files are links."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DataDirectoryError(f"the data directory {directory} cannot be made: {error.strerror}") from None
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        raise DataDirectoryError(f"the data directory {directory} cannot be used: Permission denied")
    for suffix in ("", "-wal", "-shm"):
        part = directory / (FILE_NAME + suffix)
        # It would be written wherever the link leads.
        if part.is_symlink():
            raise DataDirectoryError(
                f"{part} is a symbolic link, and state is only kept in the data directory itself: "
                "remove the link, or name the directory it leads to as the data directory"
            )


def _keep_private(path: Path) -> None:
    """Keep the folder for its owner alone, whatever the umask; SQLite gives its log the mode of the file."""
    try:
        if all(entry.name.startswith(_OURS) for entry in path.parent.iterdir()):
            # Nothing else is there, so it is a data directory, made by an older version perhaps.
            path.parent.chmod(0o700)
            # It mostly lies in a project, where a careless ``git add`` would take a token along.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with (
                contextlib.suppress(FileExistsError),
                open(os.open(path.parent / _GIT_IGNORES, flags, 0o600), "w") as file,
            ):
                file.write("*\n")
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        for suffix in ("", "-wal", "-shm"):
            part = path.with_name(path.name + suffix)
            if part.exists():
                part.chmod(0o600)
    except OSError:
        # Not ours to change, or no regular file: SQLite says what is wrong with it, if something is.
        return


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
