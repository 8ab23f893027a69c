"""Search over everything the directory knows: documents, the engine, and what could be installed."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from iii_directory.catalog.file_replies import with_places
from iii_directory.search.replies import found_by, functions_reply, parse_functions_request, reply
from iii_directory.search.request import parse_request
from iii_directory.worker.indexing import DocumentLibrary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.bus.seam import Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.look import Look
    from iii_directory.search.finding import Finding
    from iii_directory.search.index import Index
    from iii_directory.search.request import Kind, Request
    from iii_directory.worker.engine_indexes import EngineIndexes
    from iii_directory.worker.indexing import DocumentIndexes


class _Everything(DocumentLibrary):
    """Documents and engine together, at one moment."""

    def __init__(self, documents: DocumentIndexes, look: Look, engine: EngineIndexes, *, told: bool) -> None:
        super().__init__(documents, look)
        self.indexes: Mapping[Kind, Index] = {**self.indexes, **engine.indexes}
        self.complete = self.complete and told
        self.schema = engine.schema


class Searching:
    """Answers ``directory::search`` and ``directory::search_functions``."""

    def __init__(
        self,
        catalogue: Catalogue,
        documents: DocumentIndexes,
        engine: EngineIndexes,
        may_know_paths: Callable[[Payload], bool],
    ) -> None:
        self._catalogue = catalogue
        self._documents = documents
        self._engine = engine
        self._may_know_paths = may_know_paths

    async def search(self, payload: Payload) -> dict[str, Any]:
        started = time.perf_counter()
        request = parse_request(payload)
        listing = request.asks_registry and self._engine.list_published()
        library = await self._library(listing=listing)
        answer = reply(library, request, await self._found(library, request))
        if self._may_know_paths(payload):
            look = await self._catalogue.look()
            answer = with_places(look.telling_paths(), answer)
        return {**answer, "latency_ms": _milliseconds(started)}

    async def search_functions(self, payload: Payload) -> dict[str, Any]:
        started = time.perf_counter()
        request = parse_functions_request(payload)
        found = await self._found(await self._library(), request)
        return {**functions_reply(found), "latency_ms": _milliseconds(started)}

    async def _library(self, *, listing: bool = False) -> _Everything:
        told = await self._engine.catch_up() and not listing
        look = await self._catalogue.look()
        await self._documents.catch_up(look)
        return _Everything(self._documents, look, self._engine, told=told)

    async def _found(self, library: _Everything, request: Request) -> list[Finding]:
        """Return what each capability finds."""
        found: list[Finding] = []
        for capability in request.capabilities:
            if found:
                await asyncio.sleep(0)  # each takes a few milliseconds, which others may need between them
            found.append(found_by(library, request, capability))
        return found


def _milliseconds(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 1)
