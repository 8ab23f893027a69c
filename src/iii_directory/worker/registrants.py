"""Who registers a document: the caller as the engine names it, and the key that seals what was registered."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING

from iii_directory.access.kept_secret import ExposedError, made_secret, new_secret
from iii_directory.access.policy import REGISTRANTS_KEY
from iii_directory.documents.provenance import UNKNOWN, Author
from iii_directory.limits import MAX_WORKER_NAME_CHARS
from iii_directory.shapes import text_of
from iii_directory.text import cut
from iii_directory.wire.protocol import CALLER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from iii_directory.bus.seam import Payload
    from iii_directory.worker.installed_workers import InstalledWorkers

log = logging.getLogger("iii_directory.worker")


async def author_of(payload: Payload, workers: InstalledWorkers) -> Author:
    """The worker that made a call, unknown where the engine does not say which one did."""
    worker_id = text_of(payload.get(CALLER))
    if not worker_id or len(worker_id) > MAX_WORKER_NAME_CHARS:
        return Author()
    name = await workers.name_of(worker_id)
    return Author(worker_id, cut(name, MAX_WORKER_NAME_CHARS) if name else UNKNOWN)


def sealing_key(data: Path | None) -> Callable[[], bytes]:
    """The key of a data directory, read or made when it is first needed; without one, of this run alone."""

    @cache
    def key() -> bytes:
        try:
            return (new_secret() if data is None else made_secret(data, REGISTRANTS_KEY)).encode()
        except (OSError, ExposedError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            log.warning(
                "the key that seals registrations cannot be kept (%s): after a restart the workers that "
                "registered documents until then are unknown",
                reason,
            )
            return new_secret().encode()

    return key
