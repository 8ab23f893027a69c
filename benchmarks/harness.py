"""How a goal is measured and judged.

A goal is a function in a module ``benchmarks/bench_*.py`` that returns a `Measurement`:

    @goal("catalogue.first-scan", at_most=3.0)
    def first_scan() -> Measurement:
        return interleave(timed(scan), timed(read_every_file))

A and B alternate within one run, so that a busy machine slows both; the verdict is on the median of
the ratios of the rounds. Goals in milliseconds or megabytes use `repeat` and name their unit.

Only what a user can feel is a goal with a bound (docs/design.md lists them); everything else is registered
with `measure`, and printed without a verdict.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil
import statistics
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROUNDS = 7


@dataclass(frozen=True, slots=True)
class Measurement:
    """One value a round, and lines worth showing below the verdict."""

    values: tuple[float, ...]
    notes: tuple[str, ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.values)


@dataclass(frozen=True, slots=True)
class Goal:
    """Something to measure; without a bound every value is good."""

    name: str
    bound: float | None
    at_least: bool
    unit: str
    measure: Callable[[], Measurement]

    def met_by(self, value: float) -> bool:
        if self.bound is None:
            return True
        return value >= self.bound if self.at_least else value <= self.bound


GOALS: dict[str, Goal] = {}


def goal(
    name: str, *, at_most: float | None = None, at_least: float | None = None, unit: str = "x"
) -> Callable[[Callable[[], Measurement]], Callable[[], Measurement]]:
    """Register a goal under ``area.what``; exactly one of the two bounds is given."""
    bound = at_most if at_least is None else at_least
    if bound is None or (at_most is not None and at_least is not None):
        raise ValueError(f"goal {name} needs exactly one of at_most and at_least")
    return _registered(name, bound, at_least=at_least is not None, unit=unit)


def measure(
    name: str, *, unit: str = "x"
) -> Callable[[Callable[[], Measurement]], Callable[[], Measurement]]:
    """Register a measurement under ``area.what`` that is printed without a bound."""
    return _registered(name, None, at_least=False, unit=unit)


def _registered(
    name: str, bound: float | None, *, at_least: bool, unit: str
) -> Callable[[Callable[[], Measurement]], Callable[[], Measurement]]:
    if name in GOALS:
        raise ValueError(f"goal {name} is registered twice")

    def register(work: Callable[[], Measurement]) -> Callable[[], Measurement]:
        GOALS[name] = Goal(name, bound, at_least, unit, work)
        return work

    return register


def timed(work: Callable[[], object], *, times: int = 1) -> Callable[[], float]:
    """Return a sampler of the seconds that ``work`` takes, averaged over ``times`` calls in a row."""

    def sample() -> float:
        result: object = None
        gc.collect()  # garbage of earlier samples must not be collected within this one
        start = time.perf_counter()
        for _ in range(times):
            result = work()
        seconds = (time.perf_counter() - start) / times
        del result  # freeing the result is not part of making it
        return seconds

    return sample


def interleave(
    a: Callable[[], float], b: Callable[[], float], *, rounds: int = ROUNDS, notes: Sequence[str] = ()
) -> Measurement:
    """Measure the ratio A : B in each round; the order alternates, after one warm-up of both."""
    a()
    b()
    ratios: list[float] = []
    for number in range(rounds):
        if number % 2:
            below = b()
            above = a()
        else:
            above = a()
            below = b()
        ratios.append(above / below)
    return Measurement(tuple(ratios), tuple(notes))


def repeat(sample: Callable[[], float], *, rounds: int = ROUNDS, notes: Sequence[str] = ()) -> Measurement:
    """Measure one value per round, for goals with an absolute bound, after one warm-up."""
    sample()
    return Measurement(tuple(sample() for _ in range(rounds)), tuple(notes))


def discover() -> None:
    """Import every ``bench_*`` module of this package, which registers its goals."""
    package = importlib.import_module(__package__ or "benchmarks")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith("bench_"):
            importlib.import_module(f"{package.__name__}.{module.name}")


def select(names: Sequence[str]) -> list[Goal]:
    """Return the goals with these names or areas (the part before the dot); without names, all goals."""
    chosen = [g for g in GOALS.values() if not names or g.name in names or g.name.split(".")[0] in names]
    known = {g.name for g in chosen} | {g.name.split(".")[0] for g in chosen}
    unknown = sorted(set(names) - known)
    if unknown:
        raise KeyError(", ".join(unknown))
    return chosen


def verdict(one: Goal, measurement: Measurement) -> tuple[bool, str]:
    """Return whether the goal is met, and the line to print."""
    value = measurement.median
    met = one.met_by(value)
    spread = f"({min(measurement.values):.3g}-{max(measurement.values):.3g})"
    line = f"{one.name:<36} {value:>8.3g} {one.unit:<3} {spread:<20}"
    if one.bound is not None:
        line += f" {'>=' if one.at_least else '<='} {one.bound:<6g} {'ok' if met else 'FAIL'}"
    return met, line.rstrip()


def run(names: Sequence[str]) -> int:
    """Measure the chosen goals, print one line each (and its notes, indented); 1 when one fails."""
    try:
        chosen = select(names)
    except KeyError as unknown:
        print(f"no such goal: {unknown.args[0]}; there are: {', '.join(sorted(GOALS))}", file=sys.stderr)
        return 2
    failed = False
    for one in chosen:
        measurement = one.measure()
        met, line = verdict(one, measurement)
        failed = failed or not met
        print(line, flush=True)
        for note in measurement.notes:
            print(f"  {note}", flush=True)
    return int(failed)
