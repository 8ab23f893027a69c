"""Answers kept for a while."""

from __future__ import annotations

import asyncio

import pytest

from iii_directory.registry.registry_client import AnswerCache


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Source:
    """Counts its calls and answers when told to."""

    def __init__(self) -> None:
        self.calls = 0
        self.go = asyncio.Event()

    async def __call__(self) -> int:
        self.calls += 1
        number = self.calls
        await self.go.wait()
        return number


def test_an_answer_is_kept_until_its_time_is_over() -> None:
    async def scenario() -> None:
        clock, source = Clock(), Source()
        source.go.set()
        cache: AnswerCache[int] = AnswerCache(1000, clock=clock)

        assert await cache.get("a", source) == 1
        clock.now = 0.999
        assert await cache.get("a", source) == 1
        clock.now = 1.0
        assert await cache.get("a", source) == 2
        assert await cache.get("b", source) == 3

    asyncio.run(scenario())


def test_identical_questions_at_the_same_time_are_asked_once() -> None:
    async def scenario() -> None:
        source = Source()
        cache: AnswerCache[int] = AnswerCache(0)
        waiting = [asyncio.ensure_future(cache.get("a", source)) for _ in range(10)]
        other = asyncio.ensure_future(cache.get("b", source))
        await asyncio.sleep(0)
        source.go.set()

        assert await asyncio.gather(*waiting) == [1] * 10
        assert await other == 2
        assert await cache.get("a", source) == 3

    asyncio.run(scenario())


def test_a_caller_that_gives_up_does_not_take_the_answer_from_the_others() -> None:
    async def scenario() -> None:
        source = Source()
        cache: AnswerCache[int] = AnswerCache(1000)
        first = asyncio.ensure_future(cache.get("a", source))
        second = asyncio.ensure_future(cache.get("a", source))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        source.go.set()

        assert await second == 1
        assert first.cancelled()
        assert source.calls == 1

    asyncio.run(scenario())


def test_an_answer_that_was_forgotten_while_it_was_fetched_is_not_kept() -> None:
    async def scenario() -> None:
        source = Source()
        cache: AnswerCache[int] = AnswerCache(1000)
        first = asyncio.ensure_future(cache.get("a", source))
        await asyncio.sleep(0)
        cache.forget()
        second = asyncio.ensure_future(cache.get("a", source))
        await asyncio.sleep(0)
        source.go.set()

        assert (await first, await second) == (1, 2)
        assert await cache.get("a", source) == 2

    asyncio.run(scenario())


def test_a_failure_is_told_to_all_who_wait_and_not_kept() -> None:
    async def scenario() -> None:
        cache: AnswerCache[int] = AnswerCache(1000)

        async def fail() -> int:
            await asyncio.sleep(0)
            raise ValueError("no")

        results = await asyncio.gather(cache.get("a", fail), cache.get("a", fail), return_exceptions=True)
        assert [str(result) for result in results] == ["no", "no"]
        source = Source()
        source.go.set()
        assert await cache.get("a", source) == 1

    asyncio.run(scenario())


def test_a_failure_without_a_waiting_caller_is_not_logged() -> None:
    async def scenario() -> None:
        cache: AnswerCache[int] = AnswerCache(1000)
        go = asyncio.Event()

        async def fail() -> int:
            await go.wait()
            raise ValueError("no")

        waiting = asyncio.ensure_future(cache.get("a", fail))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        go.set()
        await asyncio.sleep(0)

    asyncio.run(scenario())


def test_the_least_recently_used_answer_makes_room() -> None:
    async def scenario() -> None:
        source = Source()
        source.go.set()
        cache: AnswerCache[int] = AnswerCache(1000, size=2)
        for key in ("a", "b", "a", "c"):
            await cache.get(key, source)

        assert source.calls == 3
        await cache.get("a", source)
        assert source.calls == 3
        await cache.get("b", source)
        assert source.calls == 4

    asyncio.run(scenario())
