"""The shell around the router: sockets in, sockets out, timers and the log. Nothing is decided here."""

from __future__ import annotations

import asyncio
import errno
import importlib
import logging
import math
import os
import threading
import time
import uuid
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVarTuple

from iii_directory import __version__
from iii_directory.engine.builtins import World, build_engine
from iii_directory.engine.engine_state import Close, EndChannel, Log, Send, StartTimer
from iii_directory.engine.peer import Peer, Role, SocketLimits
from iii_directory.engine.roles import Relays, WorkerRole
from iii_directory.engine.sqlite_store import DatabaseQueue
from iii_directory.engine.store import MemoryStore
from iii_directory.wire.access import Access, is_loopback, refused_token
from iii_directory.wire.message_socket import READ_BYTES, FailureLog, Writers
from iii_directory.wire.ownership import can_tell, user_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from iii_directory.engine.engine_state import Effect
    from iii_directory.engine.sqlite_store import Database
    from iii_directory.wire.access import Admitted, Refused
    from iii_directory.wire.codec import UndecodableError
    from iii_directory.wire.messages import Message

log = logging.getLogger("iii_directory.engine")
BACKLOG = 512
_SAY_AGAIN_SECONDS: Final = 60.0
# How long a transport that is being made, dropped and told of it can take, in turns of the loop.
_TURNS_TO_END: Final = 5
# How long connections that are lost are released in one pass of the loop.
_RELEASE_SECONDS: Final = 0.004
Ts = TypeVarTuple("Ts")


class Guest(NamedTuple):
    """The way to a worker in this process, as `WorkerRole` is the way to one behind a socket."""

    deliver: Callable[[Message, bool], None]
    caller_gone: Callable[[str], None]
    """Drops the calls of a connection that is gone, unless they have begun."""


def _load_schemas() -> None:
    """Import what checks need: it takes longer than anybody should have to wait for a first check.

    A machine that is out of files or memory right now is asked again by the first check.
    """
    with suppress(OSError, ImportError, MemoryError):
        importlib.import_module("iii_directory.engine.schemas")


class EngineServer:
    """An engine listening on a socket. Everything runs on the event loop that started it."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 49134,
        token: str | None = None,
        asks_everybody: bool = True,
        database: Database | None = None,
        environment: Mapping[str, str] | None = None,
        limits: SocketLimits | None = None,
    ) -> None:
        """Without ``asks_everybody`` the user who starts it needs no token, and others do.

        ``environment`` has what configuration values may name: every admitted client can read it.
        """
        if (problem := refused_token(host, token)) is not None:
            raise ValueError(problem)
        self.host = host
        self.port = port
        self._database = database
        self.limits = limits or SocketLimits()
        self.state_queue = DatabaseQueue(database, self._carry_on)
        """Work on the state; a client that causes more slow work than can be done is not read for a while."""
        world = World(
            new_id=lambda: str(uuid.uuid4()),
            now_ms=lambda: int(time.time() * 1000),
            state=database.store("state") if database else MemoryStore(),
            configuration=database.store("configuration") if database else MemoryStore(),
            environment=environment or {},
            set_aside=lambda: database.set_aside.name if database and database.set_aside else None,
            state_queue=self.state_queue,
        )
        self._router = build_engine(world, __version__)
        self._relays = Relays(self._router.channels)
        self._links: dict[str, WorkerRole] = {}
        self._guests: dict[str, Guest] = {}
        self._failures = FailureLog(log)
        self.writers = Writers(self.limits.total_unsent_bytes)
        self.read_into = memoryview(bytearray(READ_BYTES))
        """Where every socket is read into, one after the other."""
        self._peers: set[Peer] = set()
        self._departed: deque[Peer] = deque()
        """Connections that are lost and whose registrations are not released yet."""
        self._said_full = False
        self.unfinished_bytes = 0
        """What the messages of all sockets hold that have come in part."""
        self._access = Access(
            host=host,
            port=port,
            token=token or None,
            owner=os.getuid() if is_loopback(host) and can_tell() else None,
            asks_everybody=asks_everybody,
        )
        self._dirty: dict[WorkerRole, None] = {}
        self._is_reading = False
        self._for_guests: list[Effect] = []
        """Messages for workers inside, until what was read with them is handled."""
        self._unacknowledged: list[Peer] = []
        """Sockets that were read in this pass, whose answers may acknowledge the read."""
        self._flush_is_due = False
        self._timers: set[asyncio.TimerHandle] = set()
        self._server: asyncio.Server | None = None
        self.is_stopping = False
        """Whether clients are no longer served."""

    async def start(self) -> None:
        """Listen. With port 0 the system chooses one, and ``port`` says which."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(FullTable())
        self._server = await loop.create_server(lambda: Peer(self), self.host, self.port, backlog=BACKLOG)
        self.port = self._server.sockets[0].getsockname()[1]
        if self._access.everybody_s is not None:
            log.warning("%s", self._access.everybody_s)
        threading.Thread(target=_load_schemas, name="schemas", daemon=True).start()
        self._access = self._access._replace(port=self.port)

    async def stop(self) -> None:
        """Stop listening and drop every socket without a close frame, so that SDKs reconnect."""
        self.is_stopping = True
        if self._server is not None:
            # asyncio leaks a connection that it has accepted and not made by the time it closes.
            for listening in self._server.sockets:
                asyncio.get_running_loop().remove_reader(listening.fileno())
            for _ in range(_TURNS_TO_END):
                await asyncio.sleep(0)
            self._server.close()
        for timer in self._timers:
            timer.cancel()
        for peer in list(self._peers):
            peer.abort()
        if self._server is not None:
            await self._server.wait_closed()
        # The transports tell their peers in the next turn of the loop. One that was let in just now takes
        # some turns to be made, to be dropped and to end.
        for _ in range(_TURNS_TO_END):
            await asyncio.sleep(0)
        self._release_departed(math.inf)
        await self.state_queue.close()
        if self._database is not None:
            self._database.close()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"ws://{host}:{self.port}"

    # What a peer asks of its engine

    def decide(
        self, path: str, headers: Mapping[str, Sequence[str]], transport: asyncio.Transport
    ) -> Admitted | Refused:
        user = None
        if self._access.looks_at_users:
            user = user_of(*(transport.get_extra_info(end)[:2] for end in ("peername", "sockname")))
        return self._access.decide(path, headers, user)

    def role_for(self, wanted: Admitted) -> Role | Refused:
        if wanted.purpose == "worker":
            return WorkerRole(self)
        # Telemetry is accepted and dropped unread.
        return Role() if wanted.purpose == "otel" else self._relays.role_for(wanted)

    def peer_made(self, peer: Peer) -> bool:
        """Take in a socket; return whether there is room for it."""
        if len(self._peers) >= self.limits.connections:
            if not self._said_full:
                log.warning("there are %d connections, which is all there is room for", len(self._peers))
            self._said_full = True
            return False
        self._peers.add(peer)
        if self.is_stopping:
            peer.abort()
        return True

    def peer_lost(self, peer: Peer) -> None:
        """Let go of a connection: a few milliseconds' worth of them in one pass, when thousands leave."""
        for guest in self._guests.values():
            guest.caller_gone(peer.connection_id)
        self._departed.append(peer)
        if len(self._departed) == 1:
            asyncio.get_running_loop().call_soon(self._release_departed)
        self._peers.discard(peer)
        # Said anew once half of them have left.
        self._said_full = self._said_full and len(self._peers) > self.limits.connections // 2

    def flush_after_read(self, peer: Peer) -> None:
        """Write what a read caused; then deliver to workers inside, which answer in the next pass."""
        self.flush()
        if not self._guests:
            peer.acknowledge()
            return
        # Behind the answers of workers inside, which acknowledge the read along the way.
        self._unacknowledged.append(peer)
        inside, self._for_guests = self._for_guests, []
        self._apply(inside)
        # Every read passes here, so `_flush_soon` is not called.
        if not self._flush_is_due:
            self._flush_is_due = True
            asyncio.get_running_loop().call_soon(self._flush_now)

    def flush(self) -> None:
        """Keep what was written to the state, then write once per socket for everything one read caused."""
        queue = self.state_queue
        while queue.uncommitted or queue.committed:
            for action in queue.commit():
                self._step(None, self._router.carry_on, action)
            if self._guests:
                # A worker inside that was answered goes on in the next pass, and replies in the same.
                self._flush_soon()
        while self._dirty:
            link, _ = self._dirty.popitem()
            link.flush()

    # What links call, on the event loop

    def opened(self, link: WorkerRole, address: str | None) -> str:
        """Take in a new connection from a socket; return its id."""
        connection_id, effects = self._router.connect(address)
        self._links[connection_id] = link
        self._apply(effects)
        return connection_id

    def opened_inside(
        self, deliver: Callable[[Message, bool], None], caller_gone: Callable[[str], None]
    ) -> str:
        """Take in a worker of this process; before the start it is there before all others."""
        connection_id, effects = self._router.connect(inside=True)
        self._guests[connection_id] = Guest(deliver, caller_gone)
        self._apply(effects)
        return connection_id

    def received(self, connection_id: str, frame: bytes) -> None:
        """Handle a frame from a socket, which flushes when it has read everything there is."""
        self._is_reading = True
        self._step(connection_id, self._router.receive, connection_id, frame)
        self._is_reading = False

    def received_message(self, connection_id: str, message: Message | UndecodableError) -> None:
        """Handle a message that was decoded already; answers to sockets are written once a pass."""
        self._step(connection_id, self._router.accept, connection_id, message)
        if self._dirty or self.state_queue.uncommitted or self.state_queue.committed:
            self._flush_soon()

    def lost(self, connection_id: str) -> None:
        self._links.pop(connection_id, None)
        self._guests.pop(connection_id, None)
        self._step(connection_id, self._router.disconnect, connection_id)

    # Inner workings

    def _flush_soon(self) -> None:
        if not self._flush_is_due:
            self._flush_is_due = True
            asyncio.get_running_loop().call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._flush_is_due = False
        self.flush()
        for peer in self._unacknowledged:
            if peer.owes_acknowledgement:
                peer.acknowledge()
        self._unacknowledged.clear()

    def _release_departed(self, seconds: float = _RELEASE_SECONDS) -> None:
        until = time.monotonic() + seconds
        while self._departed:
            self._departed[0].leave()
            self._departed.popleft()
            if time.monotonic() >= until:
                asyncio.get_running_loop().call_soon(self._release_departed)
                break
        self.flush()

    def _carry_on(self, action: Callable[[], None]) -> None:
        self._step(None, self._router.carry_on, action)
        self.flush()

    def _step(self, cause: str | None, step: Callable[[*Ts], list[Effect]], *arguments: *Ts) -> None:
        """Advance the router. A mistake of ours costs the message that met it, and no connection."""
        try:
            effects = step(*arguments)
        except Exception:  # noqa: BLE001 (it is logged with its traceback)
            self._failures.failed("the engine could not handle a message", cause)
            effects, self._router.engine_state.outbox = self._router.engine_state.outbox, []
        self._apply(effects)

    def _apply(self, effects: list[Effect]) -> None:
        for effect in effects:
            try:
                if type(effect) is Send:
                    # Nearly every effect, so it is not handed on.
                    guest = self._guests.get(effect.connection_id)
                    if guest is None:
                        link = self._links[effect.connection_id]
                        link.deliver(effect.message, effect.is_event)
                        self._dirty[link] = None
                    elif self._is_reading or self._for_guests:
                        # Delivered in order, once the read is over.
                        self._for_guests.append(effect)
                    else:
                        guest.deliver(effect.message, effect.is_event)
                else:
                    self._carry_out(effect)
            except Exception:  # noqa: BLE001 (it is logged with its traceback)
                addressee = effect.connection_id if isinstance(effect, Send | Close) else None
                self._failures.failed("the engine could not carry out an effect", addressee)

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Close) and effect.connection_id in self._guests:
            log.error("the engine has closed the connection of a worker in its own process")
        elif isinstance(effect, Close):
            link = self._links[effect.connection_id]
            (link.abort if effect.abrupt else link.close)()
        elif isinstance(effect, StartTimer):

            def fire() -> None:
                self._timers.discard(handle)
                self._step(None, self._router.timer, effect.key)
                self.flush()

            handle = asyncio.get_running_loop().call_later(effect.seconds, fire)
            self._timers.add(handle)
        elif isinstance(effect, EndChannel):
            self._relays.end(effect.channel_id)
        elif isinstance(effect, Log):
            getattr(log, effect.level)("%s", effect.text)


class FullTable:
    """Handles errors of an event loop; that no more files can be opened is logged once a minute."""

    def __init__(self) -> None:
        self._said_at = -math.inf

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif loop.time() - self._said_at > _SAY_AGAIN_SECONDS:
            self._said_at = loop.time()
            log.error("no connection can be taken: this process has as many files open as it may have")
