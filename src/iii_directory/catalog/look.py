"""What every answer is made of: one moment of the catalogue, and the bodies of what it shows."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.catalog.diagnostics import findings, provenance_of, report
from iii_directory.catalog.shelf import Pages
from iii_directory.catalog.sourcing import Sources
from iii_directory.catalog.visibility import Levels
from iii_directory.disk.reasons import RefusedError
from iii_directory.documents.parse import document_of
from iii_directory.errors import PROMPT_NOT_FOUND, SKILL_NOT_FOUND, DirectoryError
from iii_directory.limits import MAX_KEPT_BODY_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from iii_directory.catalog.folder.layers import FolderSource
    from iii_directory.catalog.skill_files import SkillFiles
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.disk.files import Stamp
    from iii_directory.documents.model import Finding, Prompt, Skill
    from iii_directory.documents.parse import Document
    from iii_directory.errors import ErrorKind
    from iii_directory.lockfile.format import LockFile


REGISTERED: Final = "\0registered"


class Look(NamedTuple):
    """The catalogue at one moment. It never changes; only bodies are read when they are asked for."""

    snapshot: Snapshot
    installed: frozenset[str] | None
    """The names of the installed workers; None when nobody can say."""
    lockfile: LockFile
    """What ``skills.lock.json`` records."""
    noted: tuple[Finding, ...]
    """What the sources had to say beside their documents."""
    bodies: Bodies
    files: SkillFiles
    left: frozenset[str] = frozenset()
    """Workers that were connected and are no more."""
    revisions: Pages[int] = Pages()
    """By namespace of the folder, or `REGISTERED`: differs after every change of a file or a record there."""
    levels: Levels = Levels()
    """How much of each skill is offered."""
    offered: Snapshot | None = None
    """The documents for lists where the levels leave some out of them; else None."""
    sources: Sources = Sources({})
    """What gives files their provenance."""

    @property
    def listed(self) -> Snapshot:
        """The documents that lists, indexes and search show."""
        return self.snapshot if self.offered is None else self.offered

    def telling_paths(self) -> Look:
        """The same look, for a caller who may know where files lie."""
        return self._replace(files=self.files.telling_paths())

    def revision_of(self, namespace: str | None) -> int | None:
        """The revision of a namespace of the folder, or with None of the registrations."""
        return self.revisions.get(REGISTERED if namespace is None else namespace)

    def read_skill(self, skill: Skill) -> str:
        """The body of a skill of this snapshot; D110 if it has gone since. Any thread may ask.

        A registered one is served as it was registered, its front matter too.
        """
        return self.read_document(skill).body if skill.path is not None else self.bodies.registered(skill.id)

    def read_document(self, skill: Skill) -> Document:
        """The same with everything its author wrote, and without the front matter in any body."""
        if skill.path is None:
            return document_of(self.bodies.registered(skill.id))
        return self.bodies.of_file(skill.path, SKILL_NOT_FOUND, f"skill '{skill.id}'")

    def read_prompt(self, prompt: Prompt) -> str:
        """The template of a prompt that is a file. Any thread may ask."""
        return self.bodies.of_file(prompt.path or "", PROMPT_NOT_FOUND, f"prompt '{prompt.name}'").body

    def findings(self) -> list[Finding]:
        """Everything that was left out or is odd."""
        return [*self.noted, *findings(self.snapshot)]

    def report(self, found: Iterable[Finding], asked: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of ``directory::diagnostics`` for findings of this moment."""
        return report(found, asked, partial(provenance_of, self.snapshot))


class Bodies:
    """Reads bodies as they are now, and keeps a few: each for as long as its file is as it was."""

    def __init__(self, folders: FolderSource, registered: Callable[[str], str]) -> None:
        self.registered = registered
        """The body of a registered skill by its id."""
        self._folders = folders
        self._kept = KeptBodies()

    def of_file(self, path: str, missing: ErrorKind, what: str) -> Document:
        stamp = self._folders.stamp(path)
        body = self._kept.get(path, stamp)
        if body is not None:
            return body
        try:
            body = document_of(self._folders.read_body(path).decode("utf-8"))
        except (RefusedError, UnicodeDecodeError):
            raise DirectoryError(missing, f"{what} not found: its file has just gone") from None
        self._kept.keep(path, stamp, body)
        return body


class KeptBodies:
    """A few bodies by path; the one unused for longest goes first. Any thread may use it."""

    def __init__(self, room: int = MAX_KEPT_BODY_CHARS) -> None:
        self._room = room
        self._kept: dict[str, tuple[Stamp, Document]] = {}
        # Documents that link to a function are read in a thread while the loop answers others.
        self._lock = threading.Lock()

    def get(self, path: str, stamp: Stamp | None) -> Document | None:
        """The body of a file in this state, if it is here."""
        with self._lock:
            kept = self._kept.get(path)
            if kept is None or kept[0] != stamp:
                return None
            # The order of a dictionary is that of insertion: the newest is last.
            del self._kept[path]
            self._kept[path] = kept
            return kept[1]

    def keep(self, path: str, stamp: Stamp | None, document: Document) -> None:
        """Keep what was read from a file that was in this state just before; without a stamp, nothing."""
        with self._lock:
            old = self._kept.pop(path, None)
            if old is not None:
                self._room += len(old[1].raw)
            if stamp is None:
                return
            self._kept[path] = (stamp, document)
            self._room -= len(document.raw)
            while self._room < 0:
                oldest = next(iter(self._kept))
                self._room += len(self._kept.pop(oldest)[1].raw)
