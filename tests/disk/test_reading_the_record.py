"""A lock file that is there and cannot be read is broken for everybody; it is never taken for absent."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.folders import Folder

from iii_directory.catalog.catalogue import Catalogue, InstalledSource
from iii_directory.catalog.folder_source import FolderSource
from iii_directory.disk.install_record import LOCKFILE
from iii_directory.errors import DirectoryError
from iii_directory.install.skills_folder import SkillsFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HIDING = {
    "version": 1,
    "namespaces": {
        "db": {
            "source": {"kind": "registry", "worker": "db", "tag": "latest"},
            "resolved": "1.0.0",
            "installed_at": "2026-01-01T00:00:00Z",
            "by": "auto",
            "files": {"index.md": "sha256:00"},
        }
    },
}


class NoWorkers(InstalledSource):
    names = frozenset()
    are_all = True


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setattr("iii_directory.disk.lock_files.MAX_LOCKFILE_BYTES", 10_000)
    found = Folder(tmp_path / "skills")
    found.document("db/index.md", "Database")
    return found


def a_link(folder: Folder) -> None:
    elsewhere = folder.root.parent / "lock.json"
    elsewhere.write_text(json.dumps(HIDING), encoding="utf-8")
    folder.link(LOCKFILE, elsewhere)


def a_directory(folder: Folder) -> None:
    folder.path(LOCKFILE).mkdir()


def too_large(folder: Folder) -> None:
    folder.write(LOCKFILE, json.dumps({**HIDING, "pad": "x" * 10_000}))


def a_pipe(folder: Folder) -> None:
    os.mkfifo(folder.path(LOCKFILE))


UNREADABLE = [a_link, a_directory, too_large, a_pipe]


def catalogue_of(folder: Folder) -> Catalogue:
    return Catalogue(FolderSource(folder.root), installed=NoWorkers())


@pytest.mark.parametrize("spoil", UNREADABLE)
def test_a_lock_file_that_cannot_be_read_is_a_finding_and_broken_for_the_installer_too(
    folder: Folder, spoil: Callable[[Folder], None]
) -> None:
    spoil(folder)

    look = catalogue_of(folder).load()

    (finding,) = [finding for finding in look.findings() if finding.kind == "undecodable"]
    assert finding.subject == LOCKFILE
    assert str(folder.root) not in finding.reason
    assert look.lockfile.broken
    installer = SkillsFolder(folder.root)
    assert installer.lock().findings == look.lockfile.findings
    with (
        pytest.raises(DirectoryError, match=r"D340 .*skills.lock.json cannot be read: it is "),
        installer.locked("db"),
    ):
        pytest.fail("there is nothing to plan on")


@pytest.mark.parametrize("spoil", UNREADABLE)
def test_hidden_namespaces_stay_hidden_until_the_lock_file_can_be_read_again(
    folder: Folder, spoil: Callable[[Folder], None]
) -> None:
    catalogue = catalogue_of(folder)
    folder.write(LOCKFILE, json.dumps(HIDING))
    assert catalogue.load().snapshot.hidden == {"db"}

    folder.remove(LOCKFILE)
    spoil(folder)
    assert catalogue.load().snapshot.hidden == {"db"}

    folder.remove(LOCKFILE)
    assert catalogue.load().snapshot.hidden == frozenset()
    assert catalogue.load().findings() == []


def test_a_lock_file_that_failed_for_lack_of_descriptors_is_read_at_the_next_look(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write(LOCKFILE, json.dumps(HIDING))
    catalogue = catalogue_of(folder)
    really = os.open

    def refusing(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == LOCKFILE:
            raise OSError(errno.EMFILE, "too many")
        return really(path, flags, mode, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refusing)
        assert catalogue.load().lockfile.broken
        with pytest.raises(DirectoryError, match="D340 "):
            SkillsFolder(folder.root).lock()

    look = catalogue.load()
    assert not look.lockfile.broken
    assert look.snapshot.hidden == {"db"}
