"""What those who look after a directory want to know: what was left out, what is odd, what it costs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from iii_directory.catalog.explain import explanation
from iii_directory.documents.payload_fields import flag
from iii_directory.exposure import exposed, tool_row

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from iii_directory.bus.seam import Function, Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.look import Look
    from iii_directory.documents.model import Finding
    from iii_directory.install.edits import Edits
    from iii_directory.worker.engine_view import EngineView
    from iii_directory.worker.installed_workers import InstalledWorkers
    from iii_directory.worker.metrics import CallMetrics

    Row = dict[str, Any]


class Advice:
    """Answers ``directory::diagnostics`` and ``metrics``, ``skills::explain``, ``budget`` and ``facts``."""

    def __init__(
        self,
        catalogue: Catalogue,
        engine: EngineView,
        edits: Edits,
        installed: InstalledWorkers,
        functions: Collection[Function],
        metrics: CallMetrics,
    ) -> None:
        self._catalogue = catalogue
        self._engine = engine
        self._edits = edits
        self._installed = installed
        self._functions = functions
        self._metrics = metrics
        self._reading = asyncio.Lock()
        """Whoever reads every text of every skill does so alone: other readers need the threads."""

    async def diagnostics(self, payload: Payload) -> Row:
        with_check = flag(payload, "check", default=False)
        look = await self._catalogue.look()
        found = [*look.findings(), *await self._engine.findings(), *await self._edited(look)]
        if with_check:
            from iii_directory.authoring.served import objections

            async with self._reading:
                found += await asyncio.to_thread(objections, look)
        reply, told_by = look.report(found, payload), self._installed.asked_of
        return reply if told_by is None else {**reply, "installed_by": told_by}

    async def explain(self, payload: Payload) -> Row:
        look = await self._catalogue.look()
        return await asyncio.to_thread(explanation, look, payload, await self._edited(look))

    async def budget(self, _: Payload) -> Row:
        from iii_directory.authoring.served import budget

        async with self._reading:
            return await asyncio.to_thread(budget, await self._catalogue.look(), tool_rows(self._functions))

    async def facts(self, payload: Payload) -> Row:
        from iii_directory.authoring.served import facts

        functions = {row["function_id"] for row in await self._engine.functions()}
        look = await self._catalogue.look()
        async with self._reading:
            return await asyncio.to_thread(facts, look, payload, functions)

    async def metrics(self, _: Payload) -> Row:
        look = await self._catalogue.look()
        workers = await self._engine.workers()
        gauges: dict[str, tuple[str, float]] = {
            "iii_directory_documents": ("Documents that are served.", len(look.snapshot.skills)),
            "iii_directory_prompts": ("Prompts that are served.", len(look.snapshot.prompts)),
            "iii_directory_installed_namespaces": ("Installed namespaces.", len(look.lockfile.namespaces)),
            "iii_directory_connections": (
                "Workers that are connected to the engine.",
                sum(1 for row in workers if row.get("status") == "connected"),
            ),
        }
        return {"metrics": self._metrics.report(gauges)}

    async def _edited(self, look: Look) -> list[Finding]:
        """What was edited by hand among what was installed."""
        if not look.lockfile.namespaces:
            return []
        return await asyncio.to_thread(self._edits.findings, look.lockfile)


def tool_rows(functions: Iterable[Function]) -> list[Row]:
    """What MCP clients are told of those of our functions that are tools without anybody asking."""
    known = {function.id: function for function in functions}
    tools = exposed([{"function_id": key, "metadata": row.metadata} for key, row in known.items()], (), "")
    return [
        tool_row(
            tool,
            {
                "description": known[tool.function_id].description,
                "request_schema": known[tool.function_id].request,
            },
        )
        for tool in tools
    ]
