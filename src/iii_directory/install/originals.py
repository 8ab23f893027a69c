"""What edited files were made from: texts by their hashes, kept where installs work, so that nobody is asked.

A text is on the disk before the record names it, and goes after the record names it no more: a crash in
between leaves a text too many, never one too few. One that was cut short is told by its hash, and written
again.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.disk.locking import WORK_FOLDER
from iii_directory.disk.safe_open import opened_folder, read_file, remove_tree, status_or_none, write_file

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from iii_directory.disk.files import FileOps

# Not a name a namespace can have.
_FOLDER: Final = "ORIGINALS"
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


def path_of(namespace: str, digest: str) -> str | None:
    """Where a text is kept below the skills folder; None of what is no hash."""
    return f"{WORK_FOLDER}/{_FOLDER}/{namespace}/{_name(digest)}" if _DIGEST.fullmatch(digest) else None


def add(files: FileOps, work_folder: int, namespace: str, texts: Mapping[str, bytes]) -> None:
    """Keep texts of a namespace by their hashes, beside those that are kept already."""
    if not texts:
        return
    _make(files, _FOLDER, work_folder)
    with opened_folder(files, _FOLDER, work_folder) as originals:
        _make(files, namespace, originals)
        with opened_folder(files, namespace, originals) as kept:
            for digest, text in texts.items():
                if read_file(files, _name(digest), kept, limits.MAX_BUNDLE_BYTES) != text:
                    with suppress(FileNotFoundError):
                        files.unlink(_name(digest), kept)
                    write_file(files, _name(digest), kept, text)
            files.sync(kept)


def keep_only(files: FileOps, work_folder: int, namespace: str, digests: Collection[str]) -> None:
    """Let go of every text of a namespace but these."""
    if status_or_none(files, _FOLDER, work_folder) is None:
        return
    wanted = {_name(digest) for digest in digests}
    with opened_folder(files, _FOLDER, work_folder) as originals:
        if not wanted:
            remove_tree(files, namespace, originals)
        elif status_or_none(files, namespace, originals) is not None:
            with opened_folder(files, namespace, originals) as kept:
                for name in sorted({*files.list_folder(kept)} - wanted):
                    files.unlink(name, kept)
    with suppress(OSError):
        files.remove_folder(_FOLDER, work_folder)


def _make(files: FileOps, name: str, folder: int) -> None:
    with suppress(FileExistsError):
        files.make_folder(name, folder)
        files.sync(folder)


def _name(digest: str) -> str:
    return digest.removeprefix("sha256:")
