"""The bridge, put together: one connection to the engine, one MCP server, over stdio or HTTP."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from mcp.server.stdio import stdio_server

from iii_directory.mcp.http import HttpEndpoint
from iii_directory.mcp.notifications import EVERYTHING, Announcer, Change
from iii_directory.mcp.server import build_server
from iii_directory.mcp.tools import Tools
from iii_directory.mcp.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from iii_directory.mcp.listener import Listener

log = logging.getLogger("iii_directory.mcp")
# Each generation's name for the same event: whichever the directory on the engine has, it is heard.
_SKILLS_CHANGED: Final = ("skills::on-change", "directory::skills::on-change")
_PROMPTS_CHANGED: Final = ("prompts::on-change", "directory::prompts::on-change")
_FUNCTIONS_CHANGED: Final = ("engine::functions-available",)


class Bridge:
    """MCP for the directory of one engine, on an event loop of its own; call it from any other thread."""

    def __init__(self, url: str, *, token: str | None = None, expose: Sequence[str] = ()) -> None:
        self._upstream = Upstream(url, token=token)
        self._announcer = Announcer()
        self._tools = Tools(self._upstream, expose)
        self._server = build_server(self._upstream, self._tools, self._announcer)
        self._endpoint: HttpEndpoint | None = None
        self._listen()

    def serve_stdio(self) -> None:
        """Serve the client at the other end of stdin and stdout until it leaves."""
        self._upstream.run(self._stdio())

    def start_http(self, listener: Listener) -> None:
        """Serve clients over HTTP until `close`."""
        self._upstream.run(self._http(listener))

    def close(self) -> None:
        self._upstream.run(self._stop())
        self._upstream.close()

    # On the bridge's loop

    def _listen(self) -> None:
        upstream, changed = self._upstream, self._announcer.changed
        upstream.listen("skills-changed", _SKILLS_CHANGED, lambda _: changed([Change.RESOURCES]))
        upstream.listen("prompts-changed", _PROMPTS_CHANGED, lambda _: changed([Change.PROMPTS]))
        upstream.listen("functions-changed", _FUNCTIONS_CHANGED, self._functions_changed)
        # What changed while the engine was away is not known, so everything may have.
        upstream.start(lambda: changed(EVERYTHING))

    def _functions_changed(self, event: Mapping[str, Any]) -> None:
        self._announcer.changed(self._tools.changes(event))

    async def _stdio(self) -> None:
        try:
            async with stdio_server() as (incoming, outgoing):
                await self._server.run(incoming, outgoing, self._server.create_initialization_options())
        except* BrokenPipeError:
            log.info("the client went away without a word")

    async def _http(self, listener: Listener) -> None:
        endpoint = HttpEndpoint(self._server, listener)
        await endpoint.start()
        self._endpoint = endpoint

    async def _stop(self) -> None:
        self._announcer.close()
        if self._endpoint is not None:
            await self._endpoint.stop()
