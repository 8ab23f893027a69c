"""Construct what answers the functions: handlers, installer, registry client and search indexes.

Importing these modules takes longer than the rest of a start. So the worker imports this module with the
first call that needs it, or half a second after it has connected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory.catalog.skill_manifests import Publisher
from iii_directory.install.service import Installer
from iii_directory.install.writes import Edits
from iii_directory.registry.registry_client import RegistryClient
from iii_directory.search.document_indexes import DocumentIndexes
from iii_directory.search.searching import EngineIndexes, Searching
from iii_directory.worker.handlers.inspect_handlers import EngineHandlers, UpkeepHandlers
from iii_directory.worker.handlers.read_handlers import HostHandlers, ReadHandlers
from iii_directory.worker.handlers.write_handlers import (
    DownloadHandlers,
    RegistrationHandlers,
    RegistryHandlers,
    WriteHandlers,
)

if TYPE_CHECKING:
    from iii_directory.disk.files import FolderAtStart
    from iii_directory.worker.directory_worker import DirectoryWorker


class Services:
    """The handlers of one worker, and what they share. Belongs to the bus's event loop."""

    def __init__(self, worker: DirectoryWorker, folder: FolderAtStart) -> None:
        settings, catalogue = worker.settings, worker.catalogue
        self._settings = settings
        self.registry_client = RegistryClient(
            settings.registry_url,
            timeout_ms=settings.download_timeout_ms,
            cache_ttl_ms=settings.registry_cache_ttl_ms,
        )
        self.installer = Installer(settings, registry=self.registry_client, folder=folder)
        self.edits = Edits(settings.skills_folder)
        self.document_indexes = DocumentIndexes(lambda: catalogue.activity)
        self.engine_indexes = EngineIndexes(worker.engine, self.registry_client)
        publisher = Publisher()
        may_know = worker.may_know_paths
        self.reading = ReadHandlers(catalogue, worker.bus, worker.engine, settings, publisher, may_know)
        self.hosts = HostHandlers(catalogue, publisher)
        self.searching = Searching(catalogue, self.document_indexes, self.engine_indexes, may_know)
        self.engine = EngineHandlers(worker.engine, catalogue)
        self.upkeep = UpkeepHandlers(
            catalogue, worker.engine, self.edits, worker.installed, worker.functions, worker.metrics
        )
        self.usage = worker.usage
        self.registering = RegistrationHandlers(worker.registrations, worker.installed)
        self.downloads = DownloadHandlers(
            self.installer, worker.installs, worker.auto_download, settings, worker.is_our_bridge
        )
        writes, edits = self.installer.writes, worker.disk_edits
        self.writing = WriteHandlers(catalogue, writes, worker.installs, edits, worker.installed, settings)
        self.registry = RegistryHandlers(self.registry_client)

    def settings_changed(self) -> None:
        """Pass changed settings to the one service that keeps a copy; the others read them themselves."""
        self.registry_client.settings_changed(
            self._settings.registry_url,
            timeout_ms=self._settings.download_timeout_ms,
            cache_ttl_ms=self._settings.registry_cache_ttl_ms,
        )

    async def close(self) -> None:
        self.document_indexes.close()
        self.engine_indexes.close()
        await self.registry_client.aclose()
