"""What answers the functions: small groups of methods, each from a payload to a reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from iii_directory.bus.seam import Handler, Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.worker.parts import Parts
    from iii_directory.worker.surfaces.schema import FunctionRow


def handler_of(row: FunctionRow, catalogue: Catalogue, parts: Parts) -> Handler:
    """What answers a function: its reply to a look, or the part that its row names."""
    reply, handler = row.reply, row.handler
    if reply is not None:

        async def replying(payload: Payload) -> object:
            return reply(await catalogue.look(), payload)

        return replying
    if handler is None:
        raise LookupError(f"nobody answers {row.id}")

    def answering(payload: Payload) -> Awaitable[object]:
        return handler(parts)(payload)

    return answering
