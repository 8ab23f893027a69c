"""Archives of hostile sites, through the command: bounded in time and memory, one sentence for each."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.registered.stage import until
from tests.support.archives import OVERVIEW, generated, of_the_review, pax, plain
from tests.support.commands import COMMAND, environment
from tests.support.engine import WAIT
from tests.support.installs import contents
from tests.support.registry import RawServer, answer

from iii_directory.limits import MIB

if TYPE_CHECKING:
    import socket
    from pathlib import Path

MAX_RSS = 256 * MIB
MAX_SECONDS = 10.0

# Started directly, the command would be charged with the memory of the test process it was forked from.
MEASURE = """
import resource, subprocess, sys
with open("out", "wb") as out, open("err", "wb") as err:
    subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


class ArchiveSite:
    """A site whose index names archives; it notes when each was asked for."""

    def __init__(self, archives: dict[str, bytes]) -> None:
        self.archives = archives
        self.asked: list[float] = []

    def respond(self, path: str, connection: socket.socket) -> None:
        self.asked.append(time.monotonic())
        name = path.removeprefix("/")
        connection.sendall(answer(self.archives[name]) if name in self.archives else answer(self._index()))

    def _index(self) -> dict[str, Any]:
        rows = [
            {
                "name": name,
                "type": "archive",
                "description": "d",
                "url": f"/{name}",
                "digest": f"sha256:{hashlib.sha256(content).hexdigest()}",
            }
            for name, content in self.archives.items()
        ]
        return {"skills": rows}


class Done:
    """An ended command: what it printed, and the most memory that it or a child of it had."""

    def __init__(self, site: ArchiveSite, folder: Path) -> None:
        with RawServer(site.respond) as server:
            command = [COMMAND, "skills", "add", server.url, "--all", "--json"]
            measured = subprocess.run(
                [sys.executable, "-c", MEASURE, *command],
                cwd=folder,
                env=environment(),
                stdout=subprocess.PIPE,
                check=True,
            )
        site.asked.append(time.monotonic())
        self.peak = int(measured.stdout) * 1024
        self.errors = (folder / "err").read_text(encoding="utf-8")
        self.rows: list[dict[str, Any]] = json.loads((folder / "out").read_bytes())["namespaces"]


def check(site: ArchiveSite, done: Done, folder: Path) -> set[str]:
    """Every archive was installed or refused by a sentence, within the bounds; the names of the installed."""
    assert "Traceback" not in done.errors
    assert {row["namespace"] for row in done.rows} == set(site.archives)
    assert done.peak <= MAX_RSS
    assert (
        max(after - before for before, after in zip(site.asked, site.asked[1:], strict=False)) <= MAX_SECONDS
    )
    failed = [row for row in done.rows if row["status"] == "failed"]
    assert all(row["reason"].isprintable() and len(row["reason"]) < 400 for row in failed), failed
    installed = {row["namespace"] for row in done.rows} - {row["namespace"] for row in failed}
    there = {path.partition("/")[0] for path in contents(folder / "skills")}
    assert there <= {*installed, "skills.lock.json"}
    assert not any(path.endswith(("evil", "up")) for path in contents(folder))
    return installed


@pytest.mark.timeout(300)
def test_the_archives_of_the_review_are_refused_within_time_and_memory(tmp_path: Path) -> None:
    site = ArchiveSite(of_the_review())

    installed = check(site, Done(site, tmp_path), tmp_path)

    assert installed == {"tar-ok", "zip-ok", "zip-bz2"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.soak) for first in range(125, 500, 125))]
)
def test_generated_archives_are_installed_or_refused_within_time_and_memory(
    tmp_path: Path, first: int
) -> None:
    site = ArchiveSite({f"g{seed}": generated(seed) for seed in range(first, first + 125)})

    installed = check(site, Done(site, tmp_path), tmp_path)

    assert 5 < len(installed) < 100


@pytest.mark.timeout(60)
def test_ctrl_c_ends_a_command_that_unpacks(tmp_path: Path) -> None:
    # Slow to read before Python 3.11.10 and 3.12.6; the child process takes the time, not the command.
    slow = b"".join(pax((b"comment", b"1" * 4000)) for _ in range(900)) + plain(b"SKILL.md", OVERVIEW)
    site = ArchiveSite({"slow": gzip.compress(slow + bytes(1024))})
    with RawServer(site.respond) as server:
        process = subprocess.Popen(
            [COMMAND, "skills", "add", server.url],
            cwd=tmp_path,
            env=environment(),
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        try:
            until(
                lambda: process.poll() is not None or bool(children(process.pid)), "a child process unpacks"
            )
            unpacking = children(process.pid)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=WAIT)
        finally:
            process.kill()

    assert b"Traceback" not in errors
    assert not any(os.path.exists(f"/proc/{pid}") for pid in unpacking)
    assert not (tmp_path / "skills" / "slow").exists()


def children(pid: int) -> list[str]:
    """The processes that a process has started, by any of its threads."""
    found: list[str] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += file.read().split()
    return found
