"""Find installed files that were edited by hand, by the hashes in the install record."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from iii_directory.disk.files import PosixFiles, closing_fd, racy_after, settled_stamp, stamp_of
from iii_directory.disk.locking import WORK_FOLDER
from iii_directory.disk.reasons import RefusedError
from iii_directory.disk.record_reader import read_lock
from iii_directory.disk.safe_open import directory_below, hash_file
from iii_directory.install.apply import WORK_SUFFIX
from iii_directory.install.reports import edited_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from iii_directory.disk.files import FileOps, Stamp
    from iii_directory.disk.install_record import LockFile
    from iii_directory.documents.model import Finding


class Edits:
    """Compares files when asked, and reads only those that changed since the last time."""

    def __init__(self, skills_folder: Path) -> None:
        self._path = os.fspath(skills_folder)
        self._files = PosixFiles()
        self._hashes: dict[str, tuple[Stamp, str]] = {}
        self._turn = threading.Lock()

    def findings(self, lock: LockFile) -> list[Finding]:
        """Return a finding for each file that differs from the record. Blocks; run it in a thread."""
        # One at a time: the second caller finds the hashes of the first.
        with self._turn:
            try:
                with closing_fd(self._files.open_root(self._path)) as root:
                    return self._find(root, lock)
            except OSError:
                # The catalogue has the same folder, and says what is wrong with it.
                return []

    def under_way(self) -> set[str]:
        """Return the namespaces that are being changed now, by this process or another. Blocks."""
        try:
            with closing_fd(self._files.open_root(self._path)) as root:
                return _under_way(self._files, root)
        except OSError:
            return set()

    def _find(self, root: int, lock: LockFile) -> list[Finding]:
        known, self._hashes = self._hashes, {}
        recorded = {
            f"{name}/{path}": digest
            for name, entry in lock.namespaces.items()
            for path, digest in entry.files.items()
        }
        by_folder: dict[str, list[str]] = {}
        for path in recorded:
            folder, _, name = path.rpartition("/")
            by_folder.setdefault(folder, []).append(name)
        edited = [
            path
            for folder, names in by_folder.items()
            for path, digest in self._hashed(root, folder, names, known)
            if digest != recorded[path]
        ]
        at_rest = self._at_rest(root, {_namespace(path) for path in edited}, lock)
        return [edited_file(path) for path in sorted(edited) if _namespace(path) in at_rest]

    def _hashed(
        self, root: int, folder: str, names: Iterable[str], known: Mapping[str, tuple[Stamp, str]]
    ) -> Iterator[tuple[str, str]]:
        """Yield the hashes of the files that can be read; the others do not count as edited."""
        with suppress(OSError), directory_below(root, folder.split("/"), self._files) as opened:
            for name in names:
                path = f"{folder}/{name}"
                with suppress(OSError):
                    yield path, self._hash(opened, name, path, known.get(path))

    def _hash(self, folder: int, name: str, path: str, known: tuple[Stamp, str] | None) -> str:
        if known is not None and known[0] == stamp_of(self._files.status(name, folder)):
            self._hashes[path] = known
            return known[1]
        racy = racy_after()
        digest, state = hash_file(self._files, name, folder)
        stamp = settled_stamp(state, racy)
        if stamp is not None:
            self._hashes[path] = (stamp, digest)
        return digest

    def _at_rest(self, root: int, names: set[str], lock: LockFile) -> set[str]:
        """Return the namespaces without an install under way, whose files may be ahead of the record."""
        if not names:
            return names
        busy = _under_way(self._files, root)
        # After that: what is no longer busy, but was, has another record by now.
        now = read_lock(self._files, root).namespaces
        return {name for name in names - busy if now.get(name) == lock.namespaces[name]}


def _under_way(files: FileOps, root: int) -> set[str]:
    try:
        with directory_below(root, [WORK_FOLDER], files) as hidden:
            return {entry.removesuffix(WORK_SUFFIX) for entry in files.list_folder(hidden)}
    except RefusedError as refused:
        if not refused.is_absence:
            raise
        return set()


def _namespace(path: str) -> str:
    return path.partition("/")[0]
