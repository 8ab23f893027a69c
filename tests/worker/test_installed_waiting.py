"""The installed workers as a source: which answers are waited for, and which come behind a reader's back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.support.engine import WAIT

from iii_directory.bus.seam import CallError
from iii_directory.worker.installed_workers import COMPOSE, CONNECTED, InstalledWorkers

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

TTL = 10.0


class Daemon:
    """A bus, without Compose, on which ``worker::list`` answers what a test says, once it is let go."""

    namespace = "default"
    name = "iii-directory"

    def __init__(self, *names: str) -> None:
        self.names: tuple[str, ...] | None = names
        self.asked = 0
        self.free = asyncio.Event()
        self.free.set()
        self.now = 100.0
        bus: Any = self
        self.workers = InstalledWorkers(bus, TTL, lambda: self.now, {})

    async def call(
        self, function_id: str, payload: Mapping[str, Any], *, timeout_ms: int, namespace: str | None = None
    ) -> Any:
        if function_id == COMPOSE:
            raise CallError("function_not_found", "not here")
        if function_id == CONNECTED:
            return {"workers": []}
        self.asked += 1
        await self.free.wait()
        if self.names is None:
            raise CallError("TIMEOUT", "too slow")
        return {"workers": [{"name": name} for name in self.names]}


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WAIT):
            await scenario()

    asyncio.run(bounded())


def test_the_first_answer_is_waited_for_and_then_kept() -> None:
    async def scenario() -> None:
        daemon = Daemon("db")
        assert daemon.workers.names is None
        assert await daemon.workers.known() == {"db"}
        daemon.names = ("web",)
        assert await daemon.workers.known() == {"db"}
        assert daemon.asked == 1

    run(scenario)


def test_readers_who_come_together_wait_for_one_answer() -> None:
    async def scenario() -> None:
        daemon = Daemon("db")
        assert await asyncio.gather(daemon.workers.known(), daemon.workers.known()) == [{"db"}, {"db"}]
        assert daemon.asked == 1

    run(scenario)


def test_an_old_answer_is_given_while_a_new_one_is_fetched() -> None:
    async def scenario() -> None:
        daemon = Daemon("db")
        await daemon.workers.known()
        daemon.names, daemon.now = ("db", "web"), daemon.now + TTL + 1
        daemon.free.clear()
        assert await daemon.workers.known() == {"db"}
        assert await daemon.workers.known() == {"db"}
        daemon.free.set()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
        assert await daemon.workers.known() == {"db", "web"}
        assert daemon.asked == 2

    run(scenario)


def test_after_it_was_told_to_forget_the_next_answer_is_waited_for() -> None:
    async def scenario() -> None:
        daemon = Daemon("db")
        await daemon.workers.known()
        daemon.names = ("web",)
        daemon.workers.forget()
        assert await daemon.workers.known() == {"web"}

    run(scenario)


def test_an_engine_that_cannot_say_hides_nothing() -> None:
    async def scenario() -> None:
        daemon = Daemon("db")
        await daemon.workers.known()
        daemon.names = None
        daemon.workers.forget()
        assert await daemon.workers.known() is None

    run(scenario)
