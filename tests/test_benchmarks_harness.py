from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from benchmarks import harness
from benchmarks.harness import Measurement, goal, interleave, measure, repeat, run

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "GOALS", {})


def sampler(log: list[str], name: str, values: list[float]) -> Callable[[], float]:
    remaining = iter(values)

    def sample() -> float:
        log.append(name)
        return next(remaining)

    return sample


def test_both_sides_are_warmed_up_and_then_take_turns_at_going_first() -> None:
    log: list[str] = []

    measurement = interleave(
        sampler(log, "a", [99, 2, 6, 4]), sampler(log, "b", [99, 1, 2, 4]), rounds=3, notes=["seen"]
    )

    assert log == ["a", "b", "a", "b", "b", "a", "a", "b"]
    assert measurement == Measurement((2.0, 3.0, 1.0), ("seen",))
    assert measurement.median == 2.0


def test_an_absolute_goal_keeps_the_value_of_every_round_but_the_warm_up() -> None:
    assert repeat(sampler([], "a", [9, 1, 2]), rounds=2).values == (1, 2)


def test_a_goal_met_and_a_goal_missed_print_one_line_each_and_fail_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    goal("area.small", at_most=3.0)(lambda: Measurement((1.0, 2.0, 8.0), ("size 3",)))
    goal("area.fast", at_least=0.9)(lambda: Measurement((0.5,)))

    assert run([]) == 1

    small, note, fast = capsys.readouterr().out.splitlines()
    assert small.split() == ["area.small", "2", "x", "(1-8)", "<=", "3", "ok"]
    assert note == "  size 3"
    assert fast.split()[-1] == "FAIL"


def test_a_measurement_without_a_bound_is_printed_and_fails_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    measure("area.odd", unit="ms")(lambda: Measurement((7.0,)))

    assert run([]) == 0
    assert capsys.readouterr().out.split() == ["area.odd", "7", "ms", "(7-7)"]


def test_a_selection_runs_only_the_goals_named_or_those_of_an_area(
    capsys: pytest.CaptureFixture[str],
) -> None:
    goal("one.a", at_most=1)(lambda: Measurement((1.0,)))
    goal("two.a", at_most=1)(lambda: Measurement((1.0,)))
    goal("two.b", at_most=1)(lambda: Measurement((1.0,)))

    assert run(["two"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["two.a", "two.b"]
    assert run(["one.a"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["one.a"]


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    goal("one.a", at_most=1)(lambda: Measurement((1.0,)))

    assert run(["one", "three"]) == 2
    assert "three" in capsys.readouterr().err


def test_a_goal_has_one_bound_and_one_name() -> None:
    with pytest.raises(ValueError, match="exactly one"):
        goal("a.b")
    with pytest.raises(ValueError, match="exactly one"):
        goal("a.b", at_most=1, at_least=1)
    goal("a.b", at_most=1)(lambda: Measurement((1.0,)))
    with pytest.raises(ValueError, match="twice"):
        goal("a.b", at_most=1)
