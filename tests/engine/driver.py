"""The router without a shell: connections are lists of messages, time and ids are counters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from iii_directory.engine.builtins import World, build_engine
from iii_directory.engine.engine_state import Close, Effect, EndChannel, Log, Send, StartTimer
from iii_directory.engine.sqlite_store import DatabaseQueue
from iii_directory.engine.store import MemoryStore, StoreError
from iii_directory.limits import LONG_FRAME_BYTES
from iii_directory.wire.codec import UndecodableError, decode_in_turns, encode

if TYPE_CHECKING:
    from iii_directory.engine.store import Store
    from iii_directory.wire.messages import Message

VERSION = "9.9.9"


def decoded_in_turns(frame: bytes) -> Message | UndecodableError | None:
    """A long frame's message, as a socket has it decoded, in all its turns at once."""
    looking = decode_in_turns(frame)
    while True:
        try:
            next(looking)
        except StopIteration as end:
            return end.value
        except UndecodableError as error:
            return error


def uuid_of(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def message_of(effect: Send) -> dict[str, Any]:
    """A message as its receiver reads it; one that cannot be sent fails here."""
    return json.loads(b"".join(encode(effect.message)))


class Driver:
    """One engine, driven by hand. ``effects`` keeps what the last step caused, as the router gave it."""

    def __init__(
        self,
        *,
        state: Store | None = None,
        configuration: Store | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.ids = 0
        self.calls = 0
        self.now = 1_000
        self.environment = environment if environment is not None else {}
        world = World(
            new_id=self._new_id,
            now_ms=lambda: self.now,
            state=state or MemoryStore(),
            configuration=configuration or MemoryStore(),
            state_queue=DatabaseQueue(None, lambda action: action()),
            environment=self.environment,
        )
        self.router = build_engine(world, VERSION)
        self.clients: dict[str, Client] = {}
        self.effects: list[Effect] = []
        self.timers: list[tuple[tuple[str, str], float]] = []
        self.log: list[str] = []
        self.closed: list[tuple[str, bool]] = []
        self.ended_channels: list[str] = []

    def connect(self, name: str | None = None, *, inside: bool = False, **described: Any) -> Client:
        """A new connection; with a name it also says who it is."""
        connection_id, effects = self.router.connect("127.0.0.1", inside=inside)
        client = Client(self, connection_id)
        self.clients[connection_id] = client
        self.carry_out(effects)
        client.welcome = client.take()[0]
        if name is not None:
            client.announce(name, **described)
        return client

    def run_timer(self, kind: str, subject: str | None = None) -> None:
        """Let the timers of a kind that run now run out; nothing happens without any."""
        due = [key for key, _ in self.timers if key[0] == kind and subject in (None, key[1])]
        self.timers = [timer for timer in self.timers if timer[0] not in due]
        for key in due:
            self.carry_out(self.router.timer(key))

    def carry_out(self, effects: list[Effect]) -> None:
        self.effects = effects
        for effect in effects:
            match effect:
                case Send(connection_id):
                    self.clients[connection_id].inbox.append(message_of(effect))
                case Close(connection_id, abrupt):
                    self.closed.append((connection_id, abrupt))
                case StartTimer(key, seconds):
                    self.timers.append((key, seconds))
                case Log(_, text):
                    self.log.append(text)
                case EndChannel(channel_id):
                    self.ended_channels.append(channel_id)

    def _new_id(self) -> str:
        self.ids += 1
        return uuid_of(self.ids)


class Client:
    """One connection: what it was sent is in ``inbox`` until it is taken."""

    def __init__(self, driver: Driver, connection_id: str) -> None:
        self._driver = driver
        self.id = connection_id
        self.inbox: list[dict[str, Any]] = []
        self.welcome: dict[str, Any] = {}

    def send(self, kind: str, **fields: Any) -> None:
        self.frame(json.dumps({"type": kind, **fields}))

    def frame(self, frame: str | bytes) -> None:
        router = self._driver.router
        data = frame.encode(errors="surrogatepass") if isinstance(frame, str) else frame
        if len(data) <= LONG_FRAME_BYTES:
            self._driver.carry_out(router.receive(self.id, data))
            return
        message = decoded_in_turns(data)
        if message is not None:
            self._driver.carry_out(router.accept(self.id, message))

    def take(self) -> list[dict[str, Any]]:
        taken, self.inbox = self.inbox, []
        return taken

    def take_one(self) -> dict[str, Any]:
        taken = self.take()
        assert len(taken) == 1, taken
        return taken[0]

    def announce(self, name: str | None, **described: Any) -> dict[str, Any]:
        fields = {"pid": 1, "runtime": "test", **described}
        if name is not None:
            fields["name"] = name
        return self.call("engine::workers::register", fields)

    def leave(self) -> None:
        self._driver.carry_out(self._driver.router.disconnect(self.id))

    def start(self, function_id: str, data: Any = None, **fields: Any) -> str:
        """Ask for a call; its id."""
        self._driver.calls += 1
        call_id = uuid_of(0xC000_0000 + self._driver.calls)
        self.send("invokefunction", function_id=function_id, data=data, invocation_id=call_id, **fields)
        return call_id

    def call(self, function_id: str, data: Any = None, **fields: Any) -> dict[str, Any]:
        """Ask for a call that is answered at once; the answer. What else came stays in the inbox."""
        call_id = self.start(function_id, {} if data is None else data, **fields)
        answers = [m for m in self.inbox if m["type"] == "invocationresult" and m["invocation_id"] == call_id]
        assert len(answers) == 1, self.inbox
        self.inbox.remove(answers[0])
        return answers[0]

    def result(self, function_id: str, data: Any = None, **fields: Any) -> Any:
        answer = self.call(function_id, data, **fields)
        assert "error" not in answer, answer
        return answer.get("result")

    def error(self, function_id: str, data: Any = None, **fields: Any) -> dict[str, Any]:
        answer = self.call(function_id, data, **fields)
        assert "result" not in answer, answer
        return answer["error"]

    def register(self, function_id: str, **fields: Any) -> None:
        self.send("registerfunction", id=function_id, **fields)

    def provide(self, type_id: str, **fields: Any) -> None:
        self.send("registertriggertype", id=type_id, **{"description": "a type", **fields})

    def bind(self, binding_id: str, trigger_type: str, function_id: str, **fields: Any) -> None:
        self.send(
            "registertrigger",
            id=binding_id,
            trigger_type=trigger_type,
            function_id=function_id,
            **{"config": {}, **fields},
        )

    def answer(self, asked: dict[str, Any], **outcome: Any) -> None:
        """Answer an ``invokefunction`` that came in, with ``result=`` or ``error=``."""
        self.send(
            "invocationresult",
            invocation_id=asked["invocation_id"],
            function_id=asked["function_id"],
            **outcome,
        )

    def accept(self, bound: dict[str, Any], error: dict[str, Any] | None = None) -> None:
        """Acknowledge a ``registertrigger`` that came in."""
        fields = {key: bound[key] for key in ("id", "trigger_type", "function_id")}
        if error is not None:
            fields["error"] = error
        self.send("triggerregistrationresult", **fields)


class BrokenStore(MemoryStore):
    """A store that refuses what it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: set[str] = set()

    def _check(self, action: str) -> None:
        if action in self.broken:
            raise StoreError(f"cannot {action}")

    def get(self, scope: str, key: str) -> object:
        self._check("get")
        return super().get(scope, key)

    def set(self, scope: str, key: str, value: object) -> None:
        self._check("set")
        super().set(scope, key, value)

    def delete(self, scope: str, key: str) -> None:
        self._check("delete")
        super().delete(scope, key)

    def values(self, scope: str) -> list[object]:
        self._check("values")
        return super().values(scope)

    def scopes(self) -> list[str]:
        self._check("scopes")
        return super().scopes()
