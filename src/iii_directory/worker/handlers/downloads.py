"""Downloads: the functions that write to the skills folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iii_directory.install.requests import any_download, registry_download, repo_download

if TYPE_CHECKING:
    from iii_directory.bus.seam import Payload
    from iii_directory.config import Settings
    from iii_directory.install.requests import DownloadRequest
    from iii_directory.install.service import Installer
    from iii_directory.worker.arrivals import Arrivals
    from iii_directory.worker.auto_download import AutoDownload


class Downloads:
    """``directory::skills::download*``, ``skills::download`` and what the ``worker`` trigger calls."""

    def __init__(
        self, installer: Installer, arrivals: Arrivals, automatic: AutoDownload, settings: Settings
    ) -> None:
        self._installer = installer
        self._arrivals = arrivals
        self._automatic = automatic
        self._allow_file = settings.allow_file_repos

    async def download(self, payload: Payload) -> dict[str, Any]:
        return await self._install(any_download(payload, allow_file=self._allow_file))

    async def from_registry(self, payload: Payload) -> dict[str, Any]:
        return await self._install(registry_download(payload))

    async def from_repo(self, payload: Payload) -> dict[str, Any]:
        return await self._install(repo_download(payload, allow_file=self._allow_file))

    async def on_worker_added(self, payload: Payload) -> dict[str, bool]:
        """Whatever it is sent, and whatever comes of it: the one who tells us is not to blame."""
        self._automatic.worker_added(payload)
        return {"ok": True}

    async def _install(self, request: DownloadRequest) -> dict[str, Any]:
        done = await self._installer.download(request)
        await self._arrivals.landed(done)
        return done.reply
