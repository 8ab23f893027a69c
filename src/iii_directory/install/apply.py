"""Carry out a plan: all of it or none of it, whatever happens on the way.

    stage    the complete new namespace is built beside the old one; kept files are hard links
    journal  a note of what is going to happen, so that a crash can be put right
    switch   the two trees swap names in one step (or in two, where the disk cannot do better)
    record   skills.lock.json is replaced
    clean    the journal goes first, then the old tree

Every step is on the disk before the next one starts. A crash before the switch leaves the old namespace
and the old record; after it, `SkillsFolder.recover` brings the record in line with the new namespace. An
error is undone on the spot, in reverse.
"""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory import limits
from iii_directory.disk import safe_open
from iii_directory.disk.files import NOT_SUPPORTED
from iii_directory.disk.install_record import LOCKFILE, Entry, parse_entry, render_lock, unbroken
from iii_directory.disk.lock_files import RECORD, WORK_FOLDER, held, read_lock
from iii_directory.errors import INSTALL_FAILED, DirectoryError, refused
from iii_directory.install import tree
from iii_directory.shapes import object_of
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.disk.files import FileOps, Mark
    from iii_directory.install.plan import InstallPlan

_JOURNAL: Final = "journal.json"
WORK_SUFFIX: Final = ".work"
_NEW, _OLD, _OLD_PART = "new", "old", "old.part"
_NEW_RECORD, _OLD_RECORD = "record.new", "record.old"


class Journal(NamedTuple):
    """What a switch is about to do to one namespace."""

    namespace: str
    staged: int
    """The inode of the new tree, by which it is known under either name."""
    entry: Entry | None
    marks: Mapping[str, Mark]
    """The files of the old tree as they were when the plan was made."""
    writes: Mapping[str, str]
    """The paths the new tree brings, with their hashes."""
    deletes: frozenset[str]
    edits_win: bool

    @property
    def given_up(self) -> frozenset[str]:
        """Paths that were to be replaced or removed whatever they hold by now."""
        return frozenset[str]() if self.edits_win else self.deletes | self.writes.keys()


@dataclass(slots=True)
class Transaction:
    """One namespace being changed: the open folders it happens in, and how to take back what was done."""

    files: FileOps
    root: int
    work_folder: int
    """The open folder in which installs work, hidden below the root."""
    namespace: str
    wait: float
    work: int = -1
    """This transaction's own folder there, once it is open."""
    undo: list[Callable[[], None]] = field(default_factory=list["Callable[[], None]"])

    @property
    def work_name(self) -> str:
        return f"{self.namespace}{WORK_SUFFIX}"


def _parse_journal(content: bytes | None, namespace: str) -> Journal | None:
    """Return the journal of a namespace; None for one cut short by a crash, which was never acted upon."""
    try:
        document = object_of(json.loads(content or b""))
        entry = None if document["entry"] is None else parse_entry(document["entry"])
        if document["namespace"] != namespace or (entry is None) != (document["entry"] is None):
            return None
        marks = {path: (inode, size, time) for path, (inode, size, time) in document["marks"].items()}
        writes, deletes = dict(document["writes"]), frozenset(document["deletes"])
        read: dict[str, Any] = {"entry": entry, "marks": marks, "writes": writes, "deletes": deletes}
        return Journal(**{**document, **read})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def commit(job: Transaction, plan: InstallPlan, scan: tree.Scan, progress: tree.Progress) -> None:
    """Carry out the plan, reporting every file written. Raises OSError or D340 with nothing changed."""
    try:
        _perform(job, plan, scan, progress)
    except BaseException:
        if not job.undo:
            with suppress(OSError):
                safe_open.remove_tree(job.files, job.work_name, job.work_folder)
        raise
    # The new state stands. What cannot be cleared away now goes with the next start.
    with suppress(OSError):
        _clear(job)


def _perform(job: Transaction, plan: InstallPlan, scan: tree.Scan, progress: tree.Progress) -> None:
    job.files.make_folder(job.work_name, job.work_folder)
    with safe_open.opened_folder(job.files, job.work_name, job.work_folder) as work:
        job.work = work
        # Staging may take long, so the record, which all namespaces share, is locked only after it.
        staged = 0
        if plan.touches_files:
            job.files.make_folder(_NEW, job.work)
            with safe_open.opened_folder(job.files, _NEW, job.work) as new:
                layout = tree.lay_out(scan.disk, plan.writes, plan.deletes, plan.executable)
                _build(job, layout, new, scan, progress, len(plan.writes))
                staged = os.fstat(new).st_ino
        with held(job.files, job.root, RECORD, job.wait):
            try:
                _prepare_record(job, plan.entry)
                if plan.touches_files:
                    journal = Journal(
                        namespace=plan.namespace,
                        staged=staged,
                        entry=plan.entry,
                        marks=scan.marks,
                        writes=plan.digests,
                        deletes=plan.deletes,
                        edits_win=plan.edits_win,
                    )
                    _switch(job, journal, scan)
                _put_record(job)
            except BaseException as error:
                _take_back(job, error)
                raise


def _take_back(job: Transaction, error: BaseException) -> None:
    """Undo step by step; stop at the first failure, because recovery needs what is left as it is."""
    while job.undo:
        try:
            job.undo[-1]()
        except OSError:
            raise DirectoryError(
                INSTALL_FAILED, "the disk failed twice; the folder is put right at the next start"
            ) from error
        job.undo.pop()


def _build(
    job: Transaction, branch: tree.Branch, opened: int, scan: tree.Scan, progress: tree.Progress, writes: int
) -> None:
    builder = tree.Builder(job.files, scan.folders, progress, writes)
    if not scan.disk.exists:
        builder.fill(opened, branch)
        return
    with safe_open.opened_folder(job.files, job.namespace, job.root) as old:
        builder.fill(opened, branch, old)


def _prepare_record(job: Transaction, entry: Entry | None) -> None:
    """Put the new record ready, so that after the switch one rename is all that can still fail."""
    changed = unbroken(read_lock(job.files, job.root)).with_entry(job.namespace, entry)
    rendered = render_lock(changed)
    if len(rendered) > limits.MAX_LOCKFILE_BYTES:
        raise refused(f"{LOCKFILE} would be too large to be read again; remove what is not needed first")
    safe_open.write_file(job.files, _NEW_RECORD, job.work, rendered)
    if safe_open.status_or_none(job.files, LOCKFILE, job.root) is not None:
        safe_open.carry(job.files, LOCKFILE, job.root, _OLD_RECORD, job.work)


def _switch(job: Transaction, journal: Journal, scan: tree.Scan) -> None:
    files, root, work = job.files, job.root, job.work
    # The journal must be on the disk before a name changes: recovery has nothing else to tell by what was
    # meant, and a journal without a change is simply dropped.
    entry = None if journal.entry is None else journal.entry.as_dict()
    said = {**journal._asdict(), "entry": entry, "deletes": sorted(journal.deletes)}
    safe_open.write_file(files, _JOURNAL, work, json.dumps(said).encode())
    for folder in (work, job.work_folder, root):
        files.sync(folder)
    # Undone in reverse, so this is the last step: the names that were put back reach the disk.
    job.undo.append(lambda: files.sync(root))
    exchange = partial(files.exchange, _NEW, work, job.namespace, root)
    if not scan.disk.exists:
        _move_in(job)
    else:
        try:
            exchange()
            job.undo.append(exchange)
        except OSError as error:
            if error.errno not in NOT_SUPPORTED and error.errno != errno.EXDEV:
                raise
            # Without an exchange there is a moment in which the namespace has no folder; `recover` ends it.
            _move_aside(job, scan)
            _move_in(job)
    files.sync(root)
    files.sync(work)
    if scan.disk.exists:
        _rescue_saved(job, journal)


def _move_aside(job: Transaction, scan: tree.Scan) -> None:
    files = job.files

    def back() -> None:
        safe_open.remove_tree(files, job.namespace, job.root)
        files.rename(_OLD, job.work, job.namespace, job.root)

    try:
        files.rename(job.namespace, job.root, _OLD, job.work)
        job.undo.append(back)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # A folder of a lower layer of an overlay cannot be moved: it is copied, and then removed. The copy
        # gets its name only once it is complete.
        files.make_folder(_OLD_PART, job.work)
        with safe_open.opened_folder(files, _OLD_PART, job.work) as copy:
            _build(job, tree.lay_out(scan.disk, {}, ()), copy, scan, tree.silent, 0)
        files.rename(_OLD_PART, job.work, _OLD, job.work)
        files.sync(job.work)
        job.undo.append(back)
        safe_open.remove_tree(files, job.namespace, job.root)


def _move_in(job: Transaction) -> None:
    job.files.rename(_NEW, job.work, job.namespace, job.root)
    job.undo.append(lambda: job.files.rename(job.namespace, job.root, _NEW, job.work))


def _rescue_saved(job: Transaction, journal: Journal) -> None:
    """Carry over what was saved in the old tree meanwhile, wherever the switch put it."""
    aside = safe_open.status_or_none(job.files, _OLD, job.work) is not None
    with safe_open.opened_folder(job.files, _OLD if aside else _NEW, job.work) as old:
        tree.rescue(job.files, old, job.root, job.namespace, journal.marks, journal.given_up, job.work)


def _put_record(job: Transaction) -> None:
    files, root, work = job.files, job.root, job.work
    had_record = safe_open.status_or_none(files, _OLD_RECORD, work) is not None

    def back() -> None:
        if had_record:
            files.rename(_OLD_RECORD, work, LOCKFILE, root)
        else:
            files.unlink(LOCKFILE, root)

    files.rename(_NEW_RECORD, work, LOCKFILE, root)
    job.undo.append(back)
    files.sync(root)


def _clear(job: Transaction) -> None:
    """Remove the work folder, its journal first: without that the rest is waste, whatever it holds."""
    try:
        # A namespace that was given up or emptied, and in which no file was kept, goes as a whole.
        job.files.remove_folder(job.namespace, job.root)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            raise
    with safe_open.opened_folder(job.files, job.work_name, job.work_folder) as work:
        if safe_open.status_or_none(job.files, _JOURNAL, work) is not None:
            job.files.unlink(_JOURNAL, work)
            job.files.sync(work)
    safe_open.remove_tree(job.files, job.work_name, job.work_folder)


def recover(job: Transaction) -> None:
    """Finish what a crashed install had switched, and drop what it had not."""
    if safe_open.status_or_none(job.files, job.work_name, job.work_folder) is None:
        return
    with safe_open.opened_folder(job.files, job.work_name, job.work_folder) as work:
        job.work = work
        # A journal says which files to replace, so one that another user wrote is not acted upon.
        found = (os.fstat(work), safe_open.status_or_none(job.files, _JOURNAL, work))
        if any(state is not None and state.st_uid != os.geteuid() for state in found):
            raise refused(
                f"another user left an unfinished install of {quoted(job.namespace)} in {WORK_FOLDER}: "
                "they finish it with iii-directory skills verify, or you remove it"
            )
        journal = _parse_journal(
            safe_open.read_file(job.files, _JOURNAL, work, limits.MAX_JOURNAL_BYTES), job.namespace
        )
        if journal is not None and _was_switched(job, journal):
            _finish(job, journal)
            _clear(job)
    safe_open.remove_tree(job.files, job.work_name, job.work_folder)
    job.undo.clear()


def _was_switched(job: Transaction, journal: Journal) -> bool:
    """Return whether the name stands for the new tree; a switch cut in two is completed first."""
    files, root, work = job.files, job.root, job.work
    there = safe_open.status_or_none(files, job.namespace, root)
    new = safe_open.status_or_none(files, _NEW, work)
    if safe_open.status_or_none(files, _OLD, work) is None or new is None:
        # Only with both trees aside was the switch cut in two; with one, it was done or had not begun.
        return there is not None and (there.st_ino == journal.staged or _holds(job, journal))
    if there is not None:
        with safe_open.opened_folder(files, job.namespace, root) as rest:
            if new.st_ino == journal.staged:
                tree.rescue(files, rest, work, _NEW, journal.marks, journal.given_up, work)
            else:
                # A journal of another disk, as in a copy or a checkout, says nothing of the files here, and
                # may be planted, so a file that exists only once is not removed.
                here = tree.scan_namespace(files, root, job.namespace, None).disk.hashes
                old = tree.scan_namespace(files, work, _OLD, None).disk.hashes
                in_both = [path for path, digest in here.items() if old.get(path) == digest]
                tree.rescue(files, rest, work, _NEW, {}, in_both, work)
        safe_open.remove_tree(files, job.namespace, root)
    files.rename(_NEW, work, job.namespace, root)
    return True


def _holds(job: Transaction, journal: Journal) -> bool:
    """Return whether a namespace that was copied here, inodes and all, has what the new tree brings."""
    disk = tree.scan_namespace(job.files, job.root, job.namespace, journal.writes).disk
    brought = all(disk.hashes.get(path) == digest for path, digest in journal.writes.items())
    return brought and not journal.deletes & disk.nodes.keys()


def _finish(job: Transaction, journal: Journal) -> None:
    job.files.sync(job.root)
    there = job.files.status(job.namespace, job.root)
    left = [name for name in (_OLD, _NEW) if safe_open.status_or_none(job.files, name, job.work) is not None]
    # In a copy of the folder every file has another inode, which does not mean that it was saved since.
    if left and there.st_ino == journal.staged:
        _rescue_saved(job, journal)
    with held(job.files, job.root, RECORD, job.wait):
        if read_lock(job.files, job.root).broken:
            return
        # What the transaction had prepared may be half of a record.
        for name in (_NEW_RECORD, _OLD_RECORD):
            safe_open.remove_tree(job.files, name, job.work)
        _prepare_record(job, journal.entry)
        _put_record(job)
