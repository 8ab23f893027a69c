"""What search knows of the engine and of the registry: functions, bindings, workers, and what could be had.

The engine is asked with every search what there is, as a read asks it, so that a search is never staler than
a read. Schemas are asked for only where something is new. The registry is never waited for.
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

# Nobody tells of a schema that changed alone: all are asked for anew after so long.
_SCHEMAS_SECONDS: Final = 5.0
# The registry's list is asked for again after so long, whether or not it could be had.
_PUBLISHED_SECONDS: Final = 300.0


class EngineIndexes:
    """Functions, bindings and workers as the engine has them now, and published workers as last listed."""

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
        self._described_at: float | None = None
        self._changing = asyncio.Lock()
        self._tasks = Tasks()
        self._published_at: float | None = None
        self._listing: asyncio.Task[None] | None = None

    def changed(self) -> None:
        """Functions came or went, or the engine is another one: nothing that was said of them counts."""
        self._described_at = None

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

    async def _take_functions(self) -> None:
        # One after another: an answer that took longer must not replace a newer one.
        async with self._changing:
            now = self._clock()
            described_at = self._described_at
            again = described_at is None or now - described_at >= _SCHEMAS_SECONDS
            if again:
                # News that comes while the engine answers is asked for once more.
                self._described_at = now
            try:
                listed = {row["function_id"]: row for row in await self._engine.listed_functions()}
                new = [one for one, row in listed.items() if again or self._listed.get(one) != row]
                described = await self._engine.described(listed, new)
            except DirectoryError:
                self._described_at = None
                raise
            gone = self._listed.keys() - listed.keys()
            self._listed = listed
            if new or gone:
                self._take_described(described, gone)

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
            return  # whoever lists the registry's workers themselves is told what is wrong with it

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
