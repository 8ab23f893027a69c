"""``engine::log::*`` and ``engine::health::check``. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iii_directory.engine.builtins.table import ANY, BuiltinFunction, BuiltinWorker, provide, schema, text
from iii_directory.engine.builtins.workers import clean
from iii_directory.wire.json_text import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.calls import Request
    from iii_directory.engine.engine_state import Level
    from iii_directory.engine.router import Router
    from iii_directory.wire.json_text import Json

LEVELS: Final[dict[str, Level]] = {
    "trace": "debug",
    "debug": "debug",
    "info": "info",
    "warn": "warning",
    "error": "error",
}


def provide_observability(router: Router, version: str, set_aside: Callable[[], str | None]) -> None:
    """Put logging and the health check on the engine."""

    def logger(level: Level) -> Callable[[Request], object]:
        def log(request: Request) -> object:
            connection = router.engine_state.connections.get(request.caller or "")
            who = request.payload.get("service_name") or (connection.name if connection else None) or "worker"
            router.engine_state.log(level, f"{clean(str(who))}: {clean(text(request, 'message'))}")
            return ABSENT

        return log

    def health(_request: Request) -> Json:
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

    entry = schema(["message"], message="string", data=ANY, service_name="string")
    functions = [
        BuiltinFunction(
            f"engine::log::{name}", f"Write a line to the engine's log ({name}).", logger(level), entry
        )
        for name, level in LEVELS.items()
    ]
    functions.append(BuiltinFunction("engine::health::check", "How the engine is.", health, schema()))
    provide(router, BuiltinWorker("iii-observability", "Logs and health.", functions))
