"""Look at a namespace of the skills folder, change it, and repair what a crash left.

The texts that edited files were made from are kept here, by their hashes. A text is on the disk before the
record names it, and goes after the record has ceased to name it: a crash in between leaves a text too many,
never one too few. A text that was cut short does not have its hash, and is written again.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.disk import safe_open
from iii_directory.disk.files import (
    FileOps,
    FolderAtStart,
    RefusedError,
    closing_fd,
    disk_errors,
    identity_of,
    refusal,
)
from iii_directory.disk.install_record import Entry, LockFile, content_hash, unbroken
from iii_directory.disk.lock_files import LOCK_SUFFIX, RECORD, WORK_FOLDER, held, read_lock
from iii_directory.documents.ids import is_namespace, vet_path
from iii_directory.errors import DirectoryError, refused
from iii_directory.install.apply import WORK_SUFFIX, Transaction, commit, recover
from iii_directory.install.plan import Disk
from iii_directory.install.tree import scan_namespace, silent
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping
    from pathlib import Path

    from iii_directory.documents.facts import Accepted, Facts, FileContent
    from iii_directory.install.plan import InstallPlan
    from iii_directory.install.tree import Progress, Scan

# Not a name a namespace can have.
_ORIGINALS: Final = "ORIGINALS"
# Each further try is for one other namespace that was done at just that moment.
_TRIES: Final = 100
_HASH: Final = "sha256:"
_DIGEST: Final = re.compile(rf"{_HASH}[0-9a-f]{{64}}")
_UNCHANGED: Final = "nothing was changed"
_REPLACED: Final = "the skills folder is another one than at the start; start again if that is intended"


class LockedNamespace:
    """One namespace under its lock: what it is now, and the way to change it."""

    def __init__(self, job: Transaction, scan: Scan, known: Entry | None) -> None:
        self.disk = scan.disk
        self.known = known
        self._job = job
        self._scan = scan

    def commit(self, plan: InstallPlan, progress: Progress = silent) -> None:
        """Carry out a plan that was made for this namespace; progress has the phase "write"."""
        if plan.touches_files or plan.entry != self.known:
            commit(self._job, plan, self._scan, progress)

    def remember(self, texts: Mapping[str, bytes]) -> None:
        """Keep what edited files were made from, by their hashes; before a plan that will name them."""
        if not texts:
            return
        files = self._job.files
        with closing_fd(_open_originals(files, self._job.work_folder, self._job.namespace)) as kept:
            for digest, text in texts.items():
                name = digest.removeprefix(_HASH)
                if safe_open.read_file(files, name, kept, limits.MAX_BUNDLE_BYTES) != text:
                    with suppress(FileNotFoundError):
                        files.unlink(name, kept)
                    safe_open.write_file(files, name, kept, text)
            files.sync(kept)

    def forget_others(self, digests: Collection[str]) -> None:
        """Remove texts that no edited file was made from; after the plan. A failure leaves them for later."""
        files, work_folder, namespace = self._job.files, self._job.work_folder, self._job.namespace
        wanted = {digest.removeprefix(_HASH) for digest in digests}
        with suppress(OSError):
            if safe_open.status_or_none(files, _ORIGINALS, work_folder) is None:
                return
            with safe_open.opened_folder(files, _ORIGINALS, work_folder) as originals:
                if not wanted:
                    safe_open.remove_tree(files, namespace, originals)
                elif safe_open.status_or_none(files, namespace, originals) is not None:
                    with safe_open.opened_folder(files, namespace, originals) as kept:
                        for name in sorted({*files.list_folder(kept)} - wanted):
                            files.unlink(name, kept)
            files.remove_folder(_ORIGINALS, work_folder)


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
        self._files = FileOps() if files is None else files
        self._wait = wait
        self._identity = at_start.identity

    def lock(self) -> LockFile:
        """Read the record; empty when the folder does not exist yet."""
        with disk_errors(_UNCHANGED), self._existing() as root:
            return LockFile() if root is None else read_lock(self._files, root)

    def look(self, namespace: str, wanted: Collection[str] | None = None) -> tuple[Disk, Entry | None]:
        """Look at a namespace, with the hashes of the wanted and the recorded files, or of all."""
        _vet(namespace)
        with disk_errors(_UNCHANGED), self._existing() as root:
            if root is None:
                return Disk(), None
            known = read_lock(self._files, root).namespaces.get(namespace)
            return scan_namespace(self._files, root, namespace, _with_known(wanted, known)).disk, known

    def read(self, namespace: str, path: str) -> bytes | None:
        """Read one file of a namespace; None when it does not exist."""
        _vet(namespace)
        vet_path(path)
        with disk_errors(_UNCHANGED), self._existing() as root:
            return None if root is None else self._read(root, f"{namespace}/{path}")

    def facts(self, namespace: str) -> tuple[Facts, Accepted]:
        """Collect what the installed files of a namespace can do, and what of it the operator accepted."""
        # Only here, because a worker starts without it.
        from iii_directory.documents.facts import fact_content, facts_of

        # No scan: it would fail where an install exchanges the folder meanwhile.
        known = self.lock().namespaces.get(namespace)
        contents: dict[str, FileContent] = {}
        for path in () if known is None else known.files:
            raw = self.read(namespace, path)
            if raw is not None and known is not None:
                contents[path] = fact_content(raw, path in known.executable)
        baseline = None if known is None else known.facts_baseline
        return facts_of(contents), {} if baseline is None else baseline.facts

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
            recover(job)
            known = unbroken(read_lock(self._files, root)).namespaces.get(namespace)
            scan = scan_namespace(self._files, root, namespace, _with_known(wanted, known))
            yield LockedNamespace(job, scan, known)

    def read_original(self, namespace: str, digest: str) -> bytes | None:
        """Read a text that was kept, by its hash; None if it is missing or damaged."""
        _vet(namespace)
        if not _DIGEST.fullmatch(digest):
            return None
        path = f"{WORK_FOLDER}/{_ORIGINALS}/{namespace}/{digest.removeprefix(_HASH)}"
        with disk_errors(_UNCHANGED), self._existing() as root:
            content = None if root is None else self._read(root, path)
        return content if content is not None and content_hash(content) == digest else None

    def recover(self) -> None:
        """Repair what crashed installs left; to be called at every start. Running installs are left alone."""
        with disk_errors(_UNCHANGED), self._existing() as root:
            if root is None or safe_open.status_or_none(self._files, WORK_FOLDER, root) is None:
                return
            with safe_open.opened_folder(self._files, WORK_FOLDER, root) as work_folder:
                names = self._files.list_folder(work_folder)
            for name in sorted({name.removesuffix(LOCK_SUFFIX).removesuffix(WORK_SUFFIX) for name in names}):
                if not is_namespace(name) and name != RECORD:
                    continue
                # Refused while another process is at work there; that one recovers first.
                with suppress(DirectoryError), held(self._files, root, name, wait=0.0) as work_folder:
                    if name != RECORD:
                        recover(Transaction(self._files, root, work_folder, name, self._wait))
            with suppress(OSError):
                self._files.remove_folder(WORK_FOLDER, root)

    def _read(self, root: int, path: str) -> bytes | None:
        try:
            return safe_open.read_below(root, path, limits.MAX_BUNDLE_BYTES, self._files)
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
        """Open the folder, made with its parents if missing; those are removed again after an error."""
        made: list[str] = []
        try:
            self._make(self._path, made)
            with closing_fd(self._open()) as root:
                found = identity_of(root)
                if self._identity is None or self._path in made:
                    self._identity = found
                if found != self._identity:
                    raise refused(_REPLACED)
                yield root
        except BaseException:
            with suppress(OSError):
                for path in reversed(made):
                    self._files.remove_folder(path, None)
            raise

    def _open(self) -> int:
        try:
            return self._files.open_folder(self._path, None)
        except NotADirectoryError:
            if not os.path.islink(self._path):
                raise
            raise refused(_REPLACED) from None

    def _make(self, path: str, made: list[str]) -> None:
        if os.path.isdir(path):
            return
        parent = os.path.dirname(path)
        self._make(parent, made)
        try:
            self._files.make_folder(path, None)
        except FileExistsError:
            return
        made.append(path)
        with closing_fd(self._files.open_root(parent)) as above:
            self._files.sync(above)


def _vet(namespace: str) -> None:
    if not is_namespace(namespace):
        raise refused(f"{quoted(namespace)} cannot be the name of a namespace")


def _with_known(wanted: Collection[str] | None, known: Entry | None) -> Collection[str] | None:
    if wanted is None or known is None:
        return wanted
    return {*wanted, *known.files, *known.left_behind}


def _open_originals(files: FileOps, work_folder: int, namespace: str) -> int:
    """Open the folder that keeps the original texts of a namespace, and make it if it is missing."""
    tries = _TRIES
    while True:
        tries -= 1
        try:
            _make_folder(files, _ORIGINALS, work_folder)
            with safe_open.opened_folder(files, _ORIGINALS, work_folder) as originals:
                _make_folder(files, namespace, originals)
                return safe_open.open_directory(namespace, originals, files)
        except OSError as error:
            # An update of another namespace removes the outer folder whenever it finds it empty.
            if not refusal(error).is_absence or not tries:
                raise


def _make_folder(files: FileOps, name: str, folder: int) -> None:
    with suppress(FileExistsError):
        files.make_folder(name, folder)
        files.sync(folder)
