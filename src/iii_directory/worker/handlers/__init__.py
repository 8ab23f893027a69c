"""What answers the functions: small groups of methods, each from a payload to a reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from iii_directory.bus.seam import Handler, Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.worker.surfaces.schema import FunctionRow


def handler_of(row: FunctionRow, catalogue: Catalogue, groups: Iterable[object]) -> Handler:
    """What answers a function: its reply to a look, or the method that its row names, of whoever has it."""
    reply, method = row.reply, row.handler
    if reply is not None:

        async def replying(payload: Payload) -> object:
            return reply(await catalogue.look(), payload)

        return replying
    for group in groups:
        for name, function in vars(type(group)).items():
            if function is method:
                return getattr(group, name)
    raise LookupError(f"nobody answers {row.id}")
