"""Edits on disk, told to whoever subscribed: once for many, and never for what this worker wrote or told of.

What is ours is told by its content. A file that holds what a call wrote, or what an install that was told of
brought, is no edit; the next change of it is one, whoever makes it and however soon.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from iii_directory import limits
from iii_directory.bus.tasks import Tasks
from iii_directory.documents.ids import namespace_of, path_to_id
from iii_directory.errors import DirectoryError
from iii_directory.lockfile.format import WrittenSource

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping

    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.look import Look
    from iii_directory.lockfile.format import LockFile
    from iii_directory.worker.events import Events

    Digests = set[str | None]
    """Hashes of contents; None is that of a file that is not there."""


class ExternalEdits:
    """Told of every look behind the folder. Lives on the bus's loop.

    ``under_way`` names the namespaces that are being installed into: their files come before their record.
    """

    def __init__(
        self, catalogue: Catalogue, events: Events, under_way: Callable[[], Collection[str]]
    ) -> None:
        self._catalogue = catalogue
        self._events = events
        self._under_way = under_way
        self._ours: dict[str, Digests] = {}
        """What we know to have been written to a path, until we have seen it there."""
        self._writing: Counter[str] = Counter()
        self._lock: LockFile | None = None
        self._edited: set[str] = set()
        self._postponed: Counter[str] = Counter()
        self._came = asyncio.Event()
        self._tasks = Tasks()
        self._teller: asyncio.Task[None] | None = None

    def close(self) -> None:
        self._tasks.cancel()

    @contextmanager
    def our_own(self, path: str, digest: str | None) -> Generator[None]:
        """While a path below the folder is given this content, or (None) deleted, by a call."""
        self._writing[path] += 1
        try:
            yield
            self._expect(path, digest)
        finally:
            self._writing[path] -= 1
            if not self._writing[path]:
                del self._writing[path]

    def looked(self, look: Look) -> None:
        """Take up what changed on disk; it is told of as soon as nothing more comes for a moment."""
        self._expect_installed(look.lockfile)
        edited = self._catalogue.take_edited()
        if not edited:
            return
        self._edited |= edited
        self._came.set()
        if self._teller is None or self._teller.done():
            self._teller = self._tasks.start(self._tell())

    def _expect(self, path: str, digest: str | None) -> None:
        # The newest is last, so that of too many the oldest go.
        expected = self._ours.pop(path, set())
        self._ours[path] = expected | {digest}
        if len(self._ours) > limits.MAX_KEPT_DIGESTS:
            del self._ours[next(iter(self._ours))]

    def _expect_installed(self, lock: LockFile) -> None:
        """What installs brought that are told of as downloads, by this process or another."""
        if lock is self._lock or lock.broken:
            return
        before, self._lock = self._lock, lock
        if before is None:
            return
        for name, entry in lock.namespaces.items():
            known = before.namespaces.get(name)
            if known == entry or isinstance(entry.source, WrittenSource):
                continue
            old: Mapping[str, str] = {} if known is None else known.files
            for path in old.keys() | entry.files.keys():
                if old.get(path) != entry.files.get(path):
                    self._expect(f"{name}/{path}", entry.files.get(path))

    async def _tell(self) -> None:
        while self._edited:
            await self._quiet()
            edited, self._edited = self._edited, set()
            # Asked before the look, which then knows the record of every install that is over by now.
            busy = await asyncio.to_thread(self._under_way)
            theirs = await self._not_ours(edited)
            waiting = self._wait_for_installs(theirs, busy)
            self._edited |= waiting
            self._announce(theirs - waiting)

    async def _quiet(self) -> None:
        """Return when nothing came for a moment, or the first edit has waited long enough."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + limits.EDITS_LATEST_SECONDS
        while (left := latest - loop.time()) > 0:
            self._came.clear()
            try:
                async with asyncio.timeout(min(limits.EDITS_QUIET_SECONDS, left)):
                    await self._came.wait()
            except TimeoutError:
                return

    async def _not_ours(self, edited: set[str]) -> set[str]:
        """Those that hold something else than we know of; what is being written is looked at again later."""
        look = await self._catalogue.look()
        self._expect_installed(look.lockfile)
        expected = {path: self._ours[path] for path in edited if path in self._ours}
        found = await asyncio.to_thread(_digests, look, expected)
        later = {
            path for path in edited if path in self._writing or self._ours.get(path) is not expected.get(path)
        }
        self._edited |= later
        for path in edited - later:
            self._ours.pop(path, None)
        return {path for path in edited - later if found.get(path, "") not in expected.get(path, ())}

    def _wait_for_installs(self, theirs: set[str], busy: Collection[str]) -> set[str]:
        """Files of namespaces that are being installed into: their record, which tells, comes last."""
        waiting = {path for path in theirs if path.partition("/")[0] in busy}
        self._postponed = Counter({path: self._postponed[path] + 1 for path in waiting})
        return {path for path in waiting if self._postponed[path] <= limits.MAX_EDITS_POSTPONED}

    def _announce(self, paths: set[str]) -> None:
        places = [(path, path_to_id(path)) for path in paths]
        self._events.edited(
            skills={_namespace(path) for path, place in places if not place.is_prompt and _counts(path)},
            prompts={_namespace(path) for path, place in places if place.is_prompt and place.problem is None},
        )


def _digests(look: Look, paths: Collection[str]) -> dict[str, str | None]:
    """The hash of each path as it is now, as the record writes it; None where there is no file."""
    found: dict[str, str | None] = {}
    for path in paths:
        try:
            found[path] = f"sha256:{look.files.sha256(path)}"
        except DirectoryError:
            found[path] = None
    return found


def _counts(path: str) -> bool:
    """Whether a file is part of a skill; at the root only documents are."""
    return "/" in path or path_to_id(path).problem is None


def _namespace(path: str) -> str:
    return namespace_of(path if "/" in path else path_to_id(path).key)
