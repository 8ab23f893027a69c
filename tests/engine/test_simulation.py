"""One outcome per call, no ghosts, whatever the network does: seeds that fail are printed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.engine.simulation import Simulation

from iii_directory.engine.calls import CallTable
from iii_directory.engine.router import Router
from iii_directory.engine.triggers import Triggers

if TYPE_CHECKING:
    from collections.abc import Callable


def play(seeds: range) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        try:
            outcomes += Simulation(seed).play().outcomes
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    return outcomes


@pytest.mark.parametrize("part", range(2))
def test_four_hundred_seeds_break_no_rule(part: int) -> None:
    outcomes = play(range(part * 200, (part + 1) * 200))

    assert outcomes["result"] > 1_000
    assert outcomes["error"] > 1_000


def test_a_seed_plays_the_same_twice() -> None:
    assert Simulation(7).play().outcomes == Simulation(7).play().outcomes


def test_the_auditor_notices_an_engine_that_breaks_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    sabotage: list[tuple[type, str, Callable[..., None]]] = [
        (CallTable, "stop", lambda _calls, _connection: None),
        (Triggers, "connection_gone", lambda _triggers, _connection: None),
        (Triggers, "_detach", lambda _triggers, binding: setattr(binding, "provider", None)),
        (Triggers, "_accepted", lambda _triggers, _binding: None),
        (Router, "_reject_name", lambda *_: None),
        (Router, "_grace_over", lambda _router, _connection: None),
        (Router, "_reattach", lambda *_: None),
    ]
    for owner, name, broken in sabotage:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, broken)
            with pytest.raises(AssertionError, match="seed"):
                play(range(100))


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_hundred_thousand_seeds_break_no_rule() -> None:
    play(range(1_000, 101_000))
