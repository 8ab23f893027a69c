"""Recorded traffic with the real engine, played again to ours.

A line of a recording opens or closes a connection, goes to the engine, or came from it. Lines to the engine
are sent again; for each line from the engine the same message must come from ours on the same connection.
Ids that an engine makes up are not the same twice: each is tied to ours where it first shows.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tests.engine.driver import Driver
from tests.support.engine import EngineThread, RawClient

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDINGS = Path(__file__).parent / "recordings"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# When something happened, which no replay can repeat.
_TIMES = ("connected_at_ms",)

Message = dict[str, Any]
Meant = tuple[Any, Any]


class Connection(Protocol):
    """One connection to the engine that is tested."""

    def send(self, message: Message) -> None:
        """Send, and return when the engine has handled it."""
        ...

    def received(self) -> list[Message]:
        """What has come since the last time."""
        ...

    def close(self) -> None: ...


class RouterStage:
    """The router alone."""

    def __init__(self) -> None:
        self._driver = Driver()

    def open(self) -> Connection:
        return _RouterConnection(self._driver)

    def close(self) -> None:
        pass


class _RouterConnection:
    def __init__(self, driver: Driver) -> None:
        self._client = driver.connect()
        self._client.inbox.append(self._client.welcome)

    def send(self, message: Message) -> None:
        self._client.frame(json.dumps(message))

    def received(self) -> list[Message]:
        return self._client.take()

    def close(self) -> None:
        self._client.leave()


class SocketStage:
    """The engine behind a real socket."""

    def __init__(self) -> None:
        self._engine = EngineThread().__enter__()

    def open(self) -> Connection:
        return _SocketConnection(self._engine.url)

    def close(self) -> None:
        self._engine.__exit__(None, None, None)


class _SocketConnection:
    def __init__(self, url: str) -> None:
        self._url = url
        self._client = RawClient(url)
        self._inbox: list[Message] = [self._client.welcome]

    def send(self, message: Message) -> None:
        self._client.send(**message)
        self._wait()

    def received(self) -> list[Message]:
        self._wait()
        taken, self._inbox = self._inbox, []
        return taken

    def close(self) -> None:
        with RawClient(self._url, name="observer") as observer:
            observer.send(
                type="registertrigger",
                id="observer",
                trigger_type="engine::workers-available",
                function_id="observer::gone",
                config={},
            )
            observer.send(type="registerfunction", id="observer::gone")
            assert observer.result("engine::functions::info", {"function_id": "observer::gone"})
            self._client.__exit__(None, None, None)
            while observer.receive_type("invokefunction")["data"] != {
                "event": "worker_disconnected",
                "worker_id": self._client.worker_id,
            }:
                pass

    def _wait(self) -> None:
        """A pong comes after everything the engine sent before."""
        self._client.send(type="ping")
        while (message := self._client.receive()) != {"type": "pong"}:
            self._inbox.append(message)


class Replay:
    """One recording played to one engine. ``meant`` reduces a pair of messages to what must be equal."""

    def __init__(
        self,
        name: str,
        stage: RouterStage | SocketStage,
        meant: Callable[[Message, Message], Meant] | None = None,
    ) -> None:
        text = (RECORDINGS / name).read_text(encoding="utf-8")
        self.lines: list[Message] = [json.loads(line) for line in text.splitlines()]
        self._stage = stage
        self._meant = meant or (lambda line, ours: (line["msg"], ours))
        self._ours: dict[str, str] = {}
        self._inboxes: dict[int, list[Message]] = {}
        self.connections: dict[int, Connection] = {}
        self.after: Callable[[int, Message], None] = lambda _index, _line: None
        """Called after each line that went to the engine: others may act here."""

    def play(self) -> None:
        for index, line in enumerate(self.lines):
            number = line["conn"]
            if line.get("event") == "open":
                self.connections[number] = self._stage.open()
                self._inboxes[number] = []
            elif line.get("event") == "close":
                if number in self.connections:
                    assert self.pending(number) == [], f"line {index + 1}: more came than was recorded"
                    self.connections.pop(number).close()
            elif line["dir"] == "worker->engine":
                self.connections[number].send(self.to_ours(line["msg"]))
                self.after(index, line)
            else:
                self._compare(index, line)

    def pending(self, number: int) -> list[Message]:
        """What came on a connection and has not been compared yet."""
        self._inboxes[number] += self.connections[number].received()
        return self._inboxes[number]

    def take(self, number: int) -> Message:
        return self.pending(number).pop(0)

    def to_ours(self, value: Any) -> Any:
        """A recorded value with the ids the real engine made up replaced by ours."""
        if isinstance(value, dict):
            return {key: self.to_ours(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.to_ours(item) for item in value]
        return self._ours.get(value, value) if isinstance(value, str) else value

    def _compare(self, index: int, line: Message) -> None:
        pending = self.pending(line["conn"])
        assert pending, f"line {index + 1}: nothing came instead of {line['msg']}"
        recorded, ours = self._meant(line, pending.pop(0))
        assert self._same(recorded, ours), f"line {index + 1}: {ours} came instead of {recorded}"

    def _same(self, recorded: Any, ours: Any) -> bool:
        if isinstance(recorded, dict) and isinstance(ours, dict):
            return recorded.keys() == ours.keys() and all(
                key in _TIMES or self._same(recorded[key], ours[key]) for key in recorded
            )
        if isinstance(recorded, list) and isinstance(ours, list):
            return len(recorded) == len(ours) and all(map(self._same, recorded, ours))
        if isinstance(recorded, str) and isinstance(ours, str) and _UUID.fullmatch(recorded):
            return self._ours.setdefault(recorded, ours) == ours
        return type(recorded) is type(ours) and recorded == ours
