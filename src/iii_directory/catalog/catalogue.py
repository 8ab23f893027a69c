"""The one catalogue: folders, registered entries and installed workers, seen together at one moment.

It is given its sources and asks them; nobody pushes anything into it. It lives on one event loop:
:meth:`Catalogue.look` is awaited before every answer and costs microseconds while nothing changed; much to
read at once is read in a thread.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from iii_directory import limits
from iii_directory.catalog.diagnostics import strays
from iii_directory.catalog.look import REGISTERED, Bodies, Look
from iii_directory.catalog.notes import FindingLog, Notes
from iii_directory.catalog.registered_source import RegisteredSource
from iii_directory.catalog.shelf import Pages
from iii_directory.catalog.skill_files import SkillFiles
from iii_directory.catalog.snapshot import EMPTY
from iii_directory.catalog.sourcing import Registrants, Sources
from iii_directory.catalog.visibility import Levels, Visibility
from iii_directory.disk.reasons import RefusedError
from iii_directory.documents.ids import namespace_of
from iii_directory.lockfile.format import LOCKFILE, changed_namespaces, content_hash

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence

    from iii_directory.catalog.folder.layers import Changes, FolderSource
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Finding, ParsedFile
    from iii_directory.lockfile.format import LockFile, NamespaceChange

log = logging.getLogger("iii_directory.catalog")

# A few files are read at once on the loop (under a millisecond); more are read in a thread.
INLINE_FILES: Final = 8


class InstalledSource(Protocol):
    """Who knows the installed workers."""

    @property
    def names(self) -> frozenset[str] | None:
        """Their names as last heard; None when nobody can say."""
        ...

    @property
    def are_all(self) -> bool:
        """Whether these are all, so that what is of nobody among them may be hidden."""
        ...

    @property
    def connected(self) -> Mapping[str, str | None] | None:
        """The connected workers, their names by their ids; None when the engine does not tell."""
        ...

    @property
    def left(self) -> frozenset[str]:
        """Workers that were connected and are no more, as last heard."""
        ...

    async def known(self) -> frozenset[str] | None:
        """The installed; waits for the first answer."""
        ...


class _NobodySays:
    """Without an engine nobody knows what is installed, and nothing is hidden."""

    names = None
    are_all = False
    connected = None
    left: frozenset[str] = frozenset()

    async def known(self) -> None:
        return None


class _Said(NamedTuple):
    """What the sources say beside their documents. Each part stays one object until it changes."""

    levels: Levels
    installed: frozenset[str] | None
    hides: bool
    left: frozenset[str]
    local: frozenset[str]
    lock: LockFile
    sources: Sources
    findings: tuple[tuple[Finding, ...], tuple[Finding, ...], tuple[Finding, ...]]


class Catalogue:
    """Every source under one roof.

    ``folders`` are the documents on disk, ``registered`` those of other workers, ``installed`` says whose
    namespaces are shown (with ``filter_unregistered``), ``notes`` what else belongs into the diagnostics.
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
        self._registered = registered or RegisteredSource()
        self._installed = installed or _NobodySays()
        self._notes = notes or Notes()
        self._filter = filter_unregistered
        self._bodies = Bodies(folders, self._registered.body)
        self._files = SkillFiles(folders, show_paths=show_paths)
        self._look: Look | None = None
        self._levels = levels or Levels()
        self._everything = EMPTY
        """Every document, before the levels leave some out."""
        self._leveled: tuple[Snapshot, Snapshot] | None = None
        """What readers by name and what lists may see; None where the levels leave nothing out."""
        self._revision = 0
        self._revisions: Pages[int] = Pages()
        self._said: _Said | None = None
        self._registrants = Registrants()
        self._log = FindingLog()
        self._this_turn: Look | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._background: asyncio.Task[None] | None = None
        self._woken: asyncio.Event | None = None
        """Set when a reader saw a change before the background did."""
        self._edited: set[str] = set()
        """The files that changed since the follower last took them."""
        self._looks = 0

    @property
    def activity(self) -> int:
        """Count the reads and registrations so far; while this stays, nobody uses the catalogue."""
        return self._looks + self._registered.skills.changes + self._registered.prompts.changes

    def settings_changed(self, *, filter_unregistered: bool, show_paths: bool, levels: Levels) -> None:
        """Hide and tell by other rules, from the next look on."""
        self._filter = filter_unregistered
        if list(levels.table.items()) != list(self._levels.table.items()):
            self._levels, self._leveled = levels, None
        self._files.show_paths = show_paths
        self._this_turn = None

    def load(self) -> Look:
        """One look for whoever looks and leaves; needs no event loop."""
        self._folders.catch_up()
        return self._take_up()

    async def open(self, follower: Callable[[Look], None]) -> None:
        """Read everything for the first time, and follow the folders from then on.

        ``follower`` is called with the first look, and with another soon after each change on disk, whoever
        saw that first.
        """
        # Only here, because a command that lists a folder should not pay for importing asyncio.
        from asyncio import Event, get_running_loop, to_thread

        await to_thread(self._folders.catch_up)
        follower(self._take_up())
        self._loop = loop = get_running_loop()
        self._woken = Event()
        follow = keep_fresh(self._folders, lambda: follower(self._take_up()), self._woken)
        self._background = loop.create_task(follow)

    def close(self) -> None:
        if self._background is not None:
            self._background.cancel()
        self._folders.close()

    async def look(self) -> Look:
        """The catalogue as of now: whoever wrote a file or registered something, and then asks, sees it.

        Calls that came in together are answered after one look: what is asked later than that look is read
        from a socket, or comes from a thread, in a later turn of the loop.
        """
        self._looks += 1
        if self._this_turn is not None and not self._registered.has_changes:
            return self._this_turn
        await self._installed.known()
        if not self._registered.is_ready:
            await self._registered.ready()
        if not self._folders.catch_up(INLINE_FILES):
            from asyncio import to_thread

            await to_thread(self._folders.catch_up)
            # What was written while the thread looked may belong to a call of this very turn.
            return self._take_up()
        if self._loop is None:
            from asyncio import get_running_loop

            self._loop = get_running_loop()
        self._this_turn = look = self._take_up()
        self._loop.call_soon(self._end_turn)
        return look

    def take_edited(self) -> set[str]:
        """For the follower: files that came, changed or went since the last time, whoever saw them first."""
        edited, self._edited = self._edited, set()
        return edited

    def installed_between(self, before: LockFile, after: LockFile) -> list[NamespaceChange]:
        """What was installed between two looks. A record that could not be read says nothing of its time."""
        return [] if before.broken else changed_namespaces(before, after, self._is_as_installed)

    # Inner workings

    def _end_turn(self) -> None:
        self._this_turn = None

    def _take_up(self) -> Look:
        """What the sources have learnt until now. It waits for nobody, so all of it is of one moment."""
        files = self._folders.take_changes() if self._folders.has_changes else {}
        registered = self._registered.take_changes() if self._registered.has_changes else {}
        said = _Said(
            self._levels,
            self._installed.names,
            self._filter and self._installed.are_all,
            self._installed.left,
            self._folders.local_namespaces,
            self._folders.record.lock,
            Sources(self._folders.record.namespaces, self._installed.connected),
            (self._folders.findings, self._registered.findings, self._notes.findings),
        )
        if files or registered or said != self._said or self._look is None:
            self._look = self._new_look(files, registered, said)
            self._said = said
        return self._look

    def _new_look(self, files: Changes, registered: Changes, said: _Said) -> Look:
        snapshot = self._everything
        before = Sources({}) if self._said is None else self._said.sources
        if files and self._woken is not None:
            self._woken.set()
            self._edited |= {
                path
                for path, entry in files.items()
                # Under the record as it was, so that an install alone is not taken for an edit.
                if _differs(snapshot.files.get(path), before.of_entry(entry, path))
            }
        # The lock file wakes the follower, and is not a document.
        files.pop(LOCKFILE, None)
        files = said.sources.of_files(before, snapshot, files)
        registered = self._registrants.sourced(said.sources, snapshot, registered)
        visibility = Visibility(said.installed if said.hides else None, said.sources.recorded, said.local)
        snapshot = self._everything = snapshot.changed(
            files=files,
            registered=registered,
            visibility=None if visibility.is_like(snapshot.visibility) else visibility,
        )
        self._leveled = self._by_levels(files, registered)
        folders, registrations, notes = said.findings
        noted = (*folders, *said.lock.findings, *registrations, *notes)
        changed = [entry for entry in (*files.values(), *registered.values()) if entry is not None]
        unsaid = [finding for finding in noted if finding not in self._notes.logged]
        found = [*unsaid, *(finding for entry in changed for finding in entry.findings)]
        self._log.say([*found, *strays(snapshot, files)])
        self._revision += 1
        changed_places = {REGISTERED} if registered else set[str]()
        changed_places |= {namespace_of(path) for path in files}
        self._revisions = self._revisions.changed(dict.fromkeys(changed_places, self._revision))
        shown, offered = (snapshot, None) if self._leveled is None else self._leveled
        return Look(
            shown,
            said.installed,
            said.lock,
            noted,
            self._bodies,
            self._files,
            said.left,
            self._revisions,
            self._levels,
            offered,
            said.sources,
        )

    def _by_levels(self, files: Changes, registered: Changes) -> tuple[Snapshot, Snapshot] | None:
        """Derive what readers by name, and what lists may see; all of it anew where the levels changed."""
        everything, levels = self._everything, self._levels
        if not levels.table:
            return None
        before = self._leveled
        if before is None:
            before = EMPTY, EMPTY
            files, registered = dict(everything.files.items()), dict(everything.registered.items())

        def derived(
            snapshot: Snapshot, seen: Callable[[str, ParsedFile | None], ParsedFile | None]
        ) -> Snapshot:
            same = everything.visibility.is_like(snapshot.visibility)
            return snapshot.changed(
                files={path: seen(path, entry) for path, entry in files.items()},
                registered={key: seen(key, entry) for key, entry in registered.items()},
                visibility=None if same else everything.visibility,
            )

        return derived(before[0], levels.shown), derived(before[1], levels.listed)

    def _is_as_installed(self, path: str, digest: str) -> bool:
        try:
            return content_hash(self._folders.read_installed(path)) == digest
        except RefusedError:
            return False


async def keep_fresh(source: FolderSource, take_up: Callable[[], None], woken: asyncio.Event) -> None:
    """Read changes of the folders in a thread as they happen, until cancelled.

    ``take_up`` is called on the event loop after each round, and also after a reader set ``woken`` because it
    saw a change first. A folder that cannot be watched, or whose last scan failed, is scanned every
    `limits.RESCAN_SECONDS`.
    """
    from asyncio import sleep, to_thread

    logged = ""
    while True:
        try:
            await to_thread(source.catch_up)
            take_up()
            woken.clear()
            await sleep(limits.BURST_SECONDS)
            await _readable(source.wake_fds(), woken, limits.RESCAN_SECONDS)
        except Exception as error:
            # The cause may be temporary; without this task only readers would notice changes.
            if logged != repr(error):
                logged = repr(error)
                log.exception("following the skills folder failed, and is tried again")
            await sleep(limits.RESCAN_SECONDS)


async def _readable(descriptors: Sequence[int], woken: asyncio.Event, seconds: float) -> None:
    """Wait until a descriptor is readable, ``woken`` is set, or the time is over."""
    from asyncio import get_running_loop, timeout

    loop = get_running_loop()
    try:
        for descriptor in descriptors:
            loop.add_reader(descriptor, woken.set)
        async with timeout(seconds):
            await woken.wait()
    except TimeoutError:
        return
    finally:
        for descriptor in descriptors:
            loop.remove_reader(descriptor)


def _differs(before: ParsedFile | None, after: ParsedFile | None) -> bool:
    """Whether a file came, changed or went; what is never read, such as a link, does none of that."""
    return before != after and any(entry is not None and entry.size is not None for entry in (before, after))
