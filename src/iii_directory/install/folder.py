"""The skills folder as installs see it: look at a namespace, change it, and put right what a crash left."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.disk.files import PosixFiles, closing_fd, disk_errors
from iii_directory.disk.locking import LOCK_SUFFIX, RECORD, WORK_FOLDER, held
from iii_directory.disk.reasons import RefusedError
from iii_directory.disk.safe_open import directory_below, opened_folder, read_file, status_or_none
from iii_directory.errors import DirectoryError, refused
from iii_directory.install.apply import WORK_SUFFIX, Transaction, commit, read_lock
from iii_directory.install.plan import Disk
from iii_directory.install.recovery import recover
from iii_directory.install.tree import scan_namespace
from iii_directory.lockfile.format import Entry, Lock
from iii_directory.lockfile.names import is_namespace, vet_path
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator
    from pathlib import Path

    from iii_directory.disk.files import FileOps
    from iii_directory.install.plan import Plan

_UNCHANGED: Final = "nothing was changed"


def _nothing() -> None:
    pass


class SkillsFolder:
    """A folder of namespaces with its record. All methods block; run them in a thread."""

    def __init__(
        self, path: Path, *, files: FileOps | None = None, wait: float = limits.INSTALL_LOCK_SECONDS
    ) -> None:
        self._path = os.fspath(path)
        self._files = PosixFiles() if files is None else files
        self._wait = wait

    def lock(self) -> Lock:
        """The record as it is now; empty when there is no folder yet."""
        with disk_errors(_UNCHANGED), self._existing() as root:
            return Lock() if root is None else read_lock(self._files, root)

    def look(self, namespace: str, wanted: Collection[str] | None = None) -> tuple[Disk, Entry | None]:
        """A namespace without changing anything; hashes of the wanted and the recorded files, or of all."""
        _vet(namespace)
        with disk_errors(_UNCHANGED), self._existing() as root:
            if root is None:
                return Disk(), None
            known = read_lock(self._files, root).namespaces.get(namespace)
            return scan_namespace(self._files, root, namespace, _with_known(wanted, known)).disk, known

    def read(self, namespace: str, path: str) -> bytes | None:
        """The bytes of one file of a namespace, None when there is no such file."""
        _vet(namespace)
        vet_path(path)
        with disk_errors(_UNCHANGED), self._existing() as root:
            return None if root is None else self._read(root, [namespace, *path.split("/")])

    def change(
        self,
        namespace: str,
        wanted: Collection[str],
        decide: Callable[[Disk, Entry | None], Plan],
        written: Callable[[], None] = _nothing,
    ) -> Plan:
        """Ask for a plan under the namespace's lock and carry it out; ``written`` is told of every file."""
        _vet(namespace)
        with disk_errors(_UNCHANGED), self._made() as root:
            with held(self._files, root, namespace, self._wait) as hidden:
                job = Transaction(self._files, root, hidden, namespace, self._wait)
                recover(job)
                known = read_lock(self._files, root).namespaces.get(namespace)
                scan = scan_namespace(self._files, root, namespace, _with_known(wanted, known))
                plan = decide(scan.disk, known)
                if plan.touches_files or plan.entry != known:
                    commit(job, plan, scan, written)
            return plan

    def recover(self) -> None:
        """Put right what crashed installs left; to be called at every start. Running ones are left alone."""
        with disk_errors(_UNCHANGED), self._existing() as root:
            if root is None or status_or_none(self._files, WORK_FOLDER, root) is None:
                return
            with opened_folder(self._files, WORK_FOLDER, root) as hidden:
                names = self._files.list_folder(hidden)
            for name in sorted({_owner(name) for name in names}):
                if is_namespace(name) or name == RECORD:
                    self._recover(root, name)
            with suppress(OSError):
                self._files.remove_folder(WORK_FOLDER, root)

    def _recover(self, root: int, name: str) -> None:
        try:
            with held(self._files, root, name, wait=0.0) as hidden:
                if name != RECORD:
                    recover(Transaction(self._files, root, hidden, name, self._wait))
        except DirectoryError:
            # Someone is at work there right now, and recovers first.
            return

    def _read(self, root: int, parts: list[str]) -> bytes | None:
        *folders, name = parts
        try:
            with directory_below(root, folders, self._files) as folder:
                return read_file(self._files, name, folder, limits.MAX_BUNDLE_BYTES)
        except RefusedError as refused:
            if refused.is_absence:
                return None
            raise

    @contextmanager
    def _existing(self) -> Generator[int | None]:
        try:
            root = self._files.open_root(self._path)
        except FileNotFoundError:
            yield None
            return
        with closing_fd(root):
            yield root

    @contextmanager
    def _made(self) -> Generator[int]:
        """The folder, open; made with its parents when it is missing, and unmade when nothing comes of it."""
        made: list[str] = []
        try:
            self._make(self._path, made)
            with closing_fd(self._files.open_root(self._path)) as root:
                yield root
        except BaseException:
            with suppress(OSError):
                for path in reversed(made):
                    self._files.remove_root(path)
            raise

    def _make(self, path: str, made: list[str]) -> None:
        if os.path.isdir(path):
            return
        parent = os.path.dirname(path)
        self._make(parent, made)
        try:
            self._files.make_root(path)
        except FileExistsError:
            return
        made.append(path)
        with closing_fd(self._files.open_root(parent)) as above:
            self._files.sync(above)


def _vet(namespace: str) -> None:
    if not is_namespace(namespace):
        raise refused(f"{quoted(namespace)} cannot be the name of a namespace")


def _owner(name: str) -> str:
    return name.removesuffix(LOCK_SUFFIX).removesuffix(WORK_SUFFIX)


def _with_known(wanted: Collection[str] | None, known: Entry | None) -> Collection[str] | None:
    return None if wanted is None else {*wanted, *(known.files if known is not None else ())}
