"""Where one check happens: an engine, clients of one SDK, and a bare client that looks on from outside."""

from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, TypeVar

from tests.support.engine import WAIT, RawClient

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from tests.sdk.process import DriverProcess

T = TypeVar("T")
LOOK_AGAIN_SECONDS = 0.02


def until(look: Callable[[], T | None], what: str) -> T:
    """What a look finds, as soon as it finds something; for what no event announces."""
    deadline, pause = time.monotonic() + WAIT, threading.Event()
    while (found := look()) is None:
        if time.monotonic() > deadline:
            raise AssertionError(f"it never came about that {what}")
        pause.wait(LOOK_AGAIN_SECONDS)
    return found


def unique(word: str) -> str:
    """A name that no other check uses, on an engine that outlives them all."""
    return f"{word}-{uuid.uuid4().hex[:12]}"


class Stage:
    """Clients of one SDK on one engine; closes them in the end."""

    def __init__(self, driver: DriverProcess, url: str) -> None:
        self.driver = driver
        self.sdk = driver.sdk
        self.url = url
        self.onlooker = RawClient(url)
        self._clients: list[str] = []

    def connect(self, name: str, **options: Any) -> SdkClient:
        """A client that may not be known to the engine yet."""
        self.driver.ask("connect", name, url=self.url, name=name, **options)
        self._clients.append(name)
        return SdkClient(self, name, options.get("namespace", "default"))

    def client(self, word: str = "worker", **options: Any) -> SdkClient:
        """A client that the engine knows by its name."""
        client = self.connect(unique(word), **options)
        client.until_known()
        return client

    def answer(self, function: str, payload: dict[str, Any], **fields: Any) -> Any | None:
        """What a call from outside brings, or None for an error."""
        reply = self.onlooker.call(function, payload, **fields)
        return None if "error" in reply else reply.get("result")

    def look_anew(self) -> None:
        """A new onlooker, on an engine that was restarted."""
        self.onlooker.__exit__(None, None, None)
        self.onlooker = RawClient(self.url)

    def forget(self, name: str) -> None:
        self._clients.remove(name)

    def close(self) -> None:
        try:
            for name in self._clients:
                self.driver.ask("close", name)
        finally:
            self.onlooker.__exit__(None, None, None)
            self.driver.forget_events()


class SdkClient:
    """One connection that the SDK holds."""

    def __init__(self, stage: Stage, name: str, namespace: str) -> None:
        self.name = name
        self.namespace = namespace
        self._stage = stage
        self._driver = stage.driver

    def do(self, command: str, **arguments: Any) -> Any:
        return self._driver.ask(command, self.name, **arguments)

    def event(self, event: str, **fields: Any) -> dict[str, Any]:
        return self._driver.event(event, client=self.name, **fields)

    def until_known(self) -> dict[str, Any]:
        known = {"name": self.name, "namespace": self.namespace}
        return until(
            lambda: self._stage.answer("engine::workers::info", known), f"the engine knows worker {self.name}"
        )

    def register(self, word: str, behaviour: str, **options: Any) -> str:
        """Register a function under an id of its own and wait until it can be called."""
        function = f"{unique('sdk')}::{word}"
        self.do("register", function=function, behaviour=behaviour, **options)
        self.until_registered(function)
        return function

    def until_registered(self, function: str) -> dict[str, Any]:
        asked = {"function_id": function, "namespace": self.namespace}
        return until(
            lambda: self._stage.answer("engine::functions::info", asked), f"function {function} is registered"
        )

    def bind(self, type: str, function: str, **fields: Any) -> str:  # noqa: A002
        """Bind a function to a trigger type; whether it went through is for the caller to see."""
        trigger = unique("trigger")
        self.do("bind", trigger=trigger, type=type, function_id=function, **fields)
        return trigger

    def until_bound(self, function: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            answer = self._stage.answer("engine::registered-triggers::list", {"function_id": function})
            return next(iter(answer["registered_triggers"]), None) if answer else None

        return until(look, f"function {function} is bound")

    def own(self, word: str, **options: Any) -> str:
        """Own a trigger type and wait until others can see it."""
        trigger_type = f"{unique('sdk')}::{word}"
        self.own_type(trigger_type, **options)
        return trigger_type

    def own_type(self, trigger_type: str, **options: Any) -> None:
        self.do("own", type=trigger_type, description=f"{self.name} owns it", **options)
        asked = {"id": trigger_type, "namespace": self.namespace}
        until(lambda: self._stage.answer("engine::triggers::info", asked), f"type {trigger_type} is known")

    def call(self, function: str, payload: Any = None, **request: Any) -> Any:
        return self.do("call", function=function, payload={} if payload is None else payload, **request)

    def start_call(self, function: str, payload: Any, **request: Any) -> Future[Any]:
        return self._driver.start("call", self.name, function=function, payload=payload, **request)

    def close(self) -> None:
        self._stage.forget(self.name)
        self.do("close")

    def settle(self) -> None:
        """Wait until the engine has read all that this client sent: a connection is read in order."""
        self.call("engine::functions::list", {"prefix": "nothing-has-this-prefix"})
