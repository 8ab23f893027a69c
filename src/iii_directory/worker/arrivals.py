"""What follows a download: notes for the diagnostics, and the word to whoever subscribed.

A namespace is told of when its record in the lock file changes, so those that another process installs are
told of like our own, and each once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from iii_directory.documents.ids import namespace_of
from iii_directory.documents.model import Finding

if TYPE_CHECKING:
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.look import Look
    from iii_directory.catalog.notes import Notes
    from iii_directory.errors import DirectoryError
    from iii_directory.install.reports import Installation
    from iii_directory.lockfile.format import LockFile
    from iii_directory.worker.events import Events


class Arrivals:
    """Told of every download, by a call or by the worker itself, and of every look behind the folder."""

    def __init__(self, catalogue: Catalogue, notes: Notes, events: Events) -> None:
        self._catalogue = catalogue
        self._notes = notes
        self._events = events
        self._told: LockFile | None = None
        """The lock file up to which subscribers know everything."""

    async def landed(self, done: Installation) -> None:
        """A bundle is in its folder: when this returns, readers see it and subscribers were told.

        What was edited by hand is not noted: whoever asks for the diagnostics is told what is edited then.
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
        """A caller wrote a document, and readers see it."""
        self._events.written({"op": op, "namespace": namespace_of(skill_id), "id": skill_id})

    def failed(self, worker: str, error: DirectoryError) -> None:
        """What a worker brings could not be fetched."""
        reason = f"its skills could not be fetched: {error.problem}"
        fix = f"call directory::skills::download_from_registry with worker {worker} to try again"
        self._notes.put(_failure_of(worker), Finding("download", worker, reason, fix))

    def nothing_to_fetch(self, worker: str) -> None:
        """If something failed before, that is over."""
        self._notes.drop(_failure_of(worker))

    def tell(self, look: Look) -> None:
        """Tell the subscribers of every namespace that was installed since the last time."""
        if look.lockfile.broken:
            # It says nothing of its time; the next one that can be read is compared with the last that could.
            return
        before, self._told = self._told, look.lockfile
        if before is None or before is look.lockfile:
            return
        for change in self._catalogue.installed_between(before, look.lockfile):
            self._events.installed(change)


def _failure_of(worker: str) -> str:
    return f"failed {worker} "


def _left_out_of(namespace: str) -> str:
    return f"left out of {namespace} "
