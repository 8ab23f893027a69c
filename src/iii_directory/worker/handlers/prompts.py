"""Reading prompts: slash-command templates for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iii_directory.catalog import rows
from iii_directory.catalog.resolve import find_prompt
from iii_directory.worker.handlers.fields import text

if TYPE_CHECKING:
    from iii_directory.worker.bus import Payload
    from iii_directory.worker.view import View


class Prompts:
    """``directory::prompts::list|get``, ``prompts::list`` and ``prompts::get``."""

    def __init__(self, view: View) -> None:
        self._view = view

    async def list(self, payload: Payload) -> dict[str, Any]:  # noqa: ARG002 (it takes no fields)
        return {"prompts": rows.list_prompts(await self._view.current())}

    async def registry_list(self, payload: Payload) -> dict[str, Any]:  # noqa: ARG002 (it takes no fields)
        return {"prompts": rows.prompt_registry_rows(await self._view.current())}

    async def get(self, payload: Payload) -> dict[str, Any]:
        name = text(payload, "name")
        prompt = find_prompt(await self._view.current(), name)
        return rows.prompt_reply(prompt, self._view.catalogue.read_prompt(prompt))
