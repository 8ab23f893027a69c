"""Tell MCP clients that a list or a resource changed, each client in the way of its protocol version.

Clients of the 2025 protocol are told on the channel of their session. Clients of 2026-07-28 ask for it with
``subscriptions/listen``, which the SDK serves from a bus of events. Changes that come together are told once.
A resource that a client subscribed to is read again after a change, and told of if its content differs.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server import subscriptions
from mcp.shared.exceptions import MCPError

from iii_directory.bus.tasks import Tasks
from iii_directory.limits import MAX_MCP_CONNECTIONS, MAX_MCP_SUBSCRIPTIONS, MCP_BURST_SECONDS
from iii_directory.mcp.upstream import INVALID_PARAMS, BridgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext
    from mcp.server.subscriptions import ServerEvent

    Context = ServerRequestContext[Any]


class Change(Enum):
    """A list that changed."""

    RESOURCES = "resources"
    PROMPTS = "prompts"
    TOOLS = "tools"


EVERYTHING: Final = tuple(Change)
_EVENTS: Final[dict[Change, ServerEvent]] = {
    Change.RESOURCES: subscriptions.ResourcesListChanged(),
    Change.PROMPTS: subscriptions.PromptsListChanged(),
    Change.TOOLS: subscriptions.ToolsListChanged(),
}


@dataclass(slots=True)
class _Watch:
    """A resource that clients subscribed to."""

    clients: int
    digest: str | None
    """The digest of its content when it was read last; None while it cannot be read."""


class Announcer:
    """Takes changes in and tells every client; lives on the bridge's loop.

    ``read`` gives the content of a resource, as the directory answers it.
    """

    def __init__(self, read: Callable[[str], Awaitable[Any]]) -> None:
        self._read = read
        self._bus = subscriptions.InMemorySubscriptionBus()
        self._streams = subscriptions.ListenHandler(self._bus, max_subscriptions=MAX_MCP_CONNECTIONS)
        self._sessions: dict[Connection, _Subscriber] = {}
        self._watched: dict[str, _Watch] = {}
        self._pending: set[Change] = set()
        self._tasks = Tasks()

    def changed(self, changes: Iterable[Change]) -> None:
        """Tell the clients in a moment, together with the changes until then."""
        changes = set(changes)
        if changes and not self._pending:
            loop = asyncio.get_running_loop()
            loop.call_later(MCP_BURST_SECONDS, lambda: self._tasks.start(self._announce()))
        self._pending.update(changes)

    async def on_initialized(self, ctx: Context, _: types.NotificationParams | None) -> None:
        """Tell a 2025 client from now on, until its connection ends."""
        self._session_of(ctx)

    async def on_subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Tell a 2025 client of changes of one resource."""
        session = self._session_of(ctx)
        if params.uri not in session.uris:
            await self._watch([params.uri])
            session.uris.add(params.uri)
        return types.EmptyResult()

    async def on_unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Stop telling a 2025 client of one resource."""
        session = self._session_of(ctx)
        if params.uri in session.uris:
            session.uris.discard(params.uri)
            self._unwatch([params.uri])
        return types.EmptyResult()

    async def on_listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Tell a 2026 client for as long as its stream is open."""
        uris = set(params.notifications.resource_subscriptions or ())
        await self._watch(uris)
        try:
            return await self._streams(ctx, params)
        finally:
            self._unwatch(uris)

    def close(self) -> None:
        """End the streams of 2026 clients with a last message."""
        self._streams.close()

    def _session_of(self, ctx: Context) -> _Subscriber:
        # The SDK has no public name for the connection behind a session, which is what outlives a request.
        connection = ctx.session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        session = self._sessions.get(connection)
        if session is None:
            session = self._sessions[connection] = _Subscriber(connection)
            task = self._tasks.start(session.tell_changes())

            def ended() -> None:
                self._sessions.pop(connection, None)
                self._unwatch(session.uris)
                task.cancel()

            connection.exit_stack.callback(ended)
        return session

    async def _watch(self, uris: Iterable[str]) -> None:
        new = {uri for uri in uris if uri not in self._watched}
        if len(self._watched) + len(new) > MAX_MCP_SUBSCRIPTIONS:
            problem = f"there are {MAX_MCP_SUBSCRIPTIONS} subscriptions to resources, which is the limit"
            raise MCPError(INVALID_PARAMS, f"{problem}; end one of them first")
        for uri in uris:
            self._watched.setdefault(uri, _Watch(0, None)).clients += 1
        for uri in new:
            # A client may leave while this waits, and take its watch along.
            watch = self._watched[uri]
            watch.digest = await self._digest(uri)

    def _unwatch(self, uris: Iterable[str]) -> None:
        for uri in uris:
            watch = self._watched[uri]
            watch.clients -= 1
            if not watch.clients:
                del self._watched[uri]

    async def _digest(self, uri: str) -> str | None:
        try:
            answer = await self._read(uri)
        except BridgeError:
            return None
        return hashlib.sha256(json.dumps(answer).encode()).hexdigest()

    async def _announce(self) -> None:
        """Tell all clients which lists changed, and those who subscribed which resources did."""
        changes, self._pending = self._pending, set()
        for session in self._sessions.values():
            session.note((f"notifications/{change.value}/list_changed", None) for change in changes)
        for change in changes:
            await self._bus.publish(_EVENTS[change])
        # An event does not say which documents changed, so every watched resource is read again.
        for uri in list(self._watched) if Change.RESOURCES in changes else ():
            digest = await self._digest(uri)
            watch = self._watched.get(uri)
            if watch is None or watch.digest == digest:
                continue
            watch.digest = digest
            for session in self._sessions.values():
                if uri in session.uris:
                    session.note([("notifications/resources/updated", uri)])
            await self._bus.publish(subscriptions.ResourceUpdated(uri))


@dataclass(slots=True, eq=False)
class _Subscriber:
    """One 2025 client. A task of its own tells it, so that a client that does not read delays no other."""

    _connection: Connection
    _untold: set[tuple[str, str | None]] = field(default_factory=set[tuple[str, str | None]])
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    uris: set[str] = field(default_factory=set[str])

    def note(self, messages: Iterable[tuple[str, str | None]]) -> None:
        """Keep messages until the client takes them; equal ones are told once."""
        self._untold.update(messages)
        self._news.set()

    async def tell_changes(self) -> None:
        """Send the messages that were noted, until the task is cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._untold:
                method, uri = self._untold.pop()
                await self._connection.notify(method, None if uri is None else {"uri": uri})
