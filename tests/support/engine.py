"""The embedded engine in a thread of its own, and a bare client that speaks the wire protocol."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import uuid
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from iii import InvocationError
from tests.support.dialects import speak
from websockets.sync.client import ClientConnection, connect

from iii_directory.bus.client import call_function
from iii_directory.config import Scopes
from iii_directory.engine.server import EngineServer
from iii_directory.wire.json_text import ABSENT
from iii_directory.worker.directory_worker import bus_inside

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from tests.support.dialects import Dialect

    from iii_directory.bus.seam import WorkerBus
    from iii_directory.engine.calls import BuiltinRequest
    from iii_directory.engine.peer import Peer, SocketLimits
    from iii_directory.engine.roles import WorkerRole
    from iii_directory.engine.sqlite_store import Database
    from iii_directory.wire.messages import Message

T = TypeVar("T")
REAL_ENGINE: Final = os.environ.get("III_ENGINE_WS_URL")
"""The address of a real iii engine, on which tests that can are run too."""
WAIT = 30.0
"""Seconds after which a wait in a test counts as failed: long, because machines are busy."""
TIMEOUT_MS: Final = 10_000
"""How long a call may take; on a real engine it is the first of several tries."""
real_urls: Final[set[str]] = {REAL_ENGINE} if REAL_ENGINE else set()
"""The addresses of real engines, those too that a test starts."""
_MOST_PATIENCE: Final = 4


def answer_of(url: str, ask: Callable[[int], T], timeout_ms: int = TIMEOUT_MS) -> T:
    """What a call is answered with, within the time it is given; on a real engine it is asked again.

    Such an engine notes a call after it has passed it on, and drops an answer that comes in between: on a
    busy machine one in a thousand.
    """
    times = 1
    while True:
        try:
            return ask(timeout_ms * times)
        except InvocationError as error:
            if error.code != "TIMEOUT" or url not in real_urls or times >= _MOST_PATIENCE:
                raise
            times *= 2


def own_scopes(url: str) -> dict[str, Scopes]:
    """Settings that keep a test's registrations apart on a real engine, which others use too."""
    if url != REAL_ENGINE:
        return {}
    tag = uuid.uuid4().hex
    return {"scopes": Scopes(f"test-skills-{tag}", f"test-prompts-{tag}")}


def clear(url: str, settings: dict[str, Scopes]) -> None:
    """Leave nothing behind in such scopes."""
    for scope in settings.get("scopes", ()):
        for value in call_function(url, "state::list", {"scope": scope}):
            key = value.get("id") or value.get("name")
            call_function(url, "state::delete", {"scope": scope, "key": key})


class NagleEngine(EngineServer):
    """An engine whose sockets hold a small frame back until the one before it is acknowledged.

    The real engine's do, because it leaves TCP_NODELAY unset and writes every message by itself. A client
    that neither answers nor acknowledges at once makes it wait for the delayed ACK, 40 ms. It also answers
    who publishes before it calls the subscribers, as the real one does.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        builtins = self._router.calls.builtins
        publish = builtins["publish"]

        def publish_later(request: BuiltinRequest) -> object:
            def call_subscribers() -> None:
                publish(request)

            asyncio.get_running_loop().call_soon(self._carry_on, call_subscribers)
            return ABSENT

        builtins["publish"] = publish_later

    def opened(self, link: WorkerRole, address: str | None) -> str:
        connection_id, deliver = super().opened(link, address), link.deliver

        def deliver_alone(message: Message, is_event: bool) -> None:
            deliver(message, is_event)
            link.flush()

        link.deliver = deliver_alone
        return connection_id

    def peer_made(self, peer: Peer) -> bool:
        peer._transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        return super().peer_made(peer)


class EngineThread:
    """An engine on a free port of loopback; a context manager."""

    def __init__(
        self,
        *,
        port: int = 0,
        token: str | None = None,
        asks_everybody: bool = True,
        database: Database | None = None,
        limits: SocketLimits | None = None,
        dialect: Dialect = "0.22",
        nagle: bool = False,
    ) -> None:
        """Run with ``nagle`` as the real engine does, whose sockets hold small frames back until an ACK."""
        self._nagle = nagle
        self._dialect: Dialect = dialect
        self._wanted_port = port
        self._token = token
        self._asks_everybody = asks_everybody
        self._database = database
        self._limits = limits
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._failure: BaseException | None = None
        self.server: EngineServer
        self.loop: asyncio.AbstractEventLoop

    @property
    def url(self) -> str:
        return self.server.url

    def bus_inside(self, namespace: str | None = None) -> WorkerBus:
        """The directory's place in this engine, without a socket."""

        return self.on_loop(lambda: bus_inside(self.server, namespace=namespace))

    def on_loop(self, make: Callable[[], T]) -> T:
        """What is made on the engine's event loop."""

        async def made() -> T:
            return make()

        return asyncio.run_coroutine_threadsafe(made(), self.loop).result(WAIT)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(WAIT)
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(), self.loop).result(WAIT)
        self.loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(WAIT)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        try:
            self.server = (NagleEngine if self._nagle else EngineServer)(
                port=self._wanted_port,
                token=self._token,
                asks_everybody=self._asks_everybody,
                database=self._database,
                limits=self._limits,
            )
            speak(self.server._router, self._dialect)
            await self.server.start()
        except BaseException as error:  # noqa: BLE001 (the thread that waits for the start raises it)
            self._failure = error
            return
        finally:
            self._started.set()
        await self._stopped.wait()


class RawClient:
    """One WebSocket that sends and receives protocol messages as they are; a context manager."""

    def __init__(
        self,
        url: str,
        *,
        name: str | None = None,
        namespace: str | None = None,
        connecting: dict[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        options: dict[str, Any] = {
            "compression": None,
            "max_size": None,
            "open_timeout": WAIT,
            **(connecting or {}),
        }
        self.url = url
        self.socket: ClientConnection = connect(url, **options).__enter__()
        self.welcome = self.receive()
        self.worker_id: str = self.welcome["worker_id"]
        if name is not None:
            self.announce(name, namespace=namespace, **fields)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.__exit__(None, None, None)

    def send(self, **message: Any) -> None:
        self.socket.send(json.dumps(message))

    def receive(self, timeout: float = WAIT) -> dict[str, Any]:
        return json.loads(self.socket.recv(timeout))

    def receive_type(self, kind: str) -> dict[str, Any]:
        """The next message of a type; others before it are dropped."""
        while True:
            message = self.receive()
            if message["type"] == kind:
                return message

    def announce(self, name: str, **fields: Any) -> None:
        """Say who this is and wait until the engine took it in."""
        self.call("engine::workers::register", {"name": name, "pid": 1, "runtime": "test", **fields})

    def start_call(self, function_id: str, data: Any = None, **fields: Any) -> str:
        call_id = str(uuid.uuid4())
        self.send(type="invokefunction", function_id=function_id, data=data, invocation_id=call_id, **fields)
        return call_id

    def call(self, function_id: str, data: Any = None, **fields: Any) -> dict[str, Any]:
        """Call and wait for the ``invocationresult``; other messages meanwhile are dropped.

        On a real engine it is asked again, as :func:`answer_of` does.
        """
        times = 1
        while True:
            call_id = self.start_call(function_id, data if data is not None else {}, **fields)
            try:
                return self._result_of(call_id)
            except TimeoutError:
                if self.url not in real_urls or times >= _MOST_PATIENCE:
                    raise
                times *= 2

    def _result_of(self, call_id: str) -> dict[str, Any]:
        while True:
            message = self.receive()
            if message["type"] == "invocationresult" and message["invocation_id"] == call_id:
                return message

    def result(self, function_id: str, data: Any = None, **fields: Any) -> Any:
        reply = self.call(function_id, data, **fields)
        assert "error" not in reply, reply
        return reply.get("result")
