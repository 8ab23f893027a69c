"""The public workers registry, through the directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iii_directory.registry.requests import info_request, page_request

if TYPE_CHECKING:
    from iii_directory.bus.seam import Payload
    from iii_directory.registry.client import RegistryClient


class RegistryProxy:
    """``directory::registry::workers::list|info`` and their v0.4 names."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client

    async def workers(self, payload: Payload) -> dict[str, Any]:
        return await self._client.workers(page_request(payload))

    async def worker_info(self, payload: Payload) -> dict[str, Any]:
        return await self._client.worker_info(info_request(payload))
