"""The MCP server as clients meet it: what it is called, what it can do, which handler answers what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server

from iii_directory import __version__
from iii_directory.mcp.handlers import Handlers

if TYPE_CHECKING:
    from mcp.server.models import InitializationOptions

    from iii_directory.mcp.notifications import Announcer
    from iii_directory.mcp.tools import Tools
    from iii_directory.mcp.upstream import Upstream

NAME: Final = "iii-directory"
TITLE: Final = "iii directory"
INSTRUCTIONS: Final = (
    "Skills of an iii engine: documents that say what its workers can do and how to use them. Start with the "
    "tool directory__skills__index or the resource iii://skills, then read what you need: skill__fetch takes "
    "iii:// links, several at once. Texts name functions as a::b; where there is a tool for one it is called "
    "a__b. Prompts are slash-commands for the user."
)
_ALL_CHANGES: Final = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)


class BridgeServer(Server[dict[str, Any]]):
    """The SDK's server, saying of itself what this one does."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        # The transports ask without options, and the default is a server whose lists never change.
        options = notification_options or _ALL_CHANGES
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    def get_capabilities(self, *arguments: Any, **options: Any) -> types.ServerCapabilities:
        capabilities = super().get_capabilities(*arguments, **options)
        if capabilities.resources is not None:
            # An edited file fires no event, so nobody is promised to hear of a single resource.
            capabilities.resources.subscribe = False
        return capabilities


def build_server(upstream: Upstream, tools: Tools, announcer: Announcer) -> BridgeServer:
    """A server for any number of sessions over any transport."""
    handlers = Handlers(upstream, tools)
    server = BridgeServer(
        NAME,
        version=__version__,
        title=TITLE,
        instructions=INSTRUCTIONS,
        get_tool_input_schema=tools.schema_of,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_completion=handlers.complete,
        on_subscriptions_listen=announcer.on_listen,
    )
    server.add_notification_handler(
        "notifications/initialized", types.NotificationParams, announcer.on_initialized
    )
    return server
