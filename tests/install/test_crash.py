"""An install that is killed, or whose disk fails, at every single file operation."""

from __future__ import annotations

import errno
import itertools
import json
import os
import random
import shutil
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.installs import (
    MODES,
    WatchedFiles,
    bundle_of,
    contents,
    disk_without,
    hashes,
    install,
    put,
    remove,
    write,
)

from iii_directory.disk.files import FileOps
from iii_directory.errors import DirectoryError
from iii_directory.install.skills_folder import SkillsFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


V1 = {"index.md": b"# one\n", "a/b/deep.md": b"deep one", "gone.md": b"was here", "edited.md": b"plain"}
V2 = {"index.md": b"# two\n", "a/b/deep.md": b"deep two", "new/x.md": b"x", "edited.md": b"better"}
OWN = {"db/own.md": b"mine", "db/a/own.txt": b"mine too", "db/.hidden/x": b"hidden"}

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@dataclass(frozen=True)
class Scenario:
    """What is there, what is done to it, and what is there afterwards."""

    prepare: Callable[[Path], None]
    act: Callable[[Path, FileOps], object]


def _installed(folder: Path) -> None:
    install(folder, bundle_of({"SKILL.md": b"other"}, namespace="other"))
    install(folder, bundle_of(V1))
    put(folder, OWN)
    put(folder, {"db/edited.md": b"by hand"})


SCENARIOS = {
    "first": Scenario(lambda folder: None, lambda folder, files: install(folder, bundle_of(V1), files=files)),
    "update": Scenario(
        _installed,
        lambda folder, files: install(folder, bundle_of(V2, "2.0.0"), files=files, edited="keep", prune=True),
    ),
    "remove": Scenario(_installed, lambda folder, files: remove(folder, files=files)),
    "create": Scenario(_installed, lambda folder, files: write(folder, "new/page.md", b"# new", files)),
    "delete": Scenario(_installed, lambda folder, files: write(folder, "a/b/deep.md", None, files)),
    "remove-all": Scenario(
        lambda folder: void(install(folder, bundle_of(V1))), lambda folder, files: remove(folder, files=files)
    ),
}


def void(_: object) -> None:
    return None


def state(folder: Path) -> dict[str, bytes]:
    """All files, in the namespaces and in the record; nothing hidden may be among them but the user's own."""
    return contents(folder)


def folders(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()} if folder.exists() else set()


def killed_at(number: int, mode: str) -> WatchedFiles:
    """A disk on which the process dies before the n-th operation; a write is cut in half."""

    def act(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if count == number:
            if name == "write":
                FileOps().write(arguments[0], arguments[1][: len(arguments[1]) // 2])
            os._exit(77)
        disk_without(mode, name, arguments)

    return WatchedFiles(act)


def dies(act: Callable[[], object]) -> bool:
    """Run in a forked child; whether it was killed on the way."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 77)
    return code == 77


def before_and_after(tmp_path: Path, scenario: Scenario) -> tuple[Path, dict[str, bytes], dict[str, bytes]]:
    template, finished = tmp_path / "template", tmp_path / "finished"
    scenario.prepare(template)
    before = state(template)
    if template.exists():
        shutil.copytree(template, finished)
    scenario.act(finished, FileOps())
    return template, before, state(finished)


def fresh(template: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if template.exists():
        shutil.copytree(template, folder)


@pytest.mark.parametrize("name", ["first", "update", "create", "delete"])
def test_a_kill_at_any_operation_leaves_the_old_state_or_the_new_one(tmp_path: Path, name: str) -> None:
    scenario = SCENARIOS[name]
    template, before, after = before_and_after(tmp_path, scenario)
    folder = tmp_path / "skills"
    seen: set[bool] = set()
    number = 0
    killed = True
    while killed:
        number += 1
        fresh(template, folder)
        killed = dies(lambda number=number: scenario.act(folder, killed_at(number, "plain")))
        documents = {path: held for path, held in state(folder).items() if not path.startswith(".iii")}
        assert documents_of(documents) in (documents_of(before), documents_of(after)), number

        SkillsFolder(folder).recover()

        assert state(folder) in (before, after), number
        assert ".iii-directory" not in folders(folder)
        seen.add(state(folder) == after)
    assert seen == {True, False}
    assert number > 20


@pytest.mark.parametrize(
    ("name", "mode"),
    [*(("update", mode) for mode in MODES[1:]), ("remove", "plain"), ("remove-all", "overlay")],
)
def test_a_kill_is_recovered_from_on_disks_that_can_do_less(tmp_path: Path, name: str, mode: str) -> None:
    scenario = SCENARIOS[name]
    template, before, after = before_and_after(tmp_path, scenario)
    folder = tmp_path / "skills"
    seen: set[bool] = set()
    number = 0
    while crashes(scenario, template, folder, number := number + 1, mode):
        SkillsFolder(folder).recover()

        assert state(folder) in (before, after), number
        assert ".iii-directory" not in folders(folder)
        seen.add(state(folder) == after)
    assert state(folder) == after
    assert seen == {True, False}


@pytest.mark.parametrize(
    "kills", [25, pytest.param(500, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])]
)
def test_random_kills_never_leave_a_mixture(tmp_path: Path, kills: int) -> None:
    folder, roll = tmp_path / "skills", random.Random(kills)
    versions = {
        str(number): {f"f{n}.md": f"{number}-{n}".encode() * 400 for n in range(8)} for number in (1, 2)
    }
    install(folder, bundle_of(versions["1"], "1.0.0"))

    for number in range(kills):
        operations = killed_after(roll.randrange(1, 60), lambda files: swap_for_ever(folder, versions, files))

        SkillsFolder(folder).recover()
        there, entry = contents(folder / "db"), lock_of(folder)["db"]
        assert there in versions.values(), (number, operations)
        assert hashes(there) == entry["files"], (number, operations)
        assert folders(folder) == {"db", "skills.lock.json"}


def swap_for_ever(folder: Path, versions: dict[str, dict[str, bytes]], files: FileOps) -> None:
    for number in itertools.cycle(versions):
        install(folder, bundle_of(versions[number], f"{number}.0.0"), files=files, allow_downgrade=True)


def killed_after(operations: int, act: Callable[[FileOps], object]) -> int:
    """Run in a forked child, which is killed from outside some time after that many operations."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            act(WatchedFiles(lambda *_: void(os.write(theirs, b"."))))
        finally:
            os._exit(1)
    os.close(theirs)
    seen = 0
    while seen < operations and os.read(ours, 1):
        seen += 1
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(ours)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    return seen


def lock_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "skills.lock.json").read_text(encoding="utf-8"))["namespaces"]


def documents_of(whole: dict[str, bytes]) -> dict[str, bytes]:
    return {path: content for path, content in whole.items() if path != "skills.lock.json"}


class Killed(BaseException):
    """Stands for the death of the process: nothing after it happens."""


def dead_from(number: int, mode: str) -> WatchedFiles:
    def act(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if count >= number:
            raise Killed
        disk_without(mode, name, arguments)

    return WatchedFiles(act)


@pytest.mark.parametrize(
    ("mode", "stride"),
    [
        ("plain", 31),
        ("overlay", 61),
        *(pytest.param(mode, 1, marks=pytest.mark.soak) for mode in ("plain", "no-exchange", "overlay")),
    ],
)
def test_a_kill_during_recovery_is_recovered_from_as_well(tmp_path: Path, mode: str, stride: int) -> None:
    scenario = SCENARIOS["update"]
    template, before, after = before_and_after(tmp_path, scenario)
    folder = tmp_path / "skills"
    number = 0
    while crashes(scenario, template, folder, number := number + stride, mode):
        recovery = 0
        while recovery_dies(folder, recovery := recovery + 1, mode):
            SkillsFolder(folder).recover()
            assert state(folder) in (before, after), (number, recovery)
            assert ".iii-directory" not in folders(folder)
            crashes(scenario, template, folder, number, mode)
    assert number > 50


def recovery_dies(folder: Path, number: int, mode: str) -> bool:
    try:
        SkillsFolder(folder, files=dead_from(number, mode)).recover()
    except Killed:
        return True
    return False


def crashes(scenario: Scenario, template: Path, folder: Path, number: int, mode: str) -> bool:
    fresh(template, folder)
    try:
        scenario.act(folder, dead_from(number, mode))
    except Killed:
        return True
    return False


@pytest.mark.parametrize("mode", ["plain", "overlay"])
def test_a_copy_of_a_crashed_folder_is_recovered_too(tmp_path: Path, mode: str) -> None:
    scenario = SCENARIOS["update"]
    template, before, after = before_and_after(tmp_path, scenario)
    folder, copy = tmp_path / "skills", tmp_path / "copy"
    seen: set[bool] = set()
    number = 0
    while crashes(scenario, template, folder, number := number + 1, mode):
        fresh(folder, copy)

        SkillsFolder(copy).recover()

        assert state(copy) in (before, after), number
        seen.add(state(copy) == after)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("update", errno.ENOSPC),
        ("update", errno.EACCES),
        ("update", errno.EIO),
        ("first", errno.ENOSPC),
        ("remove", errno.EIO),
        ("create", errno.ENOSPC),
        ("delete", errno.EIO),
        ("remove-all", errno.EACCES),
    ],
)
def test_an_error_of_the_disk_at_any_operation_changes_nothing(tmp_path: Path, name: str, code: int) -> None:
    fail_everywhere(tmp_path, name, code, "plain")


@pytest.mark.parametrize("mode", ["no-exchange", "overlay"])
def test_an_error_changes_nothing_on_disks_that_can_do_less(tmp_path: Path, mode: str) -> None:
    fail_everywhere(tmp_path, "update", errno.ENOSPC, mode)


def fail_everywhere(tmp_path: Path, name: str, code: int, mode: str) -> None:
    scenario = SCENARIOS[name]
    template, before, after = before_and_after(tmp_path, scenario)
    folder = tmp_path / "skills"
    number = 0
    while True:
        number += 1
        fresh(template, folder)
        there = folders(folder)
        files = failing_at(number, code, mode)
        error = failure(lambda files=files: scenario.act(folder, files))
        if error is not None:
            assert error.code == "D340"
            assert str(tmp_path) not in str(error)
            assert "nothing was changed" in str(error)
            assert visible(folder) == before, number
            assert folders(folder) - {".iii-directory"} == there
        else:
            assert visible(folder) == after, number
        SkillsFolder(folder).recover()
        assert state(folder) in (before, after)
        assert ".iii-directory" not in folders(folder)
        if files.count < number:
            break
    assert number > 20


def failure(act: Callable[[], object]) -> DirectoryError | None:
    try:
        act()
    except DirectoryError as error:
        return error
    return None


def visible(folder: Path) -> dict[str, bytes]:
    """Without the hidden folder, in which an error may leave something for the next start to clear."""
    return {path: held for path, held in state(folder).items() if not path.startswith(".iii-directory/")}


def failing_at(number: int, code: int, mode: str) -> WatchedFiles:
    def act(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if count == number:
            raise OSError(code, os.strerror(code))
        disk_without(mode, name, arguments)

    return WatchedFiles(act)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_disk_that_stays_broken_is_put_right_at_the_next_start(tmp_path: Path, name: str) -> None:
    scenario = SCENARIOS[name]
    template, before, after = before_and_after(tmp_path, scenario)
    folder = tmp_path / "skills"
    number = 0
    while True:
        number += 1
        fresh(template, folder)

        def act(count: int, name: str, arguments: tuple[Any, ...], number: int = number) -> None:
            if count >= number:
                raise OSError(errno.EIO, "gone")

        files = WatchedFiles(act)
        error = failure(lambda files=files: scenario.act(folder, files))
        assert error is None or error.code == "D340"
        if folder.exists():
            SkillsFolder(folder).recover()
        assert state(folder) in (before, after), number
        assert ".iii-directory" not in folders(folder)
        if files.count < number:
            break


def test_the_record_agrees_with_the_files_after_an_update(tmp_path: Path) -> None:
    folder = tmp_path / "skills"
    _installed(folder)

    install(folder, bundle_of(V2, "2.0.0"), edited="keep", prune=True)

    entry = SkillsFolder(folder).lock().namespaces["db"]
    assert entry.resolved == "2.0.0"
    assert entry.files == hashes(V2)
    assert contents(folder / "db") == {
        **V2,
        "edited.md": b"by hand",
        "own.md": b"mine",
        "a/own.txt": b"mine too",
        ".hidden/x": b"hidden",
    }
