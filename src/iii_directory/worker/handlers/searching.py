"""Search over everything the directory knows: documents, the engine, and what could be installed."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from iii_directory.errors import DirectoryError
from iii_directory.limits import JUDGE_CANDIDATES
from iii_directory.search.index import Index
from iii_directory.search.replies import (
    LEXICAL,
    found_by,
    functions_reply,
    parse_functions_request,
    parse_request,
    reply,
)
from iii_directory.search.sources import of_binding, of_function, of_published, of_worker
from iii_directory.search.thesaurus import thesaurus
from iii_directory.shapes import object_of
from iii_directory.worker.indexing import DocumentLibrary
from iii_directory.worker.judging import ranked_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from iii_directory.bus.seam import Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.look import Look
    from iii_directory.registry.client import RegistryClient
    from iii_directory.search.fields import Document
    from iii_directory.search.finding import Finding, Kind
    from iii_directory.search.replies import Request
    from iii_directory.worker.engine_rows import Row
    from iii_directory.worker.engine_view import EngineView
    from iii_directory.worker.indexing import DocumentIndexes
    from iii_directory.worker.judging import Ranker

ENGINE_LISTENER: Final = "directory::__on_functions_changed"
ENGINE_NEWS: Final = "engine::functions-available"
# An engine without news of its functions is asked anew after so long.
_FUNCTIONS_SECONDS: Final = 5.0


class EngineIndexes:
    """What is on the engine. Its functions are asked for when there is news, the rest with every search."""

    def __init__(self, engine: EngineView, registry: RegistryClient) -> None:
        self._engine = engine
        self._registry = registry
        kinds: tuple[Kind, ...] = ("function", "trigger", "worker", "installable")
        self.indexes: dict[Kind, Index] = {kind: Index(thesaurus()) for kind in kinds}
        self._known: dict[Kind, dict[str, Document]] = {kind: {} for kind in kinds}
        self._functions: dict[str, Row] = {}
        self._asked_at: float | None = None

    def changed(self, _event: object = None) -> None:
        """Functions came, went or changed, or the engine is another one."""
        self._asked_at = None

    async def catch_up(self) -> bool:
        """Whether the engine could say everything."""
        answers = await asyncio.gather(
            self._take_functions(), self._engine.bindings(), self._engine.workers(), return_exceptions=True
        )
        _, bindings, workers = answers
        if isinstance(bindings, list):
            self._update("trigger", (of_binding(row) for row in bindings if row["id"]))
        if isinstance(workers, list):
            named = {str(row["name"]): row for row in workers if row["name"]}
            self._update("worker", (of_worker(row, self._functions_of(name)) for name, row in named.items()))
            self._update(
                "installable",
                (of_published(row) for name, row in self._registry.seen.items() if name not in named),
            )
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, DirectoryError):
                raise answer
        return not any(isinstance(answer, DirectoryError) for answer in answers)

    def schema(self, function_id: str) -> object:
        return self._functions.get(function_id, {}).get("request_schema")

    async def _take_functions(self) -> None:
        now = time.monotonic()
        if self._asked_at is not None and now - self._asked_at < _FUNCTIONS_SECONDS:
            return
        # News that comes while the engine answers is asked for again.
        self._asked_at = now
        try:
            rows = await self._engine.described_functions()
        except DirectoryError:
            self._asked_at = None
            raise
        self._functions = {row["function_id"]: row for row in rows if not _is_internal(row)}
        self._update("function", map(of_function, self._functions.values()))

    def _functions_of(self, worker: str) -> list[str]:
        return [name for name, row in self._functions.items() if row["worker_name"] == worker]

    def _update(self, kind: Kind, documents: Iterable[Document]) -> None:
        before, after = self._known[kind], {document.id: document for document in documents}
        for gone in before.keys() - after.keys():
            self.indexes[kind].drop(gone)
        for document_id, document in after.items():
            if before.get(document_id) != document:
                self.indexes[kind].put(document)
        self._known[kind] = after


class _Everything(DocumentLibrary):
    """Documents and engine together, at one moment."""

    def __init__(self, documents: DocumentIndexes, look: Look, engine: EngineIndexes, *, told: bool) -> None:
        super().__init__(documents, look)
        self.indexes: Mapping[Kind, Index] = {**self.indexes, **engine.indexes}
        self.complete = self.complete and told
        self.schema = engine.schema


class Searching:
    """``directory::search`` and ``directory::search_functions``, with a better ranker if there is one."""

    def __init__(
        self,
        catalogue: Catalogue,
        documents: DocumentIndexes,
        engine: EngineIndexes,
        ranker: Ranker | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._documents = documents
        self._engine = engine
        self._ranker = ranker

    async def search(self, payload: Payload) -> dict[str, Any]:
        started = time.perf_counter()
        request = parse_request(payload)
        library = await self._library()
        found, mode = await self._found(library, request)
        return {**reply(library, request, found, mode), "latency_ms": _milliseconds(started)}

    async def search_functions(self, payload: Payload) -> dict[str, Any]:
        started = time.perf_counter()
        request = parse_functions_request(payload)
        found, mode = await self._found(await self._library(), request)
        return {**functions_reply(found, mode), "latency_ms": _milliseconds(started)}

    async def _library(self) -> _Everything:
        told = await self._engine.catch_up()
        look = await self._catalogue.look()
        await self._documents.catch_up(look)
        return _Everything(self._documents, look, self._engine, told=told)

    async def _found(self, library: _Everything, request: Request) -> tuple[list[Finding], str]:
        """What each capability finds, and by which ranking."""
        ranker = self._ranker
        wider = request if ranker is None else request._replace(limit=max(request.limit, JUDGE_CANDIDATES))
        found: list[Finding] = []
        for capability in request.capabilities:
            if found:
                await asyncio.sleep(0)  # each takes a few milliseconds, which others may need between them
            found.append(found_by(library, wider, capability))
        if ranker is None:
            return found, LEXICAL
        judged = await asyncio.gather(*(ranked_by(ranker, one, request.limit) for one in found))
        return [one for one, _ in judged], ranker.mode if any(taken for _, taken in judged) else LEXICAL


def _is_internal(row: Row) -> bool:
    return object_of(row.get("metadata")).get("internal") is True


def _milliseconds(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 1)
