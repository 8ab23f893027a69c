"""The one catalogue: the folder, this package's own documents and the registered entries, as one snapshot.

It lives on one event loop. :meth:`Catalogue.current` is asked before every answer and costs microseconds
while nothing changed; much to read at once is read in a thread.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from iii_directory.catalog.bodies import Bodies
from iii_directory.catalog.diagnostics import findings
from iii_directory.catalog.own import NAMESPACE, OwnDocuments
from iii_directory.catalog.snapshot import EMPTY
from iii_directory.catalog.summary import log_lines
from iii_directory.catalog.visibility import Visibility
from iii_directory.disk.safe_open import RefusedError
from iii_directory.documents.parse import body_of
from iii_directory.errors import PROMPT_NOT_FOUND, SKILL_NOT_FOUND, DirectoryError
from iii_directory.lockfile.format import Lock, changed_namespaces, content_hash, parse_lock
from iii_directory.text import escaped

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping

    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Finding, ParsedFile, Prompt, Skill
    from iii_directory.errors import Kind
    from iii_directory.folders.folder import FolderSource
    from iii_directory.lockfile.format import NamespaceChange

log = logging.getLogger("iii_directory.catalog")

# A few files are read at once on the loop (under a millisecond); more are read in a thread.
INLINE_FILES: Final = 8


class Catalogue:
    """Both sources under one roof."""

    def __init__(self, folder: FolderSource) -> None:
        self._folder = folder
        self._registered_body: Callable[[str], str] | None = None
        self._bodies = Bodies()
        self._own = OwnDocuments()
        self._own_shown = False
        self._replacing: set[str] = set()
        self._snapshot = EMPTY
        self._installed: frozenset[str] | None = None
        self._locked: Lock | None = None
        self.on_installed: Callable[[NamespaceChange], None] = lambda _change: None
        """Told of each namespace that was installed since, by this process or another."""
        self._extra: dict[str, Finding] = {}
        self._told: set[Finding] = set()
        self._fresh = False
        self._call_soon: Callable[[Callable[[], None]], object] = _now
        self._background: asyncio.Task[None] | None = None

    def load(self) -> Snapshot:
        """Read everything once, for whoever looks and leaves; needs no event loop."""
        self._folder.catch_up()
        self._take()
        return self._snapshot

    async def open(self) -> None:
        """Read everything for the first time, and follow changes from then on."""
        # Only here, because a command that lists a folder should not pay for importing asyncio.
        from asyncio import get_running_loop, to_thread

        from iii_directory.folders.background import keep_fresh

        await to_thread(self._folder.catch_up)
        self._take()
        loop = get_running_loop()
        self._call_soon = loop.call_soon
        self._background = loop.create_task(keep_fresh(self._folder, self._take))

    def close(self) -> None:
        if self._background is not None:
            self._background.cancel()
        self._folder.close()

    async def current(self) -> Snapshot:
        """The catalogue as of now: whoever wrote a file and then asks sees it."""
        if self._folder.catch_up(INLINE_FILES):
            self._fresh = True
            self._call_soon(self._grow_stale)
        else:
            from asyncio import to_thread

            await to_thread(self._folder.catch_up)
        if self._folder.has_changes:
            self._take()
        return self._snapshot

    @property
    def fresh(self) -> Snapshot | None:
        """The catalogue, if it was looked at in this turn of the loop.

        Calls that came in together are answered after one look: what is asked later than that look is read
        from a socket, or comes from a thread, in a later turn.
        """
        return self._snapshot if self._fresh else None

    def read_skill(self, skill: Skill) -> str:
        """The body of a skill of the current snapshot."""
        if skill.path is None and self._registered_body is not None:
            return self._registered_body(skill.id)
        return self._read(skill.path or "", SKILL_NOT_FOUND, f"skill '{skill.id}'")

    def read_prompt(self, prompt: Prompt) -> str:
        """The template of a prompt that is a file."""
        return self._read(prompt.path or "", PROMPT_NOT_FOUND, f"prompt '{prompt.name}'")

    def set_installed(self, names: frozenset[str] | None) -> None:
        """The installed workers, whose namespaces are shown; None shows everything."""
        if names != self._installed:
            self._installed = names
            self._snapshot = self._snapshot.changed(visibility=self._visibility())

    def set_registered(self, changes: Mapping[str, ParsedFile | None], body: Callable[[str], str]) -> None:
        """Registered entries are new, other, or gone; ``body`` gives the body of a skill by its id."""
        self._registered_body = body
        self._snapshot = self._snapshot.changed(registered=changes)
        self._tell(finding for entry in changes.values() if entry is not None for finding in entry.findings)

    def note(self, key: str, finding: Finding | None) -> None:
        """Something outside the documents is worth a line in the diagnostics, or no more."""
        if finding is None:
            self._extra.pop(key, None)
        else:
            self._extra[key] = finding
            self._tell([finding])

    def drop_notes(self, prefix: str) -> None:
        """What was noted under keys that start so is no more."""
        for key in [key for key in self._extra if key.startswith(prefix)]:
            del self._extra[key]

    def findings(self) -> list[Finding]:
        return [
            *self._folder.findings,
            *self.lockfile.findings,
            *self._extra.values(),
            *findings(self._snapshot),
        ]

    @property
    def lockfile(self) -> Lock:
        """What the lock file records, as of the last change seen."""
        return self._locked or Lock()

    # Inner workings

    def _grow_stale(self) -> None:
        self._fresh = False

    def _take(self) -> None:
        changes = self._folder.take_changes()
        files = {**self._own_changes(changes.files), **changes.files}
        before = self._locked
        if changes.lock_file or before is None:
            self._locked = parse_lock(self._read_lock_file())
        rules_changed = changes.lock_file or self._folder.local_namespaces != self._snapshot.visibility.local
        self._snapshot = self._snapshot.changed(
            files=files, visibility=self._visibility() if rules_changed else None
        )
        self._tell(self._folder.findings)
        self._tell(finding for entry in files.values() if entry is not None for finding in entry.findings)
        # A record that could not be read says nothing of what was there before it could be read again.
        if before is not None and changes.lock_file and not before.broken:
            for change in changed_namespaces(before, self.lockfile, self._is_there):
                self.on_installed(change)

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

    def _visibility(self) -> Visibility:
        return Visibility(self._installed, self.lockfile.namespaces, self._folder.local_namespaces)

    def _read(self, path: str, missing: Kind, what: str) -> str:
        if self._own_shown and path in self._own.files:
            return body_of(self._own.read(path))
        stamp = self._folder.stamp(path)
        body = self._bodies.get(path, stamp)
        if body is not None:
            return body
        try:
            body = body_of(self._folder.read_body(path))
        except (RefusedError, UnicodeDecodeError):
            raise DirectoryError(missing, f"{what} not found: its file has just gone") from None
        self._bodies.keep(path, stamp, body)
        return body

    def _is_there(self, path: str, digest: str) -> bool:
        try:
            return content_hash(self._folder.read_installed(path)) == digest
        except RefusedError:
            return False

    def _read_lock_file(self) -> bytes | None:
        try:
            return self._folder.read_lock_file()
        except RefusedError:
            return None

    def _tell(self, found: Iterable[Finding]) -> None:
        """The log says each finding once, and many of a kind in one line."""
        new = [finding for finding in dict.fromkeys(found) if finding not in self._told]
        self._told.update(new)
        for urgent, line in log_lines(new):
            log.log(logging.WARNING if urgent else logging.INFO, "%s", escaped(line))


def _now(action: Callable[[], None]) -> None:
    """In place of a loop that is not there yet: no two calls come in together."""
    action()
