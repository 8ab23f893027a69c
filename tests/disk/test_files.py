"""The seam to the disk."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.installs import WatchedFiles, contents, put

from iii_directory.disk import files as module
from iii_directory.disk.files import FileOps, closing_fd
from iii_directory.disk.install_record import content_hash
from iii_directory.disk.lock_files import WORK_FOLDER, held
from iii_directory.disk.safe_open import carry, hash_file, read_file, remove_tree, write_file
from iii_directory.errors import DirectoryError
from iii_directory.install.skills_folder import SkillsFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    with closing_fd(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)) as opened:
        yield opened


def test_two_names_are_exchanged_in_one_step(tmp_path: Path, root: int) -> None:
    put(tmp_path, {"a/x": b"1", "b/y": b"2"})

    FileOps().exchange("a", root, "b", root)

    assert contents(tmp_path) == {"a/y": b"2", "b/x": b"1"}


def test_a_failed_exchange_says_why(root: int) -> None:
    with pytest.raises(OSError, match="No such file") as error:
        FileOps().exchange("none", root, "nothing", root)
    assert error.value.errno == errno.ENOENT


def test_a_system_without_the_exchange_says_so(root: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *arguments, **options: object())

    with pytest.raises(OSError, match="not implemented") as error:
        FileOps().exchange("a", root, "b", root)
    assert error.value.errno in module.NOT_SUPPORTED


def test_reading_is_bounded_and_of_regular_files_only(tmp_path: Path, root: int) -> None:
    put(tmp_path, {"a": b"12345", "outside": b"secret"})
    (tmp_path / "link").symlink_to("outside")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")

    assert read_file(FileOps(), "a", root, 5) == b"12345"
    assert read_file(FileOps(), "none", root, 5) is None
    for name, limit in (("a", 4), ("link", 100), ("pipe", 100), ("folder", 100)):
        with pytest.raises(OSError, match=r".+"):
            read_file(FileOps(), name, root, limit)


def test_a_file_that_grows_while_it_is_hashed_does_not_hold_us_up(tmp_path: Path, root: int) -> None:
    put(tmp_path, {"a": b"x"})

    def grow(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "read":
            with (tmp_path / "a").open("ab") as file:
                file.write(b"y" * 3_000_000)

    hash_file(WatchedFiles(grow), "a", root)

    assert hash_file(FileOps(), "a", root)[0] == content_hash((tmp_path / "a").read_bytes())


def test_a_copy_stands_in_for_a_link_with_the_same_mode(tmp_path: Path, root: int) -> None:
    put(tmp_path, {"a": b"x"})
    (tmp_path / "a").chmod(0o640)

    def no_links(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "link":
            raise OSError(errno.EPERM, "no")

    carry(WatchedFiles(no_links), "a", root, "b", root)

    assert (tmp_path / "b").read_bytes() == b"x"
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o640
    assert (tmp_path / "b").stat().st_ino != (tmp_path / "a").stat().st_ino


def test_another_error_of_a_link_is_an_error(tmp_path: Path, root: int) -> None:
    put(tmp_path, {"a": b"x", "b": b"y"})

    with pytest.raises(FileExistsError):
        carry(FileOps(), "a", root, "b", root)


def test_a_file_is_never_written_over_or_through(tmp_path: Path, root: int) -> None:
    put(tmp_path, {"a": b"x"})
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "broken").symlink_to("b")

    for name in ("a", "link", "broken"):
        with pytest.raises(FileExistsError):
            write_file(FileOps(), name, root, b"y")
    assert (tmp_path / "a").read_bytes() == b"x"
    assert not (tmp_path / "b").exists()


def test_a_tree_is_removed_without_following_its_links(tmp_path: Path, root: int) -> None:
    put(tmp_path, {"outside/secret": b"s", "tree/a/b/c": b"x"})
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "tree" / "a").chmod(0o500)

    remove_tree(FileOps(), "tree", root)
    remove_tree(FileOps(), "none", root)

    assert contents(tmp_path) == {"outside/secret": b"s"}
    assert not (tmp_path / "tree").exists()


def test_a_rebuilt_folder_gets_the_mode_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir(mode=0o750)
    (tmp_path / "b").mkdir(mode=0o700)
    given: list[tuple[int, int]] = []

    def fchown(opened: int, user: int, group: int) -> None:
        given.append((user, group))
        raise PermissionError

    monkeypatch.setattr(os, "fchown", fchown)
    like = os.stat_result((0o40750, 0, 0, 1, 12345, 54321, 0, 0, 0, 0))

    with closing_fd(os.open(tmp_path / "b", os.O_RDONLY)) as opened:
        FileOps().adopt(opened, like)

    assert given == [(12345, 54321)]
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o750


def test_a_lock_leaves_nothing_behind(tmp_path: Path, root: int) -> None:
    with held(FileOps(), root, "db", 0.0) as hidden:
        assert (tmp_path / WORK_FOLDER / "db.lock").exists()
        assert os.fstat(hidden).st_ino == (tmp_path / WORK_FOLDER).stat().st_ino

    assert list(tmp_path.iterdir()) == []


def test_a_lock_of_a_file_that_was_removed_meanwhile_is_tried_again(tmp_path: Path, root: int) -> None:
    taken: list[str] = []

    def take_away(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "try_lock" and not taken:
            taken.append("lock")
            (tmp_path / WORK_FOLDER / "db.lock").unlink()
        if name == "open_lock" and taken == ["lock"]:
            taken.append("folder")
            (tmp_path / WORK_FOLDER).rmdir()
        if name == "open_folder" and taken == ["lock", "folder"]:
            taken.append("again")
            (tmp_path / WORK_FOLDER).rmdir()

    with held(WatchedFiles(take_away), root, "db", 10.0):
        assert (tmp_path / WORK_FOLDER / "db.lock").exists()
    assert taken == ["lock", "folder", "again"]


def test_only_one_holds_a_lock_at_a_time(tmp_path: Path, root: int) -> None:
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with held(FileOps(), root, "db", 30.0):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert most == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_another_process_makes_first_is_taken_as_it_is(tmp_path: Path) -> None:
    from tests.support.installs import bundle_of, install

    def make_first(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "make_folder" and arguments[1] is None:
            os.mkdir(arguments[0])

    install(tmp_path / "skills", bundle_of({"a.md": b"x"}), files=WatchedFiles(make_first))

    assert contents(tmp_path / "skills" / "db") == {"a.md": b"x"}


def test_a_disk_without_a_reason_is_an_error_all_the_same(tmp_path: Path) -> None:
    def fail(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        raise OSError

    with pytest.raises(DirectoryError, match=r"^D340 .*no reason"):
        SkillsFolder(tmp_path, files=WatchedFiles(fail)).lock()


def test_a_record_that_breaks_during_a_crash_is_left_alone(tmp_path: Path) -> None:
    from tests.support.installs import bundle_of, install

    install(tmp_path, bundle_of({"a.md": b"one"}))

    class Killed(BaseException):
        pass

    def die(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if died or (name == "rename" and arguments[2] == "skills.lock.json"):
            died.append(1)
            raise Killed

    died: list[int] = []
    with pytest.raises(Killed):
        install(tmp_path, bundle_of({"a.md": b"two"}, "2.0.0"), files=WatchedFiles(die))
    put(tmp_path, {"skills.lock.json": b"<<<<"})

    SkillsFolder(tmp_path).recover()

    assert contents(tmp_path) == {"skills.lock.json": b"<<<<", "db/a.md": b"two"}
