"""Nothing outside the folder is ever read, whatever is swapped in during the read."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import pytest
from tests.support.folders import Folder, real_watcher

from iii_directory.catalog.folder_source import FolderSource
from iii_directory.disk.files import RefusedError
from iii_directory.documents.parse import parse_file

if TYPE_CHECKING:
    from pathlib import Path

    from iii_directory.documents.model import ParsedFile, Provenance

CANARY = b"CANARY-OUTSIDE"
SWAPPED = ("ns", "deep/er", "flip.md")


class Flipper(threading.Thread):
    """Turns directories and a file into links to the outside and back, without a pause."""

    def __init__(self, skills: Folder, outside: Folder) -> None:
        super().__init__()
        self.skills = skills
        self.flips = 0
        self.stop = threading.Event()
        for name in SWAPPED:
            skills.path(f".links/{name}").parent.mkdir(parents=True, exist_ok=True)
            skills.path(f".real/{name}").parent.mkdir(parents=True, exist_ok=True)
            skills.link(f".links/{name}", outside.path(name))

    def run(self) -> None:
        while not self.stop.is_set():
            for name in SWAPPED:
                self.skills.move(name, f".real/{name}")
                self.skills.move(f".links/{name}", name)
                self.skills.move(name, f".links/{name}")
                self.skills.move(f".real/{name}", name)
            self.flips += 1


class Reader(threading.Thread):
    """Reads bodies, and counts what came of it."""

    def __init__(self, source: FolderSource, paths: list[str], stop: threading.Event) -> None:
        super().__init__()
        self.source = source
        self.paths = paths
        self.stop = stop
        self.read = 0
        self.refused = 0
        self.leaks: list[str] = []

    def run(self) -> None:
        while not self.stop.is_set():
            for path in self.paths:
                try:
                    body = self.source.read_body(path)
                except RefusedError:
                    self.refused += 1
                    continue
                self.read += 1
                if CANARY in body:
                    self.leaks.append(path)


def race(tmp_path: Path, *, readers: int, seconds: float, iterations: int) -> int:
    """Swap and read; the number of swaps."""
    skills, outside = Folder(tmp_path / "skills"), Folder(tmp_path / "outside")
    paths = ["ns/a.md", "ns/sub/a.md", "deep/er/a.md", "flip.md"]
    for path in paths:
        skills.document(path, "Inside")
        outside.write(path, f"# {CANARY.decode()}\n")
    leaked_to_parse: list[str] = []

    def watching_parse(path: str, raw: bytes, size: int, modified_at: str, root: Provenance) -> ParsedFile:
        if CANARY in raw:
            leaked_to_parse.append(path)
        return parse_file(path, raw, size, modified_at, root)

    source = FolderSource(skills.root, parse=watching_parse, watcher=real_watcher)
    source.catch_up()
    # Bodies are asked for by known paths; a reader whose source does not catch up knows them throughout.
    known = FolderSource(skills.root)
    known.catch_up()
    flipper = Flipper(skills, outside)
    threads = [Reader(known, paths, flipper.stop) for _ in range(readers)]
    deadline = time.monotonic() + seconds
    for thread in (flipper, *threads):
        thread.start()
    try:
        while time.monotonic() < deadline and (
            flipper.flips < iterations
            or sum(reader.read for reader in threads) < iterations
            or not all(reader.read and reader.refused for reader in threads)
        ):
            source.catch_up()
    finally:
        flipper.stop.set()
        for thread in (flipper, *threads):
            thread.join()
    assert [reader.leaks for reader in threads] == [[]] * readers
    assert leaked_to_parse == []
    assert all(reader.read and reader.refused for reader in threads), "the two must have met"
    assert all(os.path.isfile(skills.path(path)) for path in paths)
    source.close()
    known.close()
    return flipper.flips * len(SWAPPED)


def test_a_link_swapped_in_during_a_read_never_leads_outside(tmp_path: Path) -> None:
    race(tmp_path, readers=2, seconds=60, iterations=2_000)


@pytest.mark.soak
def test_a_minute_of_swaps_under_eight_readers_leaks_nothing(tmp_path: Path) -> None:
    assert race(tmp_path, readers=8, seconds=60, iterations=10**9) >= 10_000
