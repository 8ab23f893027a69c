"""The catalogue of 10,000 documents: how long it takes to read, to list and to follow, and what it weighs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Measurement, goal, interleave, measure, repeat, timed
from benchmarks.trees import document, path_of, read_all, stat_all, tree
from iii_directory.catalog.folder_source import FolderSource
from iii_directory.catalog.folder_watching import system_watcher
from iii_directory.catalog.skill_replies import list_skills
from iii_directory.catalog.snapshot import EMPTY
from iii_directory.documents import frontmatter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from iii_directory.catalog.folder_watching import Inotify

COUNT = 10_000
GROWTH = (100, 1_000, 10_000, 100_000)


class Reader:
    """A source with the snapshot kept of it, as the worker has them."""

    def __init__(self, root: Path, watcher: Callable[[], Inotify | None] = system_watcher) -> None:
        self.source = FolderSource(root, watcher=watcher)
        self.snapshot = EMPTY

    def list(self) -> list[dict[str, Any]]:
        """All rows, after having caught up with the disk."""
        self.catch_up()
        return list_skills(self.snapshot)

    def catch_up(self) -> None:
        """Take up what changed on disk."""
        self.source.catch_up()
        if self.source.pending:
            self.snapshot = self.snapshot.changed(files=self.source.take_changes())

    def get(self, number: int) -> bytes:
        self.catch_up()
        skill = self.snapshot.find(path_of(number).removesuffix(".md"))
        return self.source.read_body(skill.path or "") if skill is not None else b""


def no_watcher() -> None:
    return


def seconds_to_first_scan(root: Path) -> float:
    source = FolderSource(root)
    seconds = timed(source.catch_up)()
    source.close()
    return seconds


@measure("catalogue.list-unchanged")
def list_unchanged() -> Measurement:
    root = tree(COUNT)
    reader = Reader(root)
    reader.list()
    return interleave(timed(reader.list, times=100), timed(lambda: stat_all(root)))


@measure("catalogue.list-unwatched")
def list_unwatched() -> Measurement:
    root = tree(COUNT)
    reader = Reader(root, no_watcher)
    reader.list()
    return interleave(timed(reader.list), timed(lambda: stat_all(root)))


@measure("catalogue.first-scan")
def first_scan() -> Measurement:
    """Every file found, watched, read and parsed."""
    root = tree(COUNT)
    return interleave(lambda: seconds_to_first_scan(root), timed(lambda: read_all(root)), rounds=11)


@measure("catalogue.worst-front-matter", unit="ms")
def worst_front_matter() -> Measurement:
    """The slowest of blocks that were made to be slow, each as large as one may be."""
    blocks = [
        f"a: [{','.join('x' * 8_000)}]\n",
        f"a: {'[' * 8_000}\n",
        "a:\n" + "- - - - - - x\n" * 1_000,
        "".join(f"k{number}: v: w {'x' * 20}\n" for number in range(440)),
        f"a: {'x: y ' * 3_200}\n",
        f"a: {'é' * 8_000}\n",
    ]
    samples = [timed(lambda block=block: frontmatter.read(block)) for block in blocks]
    return repeat(lambda: max(sample() for sample in samples) * 1_000, rounds=21)


@goal("catalogue.one-change-seen", at_most=5.0, unit="ms")
def one_change_seen() -> Measurement:
    root = tree(COUNT)
    reader = Reader(root)
    reader.list()
    return repeat(lambda: _seconds_to_see_a_change(reader, root, 4_711) * 1_000, rounds=21)


@measure("catalogue.change-at-100000", unit="ms")
def one_change_among_many() -> Measurement:
    """One edited file among 100,000, from the write to the list that shows it."""
    root = tree(GROWTH[-1])
    reader = Reader(root)
    reader.list()
    return repeat(lambda: _seconds_to_see_a_change(reader, root, 47_110) * 1_000, rounds=21)


def _seconds_to_see_a_change(reader: Reader, root: Path, number: int) -> float:
    path = root / path_of(number)
    title = f"Edited at {time.monotonic_ns()}"
    path.write_bytes(document(number).replace(f"How to do step {number}".encode(), title.encode()))
    start = time.perf_counter()
    rows = reader.list()
    seconds = time.perf_counter() - start
    if not any(row["title"] == title for row in rows):
        raise AssertionError("the list does not show the edit")
    return seconds


@goal("catalogue.memory", at_most=25.0, unit="MB")
def memory() -> Measurement:
    return repeat(lambda: figures(COUNT)["megabytes"] - figures(0)["megabytes"], rounds=3)


@measure("catalogue.get-at-100000")
def growth() -> Measurement:
    """Reading one body takes no longer among 100,000 documents than among 100."""
    columns = ("first list", "list", "get", "one change", "memory")
    lines = [" ".join([f"{'documents':>9}", *(f"{name:>12}" for name in columns)])]
    empty = figures(0)["megabytes"]
    for count in GROWTH:
        of = figures(count)
        cells = (
            f"{of['first_ms']:.0f} ms",
            f"{of['list_us']:.1f} us",
            f"{of['get_us']:.1f} us",
            f"{of['change_ms']:.2f} ms",
            f"{of['megabytes'] - empty:.1f} MB",
        )
        lines.append(" ".join([f"{count:>9}", *(f"{cell:>12}" for cell in cells)]))
    few, many = Reader(tree(GROWTH[0])), Reader(tree(GROWTH[-1]))
    few.list()
    many.list()
    return interleave(
        timed(lambda: many.get(50), times=1_000), timed(lambda: few.get(50), times=1_000), notes=lines
    )


def figures(count: int, files: int = 0) -> dict[str, float]:
    """What a process of its own measures on a folder of so many documents, with so many files for each."""
    command = [sys.executable, "-m", __name__, str(tree(count, files))]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


def _measure(root: Path) -> dict[str, float]:
    reader = Reader(root)
    first = timed(reader.list)()
    count = len(reader.list())
    found = {"first_ms": first * 1e3, "megabytes": _resident_megabytes()}
    if count:
        found["list_us"] = timed(reader.list, times=1_000)() * 1e6
        found["get_us"] = timed(lambda: reader.get(count // 2), times=1_000)() * 1e6
        changes = repeat(lambda: _seconds_to_see_a_change(reader, root, count // 2))
        found["change_ms"] = changes.median * 1e3
    return found


def _resident_megabytes() -> float:
    with open("/proc/self/status", encoding="ascii") as status:
        kilobytes = next(line.split()[1] for line in status if line.startswith("VmRSS:"))
    return int(kilobytes) / 1024


if __name__ == "__main__":
    from pathlib import Path

    print(json.dumps(_measure(Path(sys.argv[1]))))
