"""State on disk: what an answered write promises, and directories that are not as they should be."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.driver import Driver
from tests.support.engine import EngineThread, RawClient
from websockets.exceptions import ConnectionClosed

from iii_directory.engine.sqlite_store import FILE_NAME, Database, DataDirectoryError
from iii_directory.engine.store import StoreError
from iii_directory.wire.json_text import ABSENT, read

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).parents[2]
NOBODY = 65534


@contextlib.contextmanager
def opened(directory: Path) -> Generator[Database]:
    database = Database(directory)
    try:
        yield database
    finally:
        database.close()


def filled(directory: Path, count: int = 200) -> Path:
    """A database with some values, closed and checkpointed; its path."""
    with opened(directory) as database:
        store = database.store("state")
        for number in range(count):
            store.set("s", str(number), {"n": number, "text": "x" * 200})
    assert sorted(path.name for path in directory.iterdir()) == [".gitignore", FILE_NAME]
    return directory / FILE_NAME


# Restarts


def test_an_engine_started_again_has_everything(tmp_path: Path) -> None:
    with EngineThread(database=Database(tmp_path)) as engine, RawClient(engine.url) as client:
        client.result("state::set", {"scope": "s", "key": "b", "value": 1})
        client.result("state::set", {"scope": "s", "key": "a", "value": {"x": [None, 1.5, "é"]}})
        client.result("state::set", {"scope": "s", "key": "gone", "value": 1})
        client.result("state::delete", {"scope": "s", "key": "gone"})
        entry = {"id": "c", "name": "n", "description": "d", "schema": {}, "initial_value": {"v": 1}}
        client.result("configuration::register", entry)
    with EngineThread(database=Database(tmp_path)) as engine, RawClient(engine.url) as client:
        assert client.result("state::list", {"scope": "s"}) == [1, {"x": [None, 1.5, "é"]}]
        assert client.result("state::list_groups") == {"groups": ["s"]}
        assert client.result("configuration::get", {"id": "c"}) == {"id": "c", "value": {"v": 1}}
        assert (
            client.call("configuration::set", {"id": "c", "value": 2})["error"]["code"]
            == "SCHEMA_UNAVAILABLE"
        )


def test_owners_do_not_see_each_other_s_values(tmp_path: Path) -> None:
    with opened(tmp_path) as database:
        one, two = database.store("one"), database.store("two")
        one.set("s", "k", 1)
        two.set("s", "k", 2)
        two.delete("s", "other")

        assert (one.get("s", "k"), two.get("s", "k")) == (1, 2)
        one.delete("s", "k")
        assert (one.scopes(), two.scopes()) == ([], ["s"])


def test_a_missing_directory_is_made(tmp_path: Path) -> None:
    with opened(tmp_path / "a" / "b") as database:
        assert database.path == tmp_path / "a" / "b" / FILE_NAME
        assert database.set_aside is None
        assert database.path.exists()


# kill -9


class Killable:
    """Engines on one directory, each a process of its own that can be killed."""

    def __init__(self, directory: Path) -> None:
        self._starter = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.kill_target", str(directory)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._engine = 0

    def start(self) -> str:
        """The address of a new engine."""
        assert self._starter.stdin is not None
        assert self._starter.stdout is not None
        self._starter.stdin.write("start\n")
        self._starter.stdin.flush()
        pid, port = self._starter.stdout.readline().split()
        self._engine = int(pid)
        return f"ws://127.0.0.1:{port}"

    def kill(self) -> None:
        os.kill(self._engine, signal.SIGKILL)
        self._engine = 0

    def stop(self) -> None:
        if self._engine:
            self.kill()
        # Without more to read the starter ends.
        self._starter.communicate(timeout=10)


class Ledger:
    """Every write to a key in order, and how many of them were answered."""

    def __init__(self) -> None:
        self._states: dict[str, list[Any]] = {}
        self._answered: dict[str, int] = {}
        self.total = 0

    def wrote(self, key: str, state: Any) -> tuple[str, int]:
        self._states.setdefault(key, [ABSENT]).append(state)
        return key, len(self._states[key]) - 1

    def answered(self, write: tuple[str, int]) -> None:
        self._answered[write[0]] = write[1]
        self.total += 1

    def check(self, client: RawClient) -> None:
        """What is there now is what the last answered write left, or a later one that was under way."""
        for key, states in self._states.items():
            found = client.call("state::get", {"scope": "s", "key": key}).get("result", ABSENT)
            possible = states[self._answered.get(key, 0) :]
            assert found in possible, f"{key} is {found}, expected one of {possible}"
            self._states[key], self._answered[key] = [found], 0


def write_and_kill(engines: Killable, client: RawClient, ledger: Ledger, random: Random, tag: int) -> None:
    """Send a batch of writes at once, read some of the answers, and kill while the rest is under way."""
    batch: dict[str, tuple[str, int]] = {}
    for number in range(random.randrange(1, 25)):
        key = random.choice("abcdef")
        if random.random() < 0.2:
            call_id = client.start_call("state::delete", {"scope": "s", "key": key})
            batch[call_id] = ledger.wrote(key, ABSENT)
        else:
            value = [tag, number, "x" * random.choice((1, 100, 20_000, 200_000))]
            call_id = client.start_call("state::set", {"scope": "s", "key": key, "value": value})
            batch[call_id] = ledger.wrote(key, value)
    for _ in range(random.randrange(len(batch) + 1)):
        ledger.answered(batch[client.receive()["invocation_id"]])
    engines.kill()
    # What was answered before it died counts too.
    with contextlib.suppress(ConnectionClosed):
        while True:
            ledger.answered(batch[client.receive()["invocation_id"]])


def kill_rounds(directory: Path, seed: int, rounds: int) -> int:
    random, ledger = Random(seed), Ledger()
    engines = Killable(directory)
    try:
        for number in range(rounds):
            with RawClient(engines.start()) as client:
                ledger.check(client)
                write_and_kill(engines, client, ledger, random, number)
        with RawClient(engines.start()) as client:
            ledger.check(client)
    finally:
        engines.stop()
    return ledger.total


@pytest.mark.parametrize("seed", range(4))
def test_fifty_kills_lose_no_answered_write(tmp_path: Path, seed: int) -> None:
    assert kill_rounds(tmp_path, seed, 50) > 200


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_two_thousand_kills_lose_no_answered_write(tmp_path: Path) -> None:
    kill_rounds(tmp_path, 100, 2_000)


# Directories and files that are not as they should be


def garble_header(path: Path) -> None:
    path.write_bytes(b"not a database at all" + path.read_bytes()[21:])


def garble_pages(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for place in range(4096, len(content), 512):
        content[place : place + 64] = b"\xa5" * 64
    path.write_bytes(bytes(content))


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: 4096 * 3 + 17])


def fill_with_text(path: Path) -> None:
    path.write_text("hello " * 5000, encoding="utf-8")


@pytest.mark.parametrize("damage", [garble_header, garble_pages, cut_short, fill_with_text])
def test_a_corrupt_file_is_set_aside_and_never_deleted(tmp_path: Path, damage: Any) -> None:
    path = filled(tmp_path)
    damage(path)
    damaged = path.read_bytes()
    with opened(tmp_path) as database:
        aside = database.set_aside
        assert aside is not None
        assert re.fullmatch(rf"{FILE_NAME}\.corrupt-\d{{8}}T\d{{6}}", aside.name)
        assert aside.parent == tmp_path
        assert aside.read_bytes() == damaged
        store = database.store("state")
        assert store.scopes() == []
        store.set("s", "k", 1)
    with opened(tmp_path) as database:
        assert database.set_aside is None
        assert database.store("state").get("s", "k") == 1
    assert aside.read_bytes() == damaged


def test_corrupt_files_do_not_replace_each_other(tmp_path: Path) -> None:
    names: set[Path] = set()
    for _ in range(4):
        fill_with_text(tmp_path / FILE_NAME)
        with opened(tmp_path) as database:
            assert database.set_aside is not None
            names.add(database.set_aside)

    assert len(names) == 4
    assert all(name.exists() for name in names)


def test_an_engine_starts_on_what_is_left_of_a_corrupt_file(tmp_path: Path) -> None:
    garble_pages(filled(tmp_path))
    with EngineThread(database=Database(tmp_path)) as engine, RawClient(engine.url) as client:
        assert client.result("state::list_groups") == {"groups": []}
        assert client.result("state::set", {"scope": "s", "key": "k", "value": 1})


def test_an_empty_file_is_an_empty_database(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).touch()
    with opened(tmp_path) as database:
        assert database.set_aside is None
        assert database.store("state").scopes() == []


@pytest.mark.parametrize("owner", ["state", "configuration"])
def test_a_value_that_cannot_be_read_is_an_error_and_not_the_end(tmp_path: Path, owner: str) -> None:
    with opened(tmp_path) as database:
        database.store(owner).set(owner, "k", 1)
        database._connection.execute("UPDATE entries SET value = '{broken'")
        for read in (
            lambda: database.store(owner).get(owner, "k"),
            lambda: database.store(owner).values(owner),
        ):
            with pytest.raises(StoreError, match="cannot be read"):
                read()
        client = Driver(
            state=database.store("state"), configuration=database.store("configuration")
        ).connect()
        assert client.result("engine::health::check")
        if owner == "state":
            assert client.error("state::get", {"scope": "state", "key": "k"})["code"] == "GET_ERROR"


def test_a_full_disk_is_an_error_and_keeps_what_was_there(tmp_path: Path) -> None:
    with opened(tmp_path) as database:
        client = Driver(state=database.store("state")).connect("c")
        client.result("state::set", {"scope": "s", "key": "k", "value": "small"})
        pages = database._connection.execute("PRAGMA page_count").fetchone()[0]
        database._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        error = client.error("state::set", {"scope": "s", "key": "k", "value": "x" * 100_000})

        assert error["code"] == "SET_ERROR"
        assert "full" in error["message"]
        assert client.result("state::get", {"scope": "s", "key": "k"}) == "small"


def test_a_second_engine_on_a_directory_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with opened(tmp_path):
        with pytest.raises(DataDirectoryError) as refused:
            Database(tmp_path)
        assert str(refused.value) == f"the data directory {tmp_path} is in use by another engine"
    with opened(tmp_path):
        pass


def test_an_engine_of_another_process_is_noticed_until_it_dies(tmp_path: Path) -> None:
    engines = Killable(tmp_path)
    try:
        engines.start()
        with pytest.raises(DataDirectoryError, match="in use by another engine"):
            Database(tmp_path)
        engines.kill()
        engines.start()
    finally:
        engines.stop()


def test_a_file_where_the_directory_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for directory in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(DataDirectoryError, match=re.escape(str(directory))):
            Database(directory)


def test_a_directory_where_the_file_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(DataDirectoryError, match=re.escape(str(tmp_path))):
        Database(tmp_path)


@contextlib.contextmanager
def without_privileges() -> Generator[None]:
    """As a user to whom permissions apply, which they do not to root."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.fixture
def of_nobody() -> Generator[Path]:
    """A directory of the unprivileged user, at a place it can reach."""
    directory = Path(tempfile.mkdtemp(prefix="data-"))
    if os.geteuid() == 0:
        os.chown(directory, NOBODY, NOBODY)
    yield directory
    directory.chmod(0o700)
    shutil.rmtree(directory)


@pytest.mark.parametrize("mode", [0o000, 0o500, 0o300, 0o600])
def test_a_directory_without_permission_is_named(of_nobody: Path, mode: int) -> None:
    of_nobody.chmod(mode)
    with without_privileges(), pytest.raises(DataDirectoryError) as refused:
        Database(of_nobody)

    assert str(refused.value) == f"the data directory {of_nobody} cannot be used: Permission denied"


def test_a_directory_that_cannot_be_made_is_named(of_nobody: Path) -> None:
    of_nobody.chmod(0o500)
    with without_privileges(), pytest.raises(DataDirectoryError) as refused:
        Database(of_nobody / "below")

    assert str(refused.value) == f"the data directory {of_nobody / 'below'} cannot be made: Permission denied"


def test_a_file_without_permission_is_named(of_nobody: Path) -> None:
    path = filled(of_nobody)
    path.chmod(0o000)
    with without_privileges(), pytest.raises(DataDirectoryError) as refused:
        Database(of_nobody)

    assert str(of_nobody) in str(refused.value)


def test_a_file_of_another_kind_of_database_is_left_alone(tmp_path: Path) -> None:
    foreign = sqlite3.connect(tmp_path / FILE_NAME)
    foreign.execute("CREATE TABLE other (x)")
    foreign.execute("INSERT INTO other VALUES (7)")
    foreign.commit()
    foreign.close()
    with opened(tmp_path) as database:
        assert database.set_aside is None
        assert database._connection.execute("SELECT x FROM other").fetchall() == [(7,)]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE entries (x)",
        "CREATE TABLE entries (position, owner, scope, key, value, more)",
        "CREATE VIEW entries AS SELECT 1 AS position, 'state' AS owner, '' AS scope, '' AS key, '1' AS value",
        "CREATE VIEW other AS SELECT 1",
        "CREATE TABLE other (x); CREATE TRIGGER t AFTER INSERT ON other BEGIN DELETE FROM other; END",
    ],
)
def test_a_database_of_another_schema_is_refused_in_a_sentence_and_left_alone(
    tmp_path: Path, statement: str
) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / FILE_NAME)) as foreign:
        foreign.executescript(statement)
        before = foreign.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall()
    with pytest.raises(DataDirectoryError, match="a database of another program or version: move it away"):
        Database(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE_NAME)) as foreign:
        assert set(before) <= set(foreign.execute("SELECT sql FROM sqlite_master").fetchall())


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("there", [True, False])
def test_a_database_that_is_a_link_is_refused_and_nothing_is_written_through_it(
    tmp_path: Path, suffix: str, *, there: bool
) -> None:
    elsewhere = tmp_path / "elsewhere"
    if there:
        elsewhere.write_bytes(b"")
    data = tmp_path / "data"
    data.mkdir()
    (data / f"{FILE_NAME}{suffix}").symlink_to(elsewhere)
    with pytest.raises(DataDirectoryError, match="is a symbolic link"):
        Database(data)
    assert elsewhere.exists() is there
    assert not there or elsewhere.read_bytes() == b""


def test_the_size_of_a_scope_is_that_of_its_values_as_text(tmp_path: Path) -> None:
    database = Database(tmp_path)
    store = database.store("state")
    store.set("s", "a", "äöü")
    store.set("s", "b", [1, 2])
    store.set("t", "a", "x" * 100)

    assert store.size("s") == len('"äöü","[1,2],'.encode()) - 1
    assert store.size("nothing") == 0
    database.close()


# Under a running engine


def replaced(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"something else")


def deleted(path: Path) -> None:
    for part in path.parent.glob(f"{FILE_NAME}*"):
        part.unlink()


def overwritten(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)


@pytest.mark.parametrize("harm", [replaced, deleted, overwritten])
def test_harm_to_the_file_is_put_right_before_the_next_write_is_answered(
    tmp_path: Path, harm: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path) as database:
        store = database.store("state")
        for number in range(50):
            store.set("s", str(number), {"number": number})
        harm(database.path)
        store.set("s", "after", 1)
        store.set("s", "later", 2)

    with opened(tmp_path) as again:
        kept = again.store("state")
        assert (kept.get("s", "after"), kept.get("s", "later")) == (1, 2)
        assert [kept.get("s", str(number)) for number in range(50)] == [{"number": n} for n in range(50)]
    said = [line for line in caplog.messages if "changed by another program" in line]
    # What is overwritten in the file may be whole in the log beside it: then there is nothing to put right.
    assert len(said) == 1 or harm is overwritten


def test_what_was_found_in_its_place_is_kept_and_named(tmp_path: Path) -> None:
    with opened(tmp_path) as database:
        database.store("state").set("s", "k", 1)
        replaced(database.path)
        database.store("state").set("s", "k", 2)

        assert database.set_aside is not None
        assert database.set_aside.read_bytes() == b"something else"


def test_a_file_that_was_only_touched_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path) as database:
        store = database.store("state")
        store.set("s", "k", 1)
        os.utime(database.path)
        store.set("s", "k", 2)

        assert database.set_aside is None
        assert store.get("s", "k") == 2


def test_what_can_be_read_of_a_damaged_file_goes_on_in_a_new_one(tmp_path: Path) -> None:
    with opened(tmp_path) as database:
        for number in range(200):
            database.store("state").set("s", str(number), "x" * 1000)
    path = tmp_path / FILE_NAME
    middle = path.stat().st_size // 2 // 4096 * 4096
    with path.open("r+b") as file:
        file.seek(middle)
        file.write(b"\xff" * 8192)
    with opened(tmp_path) as database:
        left = list(map(read, database.store("state").values("s")))

        assert database.set_aside is not None
        assert 100 < len(left) < 200
        assert set(left) == {"x" * 1000}
