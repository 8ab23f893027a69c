"""The one catalogue: folders, registered entries and installed workers, seen together at one moment.

It is given its sources and asks them; nobody pushes anything into it. It lives on one event loop:
:meth:`Catalogue.look` is awaited before every answer and costs microseconds while nothing changed; much to
read at once is read in a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from iii_directory.catalog.look import Bodies, Look
from iii_directory.catalog.notes import FindingLog, Notes
from iii_directory.catalog.own import NAMESPACE, OwnDocuments
from iii_directory.catalog.registered_source import RegisteredSource
from iii_directory.catalog.snapshot import EMPTY
from iii_directory.catalog.visibility import Visibility
from iii_directory.disk.safe_open import RefusedError
from iii_directory.lockfile.format import LockFile, changed_namespaces, content_hash, parse_lock

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from iii_directory.documents.model import ParsedFile
    from iii_directory.folders.folder import FolderSource
    from iii_directory.lockfile.format import NamespaceChange

# A few files are read at once on the loop (under a millisecond); more are read in a thread.
INLINE_FILES: Final = 8


class InstalledSource(Protocol):
    """Who knows the installed workers."""

    @property
    def names(self) -> frozenset[str] | None:
        """Their names as last heard; None when nobody can say."""
        ...

    async def known(self) -> frozenset[str] | None:
        """The same; waits for the first answer."""
        ...


class _NobodySays:
    """Without an engine nobody knows what is installed, and nothing is hidden."""

    names = None

    async def known(self) -> None:
        return None


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
    ) -> None:
        self._folders = folders
        self._registered = registered or RegisteredSource()
        self._installed = installed or _NobodySays()
        self._notes = notes or Notes()
        self._filter = filter_unregistered
        self._own = OwnDocuments()
        self._bodies = Bodies(folders, self._own, self._registered.body)
        self._own_shown = False
        self._replacing: set[str] = set()
        self._snapshot = EMPTY
        self._lock: LockFile | None = None
        self._log = FindingLog()
        self._this_turn: Look | None = None
        self._call_soon: Callable[[Callable[[], None]], object] = _now
        self._background: asyncio.Task[None] | None = None
        self._woken: asyncio.Event | None = None
        """Set when a reader saw a change before the background did."""

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

        from iii_directory.folders.background import keep_fresh

        await to_thread(self._folders.catch_up)
        follower(self._take_up())
        loop = get_running_loop()
        self._call_soon = loop.call_soon
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
        if self._this_turn is not None and not self._registered.has_changes:
            return self._this_turn
        await self._installed.known()
        await self._registered.ready()
        if not self._folders.catch_up(INLINE_FILES):
            from asyncio import to_thread

            await to_thread(self._folders.catch_up)
            # What was written while the thread looked may belong to a call of this very turn.
            return self._take_up()
        self._this_turn = look = self._take_up()
        self._call_soon(self._end_turn)
        return look

    def installed_between(self, before: LockFile, after: LockFile) -> list[NamespaceChange]:
        """What was installed between two looks. A record that could not be read says nothing of its time."""
        return [] if before.broken else changed_namespaces(before, after, self._is_as_installed)

    # Inner workings

    def _end_turn(self) -> None:
        self._this_turn = None

    def _take_up(self) -> Look:
        """What the sources have learnt until now. It waits for nobody, so all of it is of one moment."""
        installed = self._installed.names
        files: Mapping[str, ParsedFile | None] = {}
        if self._folders.has_changes or self._lock is None:
            files = self._take_files()
            if self._woken is not None:
                self._woken.set()
        registered = self._registered.take_changes() if self._registered.has_changes else {}
        lock = self._lock or LockFile()
        visibility = Visibility(
            installed if self._filter else None, lock.namespaces, self._folders.local_namespaces
        )
        known = self._snapshot.visibility
        self._snapshot = self._snapshot.changed(
            files=files, registered=registered, visibility=None if visibility.is_like(known) else visibility
        )
        noted = (
            *self._folders.findings,
            *lock.findings,
            *self._registered.findings,
            *self._notes.findings,
        )
        changed = [entry for entry in (*files.values(), *registered.values()) if entry is not None]
        self._log.say([*noted, *(finding for entry in changed for finding in entry.findings)])
        return Look(self._snapshot, installed, lock, noted, self._bodies)

    def _take_files(self) -> Mapping[str, ParsedFile | None]:
        changes = self._folders.take_changes()
        if changes.lock_file or self._lock is None:
            self._lock = parse_lock(self._read_lock_file())
        return {**self._own_changes(changes.files), **changes.files}

    def _own_changes(self, changed: Mapping[str, ParsedFile | None]) -> Mapping[str, ParsedFile | None]:
        """A namespace called like this worker in the folder replaces what the package carries."""
        for path, entry in changed.items():
            if path.startswith(f"{NAMESPACE}/"):
                (self._replacing.discard if entry is None else self._replacing.add)(path)
        wanted = not self._replacing
        if wanted == self._own_shown:
            return {}
        self._own_shown = wanted
        return self._own.files if wanted else dict.fromkeys(self._own.files)

    def _is_as_installed(self, path: str, digest: str) -> bool:
        try:
            return content_hash(self._folders.read_installed(path)) == digest
        except RefusedError:
            return False

    def _read_lock_file(self) -> bytes | None:
        try:
            return self._folders.read_lock_file()
        except RefusedError:
            return None


def _now(action: Callable[[], None]) -> None:
    """In place of a loop that is not there yet: no two calls come in together."""
    action()
