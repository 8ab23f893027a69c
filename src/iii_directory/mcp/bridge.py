"""Put the bridge together: one MCP server for the directory of one engine, over stdio or HTTP."""

from __future__ import annotations

import logging
import os
from functools import partial
from secrets import token_hex
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server

from iii_directory import __version__
from iii_directory.documents.payload_fields import PROMPTS_CHANGED, SKILLS_CHANGED
from iii_directory.documents.uris import LOCAL, LOOKING
from iii_directory.mcp import request_handlers
from iii_directory.mcp.exposure import RESOURCES_READ, read_payload
from iii_directory.mcp.hello import INSTRUCTIONS, NAME, TITLE
from iii_directory.mcp.http_endpoint import Discovery, HttpEndpoint
from iii_directory.mcp.notifications import EVERYTHING, Announcer, Change
from iii_directory.mcp.upstream import BridgeError, Upstream

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Mapping, Sequence

    from mcp.server.caching import CacheableMethod
    from mcp.server.models import InitializationOptions

    from iii_directory.bus.seam import WorkerBus
    from iii_directory.engine.server import EngineServer
    from iii_directory.mcp.hello import Wire
    from iii_directory.page.page_routes import Page
    from iii_directory.wire.http_server import Listener

log = logging.getLogger("iii_directory.mcp")
WORKER_NAME: Final = "iii-directory-mcp"
WORKER_DESCRIPTION: Final = "Shows the directory of this engine to MCP clients."
_FUNCTIONS_CHANGED: Final = ("engine::functions-available",)
_ALL_CHANGES: Final = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
_LISTS: Final[tuple[CacheableMethod, ...]] = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
)


class BridgeServer(Server[dict[str, Any]]):
    """The SDK's server, which announces that all its lists may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        # The transports ask without options, and the default is a server whose lists never change.
        options = notification_options or _ALL_CHANGES
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class Bridge:
    """An MCP server for the directory behind ``upstream``; everything runs on the loop of its buses."""

    def __init__(self, upstream: Upstream, *, expose: Sequence[str] = (), show_all: bool = False) -> None:
        self._upstream = upstream
        self._page: Page | None = None
        self._announcer = Announcer(
            lambda uri: upstream.call(RESOURCES_READ, read_payload(uri), repeatable=True)
        )
        tools = request_handlers.Tools(upstream, expose, show_all)
        self._endpoint: HttpEndpoint | None = None
        changed = self._changed
        upstream.listen("skills-changed", SKILLS_CHANGED, lambda _: changed([Change.RESOURCES]))
        upstream.listen("prompts-changed", PROMPTS_CHANGED, lambda _: changed([Change.PROMPTS]))
        upstream.listen("functions-changed", _FUNCTIONS_CHANGED, lambda event: changed(tools.changes(event)))
        # What changed while the engine was away is not known, so everything may have.
        upstream.on_back = lambda: changed(EVERYTHING)
        handlers = request_handlers.Handlers(upstream, tools)
        server = self._server = BridgeServer(
            NAME,
            version=__version__,
            title=TITLE,
            instructions=INSTRUCTIONS,
            cache_hints=dict.fromkeys(_LISTS, CacheHint(request_handlers.LIST_TTL_MS)),
            get_tool_input_schema=tools.schemas.get,
            on_list_resources=handlers.list_resources,
            on_list_resource_templates=handlers.list_templates,
            on_read_resource=handlers.read_resource,
            on_subscribe_resource=self._announcer.on_subscribe,
            on_unsubscribe_resource=self._announcer.on_unsubscribe,
            on_list_prompts=handlers.list_prompts,
            on_get_prompt=handlers.get_prompt,
            on_list_tools=handlers.list_tools,
            on_call_tool=handlers.call_tool,
            on_completion=handlers.complete,
            on_subscriptions_listen=self._announcer.on_listen,
        )
        # The SDK's only middleware makes a tracing span for every message. The bridge does not collect spans,
        # and they cost a twentieth of a read.
        server.middleware[:] = [request_handlers.around_message]
        server.extensions[request_handlers.SKILLS_EXTENSION] = request_handlers.SKILLS_SETTINGS
        server.add_request_handler("skills/list", types.PaginatedRequestParams, handlers.list_skills)
        about = request_handlers.UriParams
        server.add_request_handler("skills/get", about, handlers.get_skill)
        server.add_request_handler("resources/directory/read", about, handlers.read_folder)
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._announcer.on_initialized
        )

    @classmethod
    def on(
        cls, bus: WorkerBus, *, expose: Sequence[str] = (), show_all: bool = False, secret: str | None = None
    ) -> Bridge:
        """Make a bridge for the engine of one bus, and connect; any thread may call it."""
        upstream = Upstream()
        bridge = cls(upstream, expose=expose, show_all=show_all)

        async def connected() -> None:
            log.info("connected to the engine at %s", bus.url)

        bus.on_connected.append(connected)
        upstream.use(bus, secret=secret)
        upstream.attach(bus)
        return bridge

    async def serve_stdio(self, wire: Wire) -> None:
        """Serve the client at the other end of stdin and stdout until it leaves."""
        files = anyio.wrap_file(wire.incoming), anyio.wrap_file(wire.outgoing)
        try:
            async with stdio_server(*files) as (incoming, outgoing):
                await self._server.run(incoming, outgoing, self._server.create_initialization_options())
        except* BrokenPipeError:
            log.info("the client left without closing the session")

    async def start_http(
        self, listener: Listener, connect: Sequence[tuple[str, str]] = (), *, allow_changes: bool = False
    ) -> None:
        """Serve clients over HTTP until `close`; the page shows ``connect``, how clients connect.

        With ``allow_changes`` the page may install, update and remove.
        """
        from iii_directory.page.page_routes import Page

        read = partial(self._call, repeatable=True, marks={LOOKING: True})
        # The secret tells the worker that this is the page it was started with.
        change = partial(self._call, marks={LOCAL: self._upstream.secret}) if allow_changes else None
        self._page = Page(read, self._call, change, listener.access, connect)
        endpoint = HttpEndpoint(self._server, listener, self._page, Discovery(self._upstream))
        await endpoint.start()
        self._endpoint = endpoint

    async def close(self) -> None:
        """End the sessions; the buses are closed by their owner."""
        self._announcer.close()
        if self._endpoint is not None:
            await self._endpoint.stop()

    async def _call(
        self,
        function_id: str,
        payload: Mapping[str, Any],
        *,
        repeatable: bool = False,
        marks: Mapping[str, Any] = MappingProxyType({}),
    ) -> Any:
        """Call a function for the page, with ``marks`` in its payload."""
        from iii_directory.page.views import CallFailedError

        try:
            return await self._upstream.call(function_id, {**payload, **marks}, repeatable=repeatable)
        except BridgeError as error:
            raise CallFailedError(error.for_people(), missing=error.blame == "not_found") from None

    def _changed(self, changes: Iterable[Change]) -> None:
        self._announcer.changed(changes)
        if self._page is not None:
            self._page.changed()


def joined_bus(
    url: str, *, token: str | None = None, loop: asyncio.AbstractEventLoop | None = None
) -> WorkerBus:
    """Make the bus of a bridge on the engine at an address; without a loop it has one of its own."""
    from iii_directory.bus.wire_bus import WireBus

    return WireBus(url, name=_worker_name(), description=WORKER_DESCRIPTION, token=token, loop=loop)


def bus_inside(engine: EngineServer) -> WorkerBus:
    """Make the bus of a bridge in an engine of this process; on the engine's loop."""
    from iii_directory.bus.message_bus import LocalBus

    return LocalBus(engine, name=_worker_name(), description=WORKER_DESCRIPTION)


def _worker_name() -> str:
    # Unique: an engine lets one worker of a name in, and every client may run a bridge of its own.
    return f"{WORKER_NAME}-{os.getpid()}-{token_hex(3)}"
