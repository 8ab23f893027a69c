"""Tell subscribers what happens in the skills folder: installs, documents that calls write, edits by hand.

An install is told of when its record in the lock file changes, so installs by other processes are told of
like our own, and each once. An edit is told of when a file holds something that neither a call nor an install
put there.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from iii_directory import limits
from iii_directory.bus.tasks import Tasks
from iii_directory.documents.ids import namespace_of, path_to_id
from iii_directory.documents.model import Finding
from iii_directory.errors import DirectoryError
from iii_directory.lockfile.format import WrittenSource

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping

    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.look import Look
    from iii_directory.catalog.notes import Notes
    from iii_directory.install.reports import Installation
    from iii_directory.lockfile.format import LockFile
    from iii_directory.worker.events import Events

    Digests = set[str | None]
    """Hashes of contents; None is that of a file that is not there."""


class InstallEvents:
    """Announces installs and written documents, and notes for the diagnostics what an install left out."""

    def __init__(self, catalogue: Catalogue, notes: Notes, events: Events) -> None:
        self._catalogue = catalogue
        self._notes = notes
        self._events = events
        self._told: LockFile | None = None
        """The newest lock file of which subscribers were told."""

    async def landed(self, done: Installation) -> None:
        """Announce a bundle that is in its folder; when this returns, readers see it.

        Files that were edited by hand are not noted, because the diagnostics look for such files themselves.
        """
        namespace = done.reply["namespace"]
        self.nothing_to_fetch(namespace)
        self._notes.drop(_left_out_of(namespace))
        for number, finding in enumerate(done.findings):
            if finding.kind != "edited":
                self._notes.put(f"{_left_out_of(namespace)}{number}", finding)
        self.tell(await self._catalogue.look())
        if done.is_current:
            # The record is as before, so `tell` has no news; each download that was asked for is announced.
            self._events.installed(done.change)

    def written(self, op: Literal["create", "update", "delete"], skill_id: str) -> None:
        """Announce a document that a caller wrote; readers see it already."""
        self._events.written({"op": op, "namespace": namespace_of(skill_id), "id": skill_id})

    def failed(self, worker: str, error: DirectoryError) -> None:
        """Note that the skills of a worker could not be fetched."""
        reason = f"its skills could not be fetched: {error.problem}"
        fix = f"call directory::skills::download_from_registry with worker {worker} to try again"
        self._notes.put(_failure_of(worker), Finding("download", worker, reason, fix))

    def nothing_to_fetch(self, worker: str) -> None:
        """Clear the failure note for this worker."""
        self._notes.drop(_failure_of(worker))

    def tell(self, look: Look) -> None:
        """Announce every namespace that was installed since the last time."""
        if look.lockfile.broken:
            # The next lock file that can be read is compared with the last that could.
            return
        before, self._told = self._told, look.lockfile
        if before is None or before is look.lockfile:
            return
        for change in self._catalogue.installed_between(before, look.lockfile):
            self._events.installed(change)


class DiskEditEvents:
    """Announces files that were edited on disk, many together. Belongs to the bus's event loop.

    The states of one path, from the look that shows a change of it:

        changed ──(nothing came for a moment, or it has waited long enough)──> compared
        compared ──(a call is writing the path, or wrote it meanwhile)───────> changed
        compared ──(it holds what a call or an install put there)────────────> forgotten
        compared ──(its namespace is being installed into: the record that
                    says what belongs there comes last; not for ever)────────> changed
        compared ──(otherwise)───────────────────────────────────────────────> announced, forgotten

    ``under_way`` returns the namespaces that are being installed into.
    """

    def __init__(
        self, catalogue: Catalogue, events: Events, under_way: Callable[[], Collection[str]]
    ) -> None:
        self._catalogue = catalogue
        self._events = events
        self._under_way = under_way
        self._ours: dict[str, Digests] = {}
        """What calls and installs put at a path, until it was seen there."""
        self._writing: Counter[str] = Counter()
        """The paths that calls are writing."""
        self._lock: LockFile | None = None
        self._changed: set[str] = set()
        """The paths that wait to be compared."""
        self._postponed: Counter[str] = Counter()
        """How often each path was put back because its namespace was being installed into."""
        self._came = asyncio.Event()
        self._tasks = Tasks()
        self._announcing: asyncio.Task[None] | None = None

    def close(self) -> None:
        self._tasks.cancel()

    @contextmanager
    def our_own(self, path: str, digest: str | None) -> Generator[None]:
        """Mark a path below the folder as written, or (None) deleted, by a call, with this content."""
        self._writing[path] += 1
        try:
            yield
            self._expect(path, digest)
        finally:
            self._writing[path] -= 1
            if not self._writing[path]:
                del self._writing[path]

    def looked(self, look: Look) -> None:
        """Take the paths that changed on disk; they are announced once nothing more comes for a moment."""
        self._expect_installed(look.lockfile)
        edited = self._catalogue.take_edited()
        if not edited:
            return
        self._changed |= edited
        self._came.set()
        if self._announcing is None or self._announcing.done():
            self._announcing = self._tasks.start(self._announce_soon())

    def _expect(self, path: str, digest: str | None) -> None:
        # The newest is last, so that of too many the oldest go.
        expected = self._ours.pop(path, set())
        self._ours[path] = expected | {digest}
        if len(self._ours) > limits.MAX_KEPT_DIGESTS:
            del self._ours[next(iter(self._ours))]

    def _expect_installed(self, lock: LockFile) -> None:
        """Expect the files of installs by any process, which are announced as downloads."""
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

    async def _announce_soon(self) -> None:
        while self._changed:
            await self._quiet()
            changed, self._changed = self._changed, set()
            # Asked before the look, which then knows the record of every install that is over by now.
            busy = await asyncio.to_thread(self._under_way)
            theirs = await self._not_ours(changed)
            waiting = self._wait_for_installs(theirs, busy)
            self._changed |= waiting
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
        """Return the paths that hold something unexpected; those being written are compared later."""
        look = await self._catalogue.look()
        self._expect_installed(look.lockfile)
        expected = {path: self._ours[path] for path in edited if path in self._ours}
        found = await asyncio.to_thread(_digests, look, expected)
        later = {
            path for path in edited if path in self._writing or self._ours.get(path) is not expected.get(path)
        }
        self._changed |= later
        for path in edited - later:
            self._ours.pop(path, None)
        return {path for path in edited - later if found.get(path, "") not in expected.get(path, ())}

    def _wait_for_installs(self, theirs: set[str], busy: Collection[str]) -> set[str]:
        """Return the paths to put back because their namespaces are being installed into."""
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
    """Return the hash of each path as the record writes hashes; None where there is no file."""
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


def _failure_of(worker: str) -> str:
    return f"failed {worker} "


def _left_out_of(namespace: str) -> str:
    return f"left out of {namespace} "
