"""The built-in workers without a module of their own. Pure.

``engine::workers::*``, ``worker::list`` and the events about workers coming and going; streaming channels,
topics, the log and the health check.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from iii_directory.engine.builtins import table
from iii_directory.engine.builtins.table import ANY, BuiltinFunction, BuiltinType, provide, schema
from iii_directory.engine.engine_state import EngineFault
from iii_directory.engine.router import WORKERS_AVAILABLE
from iii_directory.limits import MAX_NAME_CHARS, MAX_SEEN_WORKERS
from iii_directory.shapes import items_of
from iii_directory.text import without_controls
from iii_directory.wire import protocol
from iii_directory.wire.json_text import ABSENT
from iii_directory.wire.protocol import DEFAULT_NAMESPACE, NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.calls import BuiltinRequest
    from iii_directory.engine.engine_state import Connection, Level
    from iii_directory.engine.router import Router
    from iii_directory.wire.json_text import Json

_FILTERS: Final = (("operations", "operation"), ("stages", "stage"), ("workers", "worker"))
"""Fields of a binding to ``worker`` that list what is wanted, and the fields of the event they are for."""


class Workers:
    """Who is connected, and the built-in workers beside them."""

    def __init__(self, router: Router, version: str) -> None:
        self._router = router
        self._engine_state = router.engine_state
        self._rows = router.rows
        self._version = version
        self._started_ms = router.engine_state.now_ms()
        # In the order they were seen last: the ones that were not for longest are forgotten first.
        self._seen: dict[tuple[str, str], None] = {}
        self._builtin = router.builtin_workers

    def register(self, request: BuiltinRequest) -> Json:
        connection = self._engine_state.connections.get(request.caller or "")
        if connection is None:
            raise EngineFault(protocol.INVALID_ARGUMENTS, "Only a connected worker can register itself.")
        namespace = table.optional(request, "namespace", str)
        if namespace is None:
            namespace = DEFAULT_NAMESPACE
        elif not namespace.strip():
            raise EngineFault(protocol.INVALID_NAMESPACE, "namespace must not be blank")
        # Everything is checked before anything is changed.
        said = ("description", "version", "runtime", "os", "isolation")
        described: Json = {key: clean(table.optional(request, key, str)) for key in said}
        described["runtime"] = described["runtime"] or "unknown"
        described["pid"] = table.optional(request, "pid", int)
        if not self._router.announce(connection, namespace, clean(table.optional(request, "name", str))):
            return {"success": False}
        for key, value in described.items():
            setattr(connection, key, value)
        self._router.worker_event("worker_metadata_updated", connection)
        self._first_seen(connection)
        return {"success": True}

    def list(self, request: BuiltinRequest) -> Json:
        search, runtime = table.optional(request, "search", str), table.optional(request, "runtime", str)
        status = table.optional(request, "status", str)
        rows = [self._builtin_row(worker) for worker in self._builtin.values()]
        rows += [self._connection_row(connection) for connection in self._engine_state.visible_connections()]
        rows = [
            row
            for row in rows
            if table.contains(search, row["name"])
            and runtime in (None, row["runtime"])
            and status in (None, row["status"])
        ]
        return {"workers": sorted(rows, key=lambda row: (row["name"] or row["id"], row["id"]))}

    def info(self, request: BuiltinRequest) -> Json:
        name, namespace = table.text(request, "name"), table.optional(request, "namespace", str)
        named = [c for c in self._engine_state.connections.values() if c.name == name]
        found = {c.namespace or DEFAULT_NAMESPACE: c for c in named}
        homes = {*found, DEFAULT_NAMESPACE} if name in self._builtin else set(found)
        home = _chosen_home(name, sorted(homes), namespace)
        if home == DEFAULT_NAMESPACE and name in self._builtin:
            row = {**self._builtin_row(self._builtin[name]), "internal": True}
            return self._with_registrations(row, lambda owner, worker: owner is None and worker == name)
        connection = found[home]
        row = {**self._connection_row(connection), "internal": False}
        if connection.pid is not None:
            row["pid"] = connection.pid
        return self._with_registrations(row, lambda owner, _worker: owner == connection.id)

    def installed(self, request: BuiltinRequest) -> Json:  # noqa: ARG002 (a running-only filter changes nothing here)
        """Without a daemon that installs workers, the ones that are connected stand for the installed."""
        return {
            "workers": [
                {
                    "name": connection.name,
                    "version": connection.version,
                    "running": True,
                    "status": "running",
                    "pid": connection.pid,
                }
                for connection in self._engine_state.visible_connections()
                if connection.name is not None
            ]
        }

    def _builtin_row(self, worker: table.BuiltinWorker) -> Json:
        return {
            "name": worker.name,
            "description": worker.description,
            "version": self._version,
            "id": worker.name,
            "namespace": DEFAULT_NAMESPACE,
            "runtime": "engine",
            "os": None,
            "status": "available",
            "function_count": len(worker.functions),
            "connected_at_ms": self._started_ms,
            "active_invocations": 0,
            "isolation": "in-process",
            "ip_address": None,
        }

    def _connection_row(self, connection: Connection) -> Json:
        return {
            "name": connection.name,
            "description": connection.description,
            "version": connection.version,
            "id": connection.id,
            "namespace": connection.namespace or DEFAULT_NAMESPACE,
            "runtime": connection.runtime,
            "os": connection.os,
            "status": "connected",
            "function_count": len(self._engine_state.functions_of(connection.id)),
            "connected_at_ms": connection.connected_at_ms,
            "active_invocations": connection.active_invocations,
            "isolation": connection.isolation,
            "ip_address": connection.ip_address,
        }

    def _with_registrations(self, row: Json, provides: Callable[[str | None, str | None], bool]) -> Json:
        """Add what a worker registered to its row; ``provides`` takes an owner and a built-in's name."""
        functions = [f for f in self._engine_state.functions.values() if provides(f.owner, f.worker_name)]
        kinds = [t for t in self._router.triggers.types.values() if provides(t.owner, t.worker_name)]
        targets = {(f.namespace, f.id) for f in functions}
        bindings = [b for b in self._router.triggers.live() if (b.namespace, b.function_id) in targets]
        return {
            "worker": row,
            "functions": [self._rows.function_summary(f) for f in sorted(functions, key=lambda f: f.id)],
            "trigger_types": [self._rows.type_summary(t) for t in sorted(kinds, key=lambda t: t.id)],
            "registered_triggers": [self._rows.binding_row(b) for b in sorted(bindings, key=lambda b: b.id)],
        }

    def _first_seen(self, connection: Connection) -> None:
        if connection.name is None:
            return
        key = (connection.namespace or DEFAULT_NAMESPACE, connection.name)
        known = key in self._seen
        self._seen.pop(key, None)
        self._seen[key] = None
        if known:
            return
        if len(self._seen) > MAX_SEEN_WORKERS:
            del self._seen[next(iter(self._seen))]
        event = {
            "operation": "add",
            "worker": connection.name,
            "stage": "done",
            "timestamp_ms": self._engine_state.now_ms(),
            "caller_mode": "trigger",
        }

        def matches(config: Json) -> bool:
            return all(event[one] in (items_of(config.get(many)) or (event[one],)) for many, one in _FILTERS)

        self._router.events.fire("worker", event, matches)


def clean(value: str | None) -> str | None:
    """Return a name or description that fits a line and hides nothing; None if nothing is left of it."""
    return (without_controls(value)[:MAX_NAME_CHARS].strip() or None) if value is not None else None


def _chosen_home(name: str, homes: list[str], wanted: str | None) -> str:
    """Return the namespace of the worker that is meant: as asked for, else ``default``, else the only one."""
    if wanted is None and len(homes) > 1 and DEFAULT_NAMESPACE not in homes:
        raise EngineFault(
            NOT_FOUND,
            f"Worker '{name}' is ambiguous: it is connected in namespace(s): {', '.join(homes)}. "
            "Pass `namespace` to choose one.",
        )
    home = wanted or (DEFAULT_NAMESPACE if DEFAULT_NAMESPACE in homes else next(iter(homes), ""))
    if home not in homes:
        elsewhere = f" in that namespace; it is in: {', '.join(homes)}" if homes else ""
        raise EngineFault(NOT_FOUND, f"Worker '{name}' is not connected{elsewhere}.")
    return home


def provide_workers(router: Router, version: str) -> None:
    """Put the worker functions and their trigger types on the engine."""
    it = Workers(router, version)
    functions = [
        BuiltinFunction(
            "engine::workers::register",
            "A worker says who it is: name, version, runtime and namespace.",
            it.register,
            schema(name="string", version="string", runtime="string", namespace="string", pid="integer"),
            schema("success", success="boolean"),
        ),
        BuiltinFunction(
            "engine::workers::list",
            "List connected and built-in workers.",
            it.list,
            schema(search="string", runtime="string", status="string"),
        ),
        BuiltinFunction(
            "engine::workers::info",
            "One worker with what it registered.",
            it.info,
            schema("name", namespace="string"),
        ),
    ]
    available = BuiltinType(
        WORKERS_AVAILABLE,
        "Fires when a worker connects, says who it is, or leaves.",
        schema(),
        schema(event="string", worker_id="string"),
    )
    provide(router, "iii-worker-manager", "Connections.", functions, [available])
    names = {"type": "array", "items": {"type": "string"}}
    installed = BuiltinFunction(
        "worker::list",
        "List the workers of this engine: the connected ones.",
        it.installed,
        schema(running_only="boolean"),
    )
    added = BuiltinType(
        "worker",
        "Fires operation add, stage done, when a named worker connects for the first time.",
        schema(operations=names, stages=names, workers=names),
        schema(operation="string", worker="string", stage="string", timestamp_ms="integer"),
    )
    provide(router, "iii-worker-ops", "Workers of this machine.", [installed], [added])


def provide_channels(router: Router) -> None:
    """Put channels on the engine."""

    def create(request: BuiltinRequest) -> Json:
        maker = router.engine_state.connections.get(request.caller or "")
        channel = router.channels.create(table.optional(request, "buffer_size", int), maker)
        reference = {"channel_id": channel.id, "access_key": channel.access_key}
        return {"writer": {**reference, "direction": "write"}, "reader": {**reference, "direction": "read"}}

    function = BuiltinFunction(
        "engine::channels::create",
        "Make a streaming channel; each side is opened once, by its reference.",
        create,
        schema(buffer_size="integer"),
    )
    provide(router, "iii-channels", "Streams between workers.", [function])


def provide_pubsub(router: Router) -> None:
    """Put topics on the engine."""

    def publish(request: BuiltinRequest) -> object:
        topic = table.text(request, "topic")
        if not topic:
            raise EngineFault(protocol.TOPIC_NOT_SET, "Topic is not set.")
        # The payload is exactly the data; the binding's metadata is not delivered, as on the real engine.
        router.events.fire(
            "subscribe",
            request.payload.get("data"),
            lambda config: config.get("topic") == topic,
            has_metadata=False,
        )
        return ABSENT

    function = BuiltinFunction(
        "publish",
        "Send data to every subscriber of a topic.",
        publish,
        schema("topic", data=ANY),
        unread_fields=("data",),
    )
    kind = BuiltinType("subscribe", "Fires for every message of a topic.", schema(topic="string"), ANY)
    provide(router, "iii-pubsub", "Topics between workers.", [function], [kind])


LEVELS: Final[dict[str, Level]] = {
    "trace": "debug",
    "debug": "debug",
    "info": "info",
    "warn": "warning",
    "error": "error",
}


def provide_observability(router: Router, version: str, set_aside: Callable[[], str | None]) -> None:
    """Put logging and the health check on the engine."""

    def log(level: Level, request: BuiltinRequest) -> object:
        connection = router.engine_state.connections.get(request.caller or "")
        who = request.payload.get("service_name") or (connection.name if connection else None) or "worker"
        router.engine_state.log(level, f"{clean(str(who))}: {clean(table.text(request, 'message'))}")
        return ABSENT

    def health(_request: BuiltinRequest) -> Json:
        kept = set_aside()
        damaged: Json = {} if kept is None else {"state": {"status": "degraded", "set_aside": kept}}
        return {
            "status": "healthy",
            "components": {
                "engine": {"status": "healthy", "kind": "embedded"},
                "workers": {"status": "healthy", "connected": len(router.engine_state.connections)},
                "calls": {"status": "healthy", "open": router.calls.open_calls()},
                **damaged,
            },
            "timestamp": router.engine_state.now_ms(),
            "version": version,
        }

    entry = schema("message", data=ANY, service_name="string")
    functions = [
        BuiltinFunction(
            f"engine::log::{name}", f"Write a line to the engine's log ({name}).", partial(log, level), entry
        )
        for name, level in LEVELS.items()
    ]
    functions.append(BuiltinFunction("engine::health::check", "How the engine is.", health, schema()))
    provide(router, "iii-observability", "Logs and health.", functions)
