"""The skills folder as installs see it: look at a namespace, change it, and put right what a crash left."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.disk.files import FolderAtStart, PosixFiles, closing_fd, disk_errors, identity_of
from iii_directory.disk.locking import LOCK_SUFFIX, RECORD, WORK_FOLDER, held
from iii_directory.disk.reasons import RefusedError
from iii_directory.disk.safe_open import opened_folder, read_below, read_file, remove_tree, status_or_none
from iii_directory.errors import DirectoryError, refused
from iii_directory.install import originals
from iii_directory.install.apply import (
    JOURNAL,
    NEW,
    OLD,
    WORK_SUFFIX,
    Transaction,
    clear,
    commit,
    parse_journal,
    record_again,
    rescue_saved,
)
from iii_directory.install.plan import Disk
from iii_directory.install.tree import rescue, scan_namespace, silent
from iii_directory.lockfile.format import Entry, LockFile, content_hash, unbroken
from iii_directory.lockfile.names import is_namespace, vet_path
from iii_directory.lockfile.reading import read_lock
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping
    from pathlib import Path

    from iii_directory.disk.files import FileOps
    from iii_directory.install.apply import Journal
    from iii_directory.install.plan import Plan
    from iii_directory.install.tree import Progress, Scan

_UNCHANGED: Final = "nothing was changed"
_REPLACED: Final = "the skills folder is another one than at the start; start again if that is intended"


class LockedNamespace:
    """One namespace while nobody else can change it: what it is now, and the way to change it."""

    def __init__(self, job: Transaction, scan: Scan, known: Entry | None) -> None:
        self.disk = scan.disk
        self.known = known
        self._job = job
        self._scan = scan

    def commit(self, plan: Plan, progress: Progress = silent) -> None:
        """Carry out a plan made of what this namespace is; the progress of its phase "write" is told."""
        if plan.touches_files or plan.entry != self.known:
            commit(self._job, plan, self._scan, progress)

    def remember(self, texts: Mapping[str, bytes]) -> None:
        """Keep what edited files were made from, by their hashes; before a plan that will name them."""
        originals.add(self._job.files, self._job.work_folder, self._job.namespace, texts)

    def forget_others(self, digests: Collection[str]) -> None:
        """Let go of what no edited file was made from; after the plan. What cannot go now goes later."""
        with suppress(OSError):
            originals.keep_only(self._job.files, self._job.work_folder, self._job.namespace, digests)


class SkillsFolder:
    """A folder of namespaces with its record. All methods block; run them in a thread."""

    def __init__(
        self,
        folder: Path | FolderAtStart,
        *,
        files: FileOps | None = None,
        wait: float = limits.INSTALL_LOCK_SECONDS,
    ) -> None:
        """Links to the folder count as they are now, or were at the start; later ones are not followed."""
        at_start = folder if isinstance(folder, FolderAtStart) else FolderAtStart.of(folder)
        self._path = at_start.path
        self._files = PosixFiles() if files is None else files
        self._wait = wait
        self._identity = at_start.identity

    def lock(self) -> LockFile:
        """The record as it is now; empty when there is no folder yet."""
        with disk_errors(_UNCHANGED), self._existing() as root:
            return LockFile() if root is None else read_lock(self._files, root)

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
            return None if root is None else self._read(root, f"{namespace}/{path}")

    @contextmanager
    def locked(self, namespace: str, wanted: Collection[str] = ()) -> Generator[LockedNamespace]:
        """Hold a namespace's lock; hashes are those of the wanted and the recorded files.

        What a crash left of it is put right first. The folder is made if need be, and unmade when the body
        raises.
        """
        _vet(namespace)
        with (
            disk_errors(_UNCHANGED),
            self._made() as root,
            held(self._files, root, namespace, self._wait) as work_folder,
        ):
            job = Transaction(self._files, root, work_folder, namespace, self._wait)
            _recover(job)
            known = unbroken(read_lock(self._files, root)).namespaces.get(namespace)
            scan = scan_namespace(self._files, root, namespace, _with_known(wanted, known))
            yield LockedNamespace(job, scan, known)

    def read_original(self, namespace: str, digest: str) -> bytes | None:
        """A text that was kept, by its hash; None where it is not there, or not what it should be."""
        _vet(namespace)
        path = originals.path_of(namespace, digest)
        if path is None:
            return None
        with disk_errors(_UNCHANGED), self._existing() as root:
            content = None if root is None else self._read(root, path)
        return content if content is not None and content_hash(content) == digest else None

    def recover(self) -> None:
        """Put right what crashed installs left; to be called at every start. Running ones are left alone."""
        with disk_errors(_UNCHANGED), self._existing() as root:
            if root is None or status_or_none(self._files, WORK_FOLDER, root) is None:
                return
            with opened_folder(self._files, WORK_FOLDER, root) as work_folder:
                names = self._files.list_folder(work_folder)
            for name in sorted({_owner(name) for name in names}):
                if is_namespace(name) or name == RECORD:
                    self._recover_namespace(root, name)
            with suppress(OSError):
                self._files.remove_folder(WORK_FOLDER, root)

    def _recover_namespace(self, root: int, name: str) -> None:
        try:
            with held(self._files, root, name, wait=0.0) as work_folder:
                if name != RECORD:
                    _recover(Transaction(self._files, root, work_folder, name, self._wait))
        except DirectoryError:
            # Someone is at work there right now, and recovers first.
            return

    def _read(self, root: int, path: str) -> bytes | None:
        try:
            return read_below(root, path, limits.MAX_BUNDLE_BYTES, self._files)
        except RefusedError as refused:
            if refused.is_absence:
                return None
            raise

    @contextmanager
    def _existing(self) -> Generator[int | None]:
        try:
            root = self._open()
        except FileNotFoundError:
            yield None
            return
        with closing_fd(root):
            self._identity = self._identity or identity_of(root)
            yield root

    @contextmanager
    def _made(self) -> Generator[int]:
        """The folder, open; made with its parents when it is missing, and unmade when nothing comes of it."""
        made: list[str] = []
        try:
            self._make(self._path, made)
            with closing_fd(self._open()) as root:
                self._check_identity(root, is_new=self._path in made)
                yield root
        except BaseException:
            with suppress(OSError):
                for path in reversed(made):
                    self._files.remove_root(path)
            raise

    def _open(self) -> int:
        try:
            return self._files.open_folder(self._path, None)
        except NotADirectoryError:
            if not os.path.islink(self._path):
                raise
            raise refused(_REPLACED) from None

    def _check_identity(self, root: int, *, is_new: bool) -> None:
        found = identity_of(root)
        if self._identity is None or is_new:
            self._identity = found
        if found != self._identity:
            raise refused(_REPLACED)

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
    if wanted is None or known is None:
        return wanted
    return {*wanted, *known.files, *known.left_behind}


def _recover(job: Transaction) -> None:
    """Finish what a crashed install had switched, and drop what it had not."""
    if status_or_none(job.files, job.work_name, job.work_folder) is None:
        return
    with opened_folder(job.files, job.work_name, job.work_folder) as work:
        job.work = work
        # A journal says which files to replace, so one that another user wrote is not acted upon.
        found = (os.fstat(work), status_or_none(job.files, JOURNAL, work))
        if any(state is not None and state.st_uid != os.geteuid() for state in found):
            raise refused(
                f"another user left an unfinished install of {quoted(job.namespace)} in {WORK_FOLDER}: "
                "they finish it with iii-directory skills verify, or you remove it"
            )
        journal = parse_journal(read_file(job.files, JOURNAL, work, limits.MAX_JOURNAL_BYTES), job.namespace)
        if journal is not None and _was_switched(job, journal):
            _finish(job, journal)
            clear(job)
    remove_tree(job.files, job.work_name, job.work_folder)
    job.undo.clear()


def _was_switched(job: Transaction, journal: Journal) -> bool:
    """Whether the name stands for the new tree; a switch cut in two is completed first."""
    files, root, work = job.files, job.root, job.work
    there = status_or_none(files, job.namespace, root)
    new = status_or_none(files, NEW, work)
    if status_or_none(files, OLD, work) is None or new is None:
        return there is not None and (there.st_ino == journal.staged or _holds(job, journal))
    if there is not None:
        with opened_folder(files, job.namespace, root) as rest:
            if new.st_ino == journal.staged:
                rescue(files, rest, work, NEW, journal.marks, journal.given_up, work)
            else:
                rescue(files, rest, work, NEW, {}, _also_in_old(job), work)
        remove_tree(files, job.namespace, root)
    files.rename(NEW, work, job.namespace, root)
    return True


def _also_in_old(job: Transaction) -> Collection[str]:
    """The files of a namespace that its old tree has, too.

    A journal of another disk, as in a copy or a checkout, says nothing of the files here, and may be planted:
    what nobody has a second time is not thrown away.
    """
    here = scan_namespace(job.files, job.root, job.namespace, None).disk.hashes
    old = scan_namespace(job.files, job.work, OLD, None).disk.hashes
    return [path for path, digest in here.items() if old.get(path) == digest]


def _holds(job: Transaction, journal: Journal) -> bool:
    """Whether a namespace that was copied here, inodes and all, has what the new tree brings."""
    disk = scan_namespace(job.files, job.root, job.namespace, journal.writes).disk
    brought = all(disk.hashes.get(path) == digest for path, digest in journal.writes.items())
    return brought and not journal.deletes & disk.nodes.keys()


def _finish(job: Transaction, journal: Journal) -> None:
    job.files.sync(job.root)
    there = job.files.status(job.namespace, job.root)
    left = [name for name in (OLD, NEW) if status_or_none(job.files, name, job.work) is not None]
    # In a copy of the folder every file has another inode, which is no sign that someone saved it since.
    if left and there.st_ino == journal.staged:
        rescue_saved(job, journal)
    with held(job.files, job.root, RECORD, job.wait):
        if read_lock(job.files, job.root).broken:
            return
        record_again(job, journal.entry)
