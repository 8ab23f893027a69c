"""Download the skills of workers automatically when the workers are installed."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.bus.seam import CallError, is_embedded
from iii_directory.bus.tasks import Tasks
from iii_directory.documents.ids import RESERVED_NAMESPACES
from iii_directory.errors import DirectoryError
from iii_directory.registry.registry_messages import is_worker
from iii_directory.wire.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from iii_directory.bus.seam import Payload, WorkerBus
    from iii_directory.install.reports import Installation
    from iii_directory.worker.change_events import InstallEvents
    from iii_directory.worker.installed_workers import InstalledWorkers

log = logging.getLogger("iii_directory.worker")
ADDED: Final = "directory::__on_worker_added"
_HEALTH_TIMEOUT_MS: Final = 5_000


class AutoDownload:
    """Binds to the ``worker`` trigger type and catches up at every connect, if it is switched on.

    On the embedded engine no daemon says what is installed, so it is off there unless the settings say on:
    the registry must not learn the names of workers that are only connected.
    """

    def __init__(
        self,
        bus: WorkerBus,
        fetch: Callable[[str], Awaitable[Installation | None]],
        installs: InstallEvents,
        installed: InstalledWorkers,
        *,
        wanted: bool | None,
    ) -> None:
        self._bus = bus
        self._fetch_skills = fetch
        self._installs = installs
        self._installed = installed
        self._wanted = wanted
        self._on = False
        self._bound = False
        self._catching_up = False
        self._turn = asyncio.Semaphore(limits.PARALLEL_DOWNLOADS)
        self._waiting: set[str] = set()
        self._tasks = Tasks()

    async def connected(self) -> None:
        """Find out whether to download on this engine; if so, fetch what installed workers lack."""
        self._on = self._wanted is True
        if self._wanted is None:
            try:
                health = await self._bus.call(
                    "engine::health::check", {}, timeout_ms=_HEALTH_TIMEOUT_MS, namespace=DEFAULT_NAMESPACE
                )
            except CallError:
                health = None
            self._on = not is_embedded(health)
        if not self._on:
            return
        if not self._bound:
            self._bound = True
            self._bus.bind("worker", ADDED, {"operations": ["add"], "stages": ["done"]})
        await self.catch_up()

    async def catch_up(self) -> None:
        """Fetch the missing skills of the workers that are installed now, if it is switched on."""
        self._catching_up = False
        if self._on:
            await self._installed.known()
            for name in sorted(self._installed.reported):
                self._fetch(name)

    def worker_added(self, event: Payload) -> None:
        """Fetch the skills of a worker that was added; any worker may call this function."""
        self._installed.forget()
        name = event.get("worker")
        done = event.get("operation", "add") == "add" and event.get("stage", "done") == "done"
        if self._on and done and isinstance(name, str):
            self._fetch(name)

    def workers_changed(self) -> None:
        """Fetch the skills of new workers, once for all events of a moment."""
        if self._on and not self._catching_up:
            self._catching_up = True
            self._tasks.start(self.catch_up())

    def close(self) -> None:
        """Stop; events that come after this start nothing."""
        self._on = False
        self._tasks.cancel()

    # Inner workings

    def _fetch(self, name: str) -> None:
        if name in self._waiting or name in RESERVED_NAMESPACES or not is_worker(name):
            return
        self._waiting.add(name)
        self._tasks.start(self._in_turn(name))

    async def _in_turn(self, name: str) -> None:
        async with self._turn:
            try:
                await self._try(name)
            except Exception:
                log.exception("fetching the skills of %s failed", name)
            finally:
                self._waiting.discard(name)

    async def _try(self, name: str) -> None:
        if await self._installed.known() is not None and name not in self._installed.reported:
            # Another worker than the daemon said so. The registry must not learn names of other workers.
            return
        try:
            done = await self._fetch_skills(name)
        except DirectoryError as error:
            self._installs.failed(name, error)
            return
        if done is None:
            self._installs.nothing_to_fetch(name)
            return
        kept = len(done.changes.kept)
        log.info("fetched the skills of %s%s", name, f", and kept {kept} that were edited" if kept else "")
        await self._installs.landed(done)
