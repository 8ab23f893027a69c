"""Reading prompts: slash-command templates for people, as documents and as messages for MCP clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from iii_directory.catalog import rows
from iii_directory.catalog.generated import registered_prompt_body
from iii_directory.catalog.resolve import find_prompt
from iii_directory.documents.uris import check_unguarded
from iii_directory.errors import PROMPT_SHAPE, DirectoryError
from iii_directory.text import quoted
from iii_directory.worker.handlers.fields import mapping, text
from iii_directory.worker.handlers.uris import call, content_text

if TYPE_CHECKING:
    from iii_directory.bus.seam import Bus, Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.look import Look
    from iii_directory.config import Settings
    from iii_directory.documents.model import Prompt


class Prompts:
    """``directory::prompts::list|get``, ``prompts::list|get`` and ``prompts::mcp-list|mcp-get``."""

    def __init__(self, catalogue: Catalogue, bus: Bus, settings: Settings) -> None:
        self._catalogue = catalogue
        self._bus = bus
        self._guard = settings.section_guard
        self._timeout_ms = settings.state_timeout_ms

    async def list(self, payload: Payload) -> dict[str, Any]:  # noqa: ARG002 (it takes no fields)
        return {"prompts": rows.list_prompts((await self._catalogue.look()).snapshot)}

    async def plain_list(self, payload: Payload) -> dict[str, Any]:  # noqa: ARG002 (it takes no fields)
        return {"prompts": rows.plain_prompt_rows((await self._catalogue.look()).snapshot)}

    async def get(self, payload: Payload) -> dict[str, Any]:
        look, prompt = await self._find(payload)
        return rows.prompt_reply(prompt, _body(look, prompt))

    async def mcp_list(self, payload: Payload) -> dict[str, Any]:  # noqa: ARG002 (it takes no fields)
        return {"prompts": rows.mcp_prompt_rows((await self._catalogue.look()).snapshot)}

    async def mcp_get(self, payload: Payload) -> dict[str, Any]:
        arguments = mapping(payload, "arguments")
        look, prompt = await self._find(payload)
        if prompt.function_id is None:
            messages: list[Any] = [user_message(look.read_prompt(prompt))]
        else:
            messages = await self._rendered(prompt.function_id, arguments)
        return {"description": prompt.description, "messages": messages}

    async def _find(self, payload: Payload) -> tuple[Look, Prompt]:
        name = text(payload, "name")
        look = await self._catalogue.look()
        return look, find_prompt(look.snapshot, name)

    async def _rendered(self, function_id: str, arguments: dict[str, Any]) -> list[Any]:
        if self._guard:
            check_unguarded(function_id, "prompt")
        messages = messages_of(await call(self._bus, function_id, arguments, self._timeout_ms))
        if messages is None:
            raise DirectoryError(
                PROMPT_SHAPE,
                f"function {quoted(function_id)} answered an unsupported shape; "
                "a prompt is a string, {content: string} or {messages: [...]}",
            )
        return messages


def _body(look: Look, prompt: Prompt) -> str:
    return look.read_prompt(prompt) if prompt.function_id is None else registered_prompt_body(prompt)


def messages_of(output: object) -> list[Any] | None:
    """What a prompt's function answered, as messages; None for a shape that has none."""
    messages = cast("dict[str, Any]", output).get("messages") if isinstance(output, dict) else None
    if isinstance(messages, list):
        return cast("list[Any]", messages)
    content = content_text(cast("object", output))
    return None if content is None else [user_message(content)]


def user_message(content: str) -> dict[str, Any]:
    return {"role": "user", "content": {"type": "text", "text": content}}
