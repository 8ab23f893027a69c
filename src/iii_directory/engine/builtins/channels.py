"""``engine::channels::create``: the table of streaming channels. The bytes flow through the shell. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from iii_directory.access.policy import same_secret
from iii_directory.engine.builtins.table import BuiltinFunction, BuiltinWorker, optional, provide, schema
from iii_directory.limits import CHANNEL_IDLE_SECONDS, DEFAULT_CHANNEL_BUFFER, MAX_CHANNEL_BUFFER

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.calls import Request
    from iii_directory.engine.router import Router
    from iii_directory.engine.wire_json import Json

Direction = Literal["read", "write"]


@dataclass(slots=True)
class Channel:
    """One channel; each side can be taken once."""

    id: str
    access_key: str
    buffer_size: int
    taken: set[Direction] = field(default_factory=set[Direction])


class Channels:
    """Channels by id, until they were used or one side never came."""

    def __init__(self, router: Router) -> None:
        self._kernel = router.kernel
        self._channels: dict[str, Channel] = {}
        self.on_swept: Callable[[str], None] = lambda _channel_id: None
        """Told of a channel that ended because one side never came."""
        router.timers["channel-idle"] = self._sweep

    def create(self, request: Request) -> Json:
        wanted = optional(request, "buffer_size", int)
        size = DEFAULT_CHANNEL_BUFFER if wanted is None else max(1, min(wanted, MAX_CHANNEL_BUFFER))
        channel = Channel(self._kernel.new_id(), self._kernel.new_id(), size)
        self._channels[channel.id] = channel
        self._kernel.start_timer("channel-idle", channel.id, CHANNEL_IDLE_SECONDS)
        reference = {"channel_id": channel.id, "access_key": channel.access_key}
        return {
            "writer": {**reference, "direction": "write"},
            "reader": {**reference, "direction": "read"},
        }

    def find(self, channel_id: str, access_key: str) -> Channel | None:
        channel = self._channels.get(channel_id)
        return channel if channel is not None and same_secret(access_key, channel.access_key) else None

    def forget(self, channel_id: str) -> None:
        self._channels.pop(channel_id, None)

    def _sweep(self, channel_id: str) -> None:
        channel = self._channels.get(channel_id)
        if channel is not None and channel.taken != {"read", "write"}:
            self.forget(channel_id)
            self.on_swept(channel_id)


def install(router: Router) -> Channels:
    """Put channels on the engine."""
    it = Channels(router)
    create = BuiltinFunction(
        "engine::channels::create",
        "Make a streaming channel; each side is opened once, by its reference.",
        it.create,
        schema(buffer_size="integer"),
    )
    provide(router, BuiltinWorker("iii-channels", "Streams between workers.", [create]))
    return it
