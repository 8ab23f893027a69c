"""After a crash: what a transaction had switched is finished, and what it had not is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory.disk.locking import RECORD, held
from iii_directory.disk.safe_open import opened_folder, read_file, status_or_none
from iii_directory.disk.writing import remove_tree
from iii_directory.install.apply import NEW, OLD, clear, read_lock, record_again, rescue_saved
from iii_directory.install.journal import JOURNAL, parse_journal
from iii_directory.install.tree import rescue, scan_namespace
from iii_directory.limits import MAX_JOURNAL_BYTES

if TYPE_CHECKING:
    from iii_directory.install.apply import Transaction
    from iii_directory.install.journal import Journal


def recover(job: Transaction) -> None:
    """Put right what a crash left of this namespace: finish what was switched, drop what was not."""
    if status_or_none(job.files, job.work_name, job.hidden) is None:
        return
    with opened_folder(job.files, job.work_name, job.hidden) as work:
        job.work = work
        journal = parse_journal(read_file(job.files, JOURNAL, work, MAX_JOURNAL_BYTES), job.namespace)
        if journal is not None and _was_switched(job, journal):
            _finish(job, journal)
            clear(job, journal.entry)
    remove_tree(job.files, job.work_name, job.hidden)
    job.undo.clear()


def _was_switched(job: Transaction, journal: Journal) -> bool:
    """Whether the name stands for the new tree; a switch cut in two is completed first."""
    files, root, work = job.files, job.root, job.work
    there = status_or_none(files, job.namespace, root)
    new = status_or_none(files, NEW, work)
    if status_or_none(files, OLD, work) is None or new is None:
        return there is not None and (there.st_ino == journal.staged or _holds(job, journal))
    if there is not None:
        if new.st_ino == journal.staged:
            with opened_folder(files, job.namespace, root) as rest:
                rescue(files, rest, work, NEW, journal.marks, journal.given_up, work)
        remove_tree(files, job.namespace, root)
    files.rename(NEW, work, job.namespace, root)
    return True


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
