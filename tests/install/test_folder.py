"""The skills folder under installs: what stays, what is refused, who waits for whom."""

from __future__ import annotations

import os
import stat
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.installs import WatchedFiles, bundle_of, contents, hashes, install, put, remove

from iii_directory.disk.install_record import LOCKFILE
from iii_directory.errors import DirectoryError, refused
from iii_directory.install.skills_folder import SkillsFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

V1 = {"index.md": b"one", "a/b.md": b"one"}
V2 = {"index.md": b"two", "a/b.md": b"two"}


def test_the_first_install_makes_the_folder_with_its_parents(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "skills"

    install(folder, bundle_of(V1))

    assert contents(folder / "db") == V1
    assert sorted(entry.name for entry in folder.iterdir()) == ["db", LOCKFILE]


def test_looking_at_a_folder_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    folder = SkillsFolder(tmp_path / "skills")

    assert folder.lock().namespaces == {}
    assert not folder.look("db")[0].exists
    assert folder.read("db", "a.md") is None
    folder.recover()
    assert not (tmp_path / "skills").exists()


def test_a_refused_plan_leaves_no_new_folder_behind(tmp_path: Path) -> None:
    with pytest.raises(DirectoryError), SkillsFolder(tmp_path / "a" / "skills").locked("db"):
        raise refused("no")
    assert list(tmp_path.iterdir()) == []


def test_files_are_read_by_their_path(tmp_path: Path) -> None:
    install(tmp_path, bundle_of(V1))

    assert SkillsFolder(tmp_path).read("db", "a/b.md") == b"one"
    assert SkillsFolder(tmp_path).read("db", "a/c.md") is None
    assert SkillsFolder(tmp_path).read("db", "x/c.md") is None


def test_looking_hashes_every_file_unless_told_which(tmp_path: Path) -> None:
    install(tmp_path, bundle_of({"index.md": b"one"}))
    put(tmp_path, {"db/own.md": b"mine"})
    folder = SkillsFolder(tmp_path)

    assert folder.look("db")[0].hashes == hashes({"index.md": b"one", "own.md": b"mine"})
    assert folder.look("db", ())[0].hashes == hashes({"index.md": b"one"})


def test_kept_files_keep_their_inode_and_their_mode(tmp_path: Path) -> None:
    install(tmp_path, bundle_of(V1))
    own = tmp_path / "db" / "own.sh"
    own.write_text("x")
    own.chmod(0o750)
    (tmp_path / "db" / "a").chmod(0o700)
    before = own.stat()

    install(tmp_path, bundle_of(V2, "2.0.0"))

    after = own.stat()
    assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (
        before.st_ino,
        before.st_mode,
        before.st_mtime_ns,
    )
    assert after.st_nlink == 1
    assert stat.S_IMODE((tmp_path / "db" / "a").stat().st_mode) == 0o700


def test_links_and_empty_folders_of_the_user_stay_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "skills"
    install(folder, bundle_of(V1))
    (tmp_path / "outside.md").write_text("secret")
    (folder / "db" / "link.md").symlink_to(tmp_path / "outside.md")
    (folder / "db" / "empty").mkdir()
    os.mkfifo(folder / "db" / "pipe")

    install(folder, bundle_of(V2, "2.0.0"))

    assert (folder / "db" / "link.md").is_symlink()
    assert (folder / "db" / "empty").is_dir()
    assert (folder / "db" / "pipe").is_fifo()
    assert (tmp_path / "outside.md").read_text() == "secret"


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    folder, outside = tmp_path / "skills", tmp_path / "outside"
    outside.mkdir()
    (outside / "b.md").write_text("canary")
    folder.mkdir()
    places: list[Callable[[], object]] = [
        lambda: (folder / "db").symlink_to(outside),
        lambda: (folder / "db").write_text("file"),
        lambda: (_in(folder) / "a").symlink_to(outside),
        lambda: (_in(folder) / "index.md").symlink_to(outside / "b.md"),
        lambda: (folder / ".iii-directory").symlink_to(outside),
        lambda: (folder / LOCKFILE).symlink_to(outside / "b.md"),
    ]
    for place in places:
        place()
        with pytest.raises(DirectoryError, match=r"D340"):
            install(folder, bundle_of(V1))
        assert contents(outside) == {"b.md": b"canary"}
        _clear(folder)


def _in(folder: Path) -> Path:
    (folder / "db").mkdir()
    return folder / "db"


def _clear(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder)
    folder.mkdir()


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "skills").symlink_to(tmp_path / "real")

    install(tmp_path / "skills", bundle_of(V1))

    assert contents(tmp_path / "real" / "db") == V1


def test_a_record_that_cannot_be_read_is_never_written_over(tmp_path: Path) -> None:
    put(tmp_path, {LOCKFILE: b"<<<<<<< HEAD\n"})

    with pytest.raises(DirectoryError, match=rf"D340 .*{LOCKFILE}.*nothing was changed"):
        install(tmp_path, bundle_of(V1))
    assert contents(tmp_path) == {LOCKFILE: b"<<<<<<< HEAD\n"}


def test_removing_the_last_file_removes_the_namespace(tmp_path: Path) -> None:
    install(tmp_path, bundle_of(V1))

    remove(tmp_path)

    assert [entry.name for entry in tmp_path.iterdir()] == [LOCKFILE]
    assert SkillsFolder(tmp_path).lock().namespaces == {}


def test_a_namespace_whose_folder_was_deleted_by_hand_can_be_removed(tmp_path: Path) -> None:
    install(tmp_path, bundle_of({"index.md": b"one"}))
    (tmp_path / "db" / "index.md").unlink()
    (tmp_path / "db").rmdir()

    remove(tmp_path)

    assert SkillsFolder(tmp_path).lock().namespaces == {}


def test_removing_keeps_edited_and_own_files(tmp_path: Path) -> None:
    install(tmp_path, bundle_of({**V1, "x/y.md": b"one"}))
    put(tmp_path, {"db/index.md": b"by hand", "db/a/own.md": b"mine"})

    plan = remove(tmp_path)

    assert plan.changes.kept == ("index.md",)
    assert contents(tmp_path / "db") == {"index.md": b"by hand", "a/own.md": b"mine"}
    assert not (tmp_path / "db" / "x").exists()


@pytest.mark.parametrize("edited", ["overwrite", "keep"])
def test_a_file_saved_while_an_install_runs_is_not_lost(tmp_path: Path, edited: Any) -> None:
    install(tmp_path, bundle_of(V1))
    put(tmp_path, {"db/own.md": b"mine", "db/inplace.md": b"mine"})

    def save(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "exchange":
            put(tmp_path, {"db/n/new.md": b"saved", "db/own.md.tmp": b"saved", "db/inplace.md": b"saved"})
            os.replace(tmp_path / "db" / "own.md.tmp", tmp_path / "db" / "own.md")
            put(tmp_path, {"db/index.md": b"saved"})

    install(tmp_path, bundle_of(V2, "2.0.0"), files=WatchedFiles(save), edited=edited)

    assert contents(tmp_path / "db") == {
        "index.md": b"saved" if edited == "keep" else b"two",
        "a/b.md": b"two",
        "own.md": b"saved",
        "inplace.md": b"saved",
        "n/new.md": b"saved",
    }


def test_a_file_saved_while_its_namespace_is_removed_is_not_lost(tmp_path: Path) -> None:
    install(tmp_path, bundle_of(V1))

    def save(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "exchange":
            put(tmp_path, {"db/index.md": b"saved"})

    remove(tmp_path, files=WatchedFiles(save))

    assert contents(tmp_path / "db") == {"index.md": b"saved"}


def test_an_install_that_waits_too_long_for_the_lock_is_refused(tmp_path: Path) -> None:
    install(tmp_path, bundle_of(V1))
    inside, leave = threading.Event(), threading.Event()

    def pause(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "exchange":
            inside.set()
            assert leave.wait(10)

    first = threading.Thread(
        target=install, args=(tmp_path, bundle_of(V2, "2.0.0")), kwargs={"files": WatchedFiles(pause)}
    )
    first.start()
    assert inside.wait(10)
    try:
        with pytest.raises(DirectoryError, match=r"D340 .*another installation.*nothing was changed"):
            install(tmp_path, bundle_of(V1), wait=0.0)
        SkillsFolder(tmp_path).recover()
        assert (tmp_path / ".iii-directory" / "db.work").exists()
    finally:
        leave.set()
        first.join(10)
    assert contents(tmp_path / "db") == V2


def test_two_namespaces_are_staged_at_the_same_time(tmp_path: Path) -> None:
    install(tmp_path, bundle_of(V1))
    staging, done = threading.Event(), threading.Event()

    def pause(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "write" and arguments[1] == b"two":
            staging.set()
            assert done.wait(10)

    first = threading.Thread(
        target=install, args=(tmp_path, bundle_of(V2, "2.0.0")), kwargs={"files": WatchedFiles(pause)}
    )
    first.start()
    assert staging.wait(10)
    try:
        install(tmp_path, bundle_of(V1, namespace="web"), wait=0.0)
    finally:
        done.set()
        first.join(10)
    assert contents(tmp_path / "db") == V2
    assert SkillsFolder(tmp_path).lock().namespaces.keys() == {"db", "web"}


def test_the_progress_of_writing_is_told_file_by_file(tmp_path: Path) -> None:
    from iii_directory.install.plan import plan_install

    bundle = bundle_of(V1)
    told: list[tuple[str, int, int]] = []

    with SkillsFolder(tmp_path).locked("db", bundle.files) as namespace:
        plan = plan_install(bundle, namespace.disk, None, edited="keep", by="call", now="")
        namespace.commit(plan, lambda phase, done, total: told.append((phase, done, total)))

    assert told == [("write", number, len(V1)) for number in range(1, len(V1) + 1)]


def test_recovery_leaves_what_is_not_its_own(tmp_path: Path) -> None:
    put(tmp_path, {".iii-directory/Notes.txt": b"mine", ".iii-directory/db.lock": b""})

    SkillsFolder(tmp_path).recover()

    assert contents(tmp_path) == {".iii-directory/Notes.txt": b"mine"}


OTHERS = (
    b'{"namespace": "web", "staged": 1, "entry": null, "marks": {}, '
    b'"writes": {}, "deletes": [], "edits_win": true}'
)


@pytest.mark.parametrize("journal", [b"", b"{", b"[]", OTHERS, b'{"namespace": "db"}'])
def test_a_journal_that_was_cut_short_counts_as_none(tmp_path: Path, journal: bytes) -> None:
    install(tmp_path, bundle_of(V1))
    before = contents(tmp_path)
    put(tmp_path, {".iii-directory/db.work/journal.json": journal, ".iii-directory/db.work/new/x.md": b"x"})

    SkillsFolder(tmp_path).recover()

    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/etc", "A", "fn", ".iii-directory", "a\0"])
def test_a_name_that_is_not_a_namespace_never_reaches_the_disk(tmp_path: Path, name: str) -> None:
    put(tmp_path, {"x/SKILL.md": b"canary", "skills/y/SKILL.md": b"y"})
    folder = SkillsFolder(tmp_path / "skills")

    with pytest.raises(DirectoryError, match=r"^D340 "):
        folder.read("y", "../../x/SKILL.md")
    for act in (
        lambda: folder.look(name),
        lambda: folder.read(name, "SKILL.md"),
        lambda: folder.locked(name).__enter__(),
    ):
        with pytest.raises(DirectoryError, match=r"^D340 "):
            act()
    assert contents(tmp_path) == {"x/SKILL.md": b"canary", "skills/y/SKILL.md": b"y"}


def test_facts_are_collected_while_another_install_exchanges_the_folder(tmp_path: Path) -> None:
    before = bundle_of({"index.md": b"one", "old/run.py": b"print(1)"})
    after = bundle_of({"index.md": b"two", "new/run.py": b"print(2)"}, "2.0.0")
    moment, operations = 0, 1

    def exchange(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if count == moment:
            install(tmp_path, after, prune=True)

    # At every operation on the disk in turn.
    while moment < operations:
        install(tmp_path, before, prune=True, allow_downgrade=True)
        moment += 1
        files = WatchedFiles(exchange)
        scripts = SkillsFolder(tmp_path, files=files).facts("db")[0].inventory["scripts"]
        operations = files.count
        # A file of the old version that is gone already counts as absent.
        assert scripts in ([], ["old/run.py (python)"], ["new/run.py (python)"])
    assert operations > 5
