"""A worker that is installed but has no documents: a short overview of what the engine knows of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from iii_directory.catalog.generated import worker_overview
from iii_directory.errors import DirectoryError

if TYPE_CHECKING:
    from iii_directory.catalog.resolve import Undocumented
    from iii_directory.worker.engine_view import EngineView


class Overviews:
    """Generates the reply of ``directory::skills::get`` for such a worker."""

    def __init__(self, engine: EngineView) -> None:
        self._engine = engine

    async def generate(self, target: Undocumented) -> dict[str, Any]:
        description, functions = await self._known(target.worker)
        body = worker_overview(target.worker, description, functions)
        return {
            "id": target.worker,
            "title": target.worker,
            "type": "index",
            "function_id": None,
            "body": f"{target.note}\n\n{body}" if target.note else body,
            "modified_at": datetime.now(UTC).isoformat(),
        }

    async def _known(self, worker: str) -> tuple[str, list[tuple[str, str]]]:
        """What it says of itself, and its functions; nothing for one that is installed but not there."""
        try:
            detail = await self._engine.worker(worker)
        except DirectoryError:
            return "", []
        rows = [(row["function_id"], str(row["description"] or "")) for row in detail["functions"]]
        return str(detail["worker"].get("description") or ""), rows
