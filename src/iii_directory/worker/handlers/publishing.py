"""Skills for MCP hosts and for others who install them: manifests, folders, archives, resources."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from iii_directory.catalog.published import MARKDOWN
from iii_directory.catalog.rows import INDEX_RESOURCE, address_of, meta_of
from iii_directory.documents.payload_fields import optional_text, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.bus.seam import Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.look import Look
    from iii_directory.catalog.published import Publisher
    from iii_directory.documents.model import Skill

Row = dict[str, Any]


class Publishing:
    """``directory::mcp::…`` and ``directory::skills::archive``. Files are read in a thread."""

    def __init__(self, catalogue: Catalogue, publisher: Publisher) -> None:
        self._catalogue = catalogue
        self._publisher = publisher

    async def skills(self, payload: Payload) -> Row:
        uri, cursor = optional_text(payload, "uri"), optional_text(payload, "cursor")
        publisher = self._publisher
        if uri is not None:
            return await self._in_thread(lambda look: publisher.skill(look, uri))
        look = await self._catalogue.look()
        if publisher.is_ready(look):
            return publisher.page(look, cursor)
        return await asyncio.to_thread(publisher.page, look, cursor)

    async def resources(self, _: Payload) -> Row:
        return {"resources": await self._in_thread(self._resources)}

    async def folder(self, payload: Payload) -> Row:
        uri = text(payload, "uri")
        return await self._in_thread(lambda look: self._publisher.folder(look, uri))

    async def index(self, _: Payload) -> Row:
        return {"skills": await self._in_thread(self._publisher.index)}

    async def archive(self, payload: Payload) -> Row:
        asked = text(payload, "id")
        return await self._in_thread(lambda look: self._publisher.archive(look, asked))

    def _resources(self, look: Look) -> list[Row]:
        """The index, then the skills, then every document."""
        documents = look.listed.skills.column(_document_row)
        return [
            INDEX_RESOURCE,
            *self._publisher.resources(look),
            *(row for row in documents if row is not None),
        ]

    async def _in_thread(self, work: Callable[[Look], Any]) -> Any:
        return await asyncio.to_thread(work, await self._catalogue.look())


def _document_row(key: str, skill: Skill) -> Row | None:
    address = address_of(key, skill)
    if address is None:
        return None
    row: Row = {
        "uri": address,
        "name": skill.title,
        "mimeType": MARKDOWN,
        "size": skill.bytes,
        "_meta": meta_of(skill.provenance),
    }
    return row | ({"description": skill.description} if skill.description else {})
