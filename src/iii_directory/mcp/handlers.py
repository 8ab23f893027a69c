"""What answers each request of the protocol: a call of the directory's functions on the engine."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from iii_directory.access.http_server import USER
from iii_directory.documents.uris import LOCAL, READ_ONLY, SECTION_TEMPLATE, SKILL_TEMPLATE
from iii_directory.exposure import (
    FETCH,
    FETCHES,
    FUNCTIONS_LIST,
    MCP_RESOURCES,
    PROMPTS_GET,
    PROMPTS_LIST,
    RESOURCES_LIST,
    RESOURCES_READ,
    RESOURCES_TEMPLATES,
    read_payload,
    result_text,
    with_defaults,
)
from iii_directory.limits import MCP_PROGRESS_SECONDS
from iii_directory.mcp import rows
from iii_directory.mcp.face import CALL, OFF, Answer, payload_of
from iii_directory.mcp.failures import INTERNAL_ERROR, INVALID_PARAMS, BridgeError, protocol_errors
from iii_directory.mcp.tools import face_of
from iii_directory.shapes import object_of
from iii_directory.text import quoted, visible

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from mcp.server.context import ServerRequestContext

    from iii_directory.exposure import Exposed
    from iii_directory.mcp.tools import Tools
    from iii_directory.mcp.upstream import Upstream

    Context = ServerRequestContext[Any]

log = logging.getLogger("iii_directory.mcp")


class Handlers:
    """One method a request. None keeps anything of a session, so one instance serves all."""

    def __init__(self, upstream: Upstream, tools: Tools) -> None:
        self._upstream = upstream
        self._tools = tools

    # Resources

    async def list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        with protocol_errors(ctx):
            # Directories of other makers have the older list alone.
            function_id = MCP_RESOURCES if await self._tools.has(MCP_RESOURCES) else RESOURCES_LIST
        found = await self._list(ctx, params, function_id, rows.resources, "resources")
        return types.ListResourcesResult.model_validate({"resources": found})

    async def list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        found = await self._list(ctx, params, RESOURCES_TEMPLATES, rows.templates, "resourceTemplates")
        return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": found})

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        answer = await self._ask(ctx, RESOURCES_READ, read_payload(params.uri), resource=params.uri)
        contents = rows.contents(answer)
        if contents is None:
            raise MCPError(
                INTERNAL_ERROR, f"{quoted(params.uri)} was answered in a shape that is no resource"
            )
        return types.ReadResourceResult.model_validate({"contents": contents})

    # Prompts

    async def list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        found = await self._list(ctx, params, PROMPTS_LIST, rows.prompts, "prompts")
        return types.ListPromptsResult.model_validate({"prompts": found})

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        payload = {"name": params.name, "arguments": params.arguments or {}}
        answer = await self._ask(ctx, PROMPTS_GET, payload)
        try:
            return types.GetPromptResult.model_validate(rows.prompt(answer))
        except ValidationError:
            # A prompt's function may answer messages of its own making.
            problem = f"prompt {quoted(params.name)} was answered with messages that are none of MCP's"
            raise MCPError(INTERNAL_ERROR, problem) from None

    # Tools

    async def list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        _refuse_cursor(params)
        with protocol_errors(ctx):
            return types.ListToolsResult.model_validate({"tools": await self._tools.listed()})

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        try:
            tool = await self._tools.find(params.name)
            if params.name == CALL and self._tools.calls.setting != OFF:
                return _said(await self._function_called(ctx, arguments))
            if tool is None:
                raise MCPError(
                    INVALID_PARAMS, f"there is no tool {quoted(params.name)}; tools/list has them all"
                )
            face = face_of(tool)
            payload = arguments if face is None else payload_of(face, arguments) | self._local(ctx)
            answer = await self._called(ctx, tool, payload)
            meta = rows.provenance_meta(answer)
            if tool.function_id in FETCHES:
                answer, meta = rows.fetched(answer)
            if face is None:
                return _said(Answer(result_text(answer)), meta=meta)
            return _said(face.render(answer, arguments, self._tools.calls), meta=meta)
        except BridgeError as failure:
            return _said(Answer(str(failure)), is_error=True)

    async def _function_called(self, ctx: Context, arguments: dict[str, Any]) -> Answer:
        """Call the function that a client names, if the operator lets clients call it."""
        function_id = str(arguments.get("function_id"))
        problem = self._tools.calls.problem(function_id)
        if problem is not None:
            raise BridgeError(problem, "request")
        async with _progress(ctx, f"{visible(function_id)} is at work"):
            payload = object_of(arguments.get("payload"))
            answer = await self._upstream.call(function_id, payload, repeatable=False)
        return Answer(result_text(answer))

    def _local(self, ctx: Context) -> dict[str, Any]:
        """The secret that lets the directory tell paths, if the client is a process of this user."""
        secret = self._upstream.secret
        request = ctx.request
        # Over stdio there is no request: the client has started this very process.
        mine = request is None or request.scope.get(USER) == os.getuid()
        return {LOCAL: secret} if secret is not None and mine else {}

    # Completion

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        candidates = await self._candidates(ctx, params)
        found = rows.completion(params.argument.value, candidates)
        return types.CompleteResult.model_validate({"completion": found})

    async def _candidates(self, ctx: Context, params: types.CompleteRequestParams) -> list[str]:
        if isinstance(params.ref, types.PromptReference):
            # What may be given for an argument is known to the function that renders the prompt alone.
            return []
        match (params.ref.uri, params.argument.name):
            case (uri, "skill_id") if uri == SKILL_TEMPLATE:
                return rows.skill_ids(await self._ask(ctx, RESOURCES_LIST, {}))
            case (uri, "function_path") if uri == SECTION_TEMPLATE:
                return rows.function_paths(await self._ask(ctx, FUNCTIONS_LIST, {}))
            case (uri, argument):
                problem = f"there is no argument {quoted(argument)} in a template {quoted(uri)}"
                raise MCPError(INVALID_PARAMS, f"{problem}; resources/templates/list has them all")

    # Inner workings

    async def _list(
        self,
        ctx: Context,
        params: types.PaginatedRequestParams | None,
        function_id: str,
        taken: Callable[[object], list[rows.Row]],
        key: str,
    ) -> list[rows.Row]:
        _refuse_cursor(params)
        answer = await self._ask(ctx, function_id, {})
        found = taken(answer)
        left_out = len(rows.rows_of(answer, key)) - len(found)
        if left_out:
            log.warning("%s: %d entries that no client could use are left out", function_id, left_out)
        return found

    async def _ask(
        self, ctx: Context, function_id: str, payload: dict[str, Any], *, resource: str | None = None
    ) -> Any:
        with protocol_errors(ctx, resource):
            return await self._upstream.call(function_id, payload, repeatable=True)

    async def _called(self, ctx: Context, tool: Exposed, arguments: dict[str, Any]) -> Any:
        arguments = with_defaults(tool.function_id, arguments)
        if tool.function_id == FETCH:
            arguments = {**arguments, "sections": READ_ONLY}
        if tool.function_id in FETCHES:
            arguments = {**arguments, "with_provenance": True}
        if tool.hints.read_only:
            return await self._upstream.call(tool.function_id, arguments, repeatable=True)
        async with _progress(ctx, f"{tool.function_id} is at work"):
            return await self._upstream.call(tool.function_id, arguments, repeatable=False)


@asynccontextmanager
async def _progress(ctx: Context, message: str) -> AsyncGenerator[None]:
    """Tell a client that wants to know how many seconds the work has taken; nobody knows what is left."""

    async def tell() -> None:
        for ticks in count():
            await ctx.session.report_progress(ticks * MCP_PROGRESS_SECONDS, None, message)
            await asyncio.sleep(MCP_PROGRESS_SECONDS)

    telling = asyncio.create_task(tell())
    try:
        yield
    finally:
        # Nothing may follow the answer.
        telling.cancel()
        with suppress(asyncio.CancelledError):
            await telling


def _refuse_cursor(params: types.PaginatedRequestParams | None) -> None:
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "there is no such page: every list comes whole, without a cursor")


def _said(answer: Answer, *, is_error: bool = False, meta: rows.Row | None = None) -> types.CallToolResult:
    links = [types.ResourceLink.model_validate(link) for link in answer.links]
    return types.CallToolResult(
        content=[types.TextContent(text=answer.text), *links],
        structured_content=answer.structured,
        is_error=is_error,
        _meta=meta or None,
    )
