"""Reading the files of skills: pages of them, and their hashes, each kept while the file is as it was.

A page and the hash beside it are of the same bytes: a file small enough to be part of a skill is read whole
and hashed as it was read, unless its hash is known and its state, before and after, is the one it was hashed
in.
"""

from __future__ import annotations

import copy
import hashlib
import os
import threading
from typing import TYPE_CHECKING, Final

from iii_directory.catalog.folder.roots import MODIFIED_AT
from iii_directory.disk.files import settled_stamp, stamp_of
from iii_directory.disk.reasons import RefusedError
from iii_directory.documents.file_pages import FilePart
from iii_directory.errors import FILE_NOT_FOUND, DirectoryError
from iii_directory.limits import MAX_BUNDLE_BYTES, MAX_KEPT_DIGESTS
from iii_directory.text import quoted, rfc3339

if TYPE_CHECKING:
    from iii_directory.catalog.folder.layers import FolderSource
    from iii_directory.disk.files import Stamp

# A file that is written to that many times while it is read is read as it comes.
_MOST_READS: Final = 4


class SkillFiles:
    """Any thread may ask. D119 for a file that has just gone."""

    def __init__(self, folders: FolderSource, *, show_paths: bool) -> None:
        self._folders = folders
        self.show_paths = show_paths
        self._digests: dict[str, tuple[Stamp, str]] = {}
        self._lock = threading.Lock()

    def read(self, path: str, offset: int = 0, limit: int = MAX_BUNDLE_BYTES) -> FilePart:
        """At most ``limit`` bytes of a file from ``offset`` on."""
        try:
            with self._folders.opened(path) as file:
                if file is None:
                    raw = self._folders.read_body(path)
                    return FilePart(raw[offset : offset + limit], len(raw), _digest(raw), MODIFIED_AT)
                return self._part(path, file, offset, limit)
        except RefusedError:
            problem = f"file {quoted(path)} not found: it has just gone or cannot be read"
            raise DirectoryError(FILE_NOT_FOUND, problem) from None

    def sha256(self, path: str) -> str | None:
        """The hash of a file; None of one too large to be part of a skill."""
        return self.read(path, 0, 0).sha256

    def place_of(self, path: str | None) -> dict[str, str]:
        """Where a file is on this machine, as a field of a reply; none unless the operator wants it told."""
        if path is None or not self.show_paths:
            return {}
        place = self._folders.place_of(path)
        return {} if place is None else {"path": place}

    def telling_paths(self) -> SkillFiles:
        """The same files and hashes, for a caller who may know where they lie."""
        if self.show_paths:
            return self
        telling = copy.copy(self)
        telling.show_paths = True
        return telling

    def layer_of(self, path: str) -> str | None:
        """What the folder is called that a path belongs to; None of the one that can be written."""
        return self._folders.layer_of(path)

    def _part(self, path: str, file: int, offset: int, limit: int) -> FilePart:
        state = os.fstat(file)
        stamp = settled_stamp(state)
        modified_at = rfc3339(state.st_mtime_ns)
        known = self._known(path, stamp)
        if known is not None:
            raw = _page(file, state.st_size, offset, limit)
            if stamp_of(os.fstat(file)) == stamp:
                return FilePart(raw, state.st_size, known, modified_at)
        whole = b"" if state.st_size > MAX_BUNDLE_BYTES else _whole(file)
        if max(len(whole), state.st_size) > MAX_BUNDLE_BYTES:
            raw = _page(file, state.st_size, offset, limit)
            return FilePart(raw, os.fstat(file).st_size, None, modified_at)
        digest = _digest(whole)
        if stamp is not None and stamp_of(os.fstat(file)) == stamp:
            self._keep(path, stamp, digest)
        return FilePart(whole[offset : offset + limit], len(whole), digest, modified_at)

    def _known(self, path: str, stamp: Stamp | None) -> str | None:
        kept = self._digests.get(path)
        return kept[1] if kept is not None and kept[0] == stamp else None

    def _keep(self, path: str, stamp: Stamp, digest: str) -> None:
        with self._lock:
            self._digests.pop(path, None)
            self._digests[path] = (stamp, digest)
            if len(self._digests) > MAX_KEPT_DIGESTS:
                del self._digests[next(iter(self._digests))]


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _page(file: int, size: int, offset: int, limit: int) -> bytes:
    """Read a page; nothing beyond the end, where the system refuses offsets that it cannot count."""
    return b"" if offset > size else os.pread(file, limit, offset)


def _whole(file: int) -> bytes:
    """All of a file, or a little more than a skill may have.

    A regular file comes in one piece. One that has more behind it was written to meanwhile: it is read anew,
    so that no piece of one version is served behind a piece of another.
    """
    for _ in range(_MOST_READS):
        raw = os.pread(file, MAX_BUNDLE_BYTES + 1, 0)
        if len(raw) > MAX_BUNDLE_BYTES or not os.pread(file, 1, len(raw)):
            return raw
    return _in_pieces(file)


def _in_pieces(file: int) -> bytes:
    """What a file system hands out bit by bit, or a file that grows faster than it is read."""
    pieces: list[bytes] = []
    at = 0
    while at <= MAX_BUNDLE_BYTES and (piece := os.pread(file, MAX_BUNDLE_BYTES + 1 - at, at)):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)
