"""Entries planted in the skills folder, or in its place, to make an install do harm."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from tests.support.installs import bundle_of, contents, install, put
from tests.support.world import World

from iii_directory.errors import DirectoryError
from iii_directory.install.bundle import Wanted
from iii_directory.install.plan import plan_install
from iii_directory.install.requests import LocalFolder
from iii_directory.install.skills_folder import SkillsFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def plant(skills: Path, namespace: str, staged: int | None = None, **fields: object) -> Path:
    """Leave what an interrupted install would leave, with a journal that says what an attacker wants."""
    entry = json.loads((skills / "skills.lock.json").read_text(encoding="utf-8"))["namespaces"]["db"]
    work = skills / ".iii-directory" / f"{namespace}.work"
    (work / "old").mkdir(parents=True)
    put(work / "new", {"evil.md": b"# evil"})
    journal = {
        "namespace": namespace,
        "staged": os.stat(work / "new").st_ino if staged is None else staged,
        "entry": entry,
        "marks": {},
        "writes": {"evil.md": "x"},
        "deletes": [],
        "edits_win": True,
        **fields,
    }
    (work / "journal.json").write_text(json.dumps(journal), encoding="utf-8")
    return work


def documents(skills: Path) -> dict[str, bytes]:
    return {
        path: data for path, data in contents(skills).items() if ".iii" not in path and ".lock" not in path
    }


@pytest.mark.parametrize("staged", [1, None], ids=["another disk", "this disk"])
def test_a_planted_work_folder_deletes_nothing(tmp_path: Path, staged: int | None) -> None:
    skills = tmp_path / "skills"
    install(skills, bundle_of({"SKILL.md": b"# db"}))
    put(skills, {"db/mine.md": b"mine", "own/mine.md": b"mine", "own/deep/notes.md": b"notes"})
    for namespace in ("db", "own"):
        plant(skills, namespace, staged)
    before = documents(skills)

    SkillsFolder(skills).recover()

    assert before.items() <= contents(skills).items()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to another user")
@pytest.mark.parametrize("given", ["journal.json", "."])
def test_a_journal_of_another_user_changes_nothing(tmp_path: Path, given: str) -> None:
    skills = tmp_path / "skills"
    install(skills, bundle_of({"SKILL.md": b"# db"}))
    put(skills, {"own/mine.md": b"mine"})
    work = plant(skills, "own", deletes=["mine.md"], edits_win=False)
    os.chown(work / given, 65534, 65534)
    before = contents(skills)

    SkillsFolder(skills).recover()
    with pytest.raises(DirectoryError, match="another user left an unfinished install of 'own'"):
        install(skills, bundle_of({"SKILL.md": b"# own"}, namespace="own"))

    assert {path: data for path, data in contents(skills).items() if ".lock" not in path} == {
        path: data for path, data in before.items() if ".lock" not in path
    }


def change(skills: SkillsFolder, version: str) -> None:
    """An install by a folder that was opened before."""
    with skills.locked("db") as namespace:
        bundle = bundle_of({"SKILL.md": b"# db"}, version)
        plan = plan_install(bundle, namespace.disk, namespace.known, edited="overwrite", by="call", now="")
        namespace.commit(plan)


def _link(skills: Path, other: Path) -> None:
    skills.rename(skills.with_name("away"))
    skills.symlink_to(other)


def _exchange(skills: Path, other: Path) -> None:
    skills.rename(skills.with_name("away"))
    other.rename(skills)


def _link_above(skills: Path, other: Path) -> None:
    parent = skills.parent
    parent.rename(parent.with_name("parent-away"))
    (other / "skills").mkdir()
    parent.symlink_to(other)


@pytest.mark.parametrize("swap", [_link, _exchange, _link_above])
def test_a_folder_that_took_the_place_of_the_one_at_the_start_is_not_written_to(
    tmp_path: Path, swap: Callable[[Path, Path], None]
) -> None:
    folder, outside = tmp_path / "parent" / "skills", tmp_path / "outside"
    install(folder, bundle_of({"SKILL.md": b"# db"}))
    outside.mkdir()
    skills = SkillsFolder(folder)
    skills.recover()
    swap(folder, outside)

    with pytest.raises(DirectoryError, match="another one than at the start"):
        change(skills, "2.0.0")

    assert contents(folder) == {}


def test_a_folder_that_went_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "skills"
    skills = SkillsFolder(folder)
    for version in ("1.0.0", "2.0.0"):
        change(skills, version)
        assert (folder / "db" / "SKILL.md").exists()
        folder.rename(tmp_path / f"away-{version}")


@pytest.mark.parametrize("fields", [{"worker": "iii-directory"}, {"worker": "iii"}])
def test_nothing_is_downloaded_in_the_name_of_the_engine_or_the_directory(
    tmp_path: Path, fields: dict[str, str]
) -> None:
    world = World(tmp_path, "http://127.0.0.1:1")

    with pytest.raises(DirectoryError, match="is reserved"):
        world.download(**fields)
    with pytest.raises(DirectoryError, match="is reserved"):
        world.download(repo="https://github.com/a/b", skill=fields["worker"])


@pytest.mark.parametrize("name", ["skills", "index", "con", "com1", "-rf"])
def test_no_source_installs_under_a_name_that_readers_or_systems_take_for_something_else(
    tmp_path: Path, name: str
) -> None:
    world = World(tmp_path, "http://127.0.0.1:1")
    put(tmp_path / "mine" / name, {"SKILL.md": b"# x"})

    added = world.run(lambda installer: installer.add(LocalFolder(str(tmp_path / "mine")), Wanted()))[1]
    with pytest.raises(DirectoryError, match=f"nothing is installed under the name '{name}'|not the name of"):
        world.download(worker=name)

    assert f"nothing is installed under the name '{name}'" in str(added.failed[name])
    assert not world.skills.exists()
