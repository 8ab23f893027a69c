"""The small built-in workers: streaming channels, topics, the log and the health check. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iii_directory.engine.builtins import table
from iii_directory.engine.builtins.workers import clean
from iii_directory.engine.engine_state import EngineFault
from iii_directory.wire.json_text import ABSENT
from iii_directory.wire.protocol import TOPIC_NOT_SET

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.calls import BuiltinRequest
    from iii_directory.engine.engine_state import Level
    from iii_directory.engine.router import Router
    from iii_directory.wire.json_text import Json


def provide_channels(router: Router) -> None:
    """Put channels on the engine."""

    def create(request: BuiltinRequest) -> Json:
        maker = router.engine_state.connections.get(request.caller or "")
        channel = router.channels.create(table.optional(request, "buffer_size", int), maker)
        reference = {"channel_id": channel.id, "access_key": channel.access_key}
        return {
            "writer": {**reference, "direction": "write"},
            "reader": {**reference, "direction": "read"},
        }

    function = table.BuiltinFunction(
        "engine::channels::create",
        "Make a streaming channel; each side is opened once, by its reference.",
        create,
        table.schema(buffer_size="integer"),
    )
    table.provide(router, table.BuiltinWorker("iii-channels", "Streams between workers.", [function]))


def provide_pubsub(router: Router) -> None:
    """Put topics on the engine."""

    def publish(request: BuiltinRequest) -> object:
        topic = table.text(request, "topic")
        if not topic:
            raise EngineFault(TOPIC_NOT_SET, "Topic is not set.")
        # The payload is exactly the data; the binding's metadata is not delivered, as on the real engine.
        router.events.fire(
            "subscribe",
            request.payload.get("data"),
            lambda config: config.get("topic") == topic,
            has_metadata=False,
        )
        return ABSENT

    function = table.BuiltinFunction(
        "publish",
        "Send data to every subscriber of a topic.",
        publish,
        table.schema(["topic"], topic="string", data=table.ANY),
        unread_fields=("data",),
    )
    kind = table.BuiltinType(
        "subscribe", "Fires for every message of a topic.", table.schema(topic="string"), table.ANY
    )
    table.provide(router, table.BuiltinWorker("iii-pubsub", "Topics between workers.", [function], [kind]))


LEVELS: Final[dict[str, Level]] = {
    "trace": "debug",
    "debug": "debug",
    "info": "info",
    "warn": "warning",
    "error": "error",
}


def provide_observability(router: Router, version: str, set_aside: Callable[[], str | None]) -> None:
    """Put logging and the health check on the engine."""

    def logger(level: Level) -> Callable[[BuiltinRequest], object]:
        def log(request: BuiltinRequest) -> object:
            connection = router.engine_state.connections.get(request.caller or "")
            who = request.payload.get("service_name") or (connection.name if connection else None) or "worker"
            router.engine_state.log(level, f"{clean(str(who))}: {clean(table.text(request, 'message'))}")
            return ABSENT

        return log

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

    entry = table.schema(["message"], message="string", data=table.ANY, service_name="string")
    functions = [
        table.BuiltinFunction(
            f"engine::log::{name}", f"Write a line to the engine's log ({name}).", logger(level), entry
        )
        for name, level in LEVELS.items()
    ]
    functions.append(
        table.BuiltinFunction("engine::health::check", "How the engine is.", health, table.schema())
    )
    table.provide(router, table.BuiltinWorker("iii-observability", "Logs and health.", functions))
