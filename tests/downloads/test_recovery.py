"""A command that is killed in the middle of an install, and the worker that starts after it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.downloads.stage import V1, V2, event
from tests.registered.stage import until
from tests.support.commands import START_SECONDS, environment
from tests.support.directory import client, directory
from tests.support.engine import EngineThread
from tests.support.installs import contents, hashes, put

if TYPE_CHECKING:
    from tests.downloads.stage import Depot

ROOT = Path(__file__).parents[2]


def killed(depot: Depot, operation: str, later: int) -> None:
    """``skills add db`` in another process, killed at an operation of the disk."""
    program = [sys.executable, "-m", "tests.downloads.killed_command", operation, str(later)]
    config = depot.write_config()
    done = subprocess.run(
        [*program, "skills", "add", "db", "--config", str(config)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        check=False,
        timeout=START_SECONDS,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def check_whole(depot: Depot, files: dict[str, bytes], version: str) -> None:
    """The folder, the record and the catalogue tell the same story, and nothing temporary is left."""
    entry = depot.world.lock()["db"]
    assert entry["resolved"] == version
    there = hashes(contents(depot.folder / "db"))
    assert {path: there[path] for path in entry["files"]} == entry["files"]
    assert {path.name for path in depot.folder.iterdir()} == {"db", "skills.lock.json"}
    assert contents(depot.folder / "db") == files
    assert [row["status"] for row in depot.verified()] == ["clean"]
    assert depot.title("db") == ("db one" if version == "1.0.0" else "db two")


@pytest.mark.parametrize(
    ("operation", "later", "version"),
    [("exchange", 0, "1.0.0"), ("exchange", 1, "2.0.0"), ("exchange", 4, "2.0.0")],
    ids=["before the switch", "right after the switch", "at the record"],
)
def test_an_update_that_was_killed_is_put_right_at_the_next_start(
    depot: Depot, operation: str, later: int, version: str
) -> None:
    depot.world.publish("db", "1.0.0", V1)
    depot.call("skills::download", worker="db")
    old = contents(depot.folder / "db")
    depot.world.publish("db", "2.0.0", V2)
    depot.retire(depot.worker)

    killed(depot, operation, later)
    assert (depot.folder / ".iii-directory").exists()
    depot.worker = depot.directory()

    new = {**old, "SKILL.md": b"# db two\n", "get.md": b"# get two\n", "set.md": b"# set\n"}
    check_whole(depot, old if version == "1.0.0" else new, version)


def test_a_first_install_that_was_killed_leaves_nothing_or_all_of_it(depot: Depot) -> None:
    depot.world.publish("db", "1.0.0", V1)
    depot.retire(depot.worker)

    killed(depot, "rename", 0)
    depot.worker = depot.directory()
    assert depot.ids() == []
    assert list(depot.folder.iterdir()) == []

    depot.retire(depot.worker)
    killed(depot, "rename", 1)
    depot.worker = depot.directory()
    assert depot.ids() == ["db", "db/get"]
    check_whole(depot, contents(depot.folder / "db"), "1.0.0")


def test_the_next_download_puts_it_right_as_well_and_is_told(depot: Depot) -> None:
    depot.world.publish("db", "1.0.0", V1)
    depot.call("skills::download", worker="db")
    depot.world.publish("db", "2.0.0", V2)
    listener = depot.listener("skills::on-change")

    killed(depot, "exchange", 1)
    # Until then readers see a whole set, and it is the new one.
    until(lambda: depot.title("db") == "db two", "the new set is there")
    assert depot.world.lock()["db"]["resolved"] == "1.0.0"
    depot.call("skills::download", worker="db")

    assert listener.next() == event("db")
    check_whole(depot, contents(depot.folder / "db"), "2.0.0")


def test_a_hand_edited_file_survives_the_crash(depot: Depot) -> None:
    depot.world.publish("db", "1.0.0", V1)
    depot.call("skills::download", worker="db")
    put(depot.folder, {"db/get.md": b"# edited\n", "db/own.md": b"# own\n"})
    depot.world.publish("db", "2.0.0", V2)
    depot.retire(depot.worker)

    killed(depot, "exchange", 1)
    depot.worker = depot.directory()

    assert depot.title("db") == "db two"
    assert (depot.title("db/get"), depot.title("db/own")) == ("edited", "own")
    (row,) = depot.verified()
    assert (row["edited"], row["own"]) == (["get.md"], ["own.md"])


def test_a_skills_folder_that_is_a_file_is_a_finding_and_the_worker_answers_all_the_same(
    tmp_path: Path,
) -> None:
    file = tmp_path / "skills"
    file.write_text("no folder\n", encoding="utf-8")

    with EngineThread() as engine, directory(engine.url, file), client(engine.url) as caller:
        found = caller.call("directory::diagnostics")["findings"]

    (told,) = [row for row in found if row["kind"] == "download"]
    assert told["subject"] == "skills_folder"
    assert "could not be put right" in told["reason"]
