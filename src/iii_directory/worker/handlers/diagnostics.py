"""What is wrong with the catalogue and with what is installed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from iii_directory.catalog.diagnostics import report

if TYPE_CHECKING:
    from iii_directory.bus.seam import Payload
    from iii_directory.install.edits import Edits
    from iii_directory.worker.view import View


class Diagnostics:
    """``directory::diagnostics``."""

    def __init__(self, view: View, edits: Edits) -> None:
        self._view = view
        self._edits = edits

    async def report(self, payload: Payload) -> dict[str, Any]:  # noqa: ARG002 (it takes no fields)
        await self._view.current()
        catalogue = self._view.catalogue
        found = catalogue.findings()
        lock = catalogue.lockfile
        if lock.namespaces:
            found += await asyncio.to_thread(self._edits.findings, lock)
        return report(found)
