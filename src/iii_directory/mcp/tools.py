"""The tools of one engine: asked for afresh by every listing, remembered for the calls after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from iii_directory.documents.uris import INSTANCE_FUNCTION
from iii_directory.exposure import (
    FUNCTIONS_INFO,
    FUNCTIONS_LIST,
    PROMPTS_LIST,
    RESOURCES_LIST,
    exposed,
    tool_row,
)
from iii_directory.limits import MAX_FUNCTION_BATCH
from iii_directory.mcp.face import BY_FUNCTION, OFF, Calls, call_tool_row
from iii_directory.mcp.notifications import Change
from iii_directory.shapes import object_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from iii_directory.exposure import Exposed, Row
    from iii_directory.mcp.face import FaceTool
    from iii_directory.mcp.upstream import Upstream

_BEHIND: Final = {RESOURCES_LIST: Change.RESOURCES, PROMPTS_LIST: Change.PROMPTS}
"""The functions without which a list cannot be had."""


class Tools:
    """What is exposed; ``globs`` are the function ids that were asked for beyond the directory's own."""

    def __init__(self, upstream: Upstream, globs: Sequence[str], *, show_all: bool = False) -> None:
        self._upstream = upstream
        self._globs = tuple(globs)
        self._show_all = show_all
        self._exposed: dict[str, Exposed] = {}
        self.calls = Calls()
        """What clients may call, as of the last list of functions or event."""
        self._schemas: dict[str, Row] = {}
        self._listed: set[str] | None = None
        """The names a client may have seen; None while nobody asked."""
        self._there: set[str] | None = None
        """The functions behind the other lists, as of the last event; None before the first."""

    async def listed(self) -> list[Row]:
        """Every tool as a client sees it, sorted by name."""
        tools = await self._refreshed()
        others = [tool for tool in tools if face_of(tool) is None]
        details = await self._details([tool.function_id for tool in others])
        listing = [tool_row(tool, details.get(tool.function_id, {})) for tool in others]
        listing += [
            face.row() | {"annotations": tool.hints.as_annotations()}
            for tool in tools
            if (face := face_of(tool)) is not None
        ]
        if self.calls.setting != OFF:
            listing.append(call_tool_row(self.calls.setting))
        listing.sort(key=lambda row: row["name"])
        self._schemas = {row["name"]: row["inputSchema"] for row in listing}
        self._listed = self._names(tools)
        return listing

    async def find(self, name: str) -> Exposed | None:
        """The function behind a name. A name not seen before may have come since the last look."""
        if name not in self._exposed:
            await self._refreshed()
        return self._exposed.get(name)

    async def has(self, function_id: str) -> bool:
        """Whether the engine has a function, by the newest list of them."""
        if not self.calls.functions:
            await self._refreshed()
        return function_id in self.calls.functions

    def schema_of(self, name: str) -> Mapping[str, Any] | None:
        """The schema a client was shown."""
        return self._schemas.get(name)

    def changes(self, event: Mapping[str, Any]) -> Iterator[Change]:
        """Which lists differ from what clients may have seen, by the engine's event about its functions."""
        rows = rows_of(event, "functions")
        names = self._names(self._remembered(rows))
        if self._listed is not None and names != self._listed:
            self._listed = names
            yield Change.TOOLS
        there = {str(row.get("function_id")) for row in rows} & set(_BEHIND)
        other = there & self._upstream.missing
        if self._there is not None:
            other |= there ^ self._there
        self._there = there
        self._upstream.missing -= there
        yield from (_BEHIND[function_id] for function_id in other)

    async def _refreshed(self) -> list[Exposed]:
        answer = await self._upstream.call(FUNCTIONS_LIST, {}, repeatable=True)
        return self._remembered(rows_of(answer, "functions"))

    def _remembered(self, rows: list[Row]) -> list[Exposed]:
        here = self._upstream.namespace
        known = {str(row.get("function_id")): row for row in rows if row.get("namespace", here) == here}
        told = object_of(object_of(known.get(INSTANCE_FUNCTION)).get("metadata"))
        self.calls = Calls(str(told.get("mcp_calls") or OFF), known)
        shows_all = self._show_all or told.get("mcp_tools") == "all"
        tools = exposed(rows, self._globs, here, None if shows_all else BY_FUNCTION.keys())
        self._exposed = {tool.name: tool for tool in tools}
        return tools

    def _names(self, tools: list[Exposed]) -> set[str]:
        """What a change of shows in the list: the names, and what may be called."""
        return {tool.name for tool in tools} | {self.calls.setting}

    async def _details(self, function_ids: list[str]) -> dict[str, Row]:
        found: dict[str, Row] = {}
        for start in range(0, len(function_ids), MAX_FUNCTION_BATCH):
            batch = function_ids[start : start + MAX_FUNCTION_BATCH]
            payload = {"function_ids": batch, "namespace": self._upstream.namespace}
            answer = await self._upstream.call(FUNCTIONS_INFO, payload, repeatable=True)
            found |= {str(row.get("function_id")): row for row in rows_of(answer, "functions")}
        return found


def face_of(tool: Exposed) -> FaceTool | None:
    """The words and the rendering of a tool, where it is one that every client sees."""
    face = BY_FUNCTION.get(tool.function_id)
    return face if face is not None and face.name == tool.name else None
