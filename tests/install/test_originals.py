"""What edited files were made from survives a kill at any operation."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.git import commit, make_repo
from tests.support.installs import WatchedFiles, put
from tests.support.world import World

from iii_directory.disk.files import FileOps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from iii_directory.install.service import Installer

GITHUB = "https://github.com/o/r"
TEXT = b"# Web\n\none\n\ntwo\n\nthree\n"
MINE = TEXT.replace(b"one", b"my one")
NEWS = TEXT.replace(b"three", b"three, newer")
LATER = NEWS.replace(b"two", b"two, later")

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An edited skill whose source has changed twice, and that heard of the first change."""
    made = World(tmp_path, "http://127.0.0.1:1")
    repo = made.mirror / "o" / "r"
    make_repo(repo, {"skills/web/SKILL.md": TEXT})
    made.download(repo=GITHUB, skill="web")
    put(made.skills, {"web/SKILL.md": MINE})
    commit(repo, {"skills/web/SKILL.md": NEWS})
    upkeep(made, "update")
    commit(repo, {"skills/web/SKILL.md": LATER})
    return made


def upkeep(world: World, name: str, *, files: FileOps | None = None, **options: Any) -> Any:
    def act(installer: Installer) -> Any:
        if files is not None:
            installer.upkeep.folder._files = files
        return getattr(installer.upkeep, name)(**options)

    return world.run(act)


def kept(world: World) -> set[bytes]:
    folder = world.skills / ".iii-directory" / "ORIGINALS" / "web"
    return {path.read_bytes() for path in folder.iterdir()} if folder.exists() else set()


def killed_at(number: int) -> WatchedFiles:
    """A disk on which the process dies before the n-th operation; a write is cut in half."""

    def act(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if count == number:
            if name == "write":
                FileOps().write(arguments[0], arguments[1][: len(arguments[1]) // 2])
            os._exit(77)

    return WatchedFiles(act)


def dies(act: Callable[[], object]) -> bool:
    """Run in a forked child; whether it was killed on the way."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 77)
    return code == 77


def states_after_kills(world: World, stride: int, **options: Any) -> Iterator[bool]:
    """The folder after an update that was killed at some operation and put right; whether it was done."""
    template = world.tmp_path / "template"
    shutil.copytree(world.skills, template)
    number, killed = 1, True
    while killed:
        shutil.rmtree(world.skills)
        shutil.copytree(template, world.skills)
        killed = dies(lambda number=number: upkeep(world, "update", files=killed_at(number), **options))
        world.run(lambda installer: installer.recover())
        yield not killed
        number += stride


@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=pytest.mark.soak)])
def test_a_kill_during_an_update_leaves_what_comparing_needs(world: World, stride: int) -> None:
    source = world.mirror.rename(world.tmp_path / "away")
    before = upkeep(world, "diff", upstream=True)
    source.rename(world.mirror)
    seen: set[str] = set()

    for _ in states_after_kills(world, stride):
        world.mirror.rename(source)
        mine, theirs = upkeep(world, "diff"), upkeep(world, "diff", upstream=True)
        source.rename(world.mirror)

        assert "-one\n+my one\n" in mine
        assert "-three\n+three, newer\n" in theirs
        seen.add(theirs)
        assert {TEXT, NEWS} <= kept(world) or {TEXT, LATER} <= kept(world)

    assert len(seen) == 2
    assert before in seen
    assert kept(world) == {TEXT, LATER}


@pytest.mark.parametrize("stride", [17, pytest.param(1, marks=pytest.mark.soak)])
def test_an_update_after_a_killed_one_ends_as_if_nothing_had_happened(world: World, stride: int) -> None:
    merged = LATER.replace(b"one", b"my one")

    for _ in states_after_kills(world, stride, merge=True):
        (report,) = upkeep(world, "update", merge=True)

        assert report.status in ("merged", "edited")
        assert (world.skills / "web/SKILL.md").read_bytes() == merged
        assert kept(world) == set()


def test_a_text_that_was_cut_short_is_not_taken_for_the_whole(world: World) -> None:
    folder = world.skills / ".iii-directory" / "ORIGINALS" / "web"
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:5])

    (report,) = upkeep(world, "update", merge=True)

    assert report.changes.conflicts == ("SKILL.md",)
    assert (world.skills / "web/SKILL.md").read_bytes() == MINE


def test_another_namespace_may_remove_the_shared_folder_at_any_moment(tmp_path: Path) -> None:
    made = World(tmp_path, "http://127.0.0.1:1")
    repo = made.mirror / "o" / "r"
    make_repo(repo, {"skills/web/SKILL.md": TEXT})
    made.download(repo=GITHUB, skill="web")
    put(made.skills, {"web/SKILL.md": MINE})
    commit(repo, {"skills/web/SKILL.md": NEWS})
    removed: set[tuple[str, str]] = set()

    def remove_once_before_each_step(_: int, name: str, arguments: tuple[Any, ...]) -> None:
        step = (name, str(arguments[0]) if arguments else "")
        if step in {("open_folder", "ORIGINALS"), ("make_folder", "web")} and step not in removed:
            # What an update of another namespace does when it has no texts left.
            with suppress(OSError):
                (made.skills / ".iii-directory" / "ORIGINALS").rmdir()
                removed.add(step)

    (report,) = upkeep(made, "update", files=WatchedFiles(remove_once_before_each_step))

    assert len(removed) == 2
    assert (report.status, report.error) == ("edited", None)
    assert kept(made) == {TEXT, NEWS}
