"""Callers take turns: who asks for much at once does not keep others waiting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from iii_directory.bus.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Iterator


class Clocked(asyncio.SelectorEventLoop):
    """A loop whose time passes only when a test says so."""

    now = 0.0

    def time(self) -> float:
        return self.now


class Stage:
    """Calls that take as long as a test says, and the order in which they were begun."""

    def __init__(self, loop: Clocked) -> None:
        self.loop = loop
        self.turns = Turns(loop)
        self.begun: list[str] = []

    async def call(self, caller: str, name: str, seconds: float) -> None:
        await self.turns.come(caller)
        self.begun.append(name)
        self.loop.now += seconds

    def start(self, caller: str, name: str, seconds: float) -> asyncio.Task[None]:
        return self.loop.create_task(self.call(caller, name, seconds))

    def turn(self) -> None:
        """What is due now, and nothing that it brings about."""
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()


@pytest.fixture
def stage() -> Iterator[Stage]:
    loop = Clocked()
    yield Stage(loop)
    loop.close()


def test_one_turn_begins_what_takes_no_time_and_no_second_call_after_a_slow_one(stage: Stage) -> None:
    quick = [stage.start("a", f"quick {n}", 0) for n in range(100)]
    slow = [stage.start("a", f"slow {n}", 0.01) for n in range(8)]

    stage.turn()

    assert stage.begun == [*(f"quick {n}" for n in range(100)), "slow 0"]
    stage.loop.run_until_complete(asyncio.gather(*quick, *slow))


def test_whoever_comes_later_does_not_wait_for_all_that_somebody_else_asked_for(stage: Stage) -> None:
    heavy = [stage.start("heavy", f"heavy {n}", 0.01) for n in range(8)]
    stage.turn()
    light = stage.start("light", "light", 0)

    stage.loop.run_until_complete(asyncio.gather(*heavy, light))

    assert "light" in stage.begun[:3]
    assert [name for name in stage.begun if name != "light"] == [f"heavy {n}" for n in range(8)]


def test_callers_who_all_ask_for_much_are_served_one_after_the_other(stage: Stage) -> None:
    calls = [stage.start(caller, f"{caller}{n}", 0.01) for caller in "abc" for n in range(3)]

    stage.loop.run_until_complete(asyncio.gather(*calls))

    assert stage.begun == ["a0", "a1", "b0", "c0", "a2", "b1", "c1", "b2", "c2"]


def test_a_call_that_was_given_up_while_it_waited_is_passed_over(stage: Stage) -> None:
    calls = [stage.start("a", f"call {n}", 0.01) for n in range(4)]
    stage.turn()

    calls[1].cancel()
    stage.loop.run_until_complete(asyncio.gather(*calls, return_exceptions=True))

    assert stage.begun == ["call 0", "call 2", "call 3"]


def test_quick_calls_that_waited_are_begun_many_at_once(stage: Stage) -> None:
    first = stage.start("a", "slow", 0.01)
    calls = [first, *(stage.start("a", f"quick {n}", 0) for n in range(100))]

    for _ in range(10):
        stage.turn()

    assert stage.begun == ["slow", *(f"quick {n}" for n in range(100))]
    assert all(call.done() for call in calls)


def test_no_call_passes_an_earlier_one_of_its_caller_that_has_just_been_let_go(stage: Stage) -> None:
    calls = [stage.start("a", "slow", 0.01), stage.start("a", "waiting", 0)]
    stage.turn()

    # It comes in the turn that lets the other one go, which is begun in the turn after.
    calls.append(stage.start("a", "late", 0))
    stage.loop.run_until_complete(asyncio.gather(*calls))

    assert stage.begun == ["slow", "waiting", "late"]


def test_a_call_that_is_given_up_when_it_has_just_been_let_go_holds_up_no_other(stage: Stage) -> None:
    calls = [stage.start("a", "slow", 0.01), stage.start("a", "given up", 0)]
    stage.turn()
    stage.turn()
    calls[1].cancel()

    calls.append(stage.start("a", "late", 0))
    stage.loop.run_until_complete(asyncio.gather(*calls, return_exceptions=True))

    assert stage.begun == ["slow", "late"]
