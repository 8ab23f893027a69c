"""The engine goes and comes back under open sessions; no client has to start again."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

import pytest
from tests.mcp.stage import CHANGES, JOINED, Session, command, http_bridge, session, wait_for_stream
from tests.support.commands import free_port
from tests.support.engine import WAIT, EngineThread
from tests.support.reader import OtherWorker, Reader

from iii_directory.mcp.bridge import joined_bus
from iii_directory.mcp.upstream import BridgeError, Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from iii_directory.bus.seam import WorkerBus


class Restartable:
    """An engine that always comes back at the same address."""

    def __init__(self) -> None:
        self.port = free_port()
        self.start()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._running = EngineThread(port=self.port)
        self._running.__enter__()

    def stop(self) -> None:
        self._running.__exit__(None, None, None)


@pytest.fixture
def machine() -> Iterator[Restartable]:
    engine = Restartable()
    yield engine
    engine.stop()


def test_open_sessions_go_on(machine: Restartable, tmp_path: Path) -> None:
    with ExitStack() as stack:
        reader = stack.enter_context(Reader(machine.url, tmp_path))
        reader.skills.document("coffee.md", "Coffee")
        url = stack.enter_context(http_bridge(machine.url))
        sessions = [_opened(stack, machine.url, url, kind) for kind in JOINED]
        for one in sessions:
            wait_for_stream(one, lambda: reader.call("skills::register", id="first", skill="# First\n"))
            assert "Coffee" in one.text("iii://coffee")

        machine.stop()
        waiting = [_soon(one, "list_resources") for one in sessions]
        machine.start()

        for one, answer in zip(sessions, waiting, strict=True):
            assert "iii://coffee" in {row.uri for row in answer.result(WAIT).resources}
            assert "Coffee" in one.text("iii://coffee")
            assert one.call("skill__fetch", uri="iii://coffee")
            one.told(*CHANGES)


def _opened(stack: ExitStack, engine_url: str, bridge_url: str, kind: tuple[str, str]) -> Session:
    transport, era = kind
    target: Any = command(engine_url) if transport == "stdio" else bridge_url
    return stack.enter_context(session(target, era))  # pyright: ignore[reportArgumentType]


def _soon(one: Session, method: str) -> Future[Any]:
    return one.portal.start_task_soon(getattr(one.client, method))


def test_a_client_that_came_before_the_engine_is_told_when_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.limits.MCP_ENGINE_SECONDS", 0.1)
    port = free_port()
    with http_bridge(f"ws://127.0.0.1:{port}") as url, session(url, "2026") as client:
        problem = client.refusal("list_resources")
        assert problem.code == -32603
        assert f"no iii engine answers at ws://127.0.0.1:{port}" in problem.message
        assert "iii-directory up" in client.tool_error("skill__fetch", uri="iii://skills")

        with EngineThread(port=port) as engine, Reader(engine.url, tmp_path):
            client.told(*CHANGES)
            assert "iii://skills" in client.uris()


# The shared connection by itself


class Gate:
    """Holds functions back until the end of the block, so that none is left waiting."""

    def __init__(self) -> None:
        self._held: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for loop, held in self._held:
            loop.call_soon_threadsafe(held.set)

    async def wait(self) -> None:
        held = asyncio.Event()
        self._held.append((asyncio.get_running_loop(), held))
        await held.wait()


@pytest.fixture
def bus(machine: Restartable) -> Iterator[WorkerBus]:
    joined = joined_bus(machine.url)
    yield joined
    joined.close()


@pytest.fixture
def upstream(bus: WorkerBus) -> Upstream:
    shared = Upstream()
    shared.use(bus)
    shared.attach(bus)
    return shared


def _call(upstream: Upstream, function_id: str, *, repeatable: bool) -> Future[Any]:
    """A call under way, as a future for this thread."""
    result: Future[Any] = Future()

    def run() -> None:
        try:
            calling = upstream.call(function_id, {}, repeatable=repeatable)
            bus: Any = upstream._bus
            result.set_result(bus.run(calling))
        except BridgeError as error:
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return result


def test_a_read_under_way_is_made_again(machine: Restartable, upstream: Upstream) -> None:
    with OtherWorker(machine.url, "slow") as other, Gate() as gate:
        called = [threading.Event(), threading.Event()]

        async def answer(_: dict[str, Any]) -> str:
            first = not called[0].is_set()
            called[0 if first else 1].set()
            if first:
                await gate.wait()
            return "at last"

        other.offer("slow::read", answer)
        reading = _call(upstream, "slow::read", repeatable=True)
        assert called[0].wait(WAIT)
        machine.stop()
        machine.start()

        assert reading.result(WAIT) == "at last"
        assert called[1].is_set()


def test_work_under_way_is_not_done_twice(machine: Restartable, upstream: Upstream) -> None:
    with OtherWorker(machine.url, "slow") as other, Gate() as gate:
        called = threading.Semaphore(0)

        async def answer(_: dict[str, Any]) -> None:
            called.release()
            await gate.wait()

        other.offer("slow::work", answer)
        working = _call(upstream, "slow::work", repeatable=False)
        assert called.acquire(timeout=WAIT)
        machine.stop()

        with pytest.raises(BridgeError, match="whether it ran is not known"):
            working.result(WAIT)
        machine.start()
        assert not called.acquire(blocking=False)


def test_a_worker_that_comes_back_late_is_waited_for(machine: Restartable, upstream: Upstream) -> None:
    reading = _call(upstream, "late::read", repeatable=True)
    with OtherWorker(machine.url, "late") as other:
        other.offer("late::read", lambda _: "here")

        assert reading.result(WAIT) == "here"


def test_a_read_whose_answer_is_lost_is_asked_again(
    machine: Restartable, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.limits.MCP_READ_SECONDS", 0.2)
    with OtherWorker(machine.url, "deaf") as other, Gate() as gate:
        asked = threading.Semaphore(0)

        async def answer(data: dict[str, Any]) -> str:
            asked.release()
            if asked._value == 1:
                await gate.wait()
            return "heard"

        other.offer("deaf::read", answer)

        assert _call(upstream, "deaf::read", repeatable=True).result(WAIT) == "heard"


def test_what_never_answers_is_given_up(
    machine: Restartable, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.limits.MCP_READ_SECONDS", 0.1)
    monkeypatch.setattr("iii_directory.limits.MCP_WORK_SECONDS", 0.1)
    with OtherWorker(machine.url, "deaf") as other, Gate() as gate:
        other.offer("deaf::never", lambda _: gate.wait())

        for repeatable in (True, False):
            with pytest.raises(BridgeError, match="did not answer in time"):
                _call(upstream, "deaf::never", repeatable=repeatable).result(WAIT)


def test_a_read_that_takes_the_connection_down_is_not_made_for_ever(
    machine: Restartable, upstream: Upstream
) -> None:
    bus: Any = upstream._bus
    with OtherWorker(machine.url, "huge") as other:
        asked = threading.Semaphore(0)

        def cut(_: dict[str, Any]) -> None:
            asked.release()
            bus._loop.call_soon_threadsafe(bus._socket.abort)

        other.offer("huge::read", cut)

        with pytest.raises(BridgeError, match="went away"):
            _call(upstream, "huge::read", repeatable=True).result(3 * WAIT)
        assert asked._value <= 3
