"""Large values delay no other caller, and operations on the state happen in the order they came in."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.engine import WAIT, EngineThread, RawClient
from tests.support.reader import until

from iii_directory.engine.sqlite_store import Database, DatabaseQueue
from iii_directory.engine.store import StoreError
from iii_directory.limits import LARGE_VALUE_BYTES, MAX_SLOW_STORE_WORK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from iii_directory.wire.json_text import Text

LARGE = "x" * 1_000_000
PLACE = {"scope": "s", "key": "k"}


class Held(Database):
    """A database that writes a large value only once it may."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.writing = threading.Event()
        self.may_write = threading.Event()
        self.failure: Exception | None = None
        self.deletions = 0

    def write(self, statement: str, values: Sequence[str | Text]) -> None:
        self.deletions += statement.startswith("DELETE")
        if len(values[-1]) >= len(LARGE):
            self.writing.set()
            assert self.may_write.wait(WAIT)
            if self.failure is not None:
                raise self.failure
        super().write(statement, values)


@pytest.fixture
def database(tmp_path: Path) -> Held:
    return Held(tmp_path)


@pytest.fixture
def engine(database: Held) -> Iterator[EngineThread]:
    with EngineThread(database=database) as running:
        yield running
        database.may_write.set()


@pytest.fixture
def client(engine: EngineThread) -> Iterator[RawClient]:
    with RawClient(engine.url, name="writer") as connected:
        yield connected


def answers(client: RawClient, asked: list[str]) -> list[Any]:
    """What the next answers are, which must come in the order of the calls."""
    received = [client.receive() for _ in asked]
    assert [answer["invocation_id"] for answer in received] == asked
    return [answer.get("result") for answer in received]


def test_others_are_answered_while_a_large_value_is_written(
    engine: EngineThread, database: Held, client: RawClient
) -> None:
    setting = client.start_call("state::set", {**PLACE, "value": LARGE})
    assert database.writing.wait(WAIT)

    with RawClient(engine.url, name="other") as other:
        assert other.result("engine::workers::list", {"search": "writer"})["workers"]
        reading = other.start_call("state::get", PLACE)
        database.may_write.set()

        assert answers(client, [setting]) == [{"old_value": None, "new_value": LARGE}]
        assert answers(other, [reading]) == [LARGE]


def test_what_is_asked_for_while_a_large_value_is_written_comes_after_it(
    database: Held, client: RawClient
) -> None:
    asked = [
        client.start_call("state::set", {**PLACE, "value": "small"}),
        client.start_call("state::set", {**PLACE, "value": LARGE}),
        client.start_call("state::get", PLACE),
        client.start_call(
            "state::update", {**PLACE, "ops": [{"type": "set", "path": "", "value": {"n": 1}}]}
        ),
        client.start_call("state::update", {**PLACE, "ops": [{"type": "increment", "path": "n", "by": 1}]}),
        client.start_call("state::list", {"scope": "s"}),
        client.start_call("state::delete", PLACE),
        client.start_call("state::get", PLACE),
        client.start_call("state::list_groups", {}),
    ]
    assert database.writing.wait(WAIT)
    database.may_write.set()

    assert answers(client, asked) == [
        {"old_value": None, "new_value": "small"},
        {"old_value": "small", "new_value": LARGE},
        LARGE,
        {"old_value": LARGE, "new_value": {"n": 1}},
        {"old_value": {"n": 1}, "new_value": {"n": 2}},
        [{"n": 2}],
        {"n": 2},
        None,
        {"groups": ["s"]},
    ]


def test_subscribers_are_told_in_the_order_of_the_writes(
    engine: EngineThread, database: Held, client: RawClient
) -> None:
    with RawClient(engine.url, name="watcher") as watcher:
        watcher.send(type="registerfunction", id="watcher::told")
        watcher.send(
            type="registertrigger",
            id=str(uuid.uuid4()),
            trigger_type="state",
            function_id="watcher::told",
            config={"scope": "s"},
        )
        watcher.call("engine::health::check")
        for value in (LARGE, 1, 2):
            client.start_call("state::set", {**PLACE, "value": value})
        assert database.writing.wait(WAIT)
        database.may_write.set()

        told = [watcher.receive()["data"]["new_value"] for _ in range(3)]

    assert told == [LARGE, 1, 2]


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (StoreError("the state database refused: it is full"), "the state database refused: it is full"),
        (RuntimeError("nobody thought of this, in /a/path"), "the state could not be asked"),
    ],
)
def test_a_large_value_that_cannot_be_kept_is_refused_and_the_next_is_not(
    database: Held, client: RawClient, failure: Exception, told: str
) -> None:
    database.failure = failure
    database.may_write.set()

    error = client.call("state::set", {**PLACE, "value": LARGE})["error"]
    database.failure = None

    assert error == {"code": "SET_ERROR", "message": told}
    assert client.result("state::set", {**PLACE, "value": LARGE}) == {"old_value": None, "new_value": LARGE}


def test_a_large_value_whose_writer_has_left_is_kept(
    engine: EngineThread, database: Held, client: RawClient
) -> None:
    with RawClient(engine.url) as leaving:
        leaving.start_call("state::set", {**PLACE, "value": LARGE})
        assert database.writing.wait(WAIT)
    database.may_write.set()

    assert client.result("state::get", PLACE) == LARGE


def test_a_long_frame_that_came_before_a_goodbye_is_still_carried_out(
    engine: EngineThread, database: Held, client: RawClient
) -> None:
    database.may_write.set()
    with RawClient(engine.url) as leaving:
        told = {"function_id": "state::set", "data": {**PLACE, "value": LARGE}, "action": {"type": "void"}}
        leaving.send(type="invokefunction", **told)

    until(lambda: client.result("state::get", PLACE) == LARGE, "the value is there")


def test_a_long_frame_that_is_not_a_message_is_refused_and_the_connection_goes_on(client: RawClient) -> None:
    call = client.start_call("state::set", {**PLACE, "value": [LARGE, float("nan")]})

    answer = client.receive()

    assert answer["invocation_id"] == call
    assert answer["error"]["code"] == "deserialization_error"
    assert client.result("state::get", PLACE) is None


def test_an_engine_that_is_stopped_finishes_the_write_that_is_under_way(tmp_path: Path) -> None:
    database = Held(tmp_path)
    with EngineThread(database=database) as engine, ThreadPoolExecutor(1) as helper:
        client = RawClient(engine.url)
        client.start_call("state::set", {**PLACE, "value": LARGE})
        assert database.writing.wait(WAIT)
        stopping = helper.submit(
            lambda: asyncio.run_coroutine_threadsafe(engine.server.stop(), engine.loop).result(WAIT)
        )
        database.may_write.set()
        stopping.result(WAIT)

    with EngineThread(database=Database(tmp_path)) as again, RawClient(again.url) as client:
        assert client.result("state::get", PLACE) == LARGE


def test_events_that_cause_each_other_are_stopped_also_where_each_takes_long(
    database: Held, client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    database.may_write.set()
    for key in "ab":
        client.result("state::set", {"scope": "s", "key": key, "value": LARGE})
    binding = {"trigger_type": "state", "function_id": "state::delete", "config": {"scope": "s"}}
    client.send(type="registertrigger", id=str(uuid.uuid4()), **binding)

    for key in "ab":
        client.start_call("state::delete", {"scope": "s", "key": key})

    until(lambda: caplog.text.count("cause each other and were stopped") >= 2, "they are stopped")
    assert database.deletions < 100


def test_who_writes_faster_than_the_disk_is_not_read_until_it_has_caught_up(
    engine: EngineThread, database: Held, client: RawClient
) -> None:
    value, times = "x" * LARGE_VALUE_BYTES, 10 * MAX_SLOW_STORE_WORK
    client.start_call("state::set", {**PLACE, "value": LARGE})
    assert database.writing.wait(WAIT)

    def write_on() -> None:
        for number in range(times):
            client.start_call("state::set", {**PLACE, "value": f"{number} {value}"})

    with ThreadPoolExecutor(1) as helper:
        writing = helper.submit(write_on)
        until(lambda: engine.server.state_queue.is_behind, "more waits than may")
        with RawClient(engine.url, name="other") as other:
            assert other.result("engine::health::check")
            assert engine.server.state_queue.made <= MAX_SLOW_STORE_WORK + 1
        database.may_write.set()
        for _ in range(times + 1):
            client.receive()
        writing.result(WAIT)

    assert client.result("state::get", PLACE) == f"{times - 1} {value}"


def test_everybody_who_was_not_read_is_read_again(engine: EngineThread, database: Held) -> None:
    with RawClient(engine.url) as first, ExitStack() as stack:
        first.start_call("state::set", {**PLACE, "value": LARGE})
        assert database.writing.wait(WAIT)
        for _ in range(MAX_SLOW_STORE_WORK + 1):
            first.start_call("state::get", {"scope": "s", "key": "none"})
        until(lambda: engine.server.state_queue.is_behind, "more waits than may")
        others = [stack.enter_context(RawClient(engine.url)) for _ in range(5)]
        calls = [other.start_call("state::get", PLACE) for other in others for _ in range(2)]
        database.may_write.set()

        answered = [other.receive()["invocation_id"] for other in others for _ in range(2)]

        assert answered == calls


def test_a_value_that_cannot_be_read_any_more_is_replaced_and_deleted(tmp_path: Path) -> None:
    with EngineThread(database=Database(tmp_path)) as engine, RawClient(engine.url) as client:
        for key in "ab":
            client.result("state::set", {"scope": "s", "key": key, "value": 1})
    (file,) = tmp_path.glob("*.db")
    with sqlite3.connect(file) as spoiling:
        spoiling.execute("UPDATE entries SET value = '[,1]'")
    spoiling.close()

    with EngineThread(database=Database(tmp_path)) as engine, RawClient(engine.url) as client:
        assert client.call("state::get", {"scope": "s", "key": "a"})["error"]["code"] == "GET_ERROR"
        replaced = client.result("state::set", {"scope": "s", "key": "a", "value": 2})
        deleted = client.call("state::delete", {"scope": "s", "key": "b"})

        assert replaced == {"old_value": None, "new_value": 2}
        assert "error" not in deleted
        assert client.result("state::list", {"scope": "s"}) == [2]


def test_work_that_comes_after_the_end_is_refused_and_no_caller_waits_for_it(tmp_path: Path) -> None:
    outcomes: list[str] = []

    def then(outcome: Callable[[], int]) -> None:
        with pytest.raises(StoreError) as refused:
            outcome()
        outcomes.append(str(refused.value))

    async def ended() -> DatabaseQueue:
        queue = DatabaseQueue(Database(tmp_path), lambda action: action())
        await queue.close()
        queue.run(lambda: 1, then, is_slow=True)
        return queue

    assert not asyncio.run(ended()).is_busy
    assert outcomes == ["the engine is stopping"]
