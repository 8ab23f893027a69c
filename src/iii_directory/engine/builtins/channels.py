"""``engine::channels::create``: a streaming channel between two workers. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory.engine.builtins.table import BuiltinFunction, BuiltinWorker, optional, provide, schema

if TYPE_CHECKING:
    from iii_directory.engine.calls import Request
    from iii_directory.engine.router import Router
    from iii_directory.wire.json_text import Json


def provide_channels(router: Router) -> None:
    """Put channels on the engine."""

    def create(request: Request) -> Json:
        maker = router.engine_state.connections.get(request.caller or "")
        channel = router.channels.create(optional(request, "buffer_size", int), maker)
        reference = {"channel_id": channel.id, "access_key": channel.access_key}
        return {
            "writer": {**reference, "direction": "write"},
            "reader": {**reference, "direction": "read"},
        }

    function = BuiltinFunction(
        "engine::channels::create",
        "Make a streaming channel; each side is opened once, by its reference.",
        create,
        schema(buffer_size="integer"),
    )
    provide(router, BuiltinWorker("iii-channels", "Streams between workers.", [function]))
