"""A second, simpler account of what an engine must do, kept beside the router and compared after every step.

It knows the rules of the protocol and nothing of the router's inside: what connections registered, who holds
which name, function and type, which calls are open, and what each owner of a type was told.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.engine.driver import message_of

from iii_directory.engine.engine_state import Close, Send

if TYPE_CHECKING:
    from iii_directory.engine.engine_state import Effect
    from iii_directory.engine.router import Router

DEFAULT = "default"
Message = dict[str, Any]
Key = tuple[str, str]


@dataclass
class Bound:
    """A binding. ``waiting`` is the call that waits for the owner's word."""

    trigger_type: str
    config: Any
    subscriber: str | None
    home: str
    refused: bool = False
    waiting: tuple[str, str] | None = None


@dataclass
class Known:
    """A connection."""

    token: str
    namespace: str | None = None
    queued: list[Message] = field(default_factory=list[Message])
    names: set[str] = field(default_factory=set[str])


class Auditor:
    """Follows one engine from its start. Raises AssertionError at the first step that breaks a rule."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._builtin = frozenset(router.calls.builtins)
        self._builtin_types = {key for key, held in router.triggers.types.items() if held.owner is None}
        self.live: dict[str, Known] = {}
        self.names: dict[Key, str] = {}
        self.functions: dict[Key, str] = {}
        self.types: dict[Key, str] = {}
        self.bindings: dict[str, Bound] = {}
        self.views: dict[tuple[str, Key], dict[str, Any]] = {}
        self.open: dict[tuple[str, str], tuple[str, str] | None] = {}
        self.outcomes: Counter[str] = Counter()
        self._owed: Counter[tuple[str, str]] = Counter()
        self._forwarded: tuple[str, str, tuple[str, str] | None] | None = None

    # Steps, as the engine takes them

    def connected(self, connection_id: str, effects: list[Effect]) -> None:
        first = effects[0]
        assert isinstance(first, Send)
        self.live[connection_id] = Known(message_of(first)["reattach_token"])
        self._account(effects)

    def received(self, connection_id: str, message: Message | None, effects: list[Effect]) -> None:
        """``message`` is None for a frame that is not a message."""
        known = self.live.get(connection_id)
        if known is None:
            assert effects == [], "a connection that is gone had an effect"
            return
        if message is not None:
            self._handle(connection_id, known, message)
        self._account(effects)

    def disconnected(self, connection_id: str, effects: list[Effect]) -> None:
        self._gone(connection_id)
        self._account(effects)

    def timer(self, key: Key, effects: list[Effect]) -> None:
        kind, subject = key
        if kind == "namespace-grace" and subject in self.live:
            self._settle(subject, self.live[subject], DEFAULT)
        if kind == "trigger-ack" and subject in self.bindings:
            self._heard(self.bindings[subject])
        self._account(effects)

    # The rules

    def _handle(self, connection_id: str, known: Known, message: Message) -> None:
        match message["type"]:
            case "invokefunction":
                self._invoke(connection_id, known, message)
            case "invocationresult":
                self._answered(connection_id, message["invocation_id"])
            case "triggerregistrationresult":
                self._acknowledged(connection_id, message)
            case "reattach":
                previous = self.live.get(message["previous_worker_id"])
                if previous not in (None, known) and previous.token == message["reattach_token"]:
                    self._gone(message["previous_worker_id"])
            case _ if known.namespace is None:
                known.queued.append(message)
            case _:
                self._register(connection_id, known.namespace, message)

    def _invoke(self, caller: str, known: Known, message: Message) -> None:
        function_id, call_id = message["function_id"], message.get("invocation_id")
        awaited = (caller, call_id) if call_id is not None and "action" not in message else None
        namespace = message.get("namespace", DEFAULT)
        owner = self.functions.get((namespace, function_id))
        if owner is not None:
            self._forwarded = (owner, function_id, awaited)
            return
        answered_now = True
        if function_id == "engine::workers::register":
            self._announced(caller, known, message["data"])
            answered_now = caller in self.live
        elif function_id == "engine::register_trigger":
            answered_now = not self._bound_durably(message["data"], awaited)
        elif function_id == "engine::unregister_trigger":
            self._unbind(message["data"]["id"])
        if awaited is not None and answered_now:
            self._owed[awaited] += 1

    def _announced(self, connection_id: str, known: Known, data: Message) -> None:
        namespace = known.namespace or data.get("namespace") or DEFAULT
        name = data.get("name")
        if name is not None:
            if self.names.setdefault((namespace, name), connection_id) != connection_id:
                self._gone(connection_id)
                return
            known.names.add(name)
        self._settle(connection_id, known, namespace)

    def _settle(self, connection_id: str, known: Known, namespace: str) -> None:
        if known.namespace is None:
            known.namespace = namespace
            queued, known.queued = known.queued, []
            for message in queued:
                self._register(connection_id, namespace, message)

    def _register(self, connection_id: str, namespace: str, message: Message) -> None:
        match message["type"]:
            case "registerfunction":
                if namespace != DEFAULT or message["id"] not in self._builtin:
                    self.functions.setdefault((namespace, message["id"]), connection_id)
            case "unregisterfunction":
                if self.functions.get((namespace, message["id"])) == connection_id:
                    del self.functions[namespace, message["id"]]
            case "registertriggertype":
                self._provided(connection_id, (namespace, message["id"]))
            case "unregistertriggertype":
                if self.types.get((namespace, message["id"])) == connection_id:
                    self._withdrawn((namespace, message["id"]))
            case "registertrigger":
                self._unbind(message["id"])
                self.bindings[message["id"]] = Bound(
                    message["trigger_type"], message["config"], connection_id, namespace
                )
            case "unregistertrigger":
                self._unbind(message["id"])
            case _:
                raise AssertionError(f"no registration: {message}")

    def _provided(self, connection_id: str, key: Key) -> None:
        if key in self._builtin_types:
            return
        self.types[key] = connection_id
        self.views[connection_id, key] = {}
        for bound in self.bindings.values():
            if bound.trigger_type == key[1] and self._lookup(bound) == key:
                bound.refused = False

    def _withdrawn(self, key: Key) -> None:
        served = [b for b in self.bindings.values() if self.provider(b) == key]
        del self.types[key]
        for bound in served:
            if self.provider(bound) is None:
                self._heard(bound)

    def _lookup(self, bound: Bound) -> Key | None:
        for namespace in (bound.home, DEFAULT):
            key = (namespace, bound.trigger_type)
            if key in self.types or key in self._builtin_types:
                return key
        return None

    def provider(self, bound: Bound) -> Key | None:
        return None if bound.refused else self._lookup(bound)

    def _bound_durably(self, data: Message, awaited: tuple[str, str] | None) -> bool:
        """Whether the answer waits for the owner's word."""
        made = self._router.triggers.bindings.keys() - self.bindings.keys()
        assert len(made) == 1, "a binding by function is one binding"
        bound = Bound(data["trigger_type"], data["config"], None, DEFAULT)
        self.bindings[made.pop()] = bound
        if self._lookup(bound) not in self.types:
            return False
        bound.waiting = awaited or ("", "")
        return True

    def _unbind(self, binding_id: str) -> None:
        bound = self.bindings.pop(binding_id, None)
        if bound is not None:
            self._heard(bound)

    def _heard(self, bound: Bound) -> None:
        """Check that each caller that waited for the owner is answered."""
        if bound.waiting is not None and bound.waiting[0] in self.live:
            self._owed[bound.waiting] += 1
        bound.waiting = None

    def _acknowledged(self, connection_id: str, message: Message) -> None:
        bound = self.bindings.get(message["id"])
        key = self.provider(bound) if bound is not None else None
        if bound is None or key is None or self.types.get(key) != connection_id:
            return
        if "error" not in message:
            self._heard(bound)
            return
        if bound.waiting is not None:
            self._heard(bound)
            del self.bindings[message["id"]]
        else:
            bound.refused = True
        self.views[connection_id, key].pop(message["id"], None)

    def _answered(self, executor: str, call_id: str) -> None:
        caller = self.open.pop((executor, call_id), None)
        if caller is not None and caller[0] in self.live:
            self._owed[caller] += 1

    def _gone(self, connection_id: str) -> None:
        known = self.live.pop(connection_id, None)
        if known is None:
            return
        self.functions = {key: owner for key, owner in self.functions.items() if owner != connection_id}
        for executor, call_id in [key for key in self.open if key[0] == connection_id]:
            self._answered(executor, call_id)
        self.open = {
            key: None if caller is not None and caller[0] == connection_id else caller
            for key, caller in self.open.items()
        }
        for binding_id in [i for i, b in self.bindings.items() if b.subscriber == connection_id]:
            self._unbind(binding_id)
        for key in [key for key, owner in self.types.items() if owner == connection_id]:
            self._withdrawn(key)
        self.names = {key: owner for key, owner in self.names.items() if owner != connection_id}

    # What was sent, and what is remembered

    def _account(self, effects: list[Effect]) -> None:
        paid: Counter[tuple[str, str]] = Counter()
        closed: set[str] = set()
        for effect in effects:
            if isinstance(effect, Close):
                closed.add(effect.connection_id)
                assert effect.connection_id not in self.live, "a live connection was closed"
            if not isinstance(effect, Send):
                continue
            to, message = effect.connection_id, message_of(effect)
            rejected = message["type"] == "registrationrejected"
            assert to in self.live or (rejected and to not in closed), (
                f"sent to a connection that is gone: {message}"
            )
            if message["type"] == "invocationresult":
                paid[to, message["invocation_id"]] += 1
                self.outcomes["error" if "error" in message else "result"] += 1
            elif message["type"] == "invokefunction":
                self._forward(to, message)
            elif message["type"] in ("registertrigger", "unregistertrigger"):
                self._told(to, message)
        self._forward_unsent()
        assert paid == self._owed, f"answered {dict(paid)}, owed {dict(self._owed)}"
        self._owed.clear()
        self._compare()

    def _forward(self, executor: str, message: Message) -> None:
        assert any(
            owner == executor and key[1] == message["function_id"] for key, owner in self.functions.items()
        )
        opened = (executor, message["invocation_id"])
        assert opened not in self.open, "an executor got an id twice at once"
        self.open[opened] = None
        if self._forwarded is not None and self._forwarded[:2] == (executor, message["function_id"]):
            self.open[opened] = self._forwarded[2]
            self._forwarded = None

    def _forward_unsent(self) -> None:
        assert self._forwarded is None, f"a call did not reach its executor: {self._forwarded}"

    def _told(self, owner: str, message: Message) -> None:
        """An owner's view follows what it is told, whether or not it is still the owner."""
        for key in [k for k, o in self.types.items() if o == owner and k[1] == message["trigger_type"]]:
            view = self.views[owner, key]
            if message["type"] == "unregistertrigger":
                view.pop(message["id"], None)
            elif message.get("trigger_namespace", DEFAULT) == key[0]:
                view[message["id"]] = message["config"]

    def _compare(self) -> None:
        engine_state, triggers = self._router.engine_state, self._router.triggers
        functions = {key: f.owner for key, f in engine_state.functions.items() if f.owner is not None}
        assert functions == self.functions, "functions are not what live connections registered"
        assert engine_state.names == self.names, "names are not what live connections announced"
        types = {key: held.owner for key, held in triggers.types.items() if held.owner is not None}
        assert types == self.types, "trigger types are not what live connections registered"
        assert engine_state.connections.keys() == self.live.keys()
        providers = {i: (b.subscriber, b.provider) for i, b in triggers.bindings.items()}
        expected = {i: (b.subscriber, self.provider(b)) for i, b in self.bindings.items()}
        assert providers == expected, f"bindings are {providers} and should be {expected}"
        served: dict[Key, dict[str, Any]] = {key: {} for key in self.types}
        for binding_id, (_, key) in expected.items():
            if key in served:
                served[key][binding_id] = self.bindings[binding_id].config
        for key, owner in self.types.items():
            assert self.views[owner, key] == served[key], f"{owner} was told of others than {served[key]}"
        assert self._router.calls.open_calls() == len(self.open)
