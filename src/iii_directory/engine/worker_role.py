"""What a socket of a worker is used for: messages in, messages out.

A long frame is looked at a little at a time, in turns of the loop that others share, and nothing more is
taken in from its socket meanwhile: what came first is done first (goal ``beside.values``).
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import TYPE_CHECKING, Final

from iii_directory.engine.engine_state import EngineFault
from iii_directory.engine.peer import Role
from iii_directory.limits import LONG_FRAME_BYTES
from iii_directory.wire.codec import decode_in_turns, encode
from iii_directory.wire.json_text import ABSENT
from iii_directory.wire.messages import InvocationResult
from iii_directory.wire.protocol import SERIALIZATION_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from iii_directory.engine.peer import Peer
    from iii_directory.engine.server import EngineServer
    from iii_directory.wire.messages import Message

log = logging.getLogger("iii_directory.engine")
# How long a long frame is looked at in one turn of the loop.
_TURN_SECONDS: Final = 0.0005


class WorkerRole(Role):
    """A socket on ``/``: a worker or a client, which is the same. Also its :class:`Link`."""

    def __init__(self, server: EngineServer) -> None:
        self._server = server
        self._peer: Peer
        self._decoding: Generator[None, None, Message | None] | None = None
        """A long frame that is looked at a little at a time; until that is done, nothing else is taken in."""
        self._is_gone = False

    def opened(self, peer: Peer) -> None:
        self._peer = peer
        self.connection_id = self._server.opened(self, peer.address)

    def deliver(self, message: Message, *, is_event: bool) -> None:
        try:
            self._peer.send_utf8(*encode(message), is_event=is_event)
        except (TypeError, ValueError):
            if not isinstance(message, InvocationResult):
                raise
            # Only a worker in this process can answer what is not JSON. Its caller must not wait for ever.
            log.exception("an answer of %s could not be encoded", message.function_id)
            message.result = ABSENT
            message.error = EngineFault(SERIALIZATION_ERROR, "The answer is not JSON.").body()
            self._peer.send_utf8(*encode(message))

    def flush(self) -> None:
        self._peer.flush()

    def close(self) -> None:
        self._peer.close()

    def abort(self) -> None:
        self._peer.abort()

    def received(self, message: bytes, *, is_text: bool) -> None:  # noqa: ARG002 (JSON in either is JSON)
        if len(message) <= LONG_FRAME_BYTES:
            errands = self._server.errands.made
            self._server.received(self.connection_id, message)
            if self._server.errands.made != errands and self._server.errands.is_behind:
                self._peer.hold()
                self._server.errands.when_caught_up(self._peer.release)
            return
        self._peer.hold()
        self._decoding = decode_in_turns(message)
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
            self._server.errands.when_caught_up(self._peer.release)

    def _decode(self, seconds: float) -> bool:
        """Go on with a long frame for some time; whether it is done, and the engine has it."""
        decoding, until = self._decoding, time.monotonic() + seconds
        while decoding is not None and time.monotonic() < until:
            try:
                next(decoding)
            except StopIteration as end:
                return self._decoded(lambda message=end.value: message)
            except Exception as error:  # noqa: BLE001 (the engine says what is wrong, or logs it)
                return self._decoded(_raising(error))
        return False

    def _decoded(self, outcome: Callable[[], Message | None]) -> bool:
        self._decoding = None
        self._server.received_decoded(self.connection_id, outcome)
        return True


def _raising(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail
