"""What is wrong with the catalogue and with what is installed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from iii_directory.catalog.diagnostics import report

if TYPE_CHECKING:
    from iii_directory.bus.seam import Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.install.edits import Edits


class Diagnostics:
    """``directory::diagnostics``."""

    def __init__(self, catalogue: Catalogue, edits: Edits) -> None:
        self._catalogue = catalogue
        self._edits = edits

    async def report(self, payload: Payload) -> dict[str, Any]:  # noqa: ARG002 (it takes no fields)
        look = await self._catalogue.look()
        found = look.findings()
        if look.lockfile.namespaces:
            found += await asyncio.to_thread(self._edits.findings, look.lockfile)
        return report(found)
