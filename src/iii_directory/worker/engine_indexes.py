"""Keep the search indexes of functions, bindings, workers and installable workers.

Every search lists the functions of the engine, so that a search is never staler than a read of them: the
engine's event that functions changed may come seconds later. Everything else is asked for only when a list or
an event shows that something changed, or when the last answer is some seconds old. The registry is never
waited for.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from iii_directory.bus.tasks import Tasks
from iii_directory.errors import DirectoryError
from iii_directory.search.index import Index
from iii_directory.search.sources import of_binding, of_function, of_published, of_worker
from iii_directory.search.thesaurus import thesaurus
from iii_directory.shapes import object_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from iii_directory.registry.client import RegistryClient
    from iii_directory.search.fields import Document
    from iii_directory.search.request import Kind
    from iii_directory.worker.engine_rows import Row
    from iii_directory.worker.engine_view import EngineView

# No event tells of a schema or a binding that changed by itself: they are asked for again after so long.
_ASK_AGAIN_SECONDS: Final = 5.0
# The registry's list is asked for again after so long, whether or not there was an answer.
_PUBLISHED_SECONDS: Final = 300.0


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
        self._update(
            "installable",
            (of_published(row) for name, row in self._registry.seen.items() if name not in self._workers),
        )
        return complete

    def list_published(self) -> bool:
        """Have the whole list of the registry fetched in the background; whether that is under way."""
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
        return self._functions.get(function_id, {}).get("request_schema")

    # Inner workings

    async def _take_functions(self, *, described_anew: bool) -> bool:
        """Index the functions; return whether the engine lists others than before."""
        listed = {row["function_id"]: row for row in await self._engine.listed_functions()}
        changed = [one for one, row in listed.items() if self._listed.get(one) != row]
        gone = self._listed.keys() - listed.keys()
        wanted = list(listed) if described_anew else changed
        described = await self._engine.described(listed, wanted)
        self._listed = listed
        if wanted or gone:
            self._take_described(described, gone)
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
            self._update("trigger", (of_binding(row) for row in bindings if row["id"]))
        if isinstance(workers, list):
            rows = self._workers = {str(row["name"]): row for row in workers if row["name"]}
            self._update("worker", (of_worker(row, self._functions_of(name)) for name, row in rows.items()))
        return isinstance(bindings, list) and isinstance(workers, list)

    def _take_described(self, described: dict[str, Row], gone: Iterable[str]) -> None:
        for function_id in gone:
            self._functions.pop(function_id, None)
        for function_id, row in described.items():
            self._functions.pop(function_id, None)
            if object_of(row.get("metadata")).get("internal") is not True:
                self._functions[function_id] = row
        self._update("function", map(of_function, self._functions.values()))

    async def _list_published(self) -> None:
        try:
            await self._registry.list_all()
        except DirectoryError:
            return  # a caller that lists the registry's workers is told what is wrong with it

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
