"""Answer every request of the protocol with calls of the directory's functions.

`Tools` knows which functions are tools. `Handlers` answers the requests of the protocol and of the extension
for skills (SEP-2640). The directory makes the answers; the handlers add the fields of the protocol version
that the client speaks.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from iii_directory.bus.message_bus import current_trace
from iii_directory.documents.uris import INSTANCE_FUNCTION, LOCAL, READ_ONLY, SECTION_TEMPLATE, SKILL_TEMPLATE
from iii_directory.limits import MAX_FUNCTION_BATCH, MCP_ENGINE_SECONDS, MCP_PROGRESS_SECONDS
from iii_directory.mcp import default_tools, exposure
from iii_directory.mcp.default_tools import CALL, OFF, ClientView, ToolAnswer, call_tool_row, default_of
from iii_directory.mcp.notifications import Change
from iii_directory.mcp.upstream import INTERNAL_ERROR, INVALID_PARAMS, POLL_SECONDS, BridgeError
from iii_directory.shapes import object_of, rows_of
from iii_directory.text import quoted, visible
from iii_directory.wire.http_server import USER

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from iii_directory.mcp.exposure import Exposed, Row
    from iii_directory.mcp.upstream import Upstream

    Context = ServerRequestContext[Any]
    PageParams = types.PaginatedRequestParams | None

log = logging.getLogger("iii_directory.mcp")
# Without these functions a list cannot be had, so their coming or going changes it.
_BEHIND: Final = {exposure.RESOURCES_LIST: Change.RESOURCES, exposure.PROMPTS_LIST: Change.PROMPTS}
SKILLS_EXTENSION: Final = "io.modelcontextprotocol/skills"
SKILLS_SETTINGS: Final = {"directoryRead": True}
_SKILLS: Final = "directory::mcp::skills"
_FOLDER: Final = "directory::mcp::folder"
# Changes are told to clients that listen, so a list may be kept for a while.
LIST_TTL_MS: Final = 60_000
_ONE_PAGE: Final = "the cursor is not valid: every list comes whole, in one page"
_FILE_TEMPLATE: Final = {
    "uriTemplate": "skill://{+path}",
    "name": "file",
    "description": "A file of a skill, as it is on disk: the path of the skill and of the file below it.",
}
# What lists the values of an argument of a template.
_COMPLETED: Final = {
    (SKILL_TEMPLATE, "skill_id"): exposure.RESOURCES_LIST,
    (SECTION_TEMPLATE, "function_path"): exposure.FUNCTIONS_LIST,
}
# The directory describes these two in the words of the engine; a model reads them before it knows any.
_TEMPLATE_WORDS: Final = {
    SKILL_TEMPLATE: "One document by its id, as search and directory__skills__list print it.",
    SECTION_TEMPLATE: "The answer of a function, called without arguments: its id with / instead of ::.",
}


@dataclass(eq=False)
class Tools:
    """What is exposed: functions of the directory, and those that match the ``_globs`` of the operator."""

    _upstream: Upstream
    _globs: Sequence[str]
    _show_all: bool = False
    exposed: dict[str, Exposed] = field(default_factory=dict[str, "Exposed"])
    """The tools by their names, as of the last list of functions or event."""
    view: ClientView = field(default_factory=ClientView)
    """What clients can use, as of the last list of functions or event."""
    schemas: dict[str, Row] = field(default_factory=dict[str, "Row"])
    """The input schemas that clients were shown, by the names of the tools."""
    _listed: set[str] | None = None
    """The names that a client may have seen, and the setting for calls; None before the first list."""
    _there: set[str] | None = None
    """The functions behind the other lists, as of the last event; None before the first."""

    async def listed(self) -> list[Row]:
        """Return every tool as a client sees it, sorted by name."""
        await self.refresh()
        listing: list[Row] = []
        others: dict[str, Exposed] = {}
        for tool in self.exposed.values():
            if (default := default_of(tool)) is None:
                others[tool.function_id] = tool
            else:
                listing.append(default.row(tool.hints))
        details: dict[str, Row] = {}
        for start in range(0, len(others), MAX_FUNCTION_BATCH):
            batch = list(others)[start : start + MAX_FUNCTION_BATCH]
            payload = {"function_ids": batch, "namespace": self._upstream.namespace}
            answer = await self._upstream.call(exposure.FUNCTIONS_INFO, payload, repeatable=True)
            details |= {str(row.get("function_id")): row for row in rows_of(answer, "functions")}
        listing += [exposure.tool_row(tool, details.get(one, {})) for one, tool in others.items()]
        if self.view.setting != OFF:
            listing.append(call_tool_row(self.view.setting))
        listing.sort(key=lambda row: row["name"])
        self.schemas.clear()
        self.schemas.update((row["name"], row["inputSchema"]) for row in listing)
        self._listed = {*self.exposed, self.view.setting}
        return listing

    async def told(self, failure: BridgeError) -> str:
        """Write a failure for a client, with next steps that name tools."""
        # No request before had to know the functions, or the last event came before all were registered.
        if any(step.function and step.function not in self.view.functions for step in failure.next_steps):
            with suppress(BridgeError):
                await self.refresh()
        return failure.told(self.view)

    def changes(self, event: Mapping[str, Any]) -> Iterator[Change]:
        """Yield the lists that differ from what clients may have seen, by an event about functions."""
        rows = rows_of(event, "functions")
        self._remember(rows)
        shown = {*self.exposed, self.view.setting}
        if self._listed is not None and shown != self._listed:
            self._listed = shown
            yield Change.TOOLS
        there = {str(row.get("function_id")) for row in rows} & set(_BEHIND)
        other = there & self._upstream.missing
        if self._there is not None:
            other |= there ^ self._there
        self._there = there
        self._upstream.missing -= there
        yield from (_BEHIND[function_id] for function_id in other)

    async def refresh(self) -> None:
        """Ask the engine for its functions; wait a little for those of a directory that has just gone."""
        until = time.monotonic() + MCP_ENGINE_SECONDS
        while True:
            answer = await self._upstream.call(exposure.FUNCTIONS_LIST, {}, repeatable=True)
            rows = rows_of(answer, "functions")
            is_there = any(row.get("function_id") == INSTANCE_FUNCTION for row in rows)
            if is_there or INSTANCE_FUNCTION not in self.view.functions or time.monotonic() > until:
                break
            await asyncio.sleep(POLL_SECONDS)
        self._remember(rows)

    def _remember(self, rows: list[Row]) -> None:
        here = self._upstream.namespace
        known = {str(row.get("function_id")): row for row in rows if row.get("namespace", here) == here}
        told = object_of(object_of(known.get(INSTANCE_FUNCTION)).get("metadata"))
        shows_all = self._show_all or told.get("mcp_tools") == "all"
        offered = exposure.OFFERED.keys() if shows_all else default_tools.BY_FUNCTION.keys()
        self.exposed = {tool.name: tool for tool in exposure.exposed(rows, self._globs, here, offered)}
        names = {tool.function_id: name for name, tool in self.exposed.items()}
        self.view = ClientView(str(told.get("mcp_calls") or OFF), known, names)


class UriParams(types.RequestParams):
    """The parameters of a request about one address."""

    uri: str
    cursor: str | None = None


@dataclass(eq=False)
class Handlers:
    """One method for each request. No method keeps anything of a session, so one instance serves all."""

    _upstream: Upstream
    _tools: Tools

    # Resources

    async def list_resources(self, ctx: Context, params: PageParams) -> types.ListResourcesResult:
        function_id = await self._newest(ctx, exposure.MCP_RESOURCES, exposure.RESOURCES_LIST)
        found = await self._list(ctx, params, function_id, exposure.resources, "resources")
        return types.ListResourcesResult.model_validate({"resources": found})

    async def list_templates(self, ctx: Context, params: PageParams) -> types.ListResourceTemplatesResult:
        function_id = exposure.RESOURCES_TEMPLATES
        found = await self._list(ctx, params, function_id, exposure.templates, "resourceTemplates")
        for row in found:
            if row["uriTemplate"] in _TEMPLATE_WORDS:
                row["description"] = _TEMPLATE_WORDS[row["uriTemplate"]]
        # Only directories that list skills for hosts serve their files.
        if await self._newest(ctx, _SKILLS, "") == _SKILLS:
            found.append(_FILE_TEMPLATE)
        return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": found})

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        payload = exposure.read_payload(params.uri)
        answer = await self._ask(ctx, exposure.RESOURCES_READ, payload, resource=params.uri)
        contents = exposure.contents(answer)
        if contents is None:
            problem = f"the directory's answer for {quoted(params.uri)} is not a resource"
            raise MCPError(INTERNAL_ERROR, problem)
        return types.ReadResourceResult.model_validate({"contents": contents})

    # Prompts

    async def list_prompts(self, ctx: Context, params: PageParams) -> types.ListPromptsResult:
        found = await self._list(ctx, params, exposure.PROMPTS_LIST, exposure.prompts, "prompts")
        return types.ListPromptsResult.model_validate({"prompts": found})

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        payload = {"name": params.name, "arguments": params.arguments or {}}
        answer = await self._ask(ctx, exposure.PROMPTS_GET, payload)
        try:
            return types.GetPromptResult.model_validate(exposure.prompt(answer))
        except ValidationError:
            # A prompt's function may answer messages of its own making.
            problem = f"the messages of prompt {quoted(params.name)} are not valid in MCP"
            raise MCPError(INTERNAL_ERROR, problem) from None

    # Tools

    async def list_tools(self, ctx: Context, params: PageParams) -> types.ListToolsResult:
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, _ONE_PAGE)
        async with self._protocol_errors(ctx):
            return types.ListToolsResult.model_validate({"tools": await self._tools.listed()})

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        try:
            if params.name not in self._tools.exposed:
                # It may have come since the last look.
                await self._tools.refresh()
            tool = self._tools.exposed.get(params.name)
            if params.name == CALL and self._tools.view.setting != OFF:
                return await self._call_function(ctx, arguments)
            if tool is None:
                problem = f"unknown tool {quoted(params.name)}; tools/list names all tools"
                raise MCPError(INVALID_PARAMS, problem)
            default, payload = default_of(tool), arguments
            # A client over stdio has started this very process; only HTTP has requests.
            is_mine = ctx.request is None or ctx.request.scope.get(USER) == os.getuid()
            if default is not None:
                payload = default.payload(arguments)
                # The secret lets the directory tell paths to processes of its own user.
                if is_mine and self._upstream.secret is not None:
                    payload[LOCAL] = self._upstream.secret
            answer = await self._call_exposed(ctx, tool, payload)
            answer, meta = exposure.with_meta(answer, is_fetch=tool.function_id in exposure.FETCHES)
            if default is None:
                return _result(ToolAnswer(exposure.result_text(answer)), meta=meta)
            return _result(default.render(answer, arguments, self._tools.view), meta=meta)
        except BridgeError as failure:
            return _result(ToolAnswer(await self._tools.told(failure)), is_error=True)

    async def _call_function(self, ctx: Context, arguments: dict[str, Any]) -> types.CallToolResult:
        """Call the function that a client names, if the operator lets clients call it."""
        function_id = str(arguments.get("function_id"))
        refusal = self._tools.view.refusal(function_id)
        if refusal is not None:
            raise BridgeError(refusal, "request")
        async with _progress(ctx, f"{visible(function_id)} is at work"):
            payload = object_of(arguments.get("payload"))
            answer = await self._upstream.call(function_id, payload, repeatable=False)
        return _result(ToolAnswer(exposure.result_text(answer)))

    async def _call_exposed(self, ctx: Context, tool: Exposed, arguments: dict[str, Any]) -> Any:
        """Call the function of a tool; tell the client of progress while it may change something."""
        function_id = tool.function_id
        arguments = {**exposure.DEFAULTS.get(function_id, {}), **arguments}
        if function_id == exposure.FETCH:
            arguments = {**arguments, "sections": READ_ONLY}
        if function_id in exposure.FETCHES:
            arguments = {**arguments, "with_provenance": True}
        if tool.hints.read_only:
            return await self._upstream.call(function_id, arguments, repeatable=True)
        async with _progress(ctx, f"{function_id} is at work"):
            return await self._upstream.call(function_id, arguments, repeatable=False)

    # Completion

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        answer = None
        # Only the function that renders a prompt knows what may be given for its arguments.
        if not isinstance(params.ref, types.PromptReference):
            uri, argument = params.ref.uri, params.argument.name
            listing = _COMPLETED.get((uri, argument))
            if listing is None:
                problem = f"template {quoted(uri)} has no argument {quoted(argument)} to complete"
                raise MCPError(INVALID_PARAMS, f"{problem}; resources/templates/list has all templates")
            answer = await self._ask(ctx, listing, {})
        found = exposure.completion(answer, params.argument.value)
        return types.CompleteResult.model_validate({"completion": found})

    # The extension for skills

    async def list_skills(self, ctx: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        payload = {} if params.cursor is None else {"cursor": params.cursor}
        answer = object_of(await self._ask(ctx, _SKILLS, payload))
        result: dict[str, Any] = {"resultType": "complete", "skills": rows_of(answer, "skills")}
        if (cursor := answer.get("next_cursor")) is not None:
            result["nextCursor"] = cursor
        return result | _caching(ctx)

    async def get_skill(self, ctx: Context, params: UriParams) -> dict[str, Any]:
        answer = object_of(await self._ask(ctx, _SKILLS, {"uri": params.uri}))
        return {"resultType": "complete", "skill": answer.get("skill")} | _caching(ctx)

    async def read_folder(self, ctx: Context, params: UriParams) -> dict[str, Any]:
        answer = await self._ask(ctx, _FOLDER, {"uri": params.uri})
        return {"resultType": "complete", "resources": rows_of(answer, "resources")}

    # Calls of the directory

    async def _newest(self, ctx: Context, newest: str, older: str) -> str:
        """Choose a function that directories of other makers may not have, or else an older one."""
        if not self._tools.view.functions:
            async with self._protocol_errors(ctx):
                await self._tools.refresh()
        return newest if newest in self._tools.view.functions else older

    async def _list(
        self,
        ctx: Context,
        params: PageParams,
        function_id: str,
        usable: Callable[[object], list[Row]],
        key: str,
    ) -> list[Row]:
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, _ONE_PAGE)
        answer = await self._ask(ctx, function_id, {})
        found = usable(answer)
        left_out = len(rows_of(answer, key)) - len(found)
        if left_out:
            log.warning("%s: %d entries that no client could use are left out", function_id, left_out)
        return found

    async def _ask(
        self, ctx: Context, function_id: str, payload: dict[str, Any], *, resource: str | None = None
    ) -> Any:
        async with self._protocol_errors(ctx, resource):
            return await self._upstream.call(function_id, payload, repeatable=True)

    @asynccontextmanager
    async def _protocol_errors(self, ctx: Context, resource: str | None = None) -> AsyncGenerator[None]:
        """Raise a failure as an error of the protocol version that the client speaks."""
        try:
            yield
        except BridgeError as failure:
            modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
            code = failure.code(about_resource=resource is not None, modern=modern)
            about = None if resource is None or failure.blame == "server" else {"uri": resource}
            raise MCPError(code, await self._tools.told(failure), about) from None


@asynccontextmanager
async def _progress(ctx: Context, message: str) -> AsyncGenerator[None]:
    """Tell the client, if it asked for progress, how many seconds the work has taken so far."""

    async def tell() -> None:
        for ticks in count():
            await ctx.session.report_progress(ticks * MCP_PROGRESS_SECONDS, None, message)
            await asyncio.sleep(MCP_PROGRESS_SECONDS)

    telling = asyncio.create_task(tell())
    try:
        yield
    finally:
        # No message may follow the answer.
        telling.cancel()
        with suppress(asyncio.CancelledError):
            await telling


def _result(answer: ToolAnswer, *, is_error: bool = False, meta: Row | None = None) -> types.CallToolResult:
    links = [types.ResourceLink.model_validate(link) for link in answer.links]
    return types.CallToolResult(
        content=[types.TextContent(text=answer.text), *links],
        structured_content=answer.structured,
        is_error=is_error,
        _meta=meta or None,
    )


def _caching(ctx: Context) -> dict[str, Any]:
    """Return how long an answer may be kept; clients before 2026-07-28 do not know these fields."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return {}
    return {"ttlMs": LIST_TTL_MS, "cacheScope": "private"}


async def around_message(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Pass the trace of a request on to the engine, and declare the extension to clients of 2025.

    The SDK leaves extensions out of its answer to ``initialize``.
    """
    meta = object_of(ctx.meta)
    traceparent, baggage = meta.get("traceparent"), meta.get("baggage")
    trace = (
        traceparent if isinstance(traceparent, str) else None,
        baggage if isinstance(baggage, str) else None,
    )
    token = current_trace.set(trace) if any(trace) else None
    try:
        result = await call_next(ctx)
    finally:
        if token is not None:
            current_trace.reset(token)
    if ctx.method == "initialize" and isinstance(result, dict):
        capabilities = object_of(result.get("capabilities"))
        result["capabilities"] = {**capabilities, "extensions": {SKILLS_EXTENSION: SKILLS_SETTINGS}}
    return result
