"""Write single files of the skills folder, by the same staged switch as installs, one after another.

A caller that has read a file passes its hash, and overwrites nothing else. A file that is saved by hand while
it is written wins, and the caller is told. Installed files that were edited are found by the hashes in the
install record.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from iii_directory import limits
from iii_directory.disk.files import FileOps, RefusedError, closing_fd, racy_after, settled_stamp, stamp_of
from iii_directory.disk.install_record import content_hash
from iii_directory.disk.lock_files import WORK_FOLDER, read_lock
from iii_directory.disk.safe_open import directory_below, hash_file
from iii_directory.errors import INSTALL_FAILED, SKILL_CHANGED, SKILL_EXISTS, SKILL_NOT_FOUND, DirectoryError
from iii_directory.install.apply import WORK_SUFFIX
from iii_directory.install.plan import plan_write
from iii_directory.install.process import Threads
from iii_directory.install.reports import edited_file
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from iii_directory.disk.files import Stamp
    from iii_directory.disk.install_record import LockFile
    from iii_directory.documents.model import Finding
    from iii_directory.install.skills_folder import LockedNamespace, SkillsFolder

    Author = Mapping[str, str]
    """The caller of a write: its ``worker_id`` and the name of its ``worker``."""


class WrittenFile(NamedTuple):
    """What a file holds now, or held until it was deleted."""

    size: int
    digest: str
    """``sha256:`` and 64 hex digits, as the record has them."""


class Writes:
    """Creates, changes and deletes files by namespace and path; an error leaves everything as it was."""

    def __init__(self, folder: SkillsFolder, now: Callable[[], str]) -> None:
        self._folder = folder
        self._now = now
        # Not those of downloads: git may hold them for a minute.
        self._threads = Threads("write")

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    async def create(
        self,
        namespace: str,
        path: str,
        content: bytes,
        author: Author | None = None,
        *,
        executable: bool = False,
    ) -> WrittenFile:
        """Write a new file; D114 when something is there."""

        def act() -> WrittenFile:
            with self._folder.locked(namespace, (path,)) as locked:
                if path in locked.disk.nodes:
                    named = f"a {locked.disk.nodes[path]} {quoted(f'{namespace}/{path}')}"
                    raise DirectoryError(SKILL_EXISTS, f"{named} is there already")
                self._commit(locked, namespace, path, content, author=author, executable=executable)
            return WrittenFile(len(content), content_hash(content))

        with self._threads.room(limits.MAX_WRITES_AT_ONCE, INSTALL_FAILED):
            return await self._threads.run(act)

    async def update(
        self,
        namespace: str,
        path: str,
        content: bytes | None,
        expected: str | None,
        author: Author | None = None,
        *,
        executable: bool | None = None,
    ) -> WrittenFile:
        """Replace a file, or (None) delete it with the folders that are then empty.

        D110 when it is missing, D118 when its content is not what is expected. Without ``executable`` the
        file keeps its mode.
        """

        def act() -> WrittenFile:
            named = quoted(f"{namespace}/{path}")
            with self._folder.locked(namespace, (path,)) as locked:
                before, digest = self._folder.read(namespace, path), locked.disk.hashes.get(path)
                if before is None or digest is None:
                    raise DirectoryError(SKILL_NOT_FOUND, f"the file {named} does not exist")
                if expected is not None and digest != expected:
                    problem = f"the file {named} is not what was expected: it was written since"
                    raise DirectoryError(SKILL_CHANGED, problem)
                self._commit(locked, namespace, path, content, author=author, executable=executable)
            held = before if content is None else content
            return WrittenFile(len(held), content_hash(held))

        with self._threads.room(limits.MAX_WRITES_AT_ONCE, INSTALL_FAILED):
            return await self._threads.run(act)

    def _commit(
        self, locked: LockedNamespace, namespace: str, path: str, content: bytes | None, **written: Any
    ) -> None:
        plan = plan_write(namespace, path, content, locked.disk, locked.known, now=self._now(), **written)
        locked.commit(plan)
        if self._folder.read(namespace, path) != content:
            named = quoted(f"{namespace}/{path}")
            problem = f"the file {named} was saved by hand while it was written, and that version is kept"
            raise DirectoryError(SKILL_CHANGED, problem)


# Edits by hand


class Edits:
    """Compares files when asked, and reads only those that changed since the last time."""

    def __init__(self, skills_folder: Path) -> None:
        self._path = os.fspath(skills_folder)
        self._files = FileOps()
        self._hashes: dict[str, tuple[Stamp, str]] = {}
        self._turn = threading.Lock()

    def findings(self, lock: LockFile) -> list[Finding]:
        """Return a finding for each file that differs from the record. Blocks; run it in a thread."""
        # One at a time: the second caller finds the hashes of the first.
        try:
            with self._turn, closing_fd(self._files.open_root(self._path)) as root:
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
        edited: list[str] = []
        for folder, names in by_folder.items():
            # Files that cannot be read do not count as edited.
            with suppress(OSError), directory_below(root, folder.split("/"), self._files) as opened:
                for name in names:
                    path = f"{folder}/{name}"
                    with suppress(OSError):
                        if self._hash(opened, name, path, known.get(path)) != recorded[path]:
                            edited.append(path)
        if not edited:
            return []
        # During an install, files may be ahead of the record.
        busy = _under_way(self._files, root)
        # After that: what is no longer busy, but was, has another record by now.
        now = read_lock(self._files, root).namespaces
        namespaces = {path: path.partition("/")[0] for path in sorted(edited)}
        return [
            edited_file(path)
            for path, name in namespaces.items()
            if name not in busy and now.get(name) == lock.namespaces[name]
        ]

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


def _under_way(files: FileOps, root: int) -> set[str]:
    try:
        with directory_below(root, [WORK_FOLDER], files) as hidden:
            return {entry.removesuffix(WORK_SUFFIX) for entry in files.list_folder(hidden)}
    except RefusedError as refused:
        if not refused.is_absence:
            raise
        return set()
