"""Looking after what is installed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.git import commit, git, make_repo
from tests.support.installs import contents, put
from tests.support.registry import RawServer, answer
from tests.support.world import World

from iii_directory.errors import DirectoryError
from iii_directory.registry.registry_messages import worker_request
from iii_directory.registry_server.registry_http import RegistryServer

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

GITHUB = "https://github.com/anthropics/skills"
V1 = {"skills/SKILL.md": "# one\n", "skills/get.md": "get one\n", "skills/gone.md": "gone\n"}
V2 = {"skills/SKILL.md": "# two\n", "skills/get.md": "get two\n", "skills/set.md": "set two\n"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with RegistryServer(tmp_path / "registry") as registry:
        yield World(tmp_path, registry.url)


@pytest.fixture
def repo(world: World) -> Path:
    folder = world.mirror / "anthropics" / "skills"
    make_repo(folder, {"skills/web/SKILL.md": b"# web one\n", "skills/web/a.md": b"a one\n"})
    return folder


def both(world: World) -> None:
    """A worker of the registry and a folder of a repository, installed."""
    world.publish("db", "1.0.0", V1)
    world.download(worker="db")
    world.download(repo=GITHUB, skill="web")


def reports(found: list[Any]) -> dict[str, str]:
    return {report.namespace: report.status for report in found}


def test_nothing_newer_is_current_and_nothing_is_touched(world: World, repo: Path) -> None:
    both(world)
    before = contents(world.skills)

    assert reports(world.run(lambda installer: installer.upkeep.update())) == {
        "db": "current",
        "web": "current",
    }
    assert reports(world.run(lambda installer: installer.upkeep.outdated())) == {
        "db": "current",
        "web": "current",
    }
    assert contents(world.skills) == before


def test_an_update_brings_what_is_newer_and_says_what_changed(world: World, repo: Path) -> None:
    both(world)
    world.publish("db", "2.0.0", V2)
    made = commit(repo, {"skills/web/a.md": b"a two\n"})

    outdated = world.run(lambda installer: installer.upkeep.outdated())
    first = outdated[0]
    assert (first.namespace, first.status) == ("db", "outdated")
    assert (first.installed, first.available) == ("1.0.0", "2.0.0")
    assert outdated[1].available == made
    found = world.run(lambda installer: installer.upkeep.update())

    assert reports(found) == {"db": "updated", "web": "updated"}
    assert found[0].as_dict() == {
        "namespace": "db",
        "status": "updated",
        "installed": "1.0.0",
        "available": "2.0.0",
        "changes": {
            "added": ["set.md"],
            "replaced": ["SKILL.md", "get.md"],
            "left_behind": ["gone.md"],
        },
    }
    assert (world.skills / "web" / "a.md").read_bytes() == b"a two\n"
    assert world.lock()["web"]["resolved"] == made


def test_an_update_keeps_what_was_edited_and_says_so(world: World, repo: Path) -> None:
    both(world)
    put(world.skills, {"db/SKILL.md": b"by hand", "web/SKILL.md": b"by hand"})
    world.publish("db", "2.0.0", V2)

    found = world.run(lambda installer: installer.upkeep.update())

    assert reports(found) == {"db": "edited", "web": "edited"}
    assert found[0].changes.kept == ("SKILL.md",)
    assert (world.skills / "db" / "SKILL.md").read_bytes() == b"by hand"
    assert (world.skills / "db" / "get.md").read_text() == "get two\n"
    assert (world.skills / "web" / "SKILL.md").read_bytes() == b"by hand"


def test_an_update_can_prune_what_left_the_source_but_not_what_was_edited(world: World, repo: Path) -> None:
    both(world)
    world.publish("db", "2.0.0", V2)
    found = world.run(lambda installer: installer.upkeep.update(["db"], prune=True))
    assert found[0].changes.removed == ("gone.md",)
    assert not (world.skills / "db" / "gone.md").exists()

    put(world.skills, {"db/set.md": b"by hand"})
    world.publish("db", "3.0.0", V1)
    world.run(lambda installer: installer.upkeep.update(["db"], prune=True))
    assert (world.skills / "db" / "set.md").read_bytes() == b"by hand"


def test_an_update_brings_lost_files_back(world: World, repo: Path) -> None:
    both(world)
    (world.skills / "db" / "get.md").unlink()
    installed_at = world.lock()["db"]["installed_at"]

    found = world.run(lambda installer: installer.upkeep.update(["db"]))

    assert reports(found) == {"db": "updated"}
    assert (world.skills / "db" / "get.md").read_text() == "get one\n"
    assert world.lock()["db"]["installed_at"] == installed_at


def test_a_pinned_namespace_stays_and_newer_versions_are_named(world: World, repo: Path) -> None:
    world.publish("db", "1.0.0", V1)
    world.publish("db", "2.0.0", V2)
    pinned = git(repo, "rev-parse", "HEAD")
    world.download(worker="db", version="1.0.0")
    world.download(repo=GITHUB, skill="web", branch=pinned)
    commit(repo, {"skills/web/a.md": b"a two\n"})
    put(world.skills, {"web/a.md": b"by hand"})

    found = world.run(lambda installer: installer.upkeep.update())
    assert reports(found) == {"db": "current", "web": "edited"}
    assert all(report.pinned for report in found)
    rows = world.run(lambda installer: installer.upkeep.outdated())
    assert rows[0].as_dict() == {
        "namespace": "db",
        "status": "outdated",
        "installed": "1.0.0",
        "available": "2.0.0",
        "pinned": True,
    }
    assert rows[1].status == "current"


def test_a_namespace_that_fails_does_not_stop_the_others_and_says_why(world: World, repo: Path) -> None:
    both(world)
    shutil.rmtree(repo)
    world.publish("db", "2.0.0", V2)

    found = world.run(lambda installer: installer.upkeep.update(["db", "web", "nothing"]))

    assert reports(found) == {"db": "updated", "web": "failed", "nothing": "failed"}
    assert str(found[1].error).startswith("D330 ")
    assert "not in the record" in str(found[2].error)
    assert reports(world.run(lambda installer: installer.upkeep.outdated(["web"]))) == {"web": "failed"}


def test_a_version_with_other_content_than_before_is_refused(world: World) -> None:
    bundle = {"name": "db", "version": "1.0.0", "skills": [{"path": "a.md", "content": "one"}]}

    def respond(path: str, connection: socket.socket) -> None:
        connection.sendall(answer(bundle))

    with RawServer(respond) as server:
        world.run(lambda installer: installer.download(worker_request("db")), registry_url=server.url)
        bundle["skills"] = [{"path": "a.md", "content": "other"}]
        found = world.run(lambda installer: installer.upkeep.update(), registry_url=server.url)
        (world.skills / "db" / "a.md").unlink()
        restored = world.run(lambda installer: installer.upkeep.restore(), registry_url=server.url)

    for report in (found[0], restored[0]):
        assert report.status == "failed"
        assert "other content" in str(report.error)


def test_a_tag_that_went_back_is_not_followed(world: World) -> None:
    world.publish("db", "1.0.0", V1)
    world.publish("db", "2.0.0", V2)
    world.download(worker="db")
    world.publish("db", "1.0.0", V1, tag="latest")

    found = world.run(lambda installer: installer.upkeep.update())

    assert found[0].status == "failed"
    assert "older" in str(found[0].error)
    assert reports(world.run(lambda installer: installer.upkeep.outdated())) == {"db": "current"}
    found = world.run(lambda installer: installer.upkeep.update(allow_downgrade=True))
    assert (found[0].status, found[0].available) == ("updated", "1.0.0")


def test_restore_on_an_empty_folder_is_byte_identical(world: World, repo: Path) -> None:
    both(world)
    world.publish("db", "2.0.0", V2)
    commit(repo, {"skills/web/a.md": b"a two\n"})
    before = contents(world.skills)
    record = (world.skills / "skills.lock.json").read_bytes()
    shutil.rmtree(world.skills)
    put(world.skills, {"skills.lock.json": record})

    found = world.run(lambda installer: installer.upkeep.restore())

    assert reports(found) == {"db": "restored", "web": "restored"}
    assert contents(world.skills) == before
    assert reports(world.run(lambda installer: installer.upkeep.restore())) == {
        "db": "current",
        "web": "current",
    }


def test_restore_keeps_what_was_edited_unless_forced(world: World, repo: Path) -> None:
    both(world)
    before = contents(world.skills)
    put(world.skills, {"db/SKILL.md": b"by hand"})
    (world.skills / "db" / "get.md").unlink()

    found = world.run(lambda installer: installer.upkeep.restore(["db"]))
    assert reports(found) == {"db": "edited"}
    assert (world.skills / "db" / "SKILL.md").read_bytes() == b"by hand"
    assert reports(world.run(lambda installer: installer.upkeep.restore(["db"]))) == {"db": "edited"}

    world.run(lambda installer: installer.upkeep.restore(["db"], force=True))
    assert contents(world.skills) == before


def test_verify_recomputes_every_hash(world: World, repo: Path) -> None:
    both(world)
    put(world.skills, {"db/SKILL.md": b"by hand", "db/own.md": b"mine"})
    (world.skills / "db" / "get.md").unlink()

    rows = world.run(lambda installer: installer.upkeep.verify())

    assert rows[0] == {
        "namespace": "db",
        "status": "edited",
        "clean": ["gone.md"],
        "edited": ["SKILL.md"],
        "missing": ["get.md"],
        "mode": [],
        "left_behind": [],
        "own": ["own.md"],
    }
    assert rows[1]["status"] == "clean"
    with pytest.raises(DirectoryError, match=r"^D340 .*'nothing'"):
        world.run(lambda installer: installer.upkeep.verify(["nothing"]))


def test_a_diff_goes_from_the_recorded_state_to_the_disk(world: World, repo: Path) -> None:
    both(world)
    assert world.run(lambda installer: installer.upkeep.diff()) == ""
    put(world.skills, {"db/SKILL.md": b"by hand\n", "web/a.md": b"a mine\n"})
    (world.skills / "db" / "get.md").unlink()
    world.publish("db", "2.0.0", V2)
    commit(repo, {"skills/web/a.md": b"a two\n"})

    text = world.run(lambda installer: installer.upkeep.diff())

    assert "--- a/db/SKILL.md\n+++ b/db/SKILL.md\n@@ -1 +1 @@\n-# one\n+by hand\n" in text
    assert "--- a/db/get.md\n+++ /dev/null\n" in text
    assert "-a one\n+a mine\n" in text
    assert "two" not in text


def test_remove_takes_away_what_was_installed(world: World, repo: Path) -> None:
    both(world)
    put(world.skills, {"db/SKILL.md": b"by hand", "db/own.md": b"mine"})

    kept = world.run(lambda installer: installer.upkeep.remove("db"))
    gone = world.run(lambda installer: installer.upkeep.remove("web"))

    assert (kept.status, kept.changes.kept) == ("edited", ("SKILL.md",))
    assert contents(world.skills / "db") == {"SKILL.md": b"by hand", "own.md": b"mine"}
    assert gone.status == "removed"
    assert not (world.skills / "web").exists()
    assert world.lock() == {}


@pytest.mark.parametrize(
    "name", ["", ".", "..", "/", "db", "../skills", "skills.lock.json", ".iii-directory", "DB"]
)
def test_what_is_not_in_the_record_cannot_be_removed(world: World, name: str) -> None:
    put(world.tmp_path, {"skills/db/SKILL.md": b"mine", "canary": b"canary"})
    before = contents(world.tmp_path)

    with pytest.raises(DirectoryError, match=r"^D340 "):
        world.run(lambda installer: installer.upkeep.remove(name, force=True))
    assert contents(world.tmp_path) == before
