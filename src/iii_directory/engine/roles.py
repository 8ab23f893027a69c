"""What an accepted socket is used for: a worker's messages, or one side of a streaming channel.

A long frame is decoded a little at a time, in turns of the loop that others share, and its socket is not read
meanwhile: messages are handled in the order in which they came (goal ``beside.values``).

A channel passes messages from the writer's socket to the reader's, unchanged and in order. While the reader
is slow or missing, the writer is held back once the channel's buffer is full.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from typing import TYPE_CHECKING, Final, cast

from iii_directory.engine.engine_state import EngineFault
from iii_directory.engine.peer import Role
from iii_directory.limits import LONG_FRAME_BYTES, MAX_FRAME_BYTES
from iii_directory.text import is_utf8
from iii_directory.wire.access import Refused
from iii_directory.wire.codec import UndecodableError, decode_in_turns, encode
from iii_directory.wire.json_text import ABSENT
from iii_directory.wire.messages import InvocationResult
from iii_directory.wire.protocol import SERIALIZATION_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from iii_directory.engine.peer import Peer
    from iii_directory.engine.router import Channel, Channels, Direction
    from iii_directory.engine.server import EngineServer
    from iii_directory.wire.access import Admitted
    from iii_directory.wire.framing import Framing
    from iii_directory.wire.messages import Message


log = logging.getLogger("iii_directory.engine")
# How long a long frame is looked at in one turn of the loop.
_TURN_SECONDS: Final = 0.0005


class WorkerRole(Role):
    """A socket on ``/``: a worker or a client, which is the same. Also its :class:`Link`."""

    def __init__(self, server: EngineServer) -> None:
        self._server = server
        self._state_queue = server.state_queue
        self._peer: Peer
        self._framing: Framing
        self._decoding: Generator[None, None, Message | None] | None = None
        """A long frame that is looked at a little at a time; until that is done, nothing else is taken in."""
        self._is_gone = False

    def opened(self, peer: Peer) -> None:
        self._peer = peer
        self._framing = peer.framing
        self.connection_id = self._server.opened(self, peer.address)
        # What a router and a client say to each other needs no further call on its way.
        self._framing.on_message = self.received
        self.flush, self.close, self.abort = peer.flush, peer.close, peer.abort

    def deliver(self, message: Message, is_event: bool) -> None:  # noqa: FBT001 (for every message)
        try:
            parts = encode(message)
        except (TypeError, ValueError):
            if not isinstance(message, InvocationResult):
                raise
            # Only a worker in this process can answer what is not JSON. Its caller must not wait for ever.
            log.exception("an answer of %s could not be encoded", message.function_id)
            message.result = ABSENT
            message.error = EngineFault(SERIALIZATION_ERROR, "The answer is not JSON.").body()
            parts = encode(message)
        self._framing.send(*parts)
        if is_event:
            self._peer.event_bytes += sum(map(len, parts))

    def received(self, data: bytes, *, is_text: bool) -> None:  # noqa: ARG002 (JSON in either is JSON)
        if len(data) <= LONG_FRAME_BYTES:
            slow_work = self._state_queue.made
            self._server.received(self.connection_id, data)
            if self._state_queue.made != slow_work and self._state_queue.is_behind:
                self._peer.hold()
                self._state_queue.when_caught_up(self._peer.release)
            return
        self._peer.hold()
        self._decoding = decode_in_turns(data)
        asyncio.get_running_loop().call_soon(self._go_on)

    def lost(self) -> None:
        # A long frame came before the connection went: it is done first, in turns while others are served.
        self._is_gone = True
        if self._decoding is None or (self._server.is_stopping and self._decode(math.inf)):
            self._server.lost(self.connection_id)

    def _go_on(self) -> None:
        if self._decoding is None:
            return
        if not self._decode(_TURN_SECONDS):
            asyncio.get_running_loop().call_soon(self._go_on)
        elif self._is_gone:
            self._server.lost(self.connection_id)
            self._server.flush()
        else:
            self._state_queue.when_caught_up(self._peer.release)

    def _decode(self, seconds: float) -> bool:
        """Go on with a long frame for some time; return whether it is done, and the engine has it."""
        decoding, until = self._decoding, time.monotonic() + seconds
        while decoding is not None and time.monotonic() < until:
            try:
                next(decoding)
            except StopIteration as end:
                outcome = end.value
            except UndecodableError as error:
                outcome = error
            else:
                continue
            self._decoding = None
            if outcome is not None:
                self._server.received_message(self.connection_id, outcome)
            return True
        return False


class Relay:
    """The two sockets of one channel, and what waits between them."""

    def __init__(self, channel: Channel, ended: Callable[[str], None]) -> None:
        self.channel = channel
        self._ended = ended
        self.waiting: deque[tuple[bytes, bool]] = deque()
        """Messages, and whether they are texts."""
        self.waiting_size = 0
        self.reader: Peer | None = None
        self.writer: Peer | None = None
        self.writer_gone = False
        self.over = False

    def pump(self) -> None:
        """Move what can be moved, then hold the writer back or let it go on."""
        reader = self.reader
        while reader is not None and self.waiting and not reader.full:
            data, is_text = self.waiting.popleft()
            self.waiting_size -= len(data)
            reader.framing.send(data, is_text=is_text)
            reader.flush()
        if self.writer is not None:
            # A reader that is slow or missing must not make the engine keep more than a bounded amount.
            if len(self.waiting) >= self.channel.buffer_size or self.waiting_size >= MAX_FRAME_BYTES:
                self.writer.pause()
            else:
                self.writer.resume()
        elif self.writer_gone and not self.waiting and reader is not None:
            self.end()

    def end(self) -> None:
        """Let go of a channel that cannot be used any more, and of its sockets."""
        if self.over:
            return
        self.over = True
        self.waiting.clear()
        self._ended(self.channel.id)
        for peer in (self.reader, self.writer):
            if peer is not None:
                # A socket that is not read would never see the goodbye answered.
                peer.resume()
                peer.close()


class ChannelRole(Role):
    """One side of a channel. A second taker of a side has no relay and gets an immediate close."""

    def __init__(self, relay: Relay | None, direction: Direction) -> None:
        self._relay = relay
        self._reads = direction == "read"

    def opened(self, peer: Peer) -> None:
        relay = self._relay
        if relay is None:
            peer.close()
        elif self._reads:
            relay.reader = peer
            relay.pump()
        else:
            relay.writer = peer

    def received(self, data: bytes, *, is_text: bool) -> None:
        relay = self._relay
        if relay is None or self._reads or relay.over:
            return  # what a reader sends is dropped
        # A text that is not UTF-8 goes on as bytes: a reader of texts would end the connection.
        relay.waiting.append((data, is_text and is_utf8(data)))
        relay.waiting_size += len(data)
        relay.pump()

    def lost(self) -> None:
        relay = self._relay
        if relay is not None and self._reads:
            relay.reader = None
            relay.end()
        elif relay is not None:
            relay.writer, relay.writer_gone = None, True
            relay.pump()

    def writable(self) -> None:
        if self._relay is not None and self._reads:
            self._relay.pump()


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
            return ChannelRole(None, direction)
        channel.taken.add(direction)
        relay = self._relays.get(channel.id)
        if relay is None:
            relay = self._relays[channel.id] = Relay(channel, self._forget)
        return ChannelRole(relay, direction)

    def end(self, channel_id: str) -> None:
        """End a channel whose other side never came."""
        relay = self._relays.get(channel_id)
        if relay is not None:
            relay.end()

    def _forget(self, channel_id: str) -> None:
        self._relays.pop(channel_id, None)
        self._channels.forget(channel_id)
