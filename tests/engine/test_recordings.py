"""Real clients' conversations with the real engine replay against ours.

What may differ is said here, case by case; everything else is the same message on the same connection,
ids, times and the order of keys aside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.replay import Connection, Message, Replay, RouterStage, SocketStage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.engine.replay import Meant

Stage = RouterStage | SocketStage


@pytest.fixture(params=[RouterStage, SocketStage])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    made: Stage = request.param()
    yield made
    made.close()


# The Python SDK


CALL_WITHOUT_DATA = "42792804-a676-4a8f-a190-50bbda01eec5"
LISTS = {
    "engine::functions::list": "functions",
    "engine::triggers::list": "triggers",
    "engine::workers::list": "workers",
}


def meant_by_python(line: Message, ours: Message) -> Meant:
    recorded, function_id = line["msg"], line["msg"].get("function_id")
    if recorded["type"] != "invocationresult":
        return recorded, ours
    if "note" in line and function_id in LISTS:
        return _kept_rows(recorded, ours, LISTS[function_id])
    if function_id == "engine::registered-triggers::list":
        # The real engine's own workers watch their configuration; ours have none to watch.
        return _only_bindings(recorded), _only_bindings(ours)
    if function_id == "configuration::list":
        # The settings of the real engine's own workers; ours keep none there.
        assert ours["result"] == {"configurations": []}
        return recorded["invocation_id"], ours["invocation_id"]
    if function_id == "worker::list":
        # There it needs a daemon that was not running; ours answers with who is connected.
        assert [row["name"] for row in ours["result"]["workers"]] == ["subscriber", "owner"]
        return recorded["invocation_id"], ours["invocation_id"]
    return recorded, ours


def _kept_rows(recorded: Message, ours: Message, key: str) -> Meant:
    """A list that was cut in the recording: the rows that were kept are among ours."""
    kept = recorded["result"][key]
    column = next(name for name in ("function_id", "name", "id") if name in kept[0])
    by_id = {row[column]: row for row in ours["result"][key]}
    chosen = [by_id[row[column]] for row in kept]
    pairs = [_built_in_row(row, own) for row, own in zip(kept, chosen, strict=True)]
    return [row for row, _ in pairs], [own for _, own in pairs]


def _built_in_row(row: Message, own: Message) -> Meant:
    """A built-in worker describes itself in its own words, version and number of functions."""
    if row.get("runtime") != "engine":
        return row, own
    assert row.keys() == own.keys()
    told = ("name", "id", "namespace", "runtime", "status", "isolation", "active_invocations", "ip_address")
    return {key: row[key] for key in told}, {key: own[key] for key in told}


def _only_bindings(message: Message) -> list[Message]:
    rows = message["result"]["registered_triggers"]
    return [row for row in rows if row["trigger_type"] != "configuration"]


def test_the_python_sdk_s_conversation_replays(stage: Stage) -> None:
    replay = Replay("python-sdk-0.25-engine-0.23.jsonl", stage, meant_by_python)

    def after(_index: int, line: Message) -> None:
        if line["msg"].get("invocation_id") == CALL_WITHOUT_DATA:
            # The real engine drops a call without data. Ours takes it for a null payload, on purpose.
            assert replay.take(3) == {
                "type": "invokefunction",
                "invocation_id": CALL_WITHOUT_DATA,
                "function_id": "demo::greet",
                "data": None,
            }
            replay.connections[3].send(
                {
                    "type": "invocationresult",
                    "invocation_id": CALL_WITHOUT_DATA,
                    "function_id": "demo::greet",
                    "result": {"hello": None},
                }
            )
            assert replay.take(1)["result"] == {"hello": None}

    replay.after = after
    replay.play()


# Clients of a skills worker, which is played here


class SkillsWorker:
    """The worker of the recordings: it answers as it did, after firing what it fired."""

    FUNCTIONS = (
        "skills::list",
        "skills::register",
        "skills::unregister",
        "skills::resources-read",
    )

    def __init__(self, replay: Replay, connection: Connection) -> None:
        self._lines = replay.lines
        self._connection = connection
        self.bindings: list[str] = []
        connection.send({"type": "registertriggertype", "id": "skills::on-change", "description": "changes"})
        for function_id in self.FUNCTIONS:
            connection.send({"type": "registerfunction", "id": function_id})
        connection.send(
            {
                "type": "invokefunction",
                "function_id": "engine::workers::register",
                "data": {"name": "skills", "pid": 1, "runtime": "rust"},
                "action": {"type": "void"},
            }
        )
        connection.received()

    def act(self, index: int, _line: Message) -> None:
        for message in self._connection.received():
            if message["type"] == "registertrigger":
                self.bindings.append(message["function_id"])
                self._connection.send(
                    {
                        "type": "triggerregistrationresult",
                        **{key: message[key] for key in ("id", "trigger_type", "function_id")},
                    }
                )
            elif message["type"] == "invokefunction":
                self._answer(index, message)

    def _answer(self, index: int, asked: Message) -> None:
        for line in self._lines[index + 1 :]:
            message = line.get("msg", {})
            if line.get("dir") == "engine->worker" and message["type"] == "invokefunction":
                assert message["function_id"] in self.bindings
                event = {k: v for k, v in message["data"].items() if k != "_caller_worker_id"}
                self._connection.send(
                    {
                        "type": "invokefunction",
                        "function_id": message["function_id"],
                        "data": event,
                        "action": {"type": "void"},
                    }
                )
            if line.get("dir") == "engine->worker" and message.get("invocation_id") == asked["invocation_id"]:
                outcome = {key: message[key] for key in ("result", "error") if key in message}
                self._connection.send(
                    {
                        "type": "invocationresult",
                        "invocation_id": asked["invocation_id"],
                        "function_id": asked["function_id"],
                        **outcome,
                    }
                )
                return


def without_trace(line: Message, ours: Message) -> Meant:
    """The real engine's tracing puts a trace on calls that came without one; ours has no tracing."""
    return {k: v for k, v in line["msg"].items() if k not in ("traceparent", "baggage")}, ours


@pytest.mark.parametrize("name", ["node-sdk-0.22-engine-0.23.jsonl", "iii-cli-trigger-engine-0.23.jsonl"])
def test_the_conversations_of_the_node_sdk_and_the_command_line_replay(stage: Stage, name: str) -> None:
    replay = Replay(name, stage, without_trace)
    skills = SkillsWorker(replay, stage.open())
    replay.after = skills.act
    replay.play()

    assert replay.connections == {}


def test_a_difference_is_noticed() -> None:
    def forged(line: Message, ours: Message) -> Any:
        changed = {**ours, "result": 1} if "result" in ours else ours
        return line["msg"], changed

    stage = RouterStage()
    with pytest.raises(AssertionError, match="came instead of"):
        Replay("python-sdk-0.25-engine-0.23.jsonl", stage, forged).play()
