"""Writing below an open folder: new files, second names for old ones, removing without following links."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from iii_directory.disk.files import NOT_SUPPORTED, closing_fd
from iii_directory.disk.safe_open import opened_folder, read_file, status_or_none

if TYPE_CHECKING:
    import os

    from iii_directory.disk.files import FileOps


def write_file(
    files: FileOps,
    name: str,
    folder: int,
    content: bytes,
    *,
    executable: bool = False,
    like: os.stat_result | None = None,
) -> None:
    """A new file that is on the disk when this returns; its name is once the folder is synced."""
    with closing_fd(files.create(name, folder, 0o755 if executable else 0o644)) as opened:
        files.write(opened, content)
        if like is not None:
            files.adopt(opened, like)
        files.sync(opened)


def carry(files: FileOps, name: str, folder: int, new_name: str, new_folder: int) -> None:
    """The same file under a second name: a hard link, or a copy where there are none."""
    try:
        files.link(name, folder, new_name, new_folder)
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise
        like = files.status(name, folder)
        content = read_file(files, name, folder, like.st_size)
        write_file(files, new_name, new_folder, content or b"", like=like)


def remove_tree(files: FileOps, name: str, folder: int) -> None:
    """Remove a name and all below it; links are removed, not followed. What is not there is fine."""
    state = status_or_none(files, name, folder)
    if state is None:
        return
    if not stat.S_ISDIR(state.st_mode):
        files.unlink(name, folder)
        return
    if state.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        files.make_writable(name, folder)
    with opened_folder(files, name, folder) as opened:
        for inner in files.list_folder(opened):
            remove_tree(files, inner, opened)
    files.remove_folder(name, folder)
