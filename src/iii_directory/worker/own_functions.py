"""The functions of this worker as the engine is told of them, with what bridges must know of some."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from iii_directory.documents.uris import INSTANCE, INSTANCE_FUNCTION, READ_ONLY, WRITING
from iii_directory.worker.handlers import handler_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iii_directory.bus.seam import Handler, WorkerBus
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.config import Settings
    from iii_directory.worker.parts import Parts
    from iii_directory.worker.surfaces.schema import FunctionRow


class OwnFunctions:
    """The rows of the table that are on. What the settings say of some of them is part of what is told."""

    def __init__(
        self, bus: WorkerBus, settings: Settings, rows: Sequence[FunctionRow], instance: str
    ) -> None:
        self._bus = bus
        self._instance = instance
        self._settings = settings
        self._rows = rows
        self._answering: dict[str, Handler] = {}
        self._told: dict[str, FunctionRow] = {}

    def answer_with(self, catalogue: Catalogue, parts: Parts) -> None:
        """Connect each function with its handler and count its calls."""
        self._answering = {
            row.id: parts.metrics.measured(
                row.id, handler_of(row, catalogue, parts), parts.usage.noter(row.id)
            )
            for row in self._rows
        }

    def offer(self) -> None:
        """Tell the engine of every function that it does not know yet as it is now."""
        for row in self._rows:
            told = self._with_hints(row)
            if self._told.get(row.id) != told:
                self._told[row.id] = told
                self._bus.register_function(told, self._answering[row.id])

    def _with_hints(self, row: FunctionRow) -> FunctionRow:
        """A function with what bridges must know: whether its links only read, whether it may write."""
        metadata = dict(row.metadata or {})
        if WRITING in metadata:
            metadata[WRITING] = self._settings.allow_writing
        if "mcp" in metadata:
            metadata["sections"] = self._settings.sections or READ_ONLY
        if row.id == "directory::mcp::index":
            metadata["public_index"] = self._settings.public_index
        if row.id == INSTANCE_FUNCTION:
            metadata |= {
                INSTANCE: self._instance,
                "mcp_tools": self._settings.mcp_tools,
                "mcp_calls": self._settings.mcp_calls,
            }
        return replace(row, metadata=metadata) if metadata else row
