"""Which installed files were edited by hand, told whenever someone asks."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.installs import MODES, WatchedFiles, bundle_of, disk_without, install, put

from iii_directory import limits
from iii_directory.disk.files import FileOps
from iii_directory.install.skills_folder import SkillsFolder
from iii_directory.install.writes import Edits

if TYPE_CHECKING:
    from pathlib import Path

FILES = {"SKILL.md": b"# one\n", "a/b/deep.md": b"deep\n", "run.py": b"print(1)\n"}


def edited(folder: Path, edits: Edits | None = None) -> list[str]:
    found = (edits or Edits(folder)).findings(SkillsFolder(folder).lock())
    assert {finding.kind for finding in found} <= {"edited"}
    return [finding.subject for finding in found]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    install(tmp_path / "skills", bundle_of(FILES))
    install(tmp_path / "skills", bundle_of(FILES, namespace="mail"))
    return tmp_path / "skills"


def test_what_is_as_it_was_installed_is_not_named(folder: Path) -> None:
    put(folder, {"db/own.md": b"mine", "other/SKILL.md": b"mine"})

    assert edited(folder) == []


def test_every_edited_file_is_named_until_it_is_as_it_was(folder: Path) -> None:
    edits = Edits(folder)
    put(folder, {"mail/SKILL.md": b"mine", "db/a/b/deep.md": b"mine", "db/run.py": b"print(2)\n"})
    assert edited(folder, edits) == ["db/a/b/deep.md", "db/run.py", "mail/SKILL.md"]

    put(folder, {"db/run.py": FILES["run.py"], "mail/SKILL.md": FILES["SKILL.md"]})
    assert edited(folder, edits) == ["db/a/b/deep.md"]

    install(folder, bundle_of(FILES))
    assert edited(folder, edits) == []


def test_what_is_gone_or_no_file_any_more_was_not_edited(folder: Path) -> None:
    (folder / "db" / "SKILL.md").unlink()
    (folder / "db" / "run.py").unlink()
    (folder / "db" / "run.py").symlink_to(folder / "mail" / "SKILL.md")
    shutil.rmtree(folder / "db" / "a")
    (folder / "db" / "a").symlink_to(folder / "mail" / "a")
    (folder / "mail" / "SKILL.md").unlink()
    (folder / "mail" / "SKILL.md").mkdir()
    (folder / "mail" / "run.py").unlink()
    os.mkfifo(folder / "mail" / "run.py")

    assert edited(folder) == []


def test_without_a_folder_nothing_was_edited(folder: Path) -> None:
    lock = SkillsFolder(folder).lock()
    shutil.rmtree(folder)

    assert Edits(folder).findings(lock) == []


def test_a_record_that_changed_since_it_was_read_names_nothing_wrongly(folder: Path) -> None:
    lock = SkillsFolder(folder).lock()
    install(folder, bundle_of({**FILES, "SKILL.md": b"# two\n"}, "2.0.0"))

    assert Edits(folder).findings(lock) == []


@pytest.mark.parametrize("mode", MODES)
def test_at_no_point_of_an_update_is_a_file_called_edited(folder: Path, mode: str) -> None:
    looks: list[list[str]] = []

    def look(number: int, name: str, arguments: tuple[Any, ...]) -> None:
        disk_without(mode, name, arguments)
        if name in ("make_folder", "exchange", "rename", "unlink", "remove_folder"):
            looks.append(edited(folder))

    install(folder, bundle_of({**FILES, "SKILL.md": b"# two\n"}, "2.0.0"), files=WatchedFiles(look))

    assert len(looks) > 5
    assert not any(looks)


def test_only_what_changed_is_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RACY_SECONDS", 0)
    read: list[str] = []
    real = FileOps.open_file

    def opened(self: FileOps, name: str, folder: int) -> int:
        read.append(name)
        return real(self, name, folder)

    edits = Edits(folder)
    lock = SkillsFolder(folder).lock()
    edits.findings(lock)
    monkeypatch.setattr(FileOps, "open_file", opened)

    assert edits.findings(lock) == []
    assert read == []
    put(folder, {"db/SKILL.md": b"# mine"})
    assert [finding.subject for finding in edits.findings(lock)] == ["db/SKILL.md"]
    assert read == ["SKILL.md", "skills.lock.json"]


def test_an_edit_of_the_same_size_with_its_time_put_back_is_seen(folder: Path) -> None:
    edits = Edits(folder)
    assert edited(folder, edits) == []
    path = folder / "db" / "SKILL.md"
    before = path.stat()

    path.write_bytes(b"# two\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert edited(folder, edits) == ["db/SKILL.md"]
