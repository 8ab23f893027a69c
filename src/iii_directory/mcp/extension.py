"""The MCP extension for skills (SEP-2640): ``skills/list``, ``skills/get``, ``resources/directory/read``.

The directory makes the answers; here they get the fields of the protocol version that the client speaks. The
extension is declared to every client and its methods answer every client, in both eras of the protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from iii_directory.mcp.failures import protocol_errors
from iii_directory.shapes import object_of, rows_of

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.lowlevel import Server

    from iii_directory.mcp.upstream import Upstream

    Context = ServerRequestContext[Any]

ID: Final = "io.modelcontextprotocol/skills"
SKILLS: Final = "directory::mcp::skills"
FOLDER: Final = "directory::mcp::folder"
# Changes are told to clients that listen, so a list may be kept for a while.
LIST_TTL_MS: Final = 60_000


SETTINGS: Final = {"directoryRead": True}


class UriParams(types.RequestParams):
    """The parameters of a request about one address."""

    uri: str
    cursor: str | None = None


class SkillsExtension:
    """Answers the methods of the extension with what the directory says."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    def add_to(self, server: Server[Any]) -> None:
        """Declare the extension and register its methods."""
        server.extensions[ID] = SETTINGS
        server.middleware.append(_declare_to_older_clients)
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self.list_skills)
        server.add_request_handler("skills/get", UriParams, self.get_skill)
        server.add_request_handler("resources/directory/read", UriParams, self.read_folder)

    async def list_skills(self, ctx: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        payload = {} if params.cursor is None else {"cursor": params.cursor}
        answer = await self._ask(ctx, SKILLS, payload)
        result: dict[str, Any] = {"resultType": "complete", "skills": rows_of(answer, "skills")}
        if (cursor := answer.get("next_cursor")) is not None:
            result["nextCursor"] = cursor
        return result | _caching(ctx)

    async def get_skill(self, ctx: Context, params: UriParams) -> dict[str, Any]:
        answer = await self._ask(ctx, SKILLS, {"uri": params.uri})
        return {"resultType": "complete", "skill": answer.get("skill")} | _caching(ctx)

    async def read_folder(self, ctx: Context, params: UriParams) -> dict[str, Any]:
        answer = await self._ask(ctx, FOLDER, {"uri": params.uri})
        return {"resultType": "complete", "resources": rows_of(answer, "resources")}

    async def _ask(self, ctx: Context, function_id: str, payload: dict[str, Any]) -> dict[str, Any]:
        with protocol_errors(ctx):
            return object_of(await self._upstream.call(function_id, payload, repeatable=True))


async def _declare_to_older_clients(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Add the extension to the answer to ``initialize``, from which the SDK leaves extensions out."""
    result = await call_next(ctx)
    if ctx.method == "initialize" and isinstance(result, dict):
        capabilities = object_of(result.get("capabilities"))
        result["capabilities"] = {**capabilities, "extensions": {ID: SETTINGS}}
    return result


def _caching(ctx: Context) -> dict[str, Any]:
    """How long an answer may be kept; clients before 2026-07-28 do not know these fields."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return {}
    return {"ttlMs": LIST_TTL_MS, "cacheScope": "private"}
