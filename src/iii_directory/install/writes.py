"""Writing single documents of the skills folder: by the same staged switch as installs, one after another.

Whoever has read a document says by its hash what they have read, and overwrites nothing else. What somebody
saves by hand while a document is written wins, and the writer is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from iii_directory import limits
from iii_directory.errors import (
    INSTALL_FAILED,
    SKILL_CHANGED,
    SKILL_EXISTS,
    SKILL_NOT_FOUND,
    DirectoryError,
)
from iii_directory.install.plan import plan_write
from iii_directory.install.process import Threads
from iii_directory.lockfile.format import content_hash
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.install.folder import LockedNamespace, SkillsFolder

    Author = Mapping[str, str]
    """The caller of a write: its ``worker_id`` and the name of its ``worker``."""


class Held(NamedTuple):
    """What a document holds now, or held until it was deleted."""

    size: int
    digest: str
    """``sha256:`` and 64 hex digits, as the record has them."""


class Writes:
    """Creates, changes and deletes documents by namespace and path; an error leaves everything as it was."""

    def __init__(self, folder: SkillsFolder, now: Callable[[], str]) -> None:
        self._folder = folder
        self._now = now
        # Not those of downloads: git may hold them for a minute.
        self._threads = Threads("write")

    def close(self) -> None:
        """Let go of the threads."""
        self._threads.close()

    async def create(self, namespace: str, path: str, content: bytes, author: Author | None = None) -> Held:
        """Write a new document; D114 when something is there."""
        with self._threads.room(limits.MAX_WRITES_AT_ONCE, INSTALL_FAILED):
            return await self._threads.run(self._create, namespace, path, content, author)

    async def update(
        self,
        namespace: str,
        path: str,
        content: bytes,
        expected: str | None,
        author: Author | None = None,
    ) -> Held:
        """Replace a document; D110 when there is none, D118 when its content is not what is expected."""
        with self._threads.room(limits.MAX_WRITES_AT_ONCE, INSTALL_FAILED):
            return await self._threads.run(self._change, namespace, path, content, expected, author)

    async def delete(self, namespace: str, path: str, expected: str | None) -> Held:
        """Delete a document and the folders that are empty without it; errors as of `update`."""
        with self._threads.room(limits.MAX_WRITES_AT_ONCE, INSTALL_FAILED):
            return await self._threads.run(self._change, namespace, path, None, expected, None)

    def _create(self, namespace: str, path: str, content: bytes, author: Author | None) -> Held:
        with self._folder.locked(namespace, (path,)) as locked:
            if path in locked.disk.nodes:
                there = locked.disk.nodes[path]
                raise DirectoryError(SKILL_EXISTS, f"a {there} {_quoted(namespace, path)} is there already")
            self._commit(locked, namespace, path, content, author)
        return Held(len(content), content_hash(content))

    def _change(
        self,
        namespace: str,
        path: str,
        content: bytes | None,
        expected: str | None,
        author: Author | None,
    ) -> Held:
        with self._folder.locked(namespace, (path,)) as locked:
            before, digest = self._folder.read(namespace, path), locked.disk.hashes.get(path)
            if before is None or digest is None:
                raise DirectoryError(SKILL_NOT_FOUND, f"the file {_quoted(namespace, path)} has just gone")
            if expected is not None and digest != expected:
                problem = (
                    f"the file {_quoted(namespace, path)} is not what was expected: somebody wrote it since"
                )
                raise DirectoryError(SKILL_CHANGED, problem)
            self._commit(locked, namespace, path, content, author)
        held = before if content is None else content
        return Held(len(held), content_hash(held))

    def _commit(
        self,
        locked: LockedNamespace,
        namespace: str,
        path: str,
        content: bytes | None,
        author: Author | None,
    ) -> None:
        plan = plan_write(namespace, path, content, locked.disk, locked.known, now=self._now(), author=author)
        locked.commit(plan)
        if self._folder.read(namespace, path) != content:
            problem = (
                f"somebody saved the file {_quoted(namespace, path)} while it was written; theirs is kept"
            )
            raise DirectoryError(SKILL_CHANGED, problem)


def _quoted(namespace: str, path: str) -> str:
    return quoted(f"{namespace}/{path}")
