"""The official SDK's clients on a bridge: every transport and both protocol eras, driven from plain tests."""

from __future__ import annotations

import asyncio
import queue
import sys
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
import anyio.from_thread
import pytest
from mcp.client.stdio import StdioServerParameters
from mcp_types import ResourceTemplateReference
from tests.sdk.installation import RegistryNeededError, install_node
from tests.support.commands import START_SECONDS, environment
from tests.support.engine import WAIT

from iii_directory.mcp.bridge import Bridge, bus_inside, joined_bus
from iii_directory.wire.http_server import Listener
from mcp import Client, MCPError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Sequence

    from anyio.from_thread import BlockingPortal
    from tests.support.engine import EngineThread

    from iii_directory.wire.http_server import HttpLimits

Transport = Literal["stdio", "http", "inside"]
"""Over HTTP the bridge has joined the engine, or it is inside its process."""
Era = Literal["2025", "2026"]
HELLO: Final[dict[str, Any]] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}
"""How a client of 2025 begins, for tests that write the protocol themselves."""
MODES: Final[dict[Era, str]] = {"2025": "legacy", "2026": "auto"}
JOINED: Final = tuple(product(("stdio", "http"), ("2025", "2026")))
EVERY_KIND: Final = (*JOINED, ("inside", "2025"), ("inside", "2026"))
CHANGES: Final = ("resources", "prompts", "tools")


@dataclass
class Session:
    """One client's session; every wait of it is bounded."""

    client: Client
    portal: BlockingPortal
    era: Era
    _news: queue.Queue[str]

    def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        """What a method of the SDK's client gives."""

        async def bounded() -> Any:
            with anyio.fail_after(WAIT):
                return await getattr(self.client, method)(*arguments, **options)

        return self.portal.call(bounded)

    def refusal(self, method: str, *arguments: Any, **options: Any) -> MCPError:
        """The error of a request that must fail."""
        try:
            answer = self.ask(method, *arguments, **options)
        except MCPError as error:
            return error
        raise AssertionError(f"{method} answered {answer!r}")

    def next_change(self, seconds: float = WAIT) -> str:
        """What the client is told of next.

        Raises:
            queue.Empty: it is told of nothing.
        """
        return self._news.get(timeout=seconds)

    def told(self, *changes: str) -> None:
        """Wait until the client is told of changes, in any order; other news among it is passed over."""
        missing = set(changes)
        while missing:
            missing.discard(self.next_change())

    # What tests ask most

    def uris(self) -> list[str]:
        return [row.uri for row in self.ask("list_resources").resources]

    def text(self, uri: str) -> str:
        (content,) = self.ask("read_resource", uri).contents
        assert content.uri == uri
        return content.text

    def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in self.ask("list_tools").tools}

    def call(self, tool: str, **arguments: Any) -> str:
        """The text of a call that works."""
        result = self.ask("call_tool", tool, arguments)
        content, *_ = result.content
        assert not result.is_error, content.text
        return content.text

    def tool_error(self, tool: str, **arguments: Any) -> str:
        """The text of a call that does not."""
        result = self.ask("call_tool", tool, arguments)
        (content,) = result.content
        assert result.is_error, content.text
        return content.text

    def completions(self, template: str, argument: str, typed: str) -> Any:
        reference = ResourceTemplateReference(uri=template)
        return self.ask("complete", reference, {"name": argument, "value": typed}).completion


@asynccontextmanager
async def _session(target: Any, era: Era, news: queue.Queue[str]) -> AsyncGenerator[Client]:
    async def handle(message: Any) -> None:
        method = getattr(message, "method", "")
        if method.endswith("/list_changed"):
            news.put(method.split("/")[1])
        elif method.endswith("/updated"):
            news.put(message.params.uri)

    async with AsyncExitStack() as stack:
        client = Client(
            target, mode=MODES[era], message_handler=handle, read_timeout_seconds=START_SECONDS, cache=None
        )
        await stack.enter_async_context(client)
        if era == "2026":
            # What arrives on the stream is handed to the message handler as well.
            stream = client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            )
            await stack.enter_async_context(stream)
        yield client


@contextmanager
def session(target: Any, era: Era) -> Generator[Session]:
    """A client on a URL or on a command to start, in a thread of its own."""
    news: queue.Queue[str] = queue.Queue()
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_session(target, era, news)) as client,
    ):
        yield Session(client, portal, era, news)


def command(url: str, *arguments: str) -> StdioServerParameters:
    """The bridge as a client starts it."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "iii_directory", "mcp", "--url", url, "--tools", "all", *arguments],
        env=environment(),
    )


def published_packages() -> Path:
    """Where the published packages for MCP are installed: from npm, once; without npm the test is skipped."""
    try:
        lock = Path(__file__).parent / "node" / "package-lock.json"
        return install_node(lock=lock, name="node-mcp") / "node_modules"
    except RegistryNeededError as error:
        pytest.skip(f"npm cannot be reached: {error}")


@contextmanager
def http_bridge(
    url: str,
    *,
    inside: EngineThread | None = None,
    host: str = "127.0.0.1",
    token: str | None = None,
    expose: Sequence[str] = (),
    show_all: bool = True,
    secret: str | None = None,
    limits: HttpLimits | None = None,
) -> Generator[str]:
    """A bridge on a free port, joined to an engine or inside one; the address that clients ask at."""
    listener = Listener(host, 0, token, limits=limits)
    # A loop that ends what its libraries leave behind, as that of a command does.
    with anyio.from_thread.start_blocking_portal() as portal:
        if inside is None:
            bus = portal.call(lambda: joined_bus(url, token=token, loop=asyncio.get_running_loop()))
        else:
            bus = inside.on_loop(lambda: bus_inside(inside.server))
        bridge = Bridge.on(bus, expose=expose, show_all=show_all, secret=secret)
        try:
            bus.run(bridge.start_http(listener))
            yield listener.url
        finally:
            bus.run(bridge.close())
            bus.close()


def wait_for_stream(one: Session, change: Callable[[], object]) -> None:
    """Make changes until the client hears of one.

    A 2025 client over HTTP opens the stream for news after it said it is ready; a change
    in between is not told, as the protocol has it.
    """
    for _ in range(int(WAIT / 0.5)):
        change()
        try:
            one.next_change(0.5)
        except queue.Empty:
            continue
        return
    raise AssertionError("the client never heard of a change")
