"""Skills as MCP resources: the replies go to MCP clients as they are, so camelCase and no nulls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iii_directory.catalog.rows import RESOURCE_TEMPLATES, resource_rows
from iii_directory.worker.handlers.fields import text

if TYPE_CHECKING:
    from iii_directory.bus.seam import Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.worker.handlers.uris import UriReader


class Resources:
    """``skills::resources-list|-read|-templates``."""

    def __init__(self, catalogue: Catalogue, uris: UriReader) -> None:
        self._catalogue = catalogue
        self._uris = uris

    async def list(self, payload: Payload) -> dict[str, Any]:  # noqa: ARG002 (it takes no fields)
        return {"resources": resource_rows((await self._catalogue.look()).snapshot)}

    async def read(self, payload: Payload) -> dict[str, Any]:
        uri = text(payload, "uri")
        content = await self._uris.read(uri)
        return {"contents": [{"uri": uri, "mimeType": content.mime_type, "text": content.text}]}

    async def templates(self, payload: Payload) -> dict[str, Any]:  # noqa: ARG002 (it takes no fields)
        return {"resourceTemplates": RESOURCE_TEMPLATES}
