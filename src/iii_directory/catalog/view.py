"""Show the catalogue at one moment, as answers read it: documents, their bodies, and the files of skills.

A page of a file and the hash beside it are of the same bytes: a file small enough to be part of a skill is
read whole and hashed as it was read, unless its hash is known and the file has not changed since.
"""

from __future__ import annotations

import copy
import hashlib
import os
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.catalog.diagnostics import findings, report
from iii_directory.catalog.folders import MODIFIED_AT
from iii_directory.catalog.origins import Levels, Origins
from iii_directory.catalog.persistent import PagedMap
from iii_directory.disk.files import RefusedError, settled_stamp, stamp_of
from iii_directory.documents.file_pages import FilePart
from iii_directory.documents.parse import document_of
from iii_directory.errors import FILE_NOT_FOUND, PROMPT_NOT_FOUND, SKILL_NOT_FOUND, DirectoryError
from iii_directory.limits import MAX_BUNDLE_BYTES, MAX_KEPT_BODY_CHARS, MAX_KEPT_DIGESTS
from iii_directory.text import quoted, rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from iii_directory.catalog.folder_source import FolderSource
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.disk.files import Stamp
    from iii_directory.disk.install_record import LockFile
    from iii_directory.documents.model import Finding, Prompt, Skill
    from iii_directory.documents.parse import DocumentText
    from iii_directory.errors import ErrorKind


REGISTERED: Final = "\0registered"
"""The key of all registrations in `CatalogueView.revisions`; it is not a valid namespace."""
# After so many attempts to read a file whole while it is written, it is read as it comes.
_MOST_READS: Final = 4


class CatalogueView(NamedTuple):
    """The catalogue at one moment. It never changes; only bodies and files are read when asked for."""

    snapshot: Snapshot
    installed: frozenset[str] | None
    """The names of the installed workers; None when they are not known."""
    lockfile: LockFile
    """The content of ``skills.lock.json``."""
    noted: tuple[Finding, ...]
    """The findings that do not belong to a document."""
    files: FileReader
    left: frozenset[str] = frozenset()
    """The workers that were connected and have left."""
    revisions: PagedMap[int] = PagedMap()
    """By namespace of the folder, or `REGISTERED`: differs after every change of a file or a record there."""
    levels: Levels = Levels()
    """How much of each skill is offered."""
    offered: Snapshot | None = None
    """The documents for lists, where the levels leave some out of lists; else None."""
    sources: Origins = Origins({})
    """Gives files their provenance."""

    @property
    def listed(self) -> Snapshot:
        """Return the documents that lists, indexes and search show."""
        return self.snapshot if self.offered is None else self.offered

    def telling_paths(self) -> CatalogueView:
        """Return this view for a caller who may know where files are on this machine."""
        if self.files.show_paths:
            return self
        files = copy.copy(self.files)
        files.show_paths = True
        return self._replace(files=files)

    def read_skill(self, skill: Skill) -> str:
        """Return the body of a skill of this snapshot; D110 if it has gone since. Any thread may ask.

        A registered skill is served as it was registered, including its front matter.
        """
        return self.read_document(skill).body if skill.path is not None else self.files.registered(skill.id)

    def read_document(self, skill: Skill) -> DocumentText:
        """Return a skill with its front matter and raw text; the front matter is not part of the body."""
        if skill.path is None:
            return document_of(self.files.registered(skill.id))
        return self.files.document(skill.path, SKILL_NOT_FOUND, f"skill '{skill.id}'")

    def read_prompt(self, prompt: Prompt) -> str:
        """Return the template of a prompt that is a file. Any thread may ask."""
        return self.files.document(prompt.path or "", PROMPT_NOT_FOUND, f"prompt '{prompt.name}'").body

    def findings(self) -> list[Finding]:
        """Return everything that was left out or looks wrong."""
        return [*self.noted, *findings(self.snapshot)]

    def report(self, found: Iterable[Finding], asked: Mapping[str, Any]) -> dict[str, Any]:
        """Answer ``directory::diagnostics`` with findings of this moment."""
        return report(self.snapshot, found, asked)


class BodyCache:
    """Keeps some bodies by path; the one unused for longest goes first. Any thread may use it."""

    def __init__(self, room: int = MAX_KEPT_BODY_CHARS) -> None:
        self._room = room
        self._kept: dict[str, tuple[Stamp, DocumentText]] = {}
        # Documents that link to a function are read in a thread while the event loop answers other calls.
        self._lock = threading.Lock()

    def get(self, path: str, stamp: Stamp | None) -> DocumentText | None:
        """Return the cached body of a file in this state, if there is one."""
        with self._lock:
            kept = self._kept.get(path)
            if kept is None or kept[0] != stamp:
                return None
            # A dictionary has the order of insertion: the newest is last.
            del self._kept[path]
            self._kept[path] = kept
            return kept[1]

    def keep(self, path: str, stamp: Stamp | None, document: DocumentText) -> None:
        """Cache a body read from a file that was in this state just before; without a stamp, drop it."""
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


class FileReader:
    """Reads documents and parts of files as they are now. Any thread may use it.

    Some documents are cached for as long as their files do not change, and so are the hashes of files.
    """

    def __init__(self, folders: FolderSource, registered: Callable[[str], str], *, show_paths: bool) -> None:
        self.registered = registered
        """Returns the body of a registered skill by its id."""
        self.show_paths = show_paths
        """Whether replies tell where files are on this machine."""
        self.folders = folders
        self._documents = BodyCache()
        self._digests: dict[str, tuple[Stamp, str]] = {}
        self._lock = threading.Lock()

    def document(self, path: str, missing: ErrorKind, what: str) -> DocumentText:
        """Return a document of the folder with its text; an error of the kind ``missing`` if it has gone."""
        # Before the read: a change in between leaves a body with an older stamp, which is read again.
        stamp = self.folders.stamp(path)
        document = self._documents.get(path, stamp)
        if document is not None:
            return document
        try:
            document = document_of(self.folders.read_body(path).decode("utf-8"))
        except (RefusedError, UnicodeDecodeError):
            raise DirectoryError(missing, f"{what} not found: its file has just gone") from None
        self._documents.keep(path, stamp, document)
        return document

    def read(self, path: str, offset: int = 0, limit: int = MAX_BUNDLE_BYTES) -> FilePart:
        """Return at most ``limit`` bytes of a file from ``offset`` on; D119 if it has just gone."""
        try:
            with self.folders.opened(path) as file:
                if file is not None:
                    return self._part(path, file, offset, limit)
                raw = self.folders.read_body(path)
                digest = hashlib.sha256(raw).hexdigest()
                return FilePart(raw[offset : offset + limit], len(raw), digest, MODIFIED_AT)
        except RefusedError:
            problem = f"file {quoted(path)} not found: it has just gone or cannot be read"
            raise DirectoryError(FILE_NOT_FOUND, problem) from None

    def place_of(self, path: str | None) -> dict[str, str]:
        """Return where a file is on this machine, as a field of a reply; empty unless paths are shown."""
        place = self.folders.place_of(path) if path is not None and self.show_paths else None
        return {} if place is None else {"path": place}

    def _part(self, path: str, file: int, offset: int, limit: int) -> FilePart:
        state = os.fstat(file)
        stamp = settled_stamp(state)
        modified_at = rfc3339(state.st_mtime_ns)
        kept = self._digests.get(path)
        if kept is not None and kept[0] == stamp:
            raw = _page(file, state.st_size, offset, limit)
            # Unchanged before and after the read, so the known hash is of these bytes.
            if stamp_of(os.fstat(file)) == stamp:
                return FilePart(raw, state.st_size, kept[1], modified_at)
        whole = b"" if state.st_size > MAX_BUNDLE_BYTES else _whole(file)
        if max(len(whole), state.st_size) > MAX_BUNDLE_BYTES:
            raw = _page(file, state.st_size, offset, limit)
            return FilePart(raw, os.fstat(file).st_size, None, modified_at)
        digest = hashlib.sha256(whole).hexdigest()
        if stamp is not None and stamp_of(os.fstat(file)) == stamp:
            with self._lock:
                self._digests.pop(path, None)
                self._digests[path] = (stamp, digest)
                if len(self._digests) > MAX_KEPT_DIGESTS:
                    del self._digests[next(iter(self._digests))]
        return FilePart(whole[offset : offset + limit], len(whole), digest, modified_at)


def _page(file: int, size: int, offset: int, limit: int) -> bytes:
    """Read a page; empty beyond the end, where the system refuses offsets that it cannot represent."""
    return b"" if offset > size else os.pread(file, limit, offset)


def _whole(file: int) -> bytes:
    """Read a whole file, or a little more than a skill may have.

    A regular file comes in one piece. If more follows, the file was written meanwhile and is read again, so
    that pieces of different versions are not served as one.
    """
    for _ in range(_MOST_READS):
        raw = os.pread(file, MAX_BUNDLE_BYTES + 1, 0)
        if len(raw) > MAX_BUNDLE_BYTES or not os.pread(file, 1, len(raw)):
            return raw
    # A file system that returns less than asked for, or a file that grows faster than it is read.
    pieces: list[bytes] = []
    at = 0
    while at <= MAX_BUNDLE_BYTES and (piece := os.pread(file, MAX_BUNDLE_BYTES + 1 - at, at)):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)
