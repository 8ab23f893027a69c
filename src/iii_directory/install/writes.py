"""Write single files of the skills folder, by the same staged switch as installs, one after another.

A caller that has read a file passes its hash, and overwrites nothing else. A file that is saved by hand while
it is written wins, and the caller is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from iii_directory import limits
from iii_directory.disk.install_record import content_hash
from iii_directory.errors import (
    INSTALL_FAILED,
    SKILL_CHANGED,
    SKILL_EXISTS,
    SKILL_NOT_FOUND,
    DirectoryError,
)
from iii_directory.install.plan import plan_write
from iii_directory.install.process import Threads
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
                self._commit(locked, namespace, path, content, author, executable=executable)
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
                self._commit(locked, namespace, path, content, author, executable=executable)
            held = before if content is None else content
            return WrittenFile(len(held), content_hash(held))

        with self._threads.room(limits.MAX_WRITES_AT_ONCE, INSTALL_FAILED):
            return await self._threads.run(act)

    def _commit(
        self,
        locked: LockedNamespace,
        namespace: str,
        path: str,
        content: bytes | None,
        author: Author | None,
        *,
        executable: bool | None,
    ) -> None:
        plan = plan_write(
            namespace,
            path,
            content,
            locked.disk,
            locked.known,
            now=self._now(),
            author=author,
            executable=executable,
        )
        locked.commit(plan)
        if self._folder.read(namespace, path) != content:
            named = quoted(f"{namespace}/{path}")
            problem = f"the file {named} was saved by hand while it was written, and that version is kept"
            raise DirectoryError(SKILL_CHANGED, problem)
