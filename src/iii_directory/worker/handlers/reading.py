"""Reading skills: one, many, and the index."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from iii_directory.catalog import rows
from iii_directory.catalog.indexes import workers_index
from iii_directory.catalog.resolve import Found, resolve_skill
from iii_directory.documents.uris import fetch_uris
from iii_directory.errors import DirectoryError
from iii_directory.text import quoted
from iii_directory.worker.handlers.fields import flag, optional_text, optional_texts, text

if TYPE_CHECKING:
    from iii_directory.bus.seam import Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.worker.handlers.overview import Overviews
    from iii_directory.worker.handlers.uris import UriReader


class Reading:
    """``directory::skills::get|list|index``, ``skills::list`` and the three names of the batched fetch."""

    def __init__(self, catalogue: Catalogue, uris: UriReader, overviews: Overviews) -> None:
        self._catalogue = catalogue
        self._uris = uris
        self._overviews = overviews

    async def get(self, payload: Payload) -> dict[str, Any]:
        asked = text(payload, "id")
        look = await self._catalogue.look()
        target = resolve_skill(look.snapshot, asked, look.installed or frozenset())
        if not isinstance(target, Found):
            return await self._overviews.generate(target)
        body = target.opened(look.read_skill(target.skill))
        return rows.skill_reply(look.snapshot, target.skill, body)

    async def list(self, payload: Payload) -> dict[str, Any]:
        filters = {
            "search": optional_text(payload, "search"),
            "prefix": optional_text(payload, "prefix"),
            "type_": optional_text(payload, "type"),
        }
        described = flag(payload, "include_description", default=True)
        snapshot = (await self._catalogue.look()).snapshot
        return {"skills": rows.list_skills(snapshot, **filters, include_description=described)}

    async def plain_list(self, payload: Payload) -> dict[str, Any]:  # noqa: ARG002 (it takes no fields)
        return {"skills": rows.plain_rows((await self._catalogue.look()).snapshot)}

    async def index(self, payload: Payload) -> dict[str, Any]:  # noqa: ARG002 (it takes no fields)
        body, workers = workers_index((await self._catalogue.look()).snapshot)
        return {"body": body, "workers_count": workers}

    async def fetch(self, payload: Payload) -> str:
        uris = fetch_uris(optional_text(payload, "uri"), optional_texts(payload, "uris"))
        return "\n\n---\n\n".join(await asyncio.gather(*map(self._fetched, uris)))

    async def _fetched(self, uri: str) -> str:
        try:
            content = await self._uris.read(uri)
        except DirectoryError as error:
            if uri in error.problem:
                raise
            raise DirectoryError(
                error.kind,
                f"{quoted(uri)}: {error.problem}",
                did_you_mean=error.did_you_mean,
                next_steps=error.next_steps,
            ) from None
        return f"# {uri}\n\n{content.text.rstrip()}"
