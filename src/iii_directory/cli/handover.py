"""Keeping a bridge on the directory of its own folder, whoever runs it.

A directory that runs for the folder (`iii-directory up`) is joined; otherwise the bridge runs one in its own
process, on an embedded engine in memory that never listens. When a directory appears the bridge joins it, and
when that one leaves the bridge serves by itself again. No other folder's directory is ever asked: a run file
must name the folder, and the process that answers must be the one that wrote it.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.cli.common import listens, log
from iii_directory.cli.runs import directory_for
from iii_directory.cli.tokens import TokenRule, engine_token
from iii_directory.documents.uris import INSTANCE, INSTANCE_FUNCTION
from iii_directory.limits import MCP_WORK_SECONDS
from iii_directory.shapes import object_of

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from iii_directory.bus.seam import WorkerBus
    from iii_directory.cli.project import Project
    from iii_directory.cli.runs import Run
    from iii_directory.engine.server import EngineServer
    from iii_directory.mcp.upstream import Upstream
    from iii_directory.worker.main import DirectoryWorker

# How often the run files are looked at while no directory is joined; a missing folder costs one system call.
_LOOK_SECONDS: Final = 0.5
_JOIN_SECONDS: Final = 2.0
# A directory that could not be joined, for example because it asks for a token, is tried again this late.
_REFUSED_SECONDS: Final = 15.0


class OwnDirectory(NamedTuple):
    """The directory in this process, and the bridge's bus on its engine."""

    engine: EngineServer
    worker: DirectoryWorker
    bus: WorkerBus

    async def stop(self) -> None:
        await asyncio.to_thread(self.bus.close)
        await asyncio.to_thread(self.worker.stop)
        await self.engine.stop()


class Handover:
    """Gives ``upstream`` the bus of the project's directory, now and after every change."""

    def __init__(self, upstream: Upstream, project: Project) -> None:
        self._upstream = upstream
        self._project = project
        self._own: OwnDirectory | None = None
        self._joined: WorkerBus | None = None
        self._refused: tuple[str | None, float] = None, 0.0
        """The instance that could not be joined last, and until when it is left alone."""
        self._leaving: set[asyncio.Task[None]] = set()

    async def follow(self) -> None:
        """Serve for as long as this runs; `close` afterwards."""
        while True:
            run = directory_for(self._project.home, self._project.settings.skills_folder, self._project.data)
            lost = None if run is None or self._is_refused(run) else await self._join(run)
            if lost is not None:
                await lost.wait()
                continue
            if self._own is None:
                self._own = await self._start_own()
                self._upstream.attach(self._own.bus)
                self._upstream.use(self._own.bus, secret=self._own.worker.secret)
            await asyncio.sleep(_LOOK_SECONDS)

    async def close(self) -> None:
        """Leave the directory that was joined, and stop the own one."""
        self._upstream.use(None)
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=_JOIN_SECONDS)
        if self._joined is not None:
            await asyncio.to_thread(self._joined.close)
        if self._own is not None:
            await self._own.stop()

    def _is_refused(self, run: Run) -> bool:
        instance, until = self._refused
        return run.instance == instance and asyncio.get_running_loop().time() < until

    async def _join(self, run: Run) -> asyncio.Event | None:
        """Join a directory and give the event of its leaving; None if it cannot be joined."""
        bridges = await asyncio.to_thread(import_module, "iii_directory.mcp.bridge")
        if not await asyncio.to_thread(listens, run.url):
            return None
        loop = asyncio.get_running_loop()
        token = engine_token(run.url, self._project.home, named=True)
        bus: WorkerBus = bridges.joined_bus(run.url, token=token, loop=loop)
        lost = asyncio.Event()

        def left() -> None:
            # At once, before the bus finds another engine at the address.
            if self._joined is bus:
                self._joined = None
                self._upstream.use(None)
                self._later(self._close(bus))
            lost.set()

        bus.on_lost(left)
        self._upstream.attach(bus)
        if not await _is_same(bus, run):
            self._refused = run.instance, loop.time() + _REFUSED_SECONDS
            await self._close(bus)
            return None
        log.info("joined the directory of %s at %s", run.home, run.url)
        self._joined = bus
        self._upstream.use(bus, secret=run.secret)
        if self._own is not None:
            self._later(self._retire(self._own))
            self._own = None
        return lost

    async def _start_own(self) -> OwnDirectory:
        """Start the directory in this process, on an engine in memory that has no port."""
        await asyncio.to_thread(_import_directory)
        from iii_directory.cli.running import new_engine
        from iii_directory.mcp.bridge import bus_inside as bridge_inside
        from iii_directory.worker.main import DirectoryWorker, bus_inside

        settings = self._project.settings
        engine = new_engine(settings, host="127.0.0.1", port=0, rule=TokenRule(None), database=None)
        bus = bus_inside(engine)
        worker = await asyncio.to_thread(DirectoryWorker.run_on, bus, settings, self._project.config)
        log.info("serving %s", settings.skills_folder)
        return OwnDirectory(engine, worker, bridge_inside(engine))

    async def _retire(self, own: OwnDirectory) -> None:
        """Stop the own directory once it has answered what it was asked."""
        await self._upstream.idle(own.bus, MCP_WORK_SECONDS)
        self._upstream.detach(own.bus)
        await own.stop()

    async def _close(self, bus: WorkerBus) -> None:
        self._upstream.detach(bus)
        await asyncio.to_thread(bus.close)

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)


def _import_directory() -> None:
    for name in ("iii_directory.mcp.bridge", "iii_directory.worker.main", "iii_directory.cli.running"):
        import_module(name)


async def _is_same(bus: WorkerBus, run: Run) -> bool:
    """Whether the process that answers is the one that wrote the run file."""
    from iii_directory.bus.seam import CallError

    try:
        async with asyncio.timeout(_JOIN_SECONDS):
            answer = await bus.call(
                "engine::functions::info",
                {"function_id": INSTANCE_FUNCTION, "namespace": bus.namespace},
                timeout_ms=int(_JOIN_SECONDS * 1000),
            )
    except (CallError, TimeoutError):
        return False
    told = object_of(object_of(answer).get("metadata")).get(INSTANCE)
    return told is not None and told == run.instance
