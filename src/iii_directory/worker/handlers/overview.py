"""A worker that is installed but has no documents: a short overview of what the engine knows of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from iii_directory.documents.markdown import plain_line
from iii_directory.worker.bus import DEFAULT_NAMESPACE, CallError

if TYPE_CHECKING:
    from iii_directory.catalog.resolve import Undocumented
    from iii_directory.config import Settings
    from iii_directory.worker.bus import Bus

MAX_FUNCTIONS = 50


class Overviews:
    """Generates the reply of ``directory::skills::get`` for such a worker."""

    def __init__(self, bus: Bus, settings: Settings) -> None:
        self._bus = bus
        self._timeout_ms = settings.state_timeout_ms

    async def generate(self, target: Undocumented) -> dict[str, Any]:
        body = overview_body(target.worker, await self._functions(target.worker))
        return {
            "id": target.worker,
            "title": target.worker,
            "type": "index",
            "function_id": None,
            "body": f"{target.note}\n\n{body}" if target.note else body,
            "modified_at": datetime.now(UTC).isoformat(),
        }

    async def _functions(self, worker: str) -> list[dict[str, Any]]:
        try:
            answer = await self._bus.call(
                "engine::functions::list",
                {"worker": worker},
                timeout_ms=self._timeout_ms,
                namespace=DEFAULT_NAMESPACE,
            )
        except CallError:
            return []
        functions = cast("dict[str, Any]", answer).get("functions") if isinstance(answer, dict) else None
        rows = cast("list[object]", functions) if isinstance(functions, list) else []
        return [cast("dict[str, Any]", row) for row in rows if isinstance(row, dict)]


def overview_body(worker: str, functions: list[dict[str, Any]]) -> str:
    """The overview as markdown: what it registered, and that it brings no documents."""
    lines = [
        f"# {worker}",
        "",
        f"The worker `{worker}` is installed and brings no documents. The engine knows this of it.",
        "",
    ]
    if not functions:
        lines.append("It has no functions registered at the moment.")
    for row in functions[:MAX_FUNCTIONS]:
        description = plain_line(str(row.get("description") or ""))
        lines.append(f"- `{row.get('function_id')}`" + (f" — {description}" if description else ""))
    if len(functions) > MAX_FUNCTIONS:
        lines.append(f"- and {len(functions) - MAX_FUNCTIONS} more: directory::function-list lists them")
    lines += ["", "Call `directory::engine::functions::info` with a function id for its schemas."]
    return "\n".join(lines) + "\n"
