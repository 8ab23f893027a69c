"""Callers take turns: who asks for much at once does not keep others waiting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from iii_directory.bus.tasks import FairQueue

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
        self.queue: FairQueue[tuple[str, float]] = FairQueue(loop, self.run)
        self.begun: list[str] = []

    async def run(self, call: tuple[str, float]) -> None:
        self.begun.append(call[0])
        self.loop.now += call[1]

    def start(self, caller: str, name: str, seconds: float) -> None:
        self.queue.add(caller, (name, seconds))

    def turn(self) -> None:
        """What is due now, and nothing that it brings about."""
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def finish(self, count: int) -> None:
        """Run until so many calls have begun, and find that no further one does."""
        for _ in range(1000):
            if len(self.begun) >= count:
                break
            self.turn()
        for _ in range(5):
            self.turn()
        assert len(self.begun) == count


@pytest.fixture
def stage() -> Iterator[Stage]:
    loop = Clocked()
    yield Stage(loop)
    loop.close()


def test_one_turn_begins_what_takes_no_time_and_no_second_call_after_a_slow_one(stage: Stage) -> None:
    for n in range(100):
        stage.start("a", f"quick {n}", 0)
    for n in range(8):
        stage.start("a", f"slow {n}", 0.01)

    stage.turn()

    assert stage.begun == [*(f"quick {n}" for n in range(100)), "slow 0"]
    stage.finish(108)


def test_a_later_caller_does_not_wait_for_everything_that_another_asked_for(stage: Stage) -> None:
    for n in range(8):
        stage.start("heavy", f"heavy {n}", 0.01)
    stage.turn()
    stage.start("light", "light", 0)

    stage.finish(9)

    assert "light" in stage.begun[:3]
    assert [name for name in stage.begun if name != "light"] == [f"heavy {n}" for n in range(8)]


def test_callers_who_all_ask_for_much_are_served_one_after_the_other(stage: Stage) -> None:
    for caller in "abc":
        for n in range(3):
            stage.start(caller, f"{caller}{n}", 0.01)

    stage.finish(9)

    assert stage.begun == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]


def test_quick_calls_that_waited_are_begun_many_at_once(stage: Stage) -> None:
    stage.start("a", "slow", 0.01)
    for n in range(100):
        stage.start("a", f"quick {n}", 0)

    for _ in range(10):
        stage.turn()

    assert stage.begun == ["slow", *(f"quick {n}" for n in range(100))]


def test_no_call_passes_an_earlier_one_of_its_caller_that_has_just_been_let_go(stage: Stage) -> None:
    stage.start("a", "slow", 0.01)
    stage.start("a", "waiting", 0)
    stage.turn()

    # It comes in the turn that lets the other one go, which is begun in the turn after.
    stage.start("a", "late", 0)
    stage.finish(3)

    assert stage.begun == ["slow", "waiting", "late"]


def test_no_call_overtakes_calls_that_wait_even_when_there_is_time(stage: Stage) -> None:
    for n in range(20):
        stage.start(f"caller {n}", f"{n}", 0.003)
    asked_again = 0
    while len(stage.begun) < 60:
        stage.turn()
        # Callers that were answered ask again at once, as clients in a closed loop do.
        for name in stage.begun[asked_again:]:
            stage.start(f"caller {name}", name, 0.003)
        asked_again = len(stage.begun)

    served = [stage.begun.count(f"{n}") for n in range(20)]
    assert max(served) - min(served) <= 1
    assert stage.begun[:20] == [f"{n}" for n in range(20)]
    stage.finish(len(stage.begun) + 20)


@pytest.mark.parametrize("turns", range(6))
def test_calls_of_a_caller_that_left_are_dropped_and_the_others_begin(stage: Stage, turns: int) -> None:
    stage.start("stays", "slow", 0.01)
    for n in range(50):
        stage.start("leaves", f"dropped {n}", 0.01)
    stage.start("stays", "next", 0)
    for _ in range(turns):
        stage.turn()
    begun = len(stage.begun)

    stage.queue.drop("leaves")
    for _ in range(10):
        stage.turn()

    assert "next" in stage.begun
    # A call that had been released for the next turn may still begin.
    assert len(stage.begun) <= begun + 3
