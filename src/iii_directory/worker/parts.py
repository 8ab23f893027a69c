"""What answers the functions, in parts that are imported and made when they are first needed.

The first answer of a worker needs few of them, and importing the others takes longer than all else of a
start. So they come a moment later, in a thread, before most of them are asked for; whoever is quicker has
the one made that answers. All of them belong to the bus's loop, but for the edits, which any thread may ask.
"""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property
from hmac import compare_digest
from importlib import import_module
from typing import TYPE_CHECKING, Final

from iii_directory.bus.tasks import Tasks
from iii_directory.disk.files import FolderAtStart
from iii_directory.documents.uris import LOCAL
from iii_directory.worker.metrics import CallMetrics
from iii_directory.worker.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from iii_directory.bus.seam import Payload, WorkerBus
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.look import Look
    from iii_directory.catalog.notes import Notes
    from iii_directory.catalog.published import Publisher
    from iii_directory.config import Settings
    from iii_directory.install.edits import Edits
    from iii_directory.install.reports import Installation
    from iii_directory.install.service import Installer
    from iii_directory.registry.client import RegistryClient
    from iii_directory.worker.auto_download import AutoDownload
    from iii_directory.worker.engine_indexes import EngineIndexes
    from iii_directory.worker.engine_view import EngineView
    from iii_directory.worker.folder_events import DiskEditEvents, InstallEvents
    from iii_directory.worker.handlers.advice import Advice
    from iii_directory.worker.handlers.introspection import Introspection
    from iii_directory.worker.handlers.publishing import Publishing
    from iii_directory.worker.handlers.reading import Reading
    from iii_directory.worker.handlers.searching import Searching
    from iii_directory.worker.handlers.writing import Authoring, Downloads, Registering, RegistryProxy
    from iii_directory.worker.indexing import DocumentIndexes
    from iii_directory.worker.installed_workers import InstalledWorkers
    from iii_directory.worker.registrations import Registrations
    from iii_directory.worker.surfaces.schema import FunctionRow

log = logging.getLogger("iii_directory.worker")
# After a connect. By then whoever waited for the start has had an answer.
AFTER_START_SECONDS: Final = 0.5
_LATER: Final = (
    "iii_directory.install.edits",
    "iii_directory.install.service",
    "iii_directory.worker.handlers.advice",
    "iii_directory.worker.handlers.introspection",
    "iii_directory.worker.handlers.publishing",
    "iii_directory.worker.handlers.reading",
    "iii_directory.worker.handlers.searching",
    "iii_directory.worker.handlers.writing",
    "iii_directory.worker.engine_indexes",
)


class Parts:
    """The parts by name; each stands on what the worker was started with."""

    def __init__(
        self,
        settings: Settings,
        bus: WorkerBus,
        catalogue: Catalogue,
        notes: Notes,
        functions: Sequence[FunctionRow],
        *,
        engine: EngineView,
        installed: InstalledWorkers,
        registrations: Registrations,
        installs: InstallEvents,
        disk_edits: DiskEditEvents,
        data: Path | None,
    ) -> None:
        self.metrics = CallMetrics()
        self.usage = Usage(settings, catalogue, data)
        self._settings = settings
        self._bus = bus
        self._catalogue = catalogue
        self._notes = notes
        self._functions = functions
        self._engine = engine
        self._installed = installed
        self._registrations = registrations
        self._installs = installs
        self._disk_edits = disk_edits
        self._folder = FolderAtStart.of(settings.skills_folder)
        self._look: Look | None = None
        self.secret: str | None = None
        """What callers show who may know where files lie."""
        self._tasks = Tasks()
        self._coming: asyncio.Task[None] | None = None

    def may_know_paths(self, payload: Payload) -> bool:
        """Whether a caller is a bridge of the same user, and the settings tell such callers paths."""
        shown = payload.get(LOCAL)
        if self._settings.show_paths != "auto" or self.secret is None or not isinstance(shown, str):
            return False
        return compare_digest(shown.encode(), self.secret.encode())

    def connected(self) -> None:
        """The worker can be called from now on: have the parts imported before they are asked for."""
        if self._coming is None:
            self._coming = self._tasks.start(self._come_later())

    def looked(self, look: Look) -> None:
        """The documents changed: search takes them in when there is time, before anybody asks."""
        self._look = look
        if self._is_made("documents"):
            self.documents.follow(look)

    def engine_changed(self, _event: object = None) -> None:
        """Note that functions or workers came or went on the engine, or that it is another engine."""
        if self._is_made("on_engine"):
            self.on_engine.changed()

    def settings_changed(self) -> None:
        """Whoever holds a value of its own goes by the new one; the others ask when they need it."""
        now = self._settings
        if self._is_made("registry"):
            self.registry.settings_changed(
                now.registry_url, timeout_ms=now.download_timeout_ms, cache_ttl_ms=now.registry_cache_ttl_ms
            )
        if self._is_made("installer"):
            self.installer.settings_changed()

    async def close(self) -> None:
        self._tasks.cancel()
        await self.usage.close()
        if self._is_made("automatic"):
            self.automatic.close()
        if self._is_made("documents"):
            self.documents.close()
        if self._is_made("on_engine"):
            self.on_engine.close()
        if self._is_made("registry"):
            await self.registry.close()

    # What installs

    @cached_property
    def registry(self) -> RegistryClient:
        from iii_directory.registry.client import RegistryClient

        return RegistryClient(
            self._settings.registry_url,
            timeout_ms=self._settings.download_timeout_ms,
            cache_ttl_ms=self._settings.registry_cache_ttl_ms,
        )

    @cached_property
    def installer(self) -> Installer:
        from iii_directory.install.service import Installer

        return Installer(self._settings, registry=self.registry, folder=self._folder)

    @cached_property
    def edits(self) -> Edits:
        from iii_directory.install.edits import Edits

        return Edits(self._settings.skills_folder)

    @cached_property
    def automatic(self) -> AutoDownload:
        from iii_directory.worker.auto_download import AutoDownload

        # The older generations had none; without v0.8 there is also no function for the engine to call.
        wanted = self._settings.auto_download if "v0.8" in self._settings.surfaces else False
        return AutoDownload(
            self._bus,
            self._skills_of,
            self._installs,
            self._installed,
            wanted=wanted,
        )

    # What finds

    @cached_property
    def documents(self) -> DocumentIndexes:
        from iii_directory.worker.indexing import DocumentIndexes

        return DocumentIndexes(lambda: self._catalogue.activity)

    @cached_property
    def on_engine(self) -> EngineIndexes:
        from iii_directory.worker.engine_indexes import EngineIndexes

        return EngineIndexes(self._engine, self.registry)

    # What answers

    @cached_property
    def reading(self) -> Reading:
        from iii_directory.worker.handlers.reading import Reading

        return Reading(
            self._catalogue, self._bus, self._engine, self._settings, self.publisher, self.may_know_paths
        )

    @cached_property
    def publishing(self) -> Publishing:
        from iii_directory.worker.handlers.publishing import Publishing

        return Publishing(self._catalogue, self.publisher)

    @cached_property
    def publisher(self) -> Publisher:
        from iii_directory.catalog.published import Publisher

        return Publisher()

    @cached_property
    def advice(self) -> Advice:
        from iii_directory.worker.handlers.advice import Advice

        return Advice(
            self._catalogue, self._engine, self.edits, self._installed, self._functions, self.metrics
        )

    @cached_property
    def searching(self) -> Searching:
        from iii_directory.worker.handlers.searching import Searching

        return Searching(self._catalogue, self.documents, self.on_engine, self.may_know_paths)

    @cached_property
    def introspection(self) -> Introspection:
        from iii_directory.worker.handlers.introspection import Introspection

        return Introspection(self._engine, self._catalogue)

    @cached_property
    def registering(self) -> Registering:
        from iii_directory.worker.handlers.writing import Registering

        return Registering(self._registrations, self._installed)

    @cached_property
    def downloads(self) -> Downloads:
        from iii_directory.worker.handlers.writing import Downloads

        return Downloads(self.installer, self._installs, self.automatic, self._settings)

    @cached_property
    def authoring(self) -> Authoring:
        from iii_directory.worker.handlers.writing import Authoring

        writes, workers = self.installer.writes, self._installed
        return Authoring(self._catalogue, writes, self._installs, self._disk_edits, workers, self._settings)

    @cached_property
    def registry_proxy(self) -> RegistryProxy:
        from iii_directory.worker.handlers.writing import RegistryProxy

        return RegistryProxy(self.registry)

    # Inner workings

    def _is_made(self, name: str) -> bool:
        return name in vars(self)

    async def _come_later(self) -> None:
        await asyncio.sleep(AFTER_START_SECONDS)
        await asyncio.to_thread(import_all)
        if self._look is not None:
            self.documents.follow(self._look)

    async def _skills_of(self, worker: str) -> Installation | None:
        return await self.installer.auto_download(worker)


def import_all() -> None:
    """Import the modules that the first answer does not need."""
    for name in _LATER:
        import_module(name)
