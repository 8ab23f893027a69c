"""Blocking work of one kind in threads of its own, so that nothing of another kind waits for it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from iii_directory import limits

if TYPE_CHECKING:
    from collections.abc import Callable

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Threads:
    """A few threads; what comes when all are busy waits its turn.

    Git may wait a minute for a host that says nothing. In the event loop's own pool, a handful of such
    downloads would hold up every reader that has files to look at.
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(limits.PARALLEL_DOWNLOADS, thread_name_prefix=f"iii-directory-{name}")

    async def run(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """What the work answers or raises; it goes on to its end even when nobody waits any more."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args, **kwargs))

    def close(self) -> None:
        """What has not begun never will."""
        self._pool.shutdown(wait=False, cancel_futures=True)
