"""Telling MCP clients that a list changed, each in the way of its era.

Clients of the 2025 protocol are told on the channel of their session. Those of 2026-07-28 ask for it with
``subscriptions/listen``, which the SDK serves from a bus of events. Changes that come together are told once.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ToolsListChanged,
)

from iii_directory.bus.tasks import Tasks
from iii_directory.limits import MAX_MCP_CONNECTIONS, MCP_BURST_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext
    from mcp.server.subscriptions import ServerEvent
    from mcp_types import (
        NotificationParams,
        SubscriptionsListenRequestParams,
        SubscriptionsListenResult,
    )


class Change(Enum):
    """A list that is no longer what it was."""

    RESOURCES = "resources"
    PROMPTS = "prompts"
    TOOLS = "tools"


EVERYTHING: Final = tuple(Change)
_EVENTS: Final[dict[Change, ServerEvent]] = {
    Change.RESOURCES: ResourcesListChanged(),
    Change.PROMPTS: PromptsListChanged(),
    Change.TOOLS: ToolsListChanged(),
}


class Announcer:
    """Takes changes in and tells every client; lives on the bridge's loop."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._streams = ListenHandler(self._bus, max_subscriptions=MAX_MCP_CONNECTIONS)
        self._sessions: set[_Session] = set()
        self._pending: set[Change] = set()
        self._tasks = Tasks()

    def changed(self, changes: Iterable[Change]) -> None:
        """Tell the clients in a moment, with whatever else changes until then."""
        changes = set(changes)
        if changes and not self._pending:
            asyncio.get_running_loop().call_later(MCP_BURST_SECONDS, self._announce)
        self._pending.update(changes)

    async def on_initialized(self, ctx: ServerRequestContext[Any], params: NotificationParams | None) -> None:
        """A 2025 client is ready: from now on it is told, until its connection ends."""
        del params
        # The SDK has no public name for the connection behind a session, which is what outlives a request.
        connection = ctx.session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        session = _Session(connection)
        self._sessions.add(session)
        task = self._tasks.start(session.tell_changes())
        connection.exit_stack.callback(self._sessions.discard, session)
        connection.exit_stack.callback(task.cancel)

    async def on_listen(
        self, ctx: ServerRequestContext[Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """A 2026 client wants to be told. Changes of single resources are not known, so none are promised."""
        wanted = params.notifications.model_copy(update={"resource_subscriptions": None})
        return await self._streams(ctx, params.model_copy(update={"notifications": wanted}))

    def close(self) -> None:
        """End the streams of 2026 clients with a last word."""
        self._streams.close()

    def _announce(self) -> None:
        changes, self._pending = self._pending, set()
        for session in self._sessions:
            session.note(changes)
        self._tasks.start(self._publish(changes))

    async def _publish(self, changes: set[Change]) -> None:
        for change in changes:
            await self._bus.publish(_EVENTS[change])


class _Session:
    """One 2025 client. It is told in a task of its own: one that does not read holds up nobody else."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._untold: set[Change] = set()
        self._news = asyncio.Event()

    def note(self, changes: Iterable[Change]) -> None:
        self._untold.update(changes)
        self._news.set()

    async def tell_changes(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._untold:
                change = self._untold.pop()
                await self._connection.notify(f"notifications/{change.value}/list_changed", None)
