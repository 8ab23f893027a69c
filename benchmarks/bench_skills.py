"""Skills as folders: the cost of 30,000 further files beside 10,000 documents for lists and reads."""

from __future__ import annotations

import os
import statistics
from typing import TYPE_CHECKING

from benchmarks.bench_catalogue import COUNT, Reader, figures, seconds_to_first_scan
from benchmarks.harness import Measurement, interleave, measure, repeat, timed
from benchmarks.trees import PER_NAMESPACE, tree
from iii_directory.catalog.catalogue import Catalogue
from iii_directory.catalog.file_replies import skill_file, skill_files
from iii_directory.catalog.folder_source import FolderSource

if TYPE_CHECKING:
    from pathlib import Path

FILES = 3
SKILL = "worker-7"
SCRIPT = f"scripts/step-{7 * PER_NAMESPACE}-0.py"


@measure("skills.first-scan")
def first_scan() -> Measurement:
    """Scan a file of any kind in at most 1.5 times what a document takes in a folder of documents alone."""
    alone, together = tree(COUNT), tree(COUNT, FILES)
    documents, everything = _count(alone), _count(together)
    return interleave(
        lambda: seconds_to_first_scan(together) / everything,
        lambda: seconds_to_first_scan(alone) / documents,
        rounds=7,
    )


@measure("skills.list-unchanged")
def list_unchanged() -> Measurement:
    """List documents that have files beside them, against a folder without such files."""
    alone, together = Reader(tree(COUNT)), Reader(tree(COUNT, FILES))
    alone.list()
    together.list()
    return interleave(timed(together.list, times=5_000), timed(alone.list, times=5_000))


@measure("skills.memory", unit="MB")
def memory() -> Measurement:
    return repeat(
        lambda: figures(COUNT, FILES)["megabytes"] - figures(COUNT)["megabytes"],
        rounds=3,
    )


@measure("skills.files-of-one")
def files_of_one() -> Measurement:
    """List the unchanged files of a skill with their hashes, against opening and reading each file."""
    root = tree(COUNT, FILES)
    look = Catalogue(FolderSource(root)).load()
    skill_files(look, {"id": SKILL})
    return interleave(
        timed(lambda: skill_files(look, {"id": SKILL}), times=20),
        timed(lambda: _opened_and_read(root / SKILL), times=20),
    )


@measure("skills.file-page")
def file_page() -> Measurement:
    """Read one page of a file with the hash of the whole file, against open, read and close."""
    root = tree(COUNT, FILES)
    look = Catalogue(FolderSource(root)).load()
    path = root / SKILL / SCRIPT
    return interleave(
        timed(lambda: skill_file(look, {"id": SKILL, "path": SCRIPT}), times=200),
        timed(path.read_bytes, times=200),
    )


def _count(root: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(root))


def _opened_and_read(folder: Path) -> float:
    sizes = [len(path.read_bytes()) for path in folder.rglob("*") if path.is_file()]
    return statistics.fmean(sizes)
