"""What one fetch may cost: addresses, bytes, calls at once; and who pays for it."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.reader import Reader

from iii_directory.catalog import resolve
from iii_directory.catalog.skill_indexes import tree_index
from iii_directory.limits import MAX_BODY_BYTES, MAX_FETCH_BYTES, MAX_FETCH_URIS, MAX_FETCHES_AT_ONCE
from iii_directory.worker.handlers import read_handlers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.engine import EngineThread

FETCHES = ("skill::fetch", "skills::fetch_skill", "directory::skills::fetch-skill")


@pytest.fixture
def caller(engine: EngineThread, tmp_path: Path) -> Iterator[Reader]:
    with Reader(engine.url, tmp_path, engine) as reading:
        reading.skills.write("big/one.md", "# one\n\n" + "x" * (MAX_BODY_BYTES - 7))
        yield reading


@pytest.mark.parametrize("fetch", FETCHES)
def test_more_addresses_than_the_limit_are_refused_and_none_is_read(caller: Reader, fetch: str) -> None:
    calls: list[Any] = []
    caller.offer("probe::run", calls.append)

    sentence = str(caller.failure(fetch, uris=["iii://fn/probe/run"] * (MAX_FETCH_URIS + 1)))

    assert f"at most {MAX_FETCH_URIS} addresses" in sentence
    assert calls == []


def test_an_address_named_often_is_read_once_and_told_as_often(caller: Reader) -> None:
    calls: list[Any] = []

    def answer(payload: Any) -> str:
        calls.append(payload)
        return "said"

    caller.offer("probe::run", answer)

    text = caller.call("skill::fetch", uris=["iii://fn/probe/run"] * MAX_FETCH_URIS)

    assert len(calls) == 1
    assert text.count("# iii://fn/probe/run") == MAX_FETCH_URIS


def test_an_answer_that_would_be_too_large_is_refused(caller: Reader) -> None:
    fitting = MAX_FETCH_BYTES // (MAX_BODY_BYTES + 32)

    assert len(caller.call("skill::fetch", uris=["iii://big/one"] * fitting)) > fitting * MAX_BODY_BYTES
    sentence = str(caller.failure("skill::fetch", uris=["iii://big/one"] * (fitting + 1)))

    assert "D121 too_large" in sentence
    assert str(MAX_FETCH_BYTES) in sentence


@pytest.mark.parametrize("door", ["skill::fetch", "skills::resources-read"])
def test_a_section_larger_than_an_answer_is_refused(caller: Reader, door: str) -> None:
    caller.offer("probe::huge", lambda _: "x" * (MAX_FETCH_BYTES + 1))

    assert "D121 too_large" in str(caller.failure(door, uri="iii://fn/probe/huge"))


def test_only_a_few_functions_are_called_at_once(caller: Reader) -> None:
    running: set[int] = set()
    most = 0
    full: asyncio.Event | None = None

    async def work(number: int) -> str:
        nonlocal most, full
        full = full or asyncio.Event()
        running.add(number)
        most = max(most, len(running))
        if len(running) == MAX_FETCHES_AT_ONCE:
            full.set()
        # The first ones stay until as many are there as may be; a ninth would be seen beside them.
        await asyncio.wait_for(full.wait(), 10)
        running.discard(number)
        return str(number)

    for number in range(2 * MAX_FETCHES_AT_ONCE):
        caller.offer(f"probe::n{number}", lambda _, number=number: work(number))

    caller.call("skill::fetch", uris=[f"fn/probe/n{number}" for number in range(2 * MAX_FETCHES_AT_ONCE)])

    assert most == MAX_FETCHES_AT_ONCE


def test_the_first_miss_ends_a_fetch_before_hints_are_sought_for_all(
    caller: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    hints: list[str] = []
    original = resolve.close_names

    def counted(asked: str, known: Any) -> list[str]:
        hints.append(asked)
        return original(asked, known)

    monkeypatch.setattr(resolve, "close_names", counted)

    sentence = str(caller.failure("skill::fetch", uris=[f"iii://gone/x{n}" for n in range(MAX_FETCH_URIS)]))

    assert "D110 not_found" in sentence
    assert len(hints) <= MAX_FETCHES_AT_ONCE


def test_others_have_the_loop_between_one_document_of_a_fetch_and_the_next(
    caller: Reader, engine: EngineThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document is read without waiting for anything, and a large one takes half a millisecond."""
    turn = 0
    read_in: list[int] = []
    original = resolve.find_exact

    def next_turn() -> None:
        nonlocal turn
        turn += 1
        if len(read_in) < len(uris):
            engine.loop.call_soon(next_turn)

    def counted(snapshot: Any, asked: str) -> Any:
        if not read_in:
            engine.loop.call_soon(next_turn)
        read_in.append(turn)
        return original(snapshot, asked)

    for number in range(3 * MAX_FETCHES_AT_ONCE):
        caller.skills.write(f"some/n{number}.md", f"# {number}\n")
    uris = [f"iii://some/n{number}" for number in range(3 * MAX_FETCHES_AT_ONCE)]
    caller.call("skill::fetch", uri=uris[0])  # what was just written is known
    monkeypatch.setattr(read_handlers, "find_exact", counted)

    caller.call("skill::fetch", uris=uris)

    assert len(set(read_in)) == len(read_in) == len(uris)


def test_the_tree_of_all_skills_is_not_made_on_the_loop(
    caller: Reader, engine: EngineThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_in: list[threading.Thread] = []

    def noted(snapshot: Any) -> str:
        made_in.append(threading.current_thread())
        return tree_index(snapshot)

    monkeypatch.setattr(read_handlers, "tree_index", noted)

    assert "big/one" in caller.call("skill::fetch", uri="iii://skills")
    assert made_in
    assert engine.on_loop(threading.current_thread) not in made_in
