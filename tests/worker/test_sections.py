"""Which functions a link may run, and who decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from iii import InvocationError
from tests.support.reader import Reader, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.engine import EngineThread

HONEST = ({"readOnlyHint": True}, {"annotations": {"readOnlyHint": True}}, {"mcp": {"readOnlyHint": True}})
OTHERS: tuple[dict[str, Any] | None, ...] = (None, {}, {"readOnlyHint": "yes"}, {"readOnlyHint": False})
DOORS = ("skill::fetch", "skills::resources-read")


def offer(reader: Reader, function_id: str, metadata: dict[str, Any] | None) -> list[Any]:
    """A function that notes its calls."""
    calls: list[Any] = []

    async def run(payload: Any) -> str:
        calls.append(payload)
        return "said"

    reader.sdk.register_function(function_id, run, metadata=metadata)

    def is_there() -> bool:
        try:
            return bool(reader.call("engine::functions::info", function_id=function_id))
        except InvocationError:
            return False

    until(is_there, "it is registered")
    return calls


@pytest.mark.parametrize("door", DOORS)
def test_a_reader_that_only_reads_runs_only_what_says_it_only_reads(
    engine: EngineThread, tmp_path: Path, door: str
) -> None:
    with Reader(engine.url, tmp_path, engine) as reader:
        for number, metadata in enumerate(OTHERS):
            calls = offer(reader, f"other::n{number}", metadata)
            sentence = str(reader.failure(door, uri=f"iii://fn/other/n{number}", sections="read-only"))
            assert "D120 forbidden" in sentence
            assert calls == []
            assert "said" in str(reader.call(door, uri=f"iii://fn/other/n{number}"))
        for number, metadata in enumerate(HONEST):
            offer(reader, f"honest::n{number}", metadata)
            assert "said" in str(reader.call(door, uri=f"iii://fn/honest/n{number}", sections="read-only"))


@pytest.mark.parametrize(
    ("setting", "asked", "runs"), [("all", "read-only", True), ("read-only", "all", False)]
)
def test_the_operator_s_word_is_the_last(
    engine: EngineThread, tmp_path: Path, setting: str, asked: str, runs: bool
) -> None:
    with Reader(engine.url, tmp_path, engine, sections=setting) as reader:
        calls = offer(reader, "other::run", None)
        try:
            reader.call("skill::fetch", uri="iii://fn/other/run", sections=asked)
        except InvocationError:
            assert not runs
        assert len(calls) == runs
        told = reader.call("engine::functions::info", function_id="skill::fetch")["metadata"]
        assert told["sections"] == setting
