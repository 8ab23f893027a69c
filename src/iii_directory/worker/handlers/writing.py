"""Writing: registrations go to iii-state, downloads to the skills folder; and the registry they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iii_directory.documents.fields import text
from iii_directory.documents.ids import check_new_skill_id, check_prompt_name, check_skill_id
from iii_directory.documents.registering import prompt_fields, skill_fields
from iii_directory.install.requests import any_download, registry_download, repo_download
from iii_directory.registry.requests import info_request, page_request

if TYPE_CHECKING:
    from iii_directory.bus.seam import Payload
    from iii_directory.config import Settings
    from iii_directory.install.requests import DownloadRequest
    from iii_directory.install.service import Installer
    from iii_directory.registry.client import RegistryClient
    from iii_directory.worker.arrivals import Arrivals
    from iii_directory.worker.auto_download import AutoDownload
    from iii_directory.worker.registrations import Registrations


class Registering:
    """``skills::register|unregister`` and ``prompts::register|unregister``."""

    def __init__(self, registrations: Registrations) -> None:
        self._registrations = registrations

    async def register_skill(self, payload: Payload) -> dict[str, Any]:
        fields = skill_fields(payload, check_new_skill_id)
        registered_at = await self._registrations.register(self._registrations.skills, fields)
        return {"id": fields["id"], "registered_at": registered_at}

    async def unregister_skill(self, payload: Payload) -> dict[str, Any]:
        skill_id = text(payload, "id")
        check_skill_id(skill_id)
        removed = await self._registrations.unregister(self._registrations.skills, skill_id)
        return {"id": skill_id, "removed": removed}

    async def register_prompt(self, payload: Payload) -> dict[str, Any]:
        fields = prompt_fields(payload)
        registered_at = await self._registrations.register(self._registrations.prompts, fields)
        return {"name": fields["name"], "registered_at": registered_at}

    async def unregister_prompt(self, payload: Payload) -> dict[str, Any]:
        name = text(payload, "name")
        check_prompt_name(name)
        removed = await self._registrations.unregister(self._registrations.prompts, name)
        return {"name": name, "removed": removed}


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


class RegistryProxy:
    """``directory::registry::workers::list|info`` and their v0.4 names."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client

    async def workers(self, payload: Payload) -> dict[str, Any]:
        return await self._client.workers(page_request(payload))

    async def worker_info(self, payload: Payload) -> dict[str, Any]:
        return await self._client.worker_info(info_request(payload))
