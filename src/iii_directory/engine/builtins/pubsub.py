"""``publish`` and the trigger type ``subscribe``: topics between workers. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory.engine.builtins.table import (
    ANY,
    BuiltinFunction,
    BuiltinType,
    BuiltinWorker,
    provide,
    schema,
    text,
)
from iii_directory.engine.engine_state import EngineFault
from iii_directory.wire.json_text import ABSENT
from iii_directory.wire.protocol import TOPIC_NOT_SET

if TYPE_CHECKING:
    from iii_directory.engine.calls import Request
    from iii_directory.engine.router import Router


def provide_pubsub(router: Router) -> None:
    """Put topics on the engine."""

    def publish(request: Request) -> object:
        topic = text(request, "topic")
        if not topic:
            raise EngineFault(TOPIC_NOT_SET, "Topic is not set.")
        # The payload is exactly the data; the binding's metadata is not delivered, as on the real engine.
        router.events.fire_bare(
            "subscribe", request.payload.get("data"), lambda config: config.get("topic") == topic
        )
        return ABSENT

    function = BuiltinFunction(
        "publish",
        "Send data to every subscriber of a topic.",
        publish,
        schema(["topic"], topic="string", data=ANY),
        unread_fields=("data",),
    )
    kind = BuiltinType("subscribe", "Fires for every message of a topic.", schema(topic="string"), ANY)
    provide(router, BuiltinWorker("iii-pubsub", "Topics between workers.", [function], [kind]))
