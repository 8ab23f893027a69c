"""Files that were edited by hand hear of their source again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.git import commit, make_repo
from tests.support.installs import contents, put
from tests.support.world import World

if TYPE_CHECKING:
    from pathlib import Path

GITHUB = "https://github.com/o/r"
TEXT = b"# Web\n\none\n\ntwo\n\nthree\n"
MINE = TEXT.replace(b"one", b"my one")
NEWS = TEXT.replace(b"three", b"three, newer")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, "http://127.0.0.1:1")


@pytest.fixture
def repo(world: World) -> Path:
    """A repository with a skill that is installed and edited, and that moved on since."""
    folder = world.mirror / "o" / "r"
    make_repo(folder, {"skills/web/SKILL.md": TEXT, "skills/web/a.md": b"a\n"})
    world.download(repo=GITHUB, skill="web")
    put(world.skills, {"web/SKILL.md": MINE})
    commit(folder, {"skills/web/SKILL.md": NEWS})
    return folder


def upkeep(world: World, name: str, *arguments: Any, **options: Any) -> Any:
    return world.run(lambda installer: getattr(installer.upkeep, name)(*arguments, **options))


def test_an_update_keeps_the_edit_and_the_source_stays_known(world: World, repo: Path) -> None:
    (report,) = upkeep(world, "update")
    assert (report.status, report.changes.kept) == ("edited", ("SKILL.md",))
    assert (world.skills / "web/SKILL.md").read_bytes() == MINE

    (later,) = upkeep(world, "outdated")
    assert (later.status, later.behind) == ("edited", ("SKILL.md",))
    mine, theirs = upkeep(world, "diff"), upkeep(world, "diff", upstream=True)
    assert "-one\n+my one\n" in mine
    assert "newer" not in mine
    assert "-three\n+three, newer\n" in theirs
    assert "my one" not in theirs


def test_what_was_remembered_needs_no_source(world: World, repo: Path) -> None:
    upkeep(world, "update")
    shutil.rmtree(repo)

    assert "+my one" in upkeep(world, "diff")
    assert "+three, newer" in upkeep(world, "diff", upstream=True)
    (report,) = upkeep(world, "update", merge=True)

    assert (report.status, report.changes.merged) == ("failed", ("SKILL.md",))
    assert (world.skills / "web/SKILL.md").read_bytes() == MINE.replace(b"three", b"three, newer")


def test_a_merge_makes_both_changes_and_is_current_from_then_on(world: World, repo: Path) -> None:
    (report,) = upkeep(world, "update", merge=True)

    assert (report.status, report.changes.merged, report.changes.kept) == ("merged", ("SKILL.md",), ())
    assert (world.skills / "web/SKILL.md").read_bytes() == MINE.replace(b"three", b"three, newer")
    (later,) = upkeep(world, "outdated")
    assert (later.status, later.behind) == ("current", ())
    assert upkeep(world, "diff", upstream=True) == ""
    assert "-one\n+my one\n" in upkeep(world, "diff")
    assert "edited_from" not in world.lock()["web"]


def test_a_conflict_leaves_the_file_and_puts_both_beside_it(world: World, repo: Path) -> None:
    put(world.skills, {"web/SKILL.md": TEXT.replace(b"three", b"my three")})

    (report,) = upkeep(world, "update", merge=True)

    assert (report.status, report.changes.conflicts) == ("conflict", ("SKILL.md",))
    assert (world.skills / "web/SKILL.md").read_bytes() == TEXT.replace(b"three", b"my three")
    beside = (world.skills / "web/SKILL.md.merge").read_bytes()
    assert b"<<<<<<< yours\nmy three\n=======\nthree, newer\n>>>>>>> upstream\n" in beside

    put(world.skills, {"web/SKILL.md": TEXT.replace(b"one", b"my one")})
    (again,) = upkeep(world, "update", merge=True)
    assert again.status == "merged"
    assert not (world.skills / "web/SKILL.md.merge").exists()


def test_an_edit_stays_known_over_several_updates(world: World, repo: Path) -> None:
    upkeep(world, "update")
    commit(repo, {"skills/web/SKILL.md": NEWS + b"four\n"})
    upkeep(world, "update")

    theirs = upkeep(world, "diff", upstream=True)
    assert "+three, newer\n+four\n" in theirs
    upkeep(world, "update", merge=True)
    assert (world.skills / "web/SKILL.md").read_bytes() == MINE.replace(b"three", b"three, newer") + b"four\n"


def test_giving_up_an_edit_forgets_what_it_was_made_from(world: World, repo: Path) -> None:
    upkeep(world, "update")
    assert (world.skills / ".iii-directory/ORIGINALS/web").is_dir()

    upkeep(world, "remove", "web", force=True)

    assert contents(world.skills) == {"skills.lock.json": (world.skills / "skills.lock.json").read_bytes()}
    assert not (world.skills / ".iii-directory").exists()


def test_what_left_the_source_is_pruned_by_a_later_update_and_by_removal(world: World, repo: Path) -> None:
    (repo / "skills/web/a.md").unlink()
    commit(repo, {})
    (first,) = upkeep(world, "update")
    (row,) = upkeep(world, "verify")
    assert (first.changes.left_behind, row["left_behind"], row["own"]) == (("a.md",), ["a.md"], [])

    (second,) = upkeep(world, "update", prune=True)
    assert second.changes.removed == ("a.md",)
    assert not (world.skills / "web/a.md").exists()
    assert "left_behind" not in world.lock()["web"]


def test_what_left_the_source_goes_with_the_namespace_unless_it_was_edited(world: World, repo: Path) -> None:
    commit(repo, {"skills/web/b.md": b"b\n"})
    upkeep(world, "update")
    for name in ("a.md", "b.md"):
        (repo / "skills/web" / name).unlink()
    commit(repo, {})
    upkeep(world, "update")
    put(world.skills, {"web/b.md": b"mine\n"})

    upkeep(world, "remove", "web")

    assert sorted(contents(world.skills / "web")) == ["SKILL.md", "b.md"]
