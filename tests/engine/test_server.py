"""The engine as a client sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.engine import RawClient

if TYPE_CHECKING:
    from tests.support.engine import EngineThread


def test_a_call_reaches_its_function_and_the_answer_its_caller(engine: EngineThread) -> None:
    with RawClient(engine.url, name="executor") as executor, RawClient(engine.url, name="caller") as caller:
        executor.send(type="registerfunction", id="a::echo")
        assert executor.result("engine::functions::info", {"function_id": "a::echo"})
        call_id = caller.start_call("a::echo", {"x": 1})
        asked = executor.receive()
        assert asked["data"] == {"x": 1, "_caller_worker_id": caller.worker_id}
        executor.send(
            type="invocationresult",
            invocation_id=asked["invocation_id"],
            function_id="a::echo",
            result={"y": 2},
        )

        assert caller.receive() == {
            "type": "invocationresult",
            "invocation_id": call_id,
            "function_id": "a::echo",
            "result": {"y": 2},
        }
