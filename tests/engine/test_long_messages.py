"""A message that takes long to read is passed on unread, or refused with an answer to its sender."""

from __future__ import annotations

import asyncio
import json
import uuid
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.support.directory import directory
from tests.support.engine import WAIT, EngineThread, RawClient
from tests.support.reader import until

from iii_directory.bus.seam import CallError
from iii_directory.engine.roles import WorkerRole
from iii_directory.limits import MAX_READ_BYTES, MAX_READ_MARKS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = [{"a": 1, "b": "cc"}] * (MAX_READ_MARKS // 2)
TEXT = "x" * (MAX_READ_BYTES + 1)
PLACE = {"scope": "s", "key": "k"}


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineThread]:
    with EngineThread() as running:
        yield running


@pytest.fixture
def sender(engine: EngineThread) -> Iterator[RawClient]:
    with RawClient(engine.url, name="sender") as connected:
        yield connected


def call_text(data: str) -> tuple[str, str]:
    call_id = str(uuid.uuid4())
    head = json.dumps({"type": "invokefunction", "function_id": "state::set", "invocation_id": call_id})
    return call_id, f'{head[:-1]},"data":{data}}}'


@pytest.mark.parametrize("junk", [ROWS, TEXT], ids=["rows", "text"])
@pytest.mark.parametrize(
    "function_id",
    ["state::get", "state::update", "engine::functions::list", "configuration::set", "engine::workers::list"],
)
def test_a_function_of_the_engine_refuses_what_takes_long_to_read(
    sender: RawClient, function_id: str, junk: Any
) -> None:
    error = sender.call(function_id, {**PLACE, "id": "i", "ops": [], "junk": junk})["error"]

    assert error["code"] == "LIMIT_EXCEEDED"
    assert error["message"].startswith(f"{function_id} reads what a call carries as a whole: at most 4 MiB")
    assert sender.result("state::get", PLACE) is None


@pytest.mark.parametrize("value", [ROWS, TEXT], ids=["rows", "text"])
def test_what_is_only_kept_or_passed_on_may_be_longer(
    engine: EngineThread, sender: RawClient, value: Any
) -> None:
    with RawClient(engine.url, name="worker") as worker:
        worker.send(type="registerfunction", id="worker::echo")
        topic = {"trigger_type": "subscribe", "function_id": "worker::heard", "config": {"topic": "t"}}
        worker.send(type="registerfunction", id="worker::heard")
        worker.send(type="registertrigger", id=str(uuid.uuid4()), **topic)
        until(
            lambda: "worker::heard" in str(sender.result("engine::registered-triggers::list")), "it is bound"
        )

        sender.result("state::set", {**PLACE, "value": value})
        assert sender.result("state::get", PLACE) == value
        sender.result("state::delete", PLACE)

        sender.result("publish", {"topic": "t", "data": value})
        assert worker.receive_type("invokefunction")["data"] == value

        call_id = sender.start_call("worker::echo", {"value": value})
        asked = worker.receive_type("invokefunction")
        assert asked["data"]["value"] == value
        worker.send(
            type="invocationresult",
            invocation_id=asked["invocation_id"],
            function_id="worker::echo",
            result=value,
        )
        answer = sender.receive_type("invocationresult")
        assert answer["invocation_id"] == call_id
        assert answer["result"] == value


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (f'{{"scope":"s","key":"k","value":{json.dumps(ROWS)}]}}', "not JSON: "),
        (f'{{"value":{json.dumps(ROWS)},"b":"\x01"}}', "not JSON: "),
        (f'{{"value":{json.dumps(ROWS)},"b":{"[" * 200 + "]" * 200}}}', "nested too deeply"),
        (f'{{"value":{json.dumps(ROWS)},"b":{"1" * 5000}}}', "number out of range"),
        (f'{{"value":{json.dumps(ROWS)},"b":[["x",NaN,"y"]]}}', "not JSON: "),
    ],
    ids=["a bracket too many", "a control character", "too deep", "too large a number", "not a number"],
)
def test_a_long_call_that_is_wrong_is_refused_and_its_caller_told(
    sender: RawClient, data: str, problem: str
) -> None:
    call_id, text = call_text(data)
    sender.socket.send(text)

    answer = sender.receive_type("invocationresult")
    assert answer["invocation_id"] == call_id
    assert answer["error"]["message"].startswith(f"Invalid message: {problem}")


def test_a_long_call_that_carries_no_number_is_told_so_though_its_id_comes_last(sender: RawClient) -> None:
    """SDKs write what a call carries before its id, and Python writes NaN."""
    call_id = sender.start_call("state::set", {**PLACE, "value": [*ROWS, [float("nan")], *ROWS]})

    answer = sender.receive_type("invocationresult")
    assert answer["invocation_id"] == call_id
    assert answer["error"]["message"].startswith("Invalid message: not JSON: ")


def test_a_long_string_of_digits_is_not_a_number(sender: RawClient) -> None:
    value = [*ROWS, "1" * 400, "1e999"]
    sender.result("state::set", {**PLACE, "value": value})

    assert sender.result("state::get", PLACE) == value
    sender.result("state::delete", PLACE)


@pytest.mark.parametrize("field", ["metadata", "action"])
def test_a_call_with_a_long_field_beside_its_data_is_refused(sender: RawClient, field: str) -> None:
    call_id = sender.start_call("state::get", PLACE, **{field: {"type": "void", "junk": ROWS}})

    answer = sender.receive_type("invocationresult")
    assert answer["invocation_id"] == call_id
    assert answer["error"]["message"] == f"Invalid message: field '{field}' is too long"


@pytest.mark.parametrize("kind", ["registerfunction", "registertrigger", "ping", "whatever"])
def test_a_long_message_of_another_kind_is_refused_and_the_connection_goes_on(
    sender: RawClient, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    sender.send(type=kind, id="sender::long", request_format={"properties": ROWS})

    assert sender.result("state::get", PLACE) is None
    assert "neither call nor answer, and too long to be anything else" in caplog.text
    assert "sender::long" not in str(sender.result("engine::functions::list"))


def test_a_long_frame_of_a_client_that_left_is_finished_before_it_is_dropped(engine: EngineThread) -> None:
    with RawClient(engine.url) as leaving:
        leaving.start_call("state::set", {"scope": "s", "key": "left", "value": ROWS})

    with RawClient(engine.url) as other:
        kept: list[Any] = []
        until(
            lambda: kept.append(other.result("state::get", {"scope": "s", "key": "left"})) or kept[-1], "kept"
        )
        assert kept[-1] == ROWS
        other.result("state::delete", {"scope": "s", "key": "left"})


@pytest.mark.parametrize("is_stopping", [False, True])
def test_a_connection_that_is_lost_meanwhile_is_forgotten_once_its_long_frame_is_done(
    *, is_stopping: bool
) -> None:
    """Long frames are read in turns while other clients are served, and at once when no other is left."""
    done: list[str] = []
    engine: Any = SimpleNamespace(
        is_stopping=is_stopping,
        opened=lambda *_: "c",
        state_queue=None,
        received_message=lambda _, message: done.append(message.function_id),
        lost=done.append,
        flush=lambda: done.append("flushed"),
    )
    text = json.dumps({"type": "invokefunction", "function_id": "a::b", "data": ROWS})

    async def main() -> list[str]:
        role = WorkerRole(engine)
        does_nothing = dict.fromkeys(("hold", "flush", "close", "abort"), lambda: None)
        role.opened(cast("Any", SimpleNamespace(address="", framing=SimpleNamespace(), **does_nothing)))
        role.received(text.encode(), is_text=True)
        role.lost()
        at_once = list(done)
        async with asyncio.timeout(WAIT):
            while "c" not in done:  # noqa: ASYNC110 (the role has no event)
                await asyncio.sleep(0)
        return at_once

    assert asyncio.run(main()) == (["a::b", "c"] if is_stopping else [])
    assert done[:2] == ["a::b", "c"]


def test_a_worker_inside_the_engine_is_not_sent_what_takes_long_to_read(tmp_path: Path) -> None:
    with EngineThread() as own, RawClient(own.url) as sender, directory(own.url, tmp_path, own):
        error = sender.call("skills::register", {"id": "a", "skill": "# a\n", "junk": ROWS})["error"]

        assert error["message"].startswith("skills::register reads what a call carries as a whole")
        assert "a" not in {row["id"] for row in sender.result("skills::list")["skills"]}


def test_a_worker_inside_the_engine_is_told_that_an_answer_takes_long_to_read() -> None:
    with EngineThread() as own, RawClient(own.url, name="worker") as worker:
        worker.send(type="registerfunction", id="worker::long")
        assert worker.result("engine::health::check")
        bus = own.bus_inside()

        async def called() -> Any:
            return await bus.call("worker::long", {}, timeout_ms=int(WAIT * 1000))

        calling = asyncio.run_coroutine_threadsafe(called(), own.loop)
        asked = worker.receive_type("invokefunction")
        answer = {"invocation_id": asked["invocation_id"], "function_id": "worker::long", "result": ROWS}
        worker.send(type="invocationresult", **answer)

        with pytest.raises(CallError) as refused:
            calling.result(WAIT)
        bus.close()

    assert refused.value.code == "LIMIT_EXCEEDED"
