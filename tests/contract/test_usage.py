"""``directory::skills::usage``: what was offered, read and used, counted on this machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.contract.requirements import requirement
from tests.support.commands import COMMAND, free_port, run, running_program
from tests.support.engine import WAIT
from tests.support.reader import until

from iii_directory import limits
from iii_directory.worker.usage import UsageTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.reader import Reader

SKILL = "---\nname: pdf\ndescription: Fills forms. Use when a form is asked for.\n---\n# PDF\n"


def counts(directory: Reader) -> dict[str, tuple[int, int, int]]:
    rows = directory.call("directory::skills::usage")["skills"]
    return {row["id"]: (row["offered"], row["read"], row["used"]) for row in rows}


def fill(directory: Reader) -> None:
    directory.skills.write("pdf/SKILL.md", SKILL)
    directory.skills.write("pdf/more.md", "# More\n")
    directory.skills.write("pdf/run.py", "print()\n")


@requirement("usage.counted")
def test_what_is_offered_read_and_used_is_counted_once_a_call(directory: Reader) -> None:
    fill(directory)
    assert counts(directory)["pdf"] == (0, 0, 0)

    directory.call("directory::skills::list")
    directory.call("directory::skills::index")
    directory.call("directory::search", query="fill in a form")
    assert counts(directory)["pdf"] == (3, 0, 0)

    directory.call("directory::skills::get", id="pdf")
    directory.call("directory::skills::get", id="pdf/more")
    directory.call("skill::fetch", uris=["iii://pdf", "iii://pdf/more"])
    assert counts(directory)["pdf"][:2] == (3, 4)

    directory.call("directory::skills::file", id="pdf", path="run.py")
    directory.call("directory::skills::get", id="pdf/run.py")
    assert counts(directory)["pdf"] == (3, 4, 2)
    assert directory.call("directory::skills::usage")["since"]


@requirement("usage.counted")
def test_searches_that_found_nothing_are_kept_newest_first(directory: Reader) -> None:
    fill(directory)
    for words in ("zzyzx quux", "plugh xyzzy", "zzyzx quux"):
        directory.call("directory::search", query=words)

    misses = directory.call("directory::skills::usage")["misses"]

    assert [(row["words"], row["count"]) for row in misses] == [("zzyzx quux", 2), ("plugh xyzzy", 1)]


@requirement("usage.counted")
def test_nothing_is_counted_where_it_is_switched_off(start: Callable[..., Reader]) -> None:
    directory = start(usage=False)
    fill(directory)
    directory.call("directory::skills::list")

    assert directory.call("directory::skills::usage") == {"skills": [], "misses": [], "since": None}


@requirement("usage.counted")
def test_the_table_never_grows_beyond_its_bounds() -> None:
    table = UsageTable()
    for day in range(40):
        table.add(f"2026-01-{day:02}", "read", (f"s{number}" for number in range(1000)))
        table.trim()
    for number in range(limits.MAX_USAGE_MISSES + 50):
        table.miss(f"words {number}", "2026-01-01T00:00:00Z")
    table.trim()

    assert sum(map(len, table.days.values())) == limits.MAX_USAGE_ROWS
    assert min(table.days) == "2026-01-20"
    assert len(table.misses) == limits.MAX_USAGE_MISSES
    assert table.reply()["misses"][0]["words"] == f"words {limits.MAX_USAGE_MISSES + 49}"
    assert len(json.dumps(table.as_dict())) < limits.MAX_USAGE_BYTES
    again = UsageTable(json.loads(json.dumps(table.as_dict())))
    assert again.as_dict() == table.as_dict()


@requirement("usage.counted")
def test_odd_files_are_read_as_far_as_they_make_sense() -> None:
    day = {"a": [1, 2], "b": [1, -2, 3], "c": "x", "d": [1, 2, 3]}
    odd = {"days": {"2026-01-01": day}, "misses": [1, {"words": 1}]}

    for said in (odd, [], None, "x", {"days": []}):
        assert UsageTable(said).reply()["misses"] == []
    assert UsageTable(odd).reply()["skills"] == [{"id": "d", "offered": 1, "read": 2, "used": 3}]


@requirement("usage.counted")
def test_a_killed_directory_loses_no_more_than_the_last_second(tmp_path: Path) -> None:
    (tmp_path / "skills/pdf").mkdir(parents=True)
    (tmp_path / "skills/pdf/SKILL.md").write_text(SKILL)
    (tmp_path / "config.yaml").write_text("usage: true\n")
    env = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}

    with running_program(
        COMMAND, "up", "--port", str(free_port()), "--http-port", str(free_port()), cwd=tmp_path, **env
    ) as up:
        up.wait_for("Ctrl-C")
        assert run("skills", "show", "pdf", cwd=tmp_path, **env).returncode == 0
        kept = tmp_path / ".iii-directory/usage.json"
        until(lambda: kept.exists() and "pdf" in kept.read_text(), "usage.json")
        up.process.kill()
        up.process.wait(WAIT)

    said = json.loads(run("skills", "usage", "--json", cwd=tmp_path, **env).stdout)
    unused = json.loads(run("skills", "usage", "--unused", "--json", cwd=tmp_path, **env).stdout)
    assert {row["id"]: row["read"] for row in said["skills"]}["pdf"] == 1
    assert [row["id"] for row in unused["skills"]] == ["iii-directory"]
