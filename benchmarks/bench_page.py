"""The web page: what a view costs beside the calls that it makes, and what counting costs a call.

Page, directory and engine run on one event loop in a process of their own, as in ``iii-directory up``. A view
is asked as the HTTP server asks it, and the calls that it made are made again alone, in turns.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Measurement, goal
from benchmarks.processes import READY_SECONDS, process, settle
from benchmarks.trees import document, tree

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping
    from multiprocessing.connection import Connection

SKILLS = 10_000
ROUNDS = 15
COUNTED = 20_000
WORDS = ("how to query a database", "send mail", "resize a picture", "deploy", "what to do when it is slow")


@goal("page.first-view", at_most=3.0)
def first_view() -> Measurement:
    """The list of 10,000 skills as a page, against the function calls behind it, each after a change."""
    with skills_tree() as root, process(page_of, root, "/skills") as found:
        return Measurement(tuple(found["ratios"]), (f"{found['bytes'] / 1000:.0f} KB on the wire",))


@goal("page.first-view-size", at_most=100.0, unit="KB")
def first_view_size() -> Measurement:
    """The list of 10,000 skills with its style sheet and script, as they go over the wire."""
    with skills_tree() as root, process(page_of, root, "/skills") as found:
        return Measurement((found["bytes"] / 1000,))


@goal("page.type-ahead", at_most=3.0)
def type_ahead() -> Measurement:
    """The p95 of requests while a user types, against that of the searches behind them."""
    queries = [word[:length] for word in WORDS for length in range(2, len(word) + 1, 2)]
    paths = [f"/search?q={query.replace(' ', '+')}" for query in queries]
    with skills_tree() as root, process(page_of, root, *paths) as found:
        ratio = _p95(found["views"]) / _p95(found["calls"])
        return Measurement((ratio,), (f"{1000 * _p95(found['views']):.1f} ms for {len(paths)} queries",))


@goal("page.metrics", at_most=2.0, unit="%")
def metrics() -> Measurement:
    """What counting for /metrics adds to a call that reads a skill."""
    with process(counting, tree(1_000)) as found:
        return Measurement(tuple(found))


@contextmanager
def skills_tree() -> Generator[Path]:
    """Write a folder of 10,000 skills."""
    with tempfile.TemporaryDirectory() as root:
        for number in range(SKILLS):
            folder = Path(root) / f"team-{number % 100:02}" / f"skill-{number:05}"
            folder.mkdir(parents=True)
            (folder / "SKILL.md").write_bytes(document(number))
        yield Path(root)


def _p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


class Running:
    """An engine, a directory and a page on the running loop."""

    def __init__(self, call: Callable[..., Awaitable[Any]], page: Any) -> None:
        self.call = call
        self.page = page
        self.calls: list[tuple[str, Mapping[str, Any]]] = []

    @classmethod
    async def start(cls, skills: Path) -> Running:
        from iii_directory.config import Settings
        from iii_directory.engine.server import EngineServer
        from iii_directory.page.page_routes import Page
        from iii_directory.wire.access import Access
        from iii_directory.worker.directory_worker import DirectoryWorker, bus_inside

        server = EngineServer(port=0)
        bus = bus_inside(server)
        await server.start()
        worker = await asyncio.to_thread(DirectoryWorker.run_on, bus, Settings(skills_folder=skills))
        if not await asyncio.to_thread(worker.wait_ready, READY_SECONDS):
            raise TimeoutError("the directory did not start")
        await asyncio.to_thread(settle)

        async def call(function_id: str, payload: Mapping[str, Any]) -> Any:
            return await bus.call(function_id, payload, timeout_ms=60_000)

        async def noted(function_id: str, payload: Mapping[str, Any]) -> Any:
            running.calls.append((function_id, payload))
            return await call(function_id, payload)

        running = cls(call, Page(noted, noted, None, Access("127.0.0.1", 0), ()))
        return running

    async def view(self, path: str) -> int:
        """Ask for a view and give the bytes of its answer."""
        sent = 0

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            nonlocal sent
            sent += len(message.get("body", b""))

        bare, _, query = path.partition("?")
        headers = [(b"host", b"127.0.0.1")]
        scope = {"type": "http", "method": "GET", "path": bare, "raw_path": bare.encode(), "headers": headers}
        scope |= {
            "query_string": query.encode(),
            "scheme": "http",
            "server": ("127.0.0.1", 1),
            "root_path": "",
        }
        await self.page(scope, receive, send)
        return sent


def change(skills: Path, number: int) -> None:
    """Change one document, so that the list is made anew."""
    (skills / "team-00" / "skill-00000" / "SKILL.md").write_bytes(document(SKILLS + number))


def page_of(report: Connection, skills: Path, *paths: str) -> None:
    """Report the seconds of views and of the calls behind them, in turns."""
    logging.disable()

    async def main() -> None:
        running = await Running.start(skills)
        views: list[float] = []
        calls: list[float] = []
        for number, path in enumerate(paths * (ROUNDS if len(paths) == 1 else 1)):
            await running.view(path)
            running.calls.clear()
            # A first view: a list that did not change since the last one costs next to nothing on both sides.
            change(skills, 2 * number)
            start = time.perf_counter()
            await running.view(path)
            views.append(time.perf_counter() - start)
            made = list(running.calls)
            change(skills, 2 * number + 1)
            start = time.perf_counter()
            await asyncio.gather(*(running.call(*one) for one in made))
            calls.append(time.perf_counter() - start)
        shared = [await running.view("/static/page.css"), await running.view("/static/page.js")]
        size = await running.view(paths[0]) + sum(shared)
        ratios = [view / call for view, call in zip(views, calls, strict=True)]
        report.send({"ratios": ratios, "views": views, "calls": calls, "bytes": size})
        await asyncio.Future()

    asyncio.run(main())


def counting(report: Connection, skills: Path) -> None:
    """Report the share of a call that counting it takes, in per cent, round by round."""
    logging.disable()

    async def nothing(_: dict[str, Any]) -> None:
        return None

    async def seconds(work: Callable[[dict[str, Any]], Awaitable[object]], times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            await work({})
        return (time.perf_counter() - start) / times

    async def main() -> None:
        from iii_directory.worker.usage import CallMetrics

        running = await Running.start(skills)
        rows = (await running.call("directory::skills::list", {}))["skills"]
        counted = CallMetrics().measured("directory::skills::get", nothing)

        async def get(_: dict[str, Any]) -> object:
            return await running.call("directory::skills::get", {"id": rows[0]["id"]})

        shares: list[float] = []
        for _ in range(ROUNDS):
            alone, added = await seconds(nothing, COUNTED), await seconds(counted, COUNTED)
            shares.append(100 * (added - alone) / await seconds(get, 500))
        report.send(shares)
        await asyncio.Future()

    asyncio.run(main())
