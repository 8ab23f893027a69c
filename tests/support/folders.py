"""A skills folder to edit, and a view of it kept by applying the changes a source reports."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from iii_directory.catalog.folder_source import FolderSource
from iii_directory.catalog.folder_watching import system_watcher
from iii_directory.disk.install_record import LOCKFILE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from iii_directory.catalog.folder_watching import Inotify
    from iii_directory.catalog.folders import Changes
    from iii_directory.documents.model import ParsedFile


def real_watcher() -> Inotify:
    """The watcher of this system; a test that means to be watched must not be rescanned unnoticed."""
    found = system_watcher()
    assert found is not None
    return found


def no_watcher() -> None:
    """The seam that switches watching off."""
    return


class Folder:
    """Edits below one directory, by paths relative to it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, name: str) -> Path:
        return self.root / name

    def write(self, name: str, text: str) -> None:
        """Write a file in place, making the directories above it."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def document(self, name: str, title: str) -> None:
        self.write(name, f"# {title}\n\nAbout {title}.\n")

    def remove(self, name: str) -> None:
        path = self.root / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

    def move(self, name: str, to: str) -> None:
        os.rename(self.root / name, self.root / to)

    def link(self, name: str, target: str | Path) -> None:
        os.symlink(target, self.root / name)

    def put_time_back(self, name: str, state: os.stat_result) -> None:
        os.utime(self.root / name, ns=(state.st_atime_ns, state.st_mtime_ns))


class View:
    """What a reader of a source knows."""

    def __init__(self, source: FolderSource) -> None:
        self.source = source
        self.files: dict[str, ParsedFile] = {}

    def refresh(self) -> Changes:
        """Take up what changed on disk up to now; at first that is everything."""
        self.source.catch_up()
        changes = self.source.take_changes()
        self.apply(changes)
        return changes

    def apply(self, changes: Changes) -> None:
        for path, parsed in changes.items():
            if parsed is None:
                self.files.pop(path, None)
            elif path != LOCKFILE:
                self.files[path] = parsed

    def titles(self) -> dict[str, str]:
        """Path -> title of every skill, after a refresh."""
        self.refresh()
        return {path: file.skill.title for path, file in self.files.items() if file.skill is not None}

    def reasons(self) -> dict[str, str]:
        """Map each path that is not a document to the reason, after a refresh."""
        self.refresh()
        return {
            path: file.findings[0].reason
            for path, file in self.files.items()
            if file.findings and file.skill is None and file.prompt is None
        }


def scanned(
    root: Path, local: Path | None = None, *, watcher: Callable[[], Inotify | None] = no_watcher
) -> dict[str, ParsedFile]:
    """What a new source makes of the folders as they are."""
    view = View(FolderSource(root, local, watcher=watcher))
    view.refresh()
    view.source.close()
    return view.files
