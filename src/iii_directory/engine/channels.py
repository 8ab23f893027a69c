"""The table of streaming channels; the bytes flow through the shell. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from iii_directory.access.policy import same_secret
from iii_directory.engine.allowances import limit_exceeded
from iii_directory.limits import (
    CHANNEL_IDLE_SECONDS,
    DEFAULT_CHANNEL_BUFFER,
    MAX_CHANNEL_BUFFER,
    MAX_CHANNELS,
    MAX_CONNECTION_CHANNELS,
)

if TYPE_CHECKING:
    from iii_directory.engine.engine_state import Connection, EngineState

Direction = Literal["read", "write"]


@dataclass(slots=True)
class Channel:
    """One channel; each side can be taken once."""

    id: str
    access_key: str
    buffer_size: int
    maker: Connection | None = None
    taken: set[Direction] = field(default_factory=set[Direction])


class Channels:
    """Channels by id, until they were used or one side never came."""

    def __init__(self, engine_state: EngineState) -> None:
        self._engine_state = engine_state
        self._channels: dict[str, Channel] = {}

    def create(self, wanted_buffer: int | None, maker: Connection | None) -> Channel:
        """A new channel; it outlives its maker.

        Raises:
            EngineFault: the maker has as many open as one may, or the engine has.
        """
        if maker is not None and maker.held.channels >= MAX_CONNECTION_CHANNELS:
            raise limit_exceeded(f"a connection has at most {MAX_CONNECTION_CHANNELS} channels open")
        if len(self._channels) >= MAX_CHANNELS:
            raise limit_exceeded(f"an engine has at most {MAX_CHANNELS} channels open")
        size = DEFAULT_CHANNEL_BUFFER if wanted_buffer is None else wanted_buffer
        new_id = self._engine_state.new_id
        channel = Channel(new_id(), new_id(), max(1, min(size, MAX_CHANNEL_BUFFER)), maker)
        if maker is not None:
            maker.held.channels += 1
        self._channels[channel.id] = channel
        self._engine_state.start_timer("channel-idle", channel.id, CHANNEL_IDLE_SECONDS)
        return channel

    def find(self, channel_id: str, access_key: str) -> Channel | None:
        channel = self._channels.get(channel_id)
        return channel if channel is not None and same_secret(access_key, channel.access_key) else None

    def forget(self, channel_id: str) -> None:
        channel = self._channels.pop(channel_id, None)
        if channel is not None and channel.maker is not None:
            channel.maker.held.channels -= 1

    def idle(self, channel_id: str) -> None:
        """Time is up: a channel whose two sides are not both there ends."""
        channel = self._channels.get(channel_id)
        if channel is not None and channel.taken != {"read", "write"}:
            self.forget(channel_id)
            self._engine_state.end_channel(channel_id)
