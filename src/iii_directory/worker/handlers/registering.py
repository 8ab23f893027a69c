"""Registering skills and prompts: checked, written to iii-state, and told to whoever subscribed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iii_directory.documents.ids import check_new_skill_id, check_prompt_name, check_skill_id
from iii_directory.documents.registering import prompt_fields, skill_fields
from iii_directory.worker.handlers.fields import text

if TYPE_CHECKING:
    from iii_directory.bus.seam import Payload
    from iii_directory.worker.registrations import Registrations


class Registering:
    """``skills::register|unregister`` and ``prompts::register|unregister``."""

    def __init__(self, registrations: Registrations) -> None:
        self._registrations = registrations

    async def register_skill(self, payload: Payload) -> dict[str, Any]:
        fields = skill_fields(payload, check_new_skill_id)
        registered_at = await self._registrations.register(self._registrations.skills, fields)
        return {"id": fields["id"], "registered_at": registered_at}

    async def unregister_skill(self, payload: Payload) -> dict[str, Any]:
        skill_id = text(payload, "id")
        check_skill_id(skill_id)
        removed = await self._registrations.unregister(self._registrations.skills, skill_id)
        return {"id": skill_id, "removed": removed}

    async def register_prompt(self, payload: Payload) -> dict[str, Any]:
        fields = prompt_fields(payload)
        registered_at = await self._registrations.register(self._registrations.prompts, fields)
        return {"name": fields["name"], "registered_at": registered_at}

    async def unregister_prompt(self, payload: Payload) -> dict[str, Any]:
        name = text(payload, "name")
        check_prompt_name(name)
        removed = await self._registrations.unregister(self._registrations.prompts, name)
        return {"name": name, "removed": removed}
