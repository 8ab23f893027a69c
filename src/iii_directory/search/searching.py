"""Answer searches on an engine, over documents, functions, bindings, workers, and workers to install.

Every search lists the functions of the engine, so that a search is never staler than a read of them: the
engine's event that functions changed may come seconds later. Everything else is asked for only when a list or
an event shows that something changed, or when the last answer is some seconds old. The registry is never
waited for.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from iii_directory.bus.tasks import Tasks, each_in_turns
from iii_directory.catalog.file_replies import with_places
from iii_directory.documents.uris import LOCAL, WRITING
from iii_directory.errors import DirectoryError
from iii_directory.search.fields import Document
from iii_directory.search.index import Index
from iii_directory.search.library import Library
from iii_directory.search.search_replies import found_by, functions_reply, parse_functions_request, reply
from iii_directory.search.search_request import parse_request
from iii_directory.search.words import thesaurus
from iii_directory.shapes import is_text_list, object_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from iii_directory.bus.seam import Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.registry.registry_client import RegistryClient
    from iii_directory.search.document_indexes import DocumentIndexes
    from iii_directory.search.finding import SearchResult
    from iii_directory.search.search_request import Kind, SearchRequest
    from iii_directory.worker.engine_view import EngineView, Row

# No event tells of a schema or a binding that changed by itself: they are asked for again after so long.
_ASK_AGAIN_SECONDS: Final = 5.0
# The registry's list is asked for again after so long, whether or not there was an answer.
_PUBLISHED_SECONDS: Final = 300.0


@dataclass(eq=False)
class Searching:
    """Answers ``directory::search`` and ``directory::search_functions``."""

    _catalogue: Catalogue
    _documents: DocumentIndexes
    _engine: EngineIndexes
    _may_know_paths: Callable[[Payload], bool]

    async def search(self, payload: Payload) -> dict[str, Any]:
        started = time.perf_counter()
        request = parse_request(payload)
        listing = request.asks_registry and self._engine.list_published()
        library, found = await self._found(request)
        library.complete = library.complete and not listing
        answer = reply(library, request, found)
        if LOCAL in payload and self._may_know_paths(payload):
            view = await self._catalogue.current()
            answer = with_places(view.telling_paths(), answer)
        return {**answer, "latency_ms": _milliseconds(started)}

    async def search_functions(self, payload: Payload) -> dict[str, Any]:
        started = time.perf_counter()
        _, found = await self._found(parse_functions_request(payload))
        return {**functions_reply(found), "latency_ms": _milliseconds(started)}

    async def _found(self, request: SearchRequest) -> tuple[Library, list[SearchResult]]:
        """Bring the indexes up to date, and return them with what each capability finds in them."""
        told = await self._engine.catch_up()
        view = await self._catalogue.current()
        await self._documents.catch_up(view)
        library = Library(self._documents.kinds, view, complete=told and self._documents.complete)
        library.indexes = {**library.indexes, **self._engine.indexes}
        library.schema = self._engine.schema
        found: list[SearchResult] = []
        for capability in request.capabilities:
            if found:
                await asyncio.sleep(0)  # each takes a few milliseconds, which others may need between them
            found.append(found_by(library, request, capability))
        return library, found


def _milliseconds(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 1)


class EngineIndexes:
    """Indexes what the engine has now, and published workers as they were last listed."""

    def __init__(
        self, engine: EngineView, registry: RegistryClient, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._engine = engine
        self._registry = registry
        self._clock = clock
        kinds: tuple[Kind, ...] = ("function", "trigger", "worker", "installable")
        self.indexes: dict[Kind, Index] = {kind: Index(thesaurus()) for kind in kinds}
        self._known: dict[Kind, dict[str, Document]] = {kind: {} for kind in kinds}
        self._listed: dict[str, Row] = {}
        """Functions as the engine lists them."""
        self._functions: dict[str, Row] = {}
        """Those that may be found, with their schemas."""
        self._workers: dict[str, Row] = {}
        self._asked_at: float | None = None
        """When everything was last asked for; None when the answers do not count any more."""
        self._changing = asyncio.Lock()
        self._tasks = Tasks()
        self._published_at: float | None = None
        self._listing: asyncio.Task[None] | None = None

    def changed(self) -> None:
        """Note that functions or workers came or went, or that the engine is another one."""
        self._asked_at = None

    async def catch_up(self) -> bool:
        """Bring the indexes up to date; return whether the engine could answer everything."""
        # One after another: an answer that took longer must not replace a newer one.
        async with self._changing:
            now, asked_at = self._clock(), self._asked_at
            everything = asked_at is None or now - asked_at >= _ASK_AGAIN_SECONDS
            if everything:
                # An event that comes while the engine answers resets this, so that it is asked once more.
                self._asked_at = now
            complete = True
            try:
                changed = await self._take_functions(described_anew=everything)
            except DirectoryError:
                changed, complete = True, False
            if everything or changed:
                complete = await self._take_others() and complete
            if not complete:
                self._asked_at = None
            published = (row for name, row in self._registry.seen.items() if name not in self._workers)
            await self._update("installable", map(of_worker, published))
        return complete

    def list_published(self) -> bool:
        """Have the whole list of the registry fetched in the background; return whether that is under way."""
        if self._listing is not None and not self._listing.done():
            return True
        now = self._clock()
        if self._published_at is not None and now - self._published_at < _PUBLISHED_SECONDS:
            return False
        self._published_at = now
        self._listing = self._tasks.start(self._list_published())
        return True

    def close(self) -> None:
        self._tasks.cancel()

    def schema(self, function_id: str) -> object:
        """Return the schema of the payload of a function."""
        return self._functions.get(function_id, {}).get("request_schema")

    # Inner workings

    async def _take_functions(self, *, described_anew: bool) -> bool:
        """Index the functions; return whether the engine lists others than before."""
        listed = {str(row["function_id"]): row for row in await self._engine.listed_functions()}
        changed = [one for one, row in listed.items() if self._listed.get(one) != row]
        gone = self._listed.keys() - listed.keys()
        wanted = list(listed) if described_anew else changed
        if not wanted and not gone:
            return False
        described = await self._engine.described(listed, wanted)
        self._listed = listed
        for function_id in (*gone, *described):
            self._functions.pop(function_id, None)
        for function_id, row in described.items():
            if object_of(row.get("metadata")).get("internal") is not True:
                self._functions[function_id] = row
        await self._update("function", map(of_function, self._functions.values()))
        return bool(changed or gone)

    async def _take_others(self) -> bool:
        """Index bindings and workers; return whether the engine listed both."""
        bindings, workers = await asyncio.gather(
            self._engine.listed_bindings(), self._engine.workers(), return_exceptions=True
        )
        for answer in (bindings, workers):
            if isinstance(answer, BaseException) and not isinstance(answer, DirectoryError):
                raise answer
        if isinstance(bindings, list):
            await self._update("trigger", (_of_binding(row) for row in bindings if row["id"]))
        if isinstance(workers, list):
            self._workers = {str(row["name"]): row for row in workers if row["name"]}
            functions: dict[str, list[str]] = {}
            for function_id, row in self._functions.items():
                functions.setdefault(str(row["worker_name"]), []).append(function_id)
            found = (of_worker(row, functions.get(name, ())) for name, row in self._workers.items())
            await self._update("worker", found)
        return isinstance(bindings, list) and isinstance(workers, list)

    async def _update(self, kind: Kind, documents: Iterable[Document]) -> None:
        index, before = self.indexes[kind], self._known[kind]
        after = self._known[kind] = {document.id: document for document in documents}
        for gone in before.keys() - after.keys():
            index.drop(gone)

        def take_in(document: Document) -> None:
            index.put(document)
            index.make_vectors()

        changed = [document for document in after.values() if before.get(document.id) != document]
        if changed:  # seldom
            await each_in_turns(changed, take_in)

    async def _list_published(self) -> None:
        try:
            await self._registry.list_all()
        except DirectoryError:
            return  # a caller that lists the registry's workers is told what is wrong with it


def of_function(row: Row) -> Document:
    """Describe a function with the names of its arguments, and the keywords that its owner gives."""
    metadata = object_of(row.get("metadata"))
    keywords = metadata.get("keywords")
    return Document(
        str(row["function_id"]),
        description=text_of(row.get("description")) or "",
        worker=text_of(row.get("worker_name")) or "",
        keywords=tuple(keywords) if is_text_list(keywords) else (),
        arguments=tuple(object_of(object_of(row.get("request_schema")).get("properties"))),
        switched_off=metadata.get(WRITING) is False,
    )


def _of_binding(row: Row) -> Document:
    """Describe a trigger that already calls a function."""
    return Document(
        str(row["id"]),
        title=text_of(row.get("trigger_type")) or "",
        description=f"calls {row.get('function_id')} on {row.get('trigger_type')}",
        worker=text_of(row.get("worker_name")) or "",
        arguments=(*object_of(row.get("config")), str(row.get("function_id"))),
    )


def of_worker(row: Row, functions: Iterable[str] = ()) -> Document:
    """Describe a worker that is connected or could be installed; names of functions count like arguments."""
    name, said = str(row["name"]), text_of(row.get("description")) or ""
    return Document(name, description=said, worker=name, arguments=tuple(functions))
