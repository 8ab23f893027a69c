"""Tell subscribers what changes: registrations, installs, documents that calls write, edits on disk.

Events are sent one after the other by a task of their own, without waiting for answers, so the caller that
made a change does not wait for its subscribers, nor one subscriber for another.

An install is announced when its record in the lock file changes, so installs by other processes are announced
like our own, and each once. An edit is announced when a file holds something that neither a call nor an
install put there.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

from iii_directory import limits
from iii_directory.bus.tasks import Tasks
from iii_directory.disk.install_record import WrittenSource, changed_namespaces
from iii_directory.documents.ids import namespace_of, path_to_id
from iii_directory.documents.model import Finding
from iii_directory.errors import DirectoryError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Generator, Mapping

    from iii_directory.bus.seam import Bus, Subscription, TriggerOwner
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.diagnostics import Notes
    from iii_directory.catalog.view import CatalogueView
    from iii_directory.disk.install_record import LockFile, NamespaceChange
    from iii_directory.install.reports import Installation
    from iii_directory.worker.services import Services

    Digests = tuple[str | None, ...]
    """Hashes of contents; None is that of a file that is not there."""

# What each trigger type reports: the older ones only the changes they always had.
SKILLS: Final = "skills"
PROMPTS: Final = "prompts"
SKILLS_WRITTEN: Final = "written skills"
PROMPTS_WRITTEN: Final = "written prompts"

_CLOSE_SECONDS: Final = 1.0
# What goes out together is written together; more would keep callers waiting.
_AT_ONCE: Final = 8


class Subscribers:
    """The functions bound to one trigger type."""

    def __init__(self) -> None:
        self.bound: dict[str, Subscription] = {}
        """The subscriptions by the ids of their bindings."""
        self._unconfirmed: set[str] = set()
        """Bindings that the engine has not named yet while it lists all of them again."""

    def subscribed(self, subscription: Subscription) -> None:
        self.bound[subscription.id] = subscription
        self._unconfirmed.discard(subscription.id)

    def unsubscribed(self, subscription_id: str) -> None:
        self.bound.pop(subscription_id, None)

    def renew(self) -> None:
        """Expect the engine to list all bindings again; until then every subscriber gets events."""
        self._unconfirmed = set(self.bound)

    def renewed(self) -> None:
        """Drop the bindings that were not listed: they ended while another worker provided the type."""
        for subscription_id in self._unconfirmed:
            self.bound.pop(subscription_id, None)
        self._unconfirmed = set()


class ChangeEvents:
    """Sends events to the subscribers of this worker's trigger types; each type reports some topics."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._topics: dict[str, list[Subscribers]] = {}
        self.types: dict[str, Subscribers] = {}
        """The subscribers by the ids of the trigger types."""
        self._waiting: deque[tuple[Subscription, Mapping[str, Any]]] = deque()
        self._sender: asyncio.Task[None] | None = None

    def owner_for(self, type_id: str, *topics: str) -> TriggerOwner:
        """Return the keeper of the subscriptions of one more trigger type, which reports some topics."""
        subscribers = self.types[type_id] = Subscribers()
        for topic in topics:
            self._topics.setdefault(topic, []).append(subscribers)
        return subscribers

    def fire(self, topic: str, event: Mapping[str, Any]) -> None:
        """Send an event to the subscribers of a topic. Returns at once; events keep their order."""
        for subscribers in self._topics.get(topic, ()):
            self._waiting.extend((subscription, event) for subscription in subscribers.bound.values())
        if self._waiting and (self._sender is None or self._sender.done()):
            self._sender = asyncio.get_running_loop().create_task(self._send())

    def installed(self, change: NamespaceChange) -> None:
        """Announce a namespace that was installed by this process or another."""
        event = {"op": "download", "namespace": change.namespace, "source": change.source}
        if change.skills:
            self.fire(SKILLS, event)
        if change.prompts:
            self.fire(PROMPTS, event)

    def forget_subscribers(self) -> None:
        """Forget subscribers of a lost connection; the engine names them again after the next one."""
        for subscribers in self.types.values():
            subscribers.bound.clear()

    async def close(self) -> None:
        """Send the waiting events, unless the engine does not take them."""
        if self._sender is not None:
            await asyncio.wait([self._sender], timeout=_CLOSE_SECONDS)
            self._sender.cancel()

    async def _send(self) -> None:
        while self._waiting:
            # The answer to the call that made the change goes out before the next events.
            await asyncio.sleep(0)
            for _ in range(min(len(self._waiting), _AT_ONCE)):
                await self._bus.tell(*self._waiting.popleft())


class InstallEvents:
    """Announces installs and written documents, and notes for the diagnostics what an install left out."""

    def __init__(self, catalogue: Catalogue, notes: Notes, events: ChangeEvents) -> None:
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
        self.tell(await self._catalogue.current())
        if done.is_current:
            # The record is as before, so `tell` has no news; each download that was asked for is announced.
            self._events.installed(done.change)

    async def removed(self, namespace: str) -> None:
        """Forget the notes of a namespace that was removed; when this returns, readers do not see it."""
        self.nothing_to_fetch(namespace)
        self._notes.drop(_left_out_of(namespace))
        self.tell(await self._catalogue.current())

    def written(self, op: Literal["create", "update", "delete"], skill_id: str) -> None:
        """Announce a document that a caller wrote; readers see it already."""
        self._events.fire(SKILLS_WRITTEN, {"op": op, "namespace": namespace_of(skill_id), "id": skill_id})

    def failed(self, worker: str, error: DirectoryError) -> None:
        """Note that the skills of a worker could not be fetched."""
        reason = f"its skills could not be fetched: {error.problem}"
        fix = f"try again: iii-directory skills add {worker}, or directory::skills::download_from_registry"
        self._notes.put(f"failed {worker} ", Finding("download", worker, reason, fix))

    def nothing_to_fetch(self, worker: str) -> None:
        """Clear the failure note for this worker."""
        self._notes.drop(f"failed {worker} ")

    def tell(self, look: CatalogueView) -> None:
        """Announce every namespace that was installed since the last time."""
        if look.lockfile.broken:
            # The next lock file that can be read is compared with the last that could.
            return
        before, self._told = self._told, look.lockfile
        # The first lock file is what was there at the start, of which there is nothing to tell.
        if before is None or before is look.lockfile:
            return
        for change in changed_namespaces(before, look.lockfile, self._catalogue.has_installed):
            self._events.installed(change)


class DiskEditEvents:
    """Announces files that were edited on disk, many together. Belongs to the bus's event loop.

    The states of one path, from the look that shows a change of it:

        changed ──(nothing came for a moment, or it has waited long enough)──> compared
        compared ──(a call is writing the path, or wrote it meanwhile)───────> changed
        compared ──(it holds what a call or an install put there)────────────> not announced
        compared ──(its namespace is being installed into: the record that
                    says what belongs there comes last; not for ever)────────> changed
        compared ──(otherwise)───────────────────────────────────────────────> announced, forgotten
    """

    def __init__(
        self, catalogue: Catalogue, events: ChangeEvents, services: Callable[[], Awaitable[Services]]
    ) -> None:
        self._catalogue = catalogue
        self._events = events
        self._services = services
        self._ours: dict[str, Digests] = {}
        """What calls and installs put at a path, the newest last, until something else is seen there."""
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

    def looked(self, look: CatalogueView, edited: set[str]) -> None:
        """Take the paths that changed on disk; they are announced once nothing more comes for a moment."""
        self._expect_installed(look.lockfile)
        if not edited:
            return
        self._changed |= edited
        self._came.set()
        if self._announcing is None or self._announcing.done():
            self._announcing = self._tasks.start(self._announce_soon())

    def _expect(self, path: str, digest: str | None) -> None:
        # The newest is last, so that of too many the oldest go.
        earlier = self._ours.pop(path, ())
        self._ours[path] = (*(one for one in earlier if one != digest), digest)
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
            busy = await asyncio.to_thread((await self._services()).edits.under_way)
            theirs = await self._not_ours(changed)
            waiting = {path for path in theirs if path.partition("/")[0] in busy}
            self._postponed = Counter({path: self._postponed[path] + 1 for path in waiting})
            waiting = {path for path in waiting if self._postponed[path] <= limits.MAX_EDITS_POSTPONED}
            self._changed |= waiting
            self._announce(theirs - waiting)

    async def _quiet(self) -> None:
        """Return when nothing came for a moment, or the first edit has waited long enough."""
        loop = asyncio.get_running_loop()
        # A program that writes without a pause must not hold back the news of what it wrote first.
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
        look = await self._catalogue.current()
        self._expect_installed(look.lockfile)
        expected = {path: self._ours[path] for path in edited if path in self._ours}
        found = await asyncio.to_thread(_digests, look, expected)
        # While the hashes were read in a thread, a call may have begun or ended a write of the same path.
        later = {
            path for path in edited if path in self._writing or self._ours.get(path) is not expected.get(path)
        }
        self._changed |= later
        unexpected = {path for path in edited - later if found.get(path, "") not in expected.get(path, ())}
        for path in unexpected:
            self._ours.pop(path, None)
        for path in expected.keys() - later - unexpected:
            # What was put there after it stays expected, and so does this: a later look may show either.
            self._ours[path] = expected[path][expected[path].index(found[path]) :]
        return unexpected

    def _announce(self, paths: set[str]) -> None:
        """Announce the namespaces in which files were edited."""
        edited: dict[str, set[str]] = {SKILLS_WRITTEN: set(), PROMPTS_WRITTEN: set()}
        for path in paths:
            place = path_to_id(path)
            in_folder = "/" in path
            # Every file in a folder is part of a skill; at the root only documents are.
            if place.problem is None or (in_folder and not place.is_prompt):
                topic = PROMPTS_WRITTEN if place.is_prompt else SKILLS_WRITTEN
                edited[topic].add(namespace_of(path if in_folder else place.key))
        for topic, namespaces in edited.items():
            if namespaces:
                self._events.fire(topic, {"op": "external", "namespaces": sorted(namespaces)})


def _digests(look: CatalogueView, paths: Collection[str]) -> dict[str, str | None]:
    """Return the hash of each path as the record writes hashes; None for a missing file."""
    found: dict[str, str | None] = {}
    for path in paths:
        try:
            found[path] = f"sha256:{look.files.read(path, 0, 0).sha256}"
        except DirectoryError:
            found[path] = None
    return found


def _left_out_of(namespace: str) -> str:
    return f"left out of {namespace} "
