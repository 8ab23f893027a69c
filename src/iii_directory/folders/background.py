"""The wake-up in the background: changes are taken up as they happen, so that no reader pays for many."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from iii_directory import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from iii_directory.folders.folder import FolderSource

log = logging.getLogger("iii_directory.catalog")


async def keep_fresh(source: FolderSource, take_up: Callable[[], None], woken: asyncio.Event) -> None:
    """Until cancelled, have the source catch up in a thread whenever the folder changes.

    ``take_up`` is called on the loop after each round, also when somebody else set ``woken`` because there is
    news. A folder that cannot be watched, or whose last look failed, is looked at every
    `limits.RESCAN_SECONDS`.
    """
    told = ""
    while True:
        try:
            await asyncio.to_thread(source.catch_up)
            take_up()
            woken.clear()
            await asyncio.sleep(limits.BURST_SECONDS)
            await _readable(source.wake_fds(), woken, limits.RESCAN_SECONDS)
        except Exception as error:
            # Whatever it was, it may pass; without this task only readers would follow the folder.
            if told != repr(error):
                told = repr(error)
                log.exception("following the skills folder failed, and is tried again")
            await asyncio.sleep(limits.RESCAN_SECONDS)


async def _readable(descriptors: Sequence[int], woken: asyncio.Event, seconds: float) -> None:
    """Return when one of the descriptors can be read, when woken, or after some seconds."""
    loop = asyncio.get_running_loop()
    try:
        for descriptor in descriptors:
            loop.add_reader(descriptor, woken.set)
        async with asyncio.timeout(seconds):
            await woken.wait()
    except TimeoutError:
        return
    finally:
        for descriptor in descriptors:
            loop.remove_reader(descriptor)
