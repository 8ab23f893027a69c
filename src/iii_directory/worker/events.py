"""Telling subscribers of changes: the on-change trigger types, and who is bound to each of them.

Events are sent one after the other by a task of their own, without waiting for answers: whoever changed
something is not held up by those who want to know, and those not by one another.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from iii_directory.bus.seam import Bus, Subscription, TriggerOwner
    from iii_directory.lockfile.format import NamespaceChange

# What each trigger type reports: the older ones only the changes they always had.
SKILLS: Final = "skills"
PROMPTS: Final = "prompts"
SKILLS_WRITTEN: Final = "written skills"
PROMPTS_WRITTEN: Final = "written prompts"

_CLOSE_SECONDS: Final = 1.0
# What goes out together is written together; more would keep callers waiting.
_AT_ONCE: Final = 8


class Subscribers:
    """The functions bound to one trigger type, by the id of the binding."""

    def __init__(self) -> None:
        self.bound: dict[str, Subscription] = {}
        self._unconfirmed: set[str] = set()
        """While the engine tells anew who is bound: those it has not named yet."""

    def subscribed(self, subscription: Subscription) -> None:
        self.bound[subscription.id] = subscription
        self._unconfirmed.discard(subscription.id)

    def unsubscribed(self, subscription_id: str) -> None:
        self.bound.pop(subscription_id, None)

    def renew(self) -> None:
        """The engine is about to name everybody who is bound; until it has, all are told."""
        self._unconfirmed = set(self.bound)

    def renewed(self) -> None:
        """It has: whoever was not named has left while somebody else provided the type."""
        for subscription_id in self._unconfirmed:
            self.bound.pop(subscription_id, None)
        self._unconfirmed = set()


class Events:
    """Every trigger type of this worker, by the topic whose changes it reports."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._topics: dict[str, list[Subscribers]] = {}
        self.types: dict[str, Subscribers] = {}
        """Who is bound, by the ids of the trigger types."""
        self._waiting: deque[tuple[Subscription, Mapping[str, Any]]] = deque()
        self._sender: asyncio.Task[None] | None = None

    def owner_for(self, type_id: str, *topics: str) -> TriggerOwner:
        """Who keeps the subscriptions of one more trigger type, which reports some topics."""
        subscribers = self.types[type_id] = Subscribers()
        for topic in topics:
            self._topics.setdefault(topic, []).append(subscribers)
        return subscribers

    def fire(self, topic: str, event: Mapping[str, Any]) -> None:
        """Tell everyone bound to a topic. Returns at once; events keep their order."""
        for subscribers in self._topics.get(topic, ()):
            self._waiting.extend((subscription, event) for subscription in subscribers.bound.values())
        if self._waiting and (self._sender is None or self._sender.done()):
            self._sender = asyncio.get_running_loop().create_task(self._send())

    def installed(self, change: NamespaceChange) -> None:
        """Tell whom it concerns that a namespace was installed, by this process or another."""
        event = {"op": "download", "namespace": change.namespace, "source": change.source}
        if change.skills:
            self.fire(SKILLS, event)
        if change.prompts:
            self.fire(PROMPTS, event)

    def written(self, event: Mapping[str, Any]) -> None:
        """Tell that a skill of the folder was written; only the newest type has words for that."""
        self.fire(SKILLS_WRITTEN, event)

    def edited(self, *, skills: Collection[str], prompts: Collection[str]) -> None:
        """Tell in which namespaces files were edited on disk; of one kind or of both, each once."""
        for topic, namespaces in ((SKILLS_WRITTEN, skills), (PROMPTS_WRITTEN, prompts)):
            if namespaces:
                self.fire(topic, {"op": "external", "namespaces": sorted(namespaces)})

    def forget_subscribers(self) -> None:
        """The connection is gone; the engine names those who are still there after the next one."""
        for subscribers in self.types.values():
            subscribers.bound.clear()

    async def close(self) -> None:
        """Send what is still to be sent, unless the engine does not take it."""
        if self._sender is not None:
            await asyncio.wait([self._sender], timeout=_CLOSE_SECONDS)
            self._sender.cancel()

    async def _send(self) -> None:
        while self._waiting:
            # The answer to whoever made the change goes before the next of these.
            await asyncio.sleep(0)
            for _ in range(min(len(self._waiting), _AT_ONCE)):
                await self._bus.tell(*self._waiting.popleft())
