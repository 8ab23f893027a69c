"""Clients, workers, owners and subscribers on one engine, over a bad network, from one seed.

    nodes ──frames──▶ network (delays, drops, doubles, cuts) ──▶ router, watched by the auditor

Time and chance come from the seed alone, so that a seed that fails fails again.
"""

from __future__ import annotations

import heapq
import itertools
import json
from random import Random
from typing import TYPE_CHECKING, Any

from tests.engine.auditor import Auditor
from tests.engine.driver import VERSION, uuid_of

from iii_directory.engine.builtins import World, build_engine
from iii_directory.engine.engine_state import Close, Send, StartTimer
from iii_directory.engine.sqlite_store import DatabaseQueue
from iii_directory.engine.store import MemoryStore
from iii_directory.wire.codec import encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.engine_state import Effect

NODES = 5
ACTIONS = 60
NAMESPACES = ("default", "default", "n")
TYPES = ("t::a", "t::b")
SHARED = ("shared::f", "shared::g")
GARBAGE = ("", "x", "{}", "[]", '{"type":7}', '{"type":"invokefunction"}', '{"type":"pong"}', "\x00" * 9)
Message = dict[str, Any]


class Simulation:
    """One run. ``play`` raises AssertionError if the engine broke a rule."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._ids = itertools.count(1)
        self._store = MemoryStore()
        self.drop, self.double, self.cut, self.restart = (
            self.random.choice(rates)
            for rates in ((0.0, 0.0, 0.05), (0.0, 0.0, 0.05), (0.0, 0.02, 0.06), (0.0, 0.0, 0.02))
        )
        self.calls = itertools.count(1)
        self.links: dict[str, Link] = {}
        self._start_engine()
        self.nodes = [Node(self, number) for number in range(NODES)]

    def play(self) -> Auditor:
        for node in self.nodes:
            self.later(self.random.random(), node.connect)
        for number in range(ACTIONS):
            self.later(0.5 + number * 0.15, self._act)
        self._run()
        for connection_id in list(self.links):
            self.lose(connection_id)
        self._nothing_is_left()
        return self.auditor

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now + seconds, next(self._order), action))

    # The engine

    def connect(self, link: Link) -> None:
        connection_id, effects = self.router.connect("127.0.0.1")
        link.connection_id = connection_id
        self.links[connection_id] = link
        self.auditor.connected(connection_id, effects)
        self._carry_out(effects)

    def receive(self, connection_id: str, frame: str) -> None:
        effects = self.router.receive(connection_id, frame.encode())
        self.auditor.received(connection_id, _read(frame), effects)
        self._carry_out(effects)

    def lose(self, connection_id: str) -> None:
        """The engine sees a socket end."""
        link = self.links.pop(connection_id, None)
        if link is not None:
            effects = self.router.disconnect(connection_id)
            self.auditor.disconnected(connection_id, effects)
            self._carry_out(effects)

    def _start_engine(self) -> None:
        world = World(
            new_id=lambda: uuid_of(next(self._ids)),
            now_ms=lambda: int(self.now * 1000),
            state=self._store,
            configuration=MemoryStore(),
            state_queue=DatabaseQueue(None, lambda action: action()),
            environment={},
        )
        self.router = build_engine(world, VERSION)
        self.auditor = Auditor(self.router)

    def _restart_engine(self) -> None:
        links, self.links = self.links, {}
        self._start_engine()
        for link in links.values():
            link.cut_by_engine()

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(connection_id, message):
                    link = self.links.get(connection_id)
                    if link is not None:
                        link.to_node(b"".join(encode(message)).decode())
                case Close(connection_id):
                    link = self.links.get(connection_id)
                    if link is not None:
                        link.cut_by_engine()
                        self.lose(connection_id)
                case StartTimer(key, seconds):
                    self.later(seconds, self._timer_of(self.router, key))
                case _:
                    pass

    def _timer_of(self, router: Any, key: tuple[str, str]) -> Callable[[], None]:
        def run_out() -> None:
            if router is self.router:
                effects = self.router.timer(key)
                self.auditor.timer(key, effects)
                self._carry_out(effects)

        return run_out

    # The run

    def _act(self) -> None:
        if self.random.random() < self.restart:
            self._restart_engine()
        self.random.choice(self.nodes).act()

    def _run(self) -> None:
        while self._queue:
            self.now, _, action = heapq.heappop(self._queue)
            action()

    def _nothing_is_left(self) -> None:
        engine_state, triggers = self.router.engine_state, self.router.triggers
        assert not engine_state.connections
        assert not engine_state.names
        assert not [f for f in engine_state.functions.values() if f.owner is not None]
        assert not [t for t in triggers.types.values() if t.owner is not None]
        assert not [b for b in triggers.bindings.values() if b.subscriber is not None]
        assert self.router.calls.open_calls() == 0


class Link:
    """A connection between a node and the engine: in order, but late, and not all of it."""

    def __init__(self, simulation: Simulation, node: Node) -> None:
        self._simulation = simulation
        self._node = node
        self._up = self._down = 0.0
        self.connection_id = ""
        self.open_for_node = True
        simulation.connect(self)

    def to_engine(self, message: Message | str) -> None:
        frame = message if isinstance(message, str) else json.dumps(message)
        for _ in range(self._copies()):
            self._up = self._arrival(self._up)
            self._at(self._up, lambda: self._simulation.receive(self.connection_id, frame), self._engine_sees)

    def to_node(self, frame: str) -> None:
        for _ in range(self._copies()):
            self._down = self._arrival(self._down)
            self._at(self._down, lambda: self._node.receive(self, json.loads(frame)), self._node_sees)

    def cut(self) -> None:
        """The line breaks: each end notices in its own time."""
        self.open_for_node = False
        random = self._simulation.random
        self._simulation.later(random.random() * 3, lambda: self._simulation.lose(self.connection_id))
        self._simulation.later(random.random() * 3, self._node.lost)

    def cut_by_engine(self) -> None:
        if self.open_for_node:
            self.open_for_node = False
            self._simulation.later(self._simulation.random.random(), self._node.lost)

    def _copies(self) -> int:
        chance = self._simulation.random.random()
        if chance < self._simulation.drop:
            return 0
        return 2 if chance > 1 - self._simulation.double else 1

    def _arrival(self, previous: float) -> float:
        return max(previous, self._simulation.now + self._simulation.random.expovariate(8))

    def _at(self, time: float, action: Callable[[], None], still: Callable[[], bool]) -> None:
        self._simulation.later(time - self._simulation.now, lambda: action() if still() else None)

    def _engine_sees(self) -> bool:
        return self.connection_id in self._simulation.links

    def _node_sees(self) -> bool:
        return self.open_for_node


class Node:
    """A worker that is also a client, an owner and a subscriber, and not always a polite one."""

    def __init__(self, simulation: Simulation, number: int) -> None:
        self._simulation = simulation
        self._random = simulation.random
        self._number = number
        # Two of them go by one name.
        self._name = f"w{number % (NODES - 1)}"
        self._namespace = self._random.choice(NAMESPACES)
        self._functions = [f"{self._name}::{letter}" for letter in "ab"] + [self._random.choice(SHARED)]
        self._types = [kind for kind in TYPES if self._random.random() < 0.4]
        self._bindings: dict[str, str] = {}
        self._previous: tuple[str, str] | None = None
        self._link: Link | None = None

    def connect(self) -> None:
        if self._link is not None:
            return
        self._link = Link(self._simulation, self)
        if self._previous is not None and self._random.random() < 0.8:
            self._reattach(*self._previous)
        replay = [self._function(f) for f in self._functions] + [self._type(t) for t in self._types]
        replay += [self._binding(i, kind) for i, kind in self._bindings.items()]
        if self._random.random() < 0.3:
            replay.insert(0, self._announcement())
        elif self._random.random() < 0.9:
            replay.append(self._announcement())
        for message in replay:
            self._send(message)

    def lost(self) -> None:
        if self._link is not None and not self._link.open_for_node:
            self._link = None
            self._simulation.later(self._random.random() * 2, self.connect)

    def act(self) -> None:
        """Something of its own accord."""
        if self._link is None:
            return
        if self._random.random() < self._simulation.cut:
            self._link.cut()
            return
        self._send(self._random.choice(_DEEDS)(self))

    def receive(self, link: Link, message: Message) -> None:
        match message["type"]:
            case "workerregistered":
                self._previous = (message["worker_id"], message["reattach_token"])
            case "invokefunction":
                for _ in range(self._random.choice((1, 1, 1, 1, 1, 2, 0))):
                    self._simulation.later(self._random.expovariate(3), lambda: self._answer(link, message))
            case "registertrigger":
                if self._random.random() < 0.9:
                    self._simulation.later(self._random.random(), lambda: self._judge(link, message))
            case _:
                pass

    def _answer(self, link: Link, asked: Message) -> None:
        answer = {
            "type": "invocationresult",
            "invocation_id": asked["invocation_id"],
            "function_id": asked["function_id"],
        }
        if self._random.random() < 0.2:
            answer["error"] = {"code": "no", "message": "no"}
        else:
            answer["result"] = self._random.choice((None, True, False, {"x": 1}))
        link.to_engine(answer)

    def _judge(self, link: Link, bound: Message) -> None:
        word = {key: bound[key] for key in ("id", "trigger_type", "function_id")}
        if self._random.random() < 0.25:
            word["error"] = {"code": "no", "message": "no"}
        link.to_engine({"type": "triggerregistrationresult", **word})

    def _send(self, message: Message | str) -> None:
        if self._link is not None:
            self._link.to_engine(message)

    # What it can say

    def _announcement(self) -> Message:
        data = {"name": self._name, "namespace": self._namespace, "pid": self._number}
        return self._invocation("engine::workers::register", data, await_it=self._random.random() < 0.3)

    def _reattach(self, worker_id: str, token: str) -> None:
        if self._random.random() < 0.1:
            token = "stolen"
        self._send({"type": "reattach", "previous_worker_id": worker_id, "reattach_token": token})

    def _function(self, function_id: str) -> Message:
        return {"type": "registerfunction", "id": function_id}

    def _type(self, type_id: str) -> Message:
        return {"type": "registertriggertype", "id": type_id, "description": "d"}

    def _binding(self, binding_id: str, kind: str) -> Message:
        return {
            "type": "registertrigger",
            "id": binding_id,
            "trigger_type": kind,
            "function_id": self._random.choice(self._functions),
            "config": {"v": self._random.randrange(3)} if kind in TYPES else {"topic": "x"},
            "namespace": self._namespace,
        }

    def _invocation(self, function_id: str, data: Any, *, await_it: bool) -> Message:
        message = {"type": "invokefunction", "function_id": function_id, "data": data}
        if await_it:
            message["invocation_id"] = uuid_of(0xC000_0000 + next(self._simulation.calls))
        else:
            message["action"] = {"type": "void"}
        return message

    def _call(self) -> Message:
        target = self._random.choice(self._simulation.nodes)
        function_id = self._random.choice([*target._functions, "no::such"])
        message = self._invocation(function_id, {"x": 1}, await_it=self._random.random() < 0.8)
        if target._namespace != "default" or self._random.random() < 0.1:
            message["namespace"] = target._namespace
        return message

    def _builtin(self) -> Message:
        place = {"scope": "s", "key": self._random.choice("ab")}
        function_id, data = self._random.choice(
            (
                ("state::set", {**place, "value": 1}),
                ("state::delete", place),
                ("state::get", place),
                ("publish", {"topic": "x", "data": 1}),
                ("engine::functions::list", {}),
                ("state::set", {}),
            )
        )
        return self._invocation(function_id, data, await_it=self._random.random() < 0.8)

    def _bind(self) -> Message:
        binding_id = f"b{self._number}-{self._random.randrange(3)}"
        kind = self._random.choice((*TYPES, *TYPES, "subscribe", "state", "engine::workers-available"))
        self._bindings[binding_id] = kind
        return self._binding(binding_id, kind)

    def _unbind(self) -> Message:
        binding_id = f"b{self._random.randrange(NODES)}-{self._random.randrange(3)}"
        self._bindings.pop(binding_id, None)
        return {"type": "unregistertrigger", "id": binding_id}

    def _bind_durably(self) -> Message:
        data = {
            "trigger_type": self._random.choice(TYPES),
            "function_id": self._functions[0],
            "config": {"v": 9},
        }
        return self._invocation("engine::register_trigger", data, await_it=self._random.random() < 0.9)

    def _unbind_durably(self) -> Message:
        known = sorted(self._simulation.router.triggers.bindings)
        data = {"id": self._random.choice(known) if known else "none"}
        return self._invocation("engine::unregister_trigger", data, await_it=True)

    def _change_function(self) -> Message:
        function_id = self._random.choice(self._functions)
        kind = self._random.choice(("registerfunction", "unregisterfunction"))
        return {"type": kind, "id": function_id}

    def _change_type(self) -> Message:
        kind = self._random.choice(TYPES)
        if self._random.random() < 0.7:
            return self._type(kind)
        return {"type": "unregistertriggertype", "id": kind}

    def _forge(self) -> Message:
        """An answer to the call of another worker."""
        number = self._random.randrange(1, 200)
        return {
            "type": "invocationresult",
            "invocation_id": uuid_of(0xC000_0000 + number),
            "function_id": "x",
            "result": "forged",
        }

    def _garbage(self) -> str:
        return self._random.choice(GARBAGE)


_DEEDS: tuple[Callable[[Node], Message | str], ...] = (
    *(Node._call,) * 8,
    *(Node._builtin,) * 3,
    *(Node._bind,) * 3,
    Node._unbind,
    Node._bind_durably,
    Node._unbind_durably,
    *(Node._change_function,) * 2,
    *(Node._change_type,) * 2,
    Node._announcement,
    Node._forge,
    Node._garbage,
)


def _read(frame: str) -> Message | None:
    """The message in a frame that is one."""
    try:
        value = json.loads(frame)
    except ValueError:
        return None
    needed = {"invokefunction": "function_id", "pong": "?"}.get(value.get("type") if value else "", "type")
    return value if isinstance(value, dict) and needed in value and value["type"] != 7 else None
