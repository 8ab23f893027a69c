"""Streaming channels: what the writer's socket brings goes to the reader's socket, in order, as it is.

A reader that is slow or not there yet holds the writer back once the channel's buffer is full.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, cast

from iii_directory.engine.access import Refused
from iii_directory.engine.peer import Role

if TYPE_CHECKING:
    from iii_directory.engine.access import Admitted
    from iii_directory.engine.builtins.channels import Channel, Channels, Direction
    from iii_directory.engine.peer import Peer


class Relay:
    """The two sockets of one channel, and what waits between them."""

    def __init__(self, channel: Channel, channels: Channels) -> None:
        self.channel = channel
        self._channels = channels
        self._waiting: deque[str | bytes] = deque()
        self._reader: Peer | None = None
        self._writer: Peer | None = None
        self._writer_gone = False

    def reader_opened(self, peer: Peer) -> None:
        self._reader = peer
        self.pump()

    def writer_opened(self, peer: Peer) -> None:
        self._writer = peer

    def received(self, message: str | bytes) -> None:
        self._waiting.append(message)
        self.pump()

    def reader_lost(self) -> None:
        self._reader = None
        self._channels.forget(self.channel.id)
        if self._writer is not None:
            self._writer.close()

    def writer_lost(self) -> None:
        self._writer, self._writer_gone = None, True
        self.pump()

    def pump(self) -> None:
        """Move what can be moved, then hold the writer back or let it go on."""
        reader = self._reader
        while reader is not None and self._waiting and not reader.full:
            reader.send(self._waiting.popleft())
            reader.flush()
        if self._writer is not None:
            if len(self._waiting) >= self.channel.buffer_size:
                self._writer.pause()
            else:
                self._writer.resume()
        elif self._writer_gone and not self._waiting and reader is not None:
            self._channels.forget(self.channel.id)
            reader.close()


class ReaderRole(Role):
    """The socket that takes. What it sends is not listened to."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def opened(self, peer: Peer) -> None:
        self._relay.reader_opened(peer)

    def lost(self) -> None:
        self._relay.reader_lost()

    def writable(self) -> None:
        self._relay.pump()


class WriterRole(Role):
    """The socket that gives."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def opened(self, peer: Peer) -> None:
        self._relay.writer_opened(peer)

    def received(self, message: str | bytes) -> None:
        self._relay.received(message)

    def lost(self) -> None:
        self._relay.writer_lost()


class TakenRole(Role):
    """A second taker of a side gets an immediate close."""

    def opened(self, peer: Peer) -> None:
        peer.close()


class Relays:
    """The channels with a socket on them."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._relays: dict[str, Relay] = {}

    def role_for(self, wanted: Admitted) -> Role | Refused:
        channel = self._channels.find(wanted.channel_id, wanted.access_key)
        if channel is None:
            return Refused(404, "Channel not found")
        direction = cast("Direction", wanted.direction)
        if direction in channel.taken:
            return TakenRole()
        channel.taken.add(direction)
        relay = self._relays.pop(channel.id, None)
        if relay is None:
            relay = self._relays[channel.id] = Relay(channel, self._channels)
        return ReaderRole(relay) if direction == "read" else WriterRole(relay)
