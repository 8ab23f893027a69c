"""Reading ``iii://`` URIs: a skill's body, the tree index, or what a function answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from iii_directory.bus.seam import CallError
from iii_directory.catalog.indexes import tree_index
from iii_directory.catalog.resolve import find_exact
from iii_directory.catalog.rows import MARKDOWN
from iii_directory.documents.uris import IndexUri, SectionUri, SkillUri, check_unguarded, parse_uri
from iii_directory.engine.protocol import FUNCTION_NOT_FOUND
from iii_directory.errors import ENGINE_FAILED, ENGINE_NOT_FOUND, DirectoryError
from iii_directory.limits import MAX_RELAYED_CHARS
from iii_directory.text import cut, one_line, quoted

if TYPE_CHECKING:
    from iii_directory.bus.seam import Bus
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.config import Settings


class Content(NamedTuple):
    mime_type: str
    text: str


class UriReader:
    """One resolver behind fetches and MCP-shaped reads."""

    def __init__(self, catalogue: Catalogue, bus: Bus, settings: Settings) -> None:
        self._catalogue = catalogue
        self._bus = bus
        self._guard = settings.section_guard
        self._timeout_ms = settings.state_timeout_ms

    async def read(self, uri: str) -> Content:
        match parse_uri(uri):
            case IndexUri():
                return Content(MARKDOWN, tree_index((await self._catalogue.look()).snapshot))
            case SkillUri(id=skill_id):
                look = await self._catalogue.look()
                return Content(MARKDOWN, look.read_skill(find_exact(look.snapshot, skill_id)))
            case SectionUri(function_id=function_id):
                return await self._section(function_id)

    async def _section(self, function_id: str) -> Content:
        if self._guard:
            check_unguarded(function_id, "section")
        return rendered(await call(self._bus, function_id, {}, self._timeout_ms))


async def call(bus: Bus, function_id: str, payload: dict[str, Any], timeout_ms: int) -> Any:
    """Call a function that a document or a prompt names; a failure is one sentence about it."""
    try:
        return await bus.call(function_id, payload, timeout_ms=timeout_ms)
    except CallError as error:
        if error.code == FUNCTION_NOT_FOUND:
            raise DirectoryError(
                ENGINE_NOT_FOUND, f"function {quoted(function_id)} not found on the engine"
            ) from None
        reason = cut(one_line(str(error)), MAX_RELAYED_CHARS)
        raise DirectoryError(ENGINE_FAILED, f"function {quoted(function_id)} failed: {reason}") from None


def rendered(output: object) -> Content:
    """What a function answered, as a document: text as it is, anything else as JSON."""
    text = content_text(output)
    if text is not None:
        return Content(MARKDOWN, text)
    return Content("application/json", json.dumps(output, indent=2, ensure_ascii=False))


def content_text(output: object) -> str | None:
    """The text of a string or of ``{content: string}``, or None for other shapes."""
    if isinstance(output, str):
        return output
    if isinstance(output, dict):
        content = cast("dict[str, Any]", output).get("content")
        if isinstance(content, str):
            return content
    return None
