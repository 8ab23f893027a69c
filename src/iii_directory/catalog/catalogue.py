"""Combine folders, registered entries and installed workers into one catalogue.

How a document gets to a reader::

    files on disk ── FolderSource ──┐
                                    ├─ changed entries ── Snapshot.changed ── CatalogueView ── answers
    iii-state ── RegisteredSource ──┘

The catalogue lives on one event loop. :meth:`Catalogue.current` is awaited before every answer and costs
microseconds while nothing changed; where many files must be read, a thread reads them.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory import limits
from iii_directory.catalog.diagnostics import FindingLog, Notes, strays
from iii_directory.catalog.origins import Levels, Origins, Registrants, Visibility
from iii_directory.catalog.persistent import PagedMap
from iii_directory.catalog.registered_source import RegisteredSource
from iii_directory.catalog.snapshot import EMPTY
from iii_directory.catalog.view import REGISTERED, CatalogueView, FileReader
from iii_directory.disk.install_record import LOCKFILE
from iii_directory.documents.ids import namespace_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from iii_directory.catalog.folder_source import FolderSource
    from iii_directory.catalog.folders import Changes
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.disk.install_record import LockFile
    from iii_directory.documents.model import Finding

log = logging.getLogger("iii_directory.catalog")

# A few files are read at once on the loop (under a millisecond); more are read in a thread.
INLINE_FILES: Final = 8


class InstalledSource:
    """Holds which workers are installed and connected, as last heard; without an engine none are known."""

    names: frozenset[str] | None = None
    """The names of the installed workers; None when they are not known."""
    are_all: bool = False
    """Whether `names` is complete, so that documents of other workers may be hidden."""
    connected: Mapping[str, str | None] | None = None
    """The connected workers, their names by their ids; None when the engine does not tell."""
    left: frozenset[str] = frozenset()
    """The workers that were connected and have left."""
    is_current: bool = True
    """False when a reader must await `known` first."""

    async def known(self) -> frozenset[str] | None:
        """Return `names`; ask the engine if they are out of date, and wait for its first answer."""
        return self.names


class _Inputs(NamedTuple):
    """All that a view is made of, except documents. Each part stays one object until it changes."""

    levels: Levels
    installed: frozenset[str] | None
    hides: bool
    left: frozenset[str]
    local: frozenset[str]
    lock: LockFile
    sources: Origins
    findings: tuple[tuple[Finding, ...], tuple[Finding, ...], tuple[Finding, ...]]


class Catalogue:
    """Combines every source of documents.

    ``folders`` has the documents on disk, ``registered`` those of other workers, ``installed`` says whose
    namespaces are shown (with ``filter_unregistered``), ``notes`` has further findings.
    """

    def __init__(
        self,
        folders: FolderSource,
        registered: RegisteredSource | None = None,
        installed: InstalledSource | None = None,
        *,
        notes: Notes | None = None,
        filter_unregistered: bool = True,
        show_paths: bool = False,
        levels: Levels | None = None,
    ) -> None:
        self._folders = folders
        self.has_installed = folders.has_installed
        self._registered = registered or RegisteredSource()
        self._installed = installed or InstalledSource()
        self._notes = notes or Notes()
        self._filter = filter_unregistered
        self._files = FileReader(folders, self._registered.body, show_paths=show_paths)
        self._view: CatalogueView | None = None
        self._levels = levels or Levels()
        self._everything = EMPTY
        """Every document, before the levels leave some out."""
        self._leveled: tuple[Snapshot, Snapshot] | None = None
        """The documents for readers by name and for lists; None where the levels leave nothing out."""
        self._revision = 0
        self._revisions: PagedMap[int] = PagedMap()
        self._inputs: _Inputs | None = None
        self._registrants = Registrants()
        self._log = FindingLog()
        self._this_turn: CatalogueView | None = None
        """The view that answers every call of this turn of the event loop."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._background: asyncio.Task[None] | None = None
        self._woken: asyncio.Event | None = None
        """Set when a reader saw a change before the background did."""
        self._edited: set[str] = set()
        """The files that changed since the follower was last called."""
        self._reads = 0

    @property
    def activity(self) -> int:
        """Count the reads and registrations so far; an equal count later means it was idle."""
        return self._reads + self._registered.skills.changes + self._registered.prompts.changes

    def settings_changed(self, *, filter_unregistered: bool, show_paths: bool, levels: Levels) -> None:
        """Apply changed settings from the next read on."""
        self._filter = filter_unregistered
        # As lists, because the first pattern that fits decides, so their order matters.
        if list(levels.table.items()) != list(self._levels.table.items()):
            self._levels, self._leveled = levels, None
        self._files.show_paths = show_paths
        self._this_turn = None

    def load(self) -> CatalogueView:
        """Return a view without an event loop, for a command that reads once."""
        self._folders.catch_up()
        return self._take_up()

    async def open(self, follower: Callable[[CatalogueView, set[str]], None]) -> None:
        """Read everything for the first time, and follow the folders from then on.

        ``follower`` is called with the first view, and with another soon after each change on disk, even if
        a reader saw the change first. It also receives the paths of the files that were added, changed or
        removed since the last time.
        """
        # Only here, because a command that lists a folder should not pay for importing asyncio.
        from asyncio import Event, get_running_loop, to_thread

        def follow() -> None:
            follower(self._take_up(), self._edited)
            # Only now: if the follower fails, it receives these paths again.
            self._edited = set()

        await to_thread(self._folders.catch_up)
        follow()
        self._loop = loop = get_running_loop()
        self._woken = Event()
        self._background = loop.create_task(keep_fresh(self._folders, follow, self._woken))

    def close(self) -> None:
        if self._background is not None:
            self._background.cancel()
        self._folders.close()

    async def current(self) -> CatalogueView:
        """Return the catalogue as of now, with every file and registration that was written before the call.

        Calls that came in together share one view: a later call is read from a socket, or comes from a
        thread, in a later turn of the event loop.
        """
        self._reads += 1
        if self._this_turn is not None and not self._registered.has_changes:
            return self._this_turn
        if not self._installed.is_current:
            await self._installed.known()
        if not self._registered.is_ready:
            await self._registered.ready()
        # The kernel has queued an event for every write that ended before this call, so none can be missed.
        if not self._folders.catch_up(INLINE_FILES):
            from asyncio import to_thread

            await to_thread(self._folders.catch_up)
            # A file written while the thread read may belong to a call of this very turn, which therefore
            # does not share this view.
            return self._take_up()
        if self._loop is None:
            from asyncio import get_running_loop

            self._loop = get_running_loop()
        self._this_turn = view = self._take_up()
        # Runs after the calls that are waiting in this turn, and before the next message is read.
        self._loop.call_soon(setattr, self, "_this_turn", None)
        return view

    # Inner workings

    def _take_up(self) -> CatalogueView:
        """Return a view of what the sources hold now. It never waits, so that all of it is of one moment."""
        files = self._folders.take_changes() if self._folders.pending else {}
        registered = self._registered.take_changes() if self._registered.has_changes else {}
        inputs = _Inputs(
            self._levels,
            self._installed.names,
            self._filter and self._installed.are_all,
            self._installed.left,
            self._folders.local_namespaces,
            self._folders.record.lock,
            Origins(self._folders.record.namespaces, self._installed.connected),
            (self._folders.findings, self._registered.findings, self._notes.findings),
        )
        if files or registered or inputs != self._inputs or self._view is None:
            self._view = self._new_view(files, registered, inputs)
            self._inputs = inputs
        return self._view

    def _new_view(self, files: Changes, registered: Changes, inputs: _Inputs) -> CatalogueView:
        snapshot = self._everything
        before = Origins({}) if self._inputs is None else self._inputs.sources
        if files and self._woken is not None:
            self._woken.set()
            for path, entry in files.items():
                # With the provenance of the earlier record, so that an install alone is not an edit.
                old, new = snapshot.files.get(path), before.of_entry(entry, path)
                # An entry that is never read, such as a link, has no size and is not edited.
                if old != new and any(one is not None and one.size is not None for one in (old, new)):
                    self._edited.add(path)
        # The lock file wakes the follower, but is not a document.
        files.pop(LOCKFILE, None)
        files = inputs.sources.of_files(before, snapshot, files)
        registered = self._registrants.sourced(inputs.sources, snapshot, registered)
        installed = inputs.installed if inputs.hides else None
        visibility = Visibility(installed, inputs.sources.recorded, inputs.local)
        snapshot = self._everything = snapshot.changed(files, registered, visibility)
        self._leveled = self._by_levels(files, registered)
        folders, registrations, notes = inputs.findings
        noted = (*folders, *inputs.lock.findings, *registrations, *notes)
        unsaid = [finding for finding in noted if finding not in self._notes.logged]
        changed = [entry for entry in (*files.values(), *registered.values()) if entry is not None]
        found = [finding for entry in changed for finding in entry.findings]
        # Only what this change brought is logged; the view has all findings.
        self._log.say([*unsaid, *found, *strays(snapshot, files)])
        self._revision += 1
        # Readers keep what they derived from one namespace for as long as its revision stays.
        changed_places = {REGISTERED} if registered else set[str]()
        changed_places |= {namespace_of(path) for path in files}
        self._revisions = self._revisions.changed(dict.fromkeys(changed_places, self._revision))
        shown, offered = (snapshot, None) if self._leveled is None else self._leveled
        return CatalogueView(
            shown,
            inputs.installed,
            inputs.lock,
            noted,
            self._files,
            inputs.left,
            self._revisions,
            self._levels,
            offered,
            inputs.sources,
        )

    def _by_levels(self, files: Changes, registered: Changes) -> tuple[Snapshot, Snapshot] | None:
        """Derive the snapshots for readers by name and for lists; anew where the levels changed."""
        everything, levels = self._everything, self._levels
        if not levels.table:
            return None
        before = self._leveled
        if before is None:
            before = EMPTY, EMPTY
            files, registered = dict(everything.files.items()), dict(everything.registered.items())

        by_name, in_lists = (
            snapshot.changed(
                {path: seen(path, entry) for path, entry in files.items()},
                {key: seen(key, entry) for key, entry in registered.items()},
                everything.visibility,
            )
            for snapshot, seen in zip(before, (levels.shown, levels.listed), strict=True)
        )
        return by_name, in_lists


async def keep_fresh(source: FolderSource, take_up: Callable[[], None], woken: asyncio.Event) -> None:
    """Read changes of the folders in a thread as they happen, until cancelled.

    ``take_up`` is called on the event loop after each round, and also after a reader set ``woken`` because it
    saw a change first. A folder that cannot be watched, or whose last scan failed, is scanned every
    `limits.RESCAN_SECONDS`.
    """
    from asyncio import get_running_loop, sleep, timeout, to_thread

    loop, logged = get_running_loop(), ""
    while True:
        try:
            await to_thread(source.catch_up)
            take_up()
            woken.clear()
            # Editors and installers change several files at once, which one round takes up together.
            await sleep(limits.BURST_SECONDS)
            descriptors = source.wake_fds()
            try:
                for descriptor in descriptors:
                    loop.add_reader(descriptor, woken.set)
                with suppress(TimeoutError):
                    async with timeout(limits.RESCAN_SECONDS):
                        await woken.wait()
            finally:
                for descriptor in descriptors:
                    loop.remove_reader(descriptor)
        except Exception as error:
            # The cause may be temporary; without this task only readers would notice changes.
            if logged != repr(error):
                logged = repr(error)
                log.exception("following the skills folder failed, and is tried again")
            await sleep(limits.RESCAN_SECONDS)
