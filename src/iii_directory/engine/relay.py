"""Streaming channels: what the writer's socket brings goes to the reader's socket, in order, as it is.

A reader that is slow or not there yet holds the writer back once the channel's buffer is full: in messages,
or sooner if these are large.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, cast

from iii_directory.access.policy import Refused
from iii_directory.engine.peer import Role
from iii_directory.limits import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.access.policy import Admitted
    from iii_directory.engine.channels import Channel, Channels, Direction
    from iii_directory.engine.peer import Peer


class Relay:
    """The two sockets of one channel, and what waits between them."""

    def __init__(self, channel: Channel, ended: Callable[[str], None]) -> None:
        self.channel = channel
        self._ended = ended
        self._waiting: deque[str | bytes] = deque()
        self._waiting_size = 0
        self._reader: Peer | None = None
        self._writer: Peer | None = None
        self._writer_gone = False
        self._over = False

    def reader_opened(self, peer: Peer) -> None:
        self._reader = peer
        self.pump()

    def writer_opened(self, peer: Peer) -> None:
        self._writer = peer

    def received(self, message: str | bytes) -> None:
        if not self._over:
            self._waiting.append(message)
            self._waiting_size += len(message)
            self.pump()

    def reader_lost(self) -> None:
        self._reader = None
        self.end()

    def writer_lost(self) -> None:
        self._writer, self._writer_gone = None, True
        self.pump()

    def pump(self) -> None:
        """Move what can be moved, then hold the writer back or let it go on."""
        reader = self._reader
        while reader is not None and self._waiting and not reader.full:
            message = self._waiting.popleft()
            self._waiting_size -= len(message)
            reader.send(message)
            reader.flush()
        if self._writer is not None:
            if len(self._waiting) >= self.channel.buffer_size or self._waiting_size >= MAX_FRAME_BYTES:
                self._writer.pause()
            else:
                self._writer.resume()
        elif self._writer_gone and not self._waiting and reader is not None:
            self.end()

    def end(self) -> None:
        """Nobody can use the channel any more: let go of it and of its sockets."""
        if self._over:
            return
        self._over = True
        self._waiting.clear()
        self._ended(self.channel.id)
        for peer in (self._reader, self._writer):
            if peer is not None:
                # A socket that is not read would never see the goodbye answered.
                peer.resume()
                peer.close()


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

    def received(self, message: bytes, *, is_text: bool) -> None:
        self._relay.received(_as_sent(message) if is_text else message)

    def lost(self) -> None:
        self._relay.writer_lost()


def _as_sent(message: bytes) -> str | bytes:
    """A text; what is none goes on as bytes, because a reader of texts would end the connection."""
    try:
        return message.decode()
    except UnicodeDecodeError:
        return message


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
        relay = self._relays.get(channel.id)
        if relay is None:
            relay = self._relays[channel.id] = Relay(channel, self._forget)
        return ReaderRole(relay) if direction == "read" else WriterRole(relay)

    def end(self, channel_id: str) -> None:
        """The other side of a channel never came."""
        relay = self._relays.get(channel_id)
        if relay is not None:
            relay.end()

    def _forget(self, channel_id: str) -> None:
        self._relays.pop(channel_id, None)
        self._channels.forget(channel_id)
