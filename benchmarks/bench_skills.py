"""Skills as folders: what 30,000 further files beside 10,000 documents cost whoever lists and reads."""

from __future__ import annotations

import os
import statistics
from typing import TYPE_CHECKING

from benchmarks.bench_catalogue import COUNT, Reader, figures, seconds_to_first_scan
from benchmarks.harness import Measurement, goal, interleave, repeat, timed
from benchmarks.trees import PER_NAMESPACE, tree
from iii_directory.catalog.catalogue import Catalogue
from iii_directory.catalog.file_replies import skill_file, skill_files
from iii_directory.catalog.folder.layers import FolderSource

if TYPE_CHECKING:
    from pathlib import Path

FILES = 3
SKILL = "worker-7"
SCRIPT = f"scripts/step-{7 * PER_NAMESPACE}-0.py"


@goal("skills.first-scan", at_most=1.5)
def first_scan() -> Measurement:
    """A file, whatever it is, takes at most half as long again to be seen as a document alone."""
    alone, together = tree(COUNT), tree(COUNT, FILES)
    documents, everything = _count(alone), _count(together)
    return interleave(
        lambda: seconds_to_first_scan(together) / everything,
        lambda: seconds_to_first_scan(alone) / documents,
        rounds=7,
    )


@goal("skills.list-unchanged", at_most=1.25)
def list_unchanged() -> Measurement:
    """A list of documents does not notice the files beside them."""
    alone, together = Reader(tree(COUNT)), Reader(tree(COUNT, FILES))
    alone.list()
    together.list()
    return interleave(timed(together.list, times=5_000), timed(alone.list, times=5_000))


@goal("skills.memory", at_most=25.0, unit="MB")
def memory() -> Measurement:
    return repeat(
        lambda: figures(COUNT, FILES)["megabytes"] - figures(COUNT)["megabytes"],
        rounds=3,
    )


@goal("skills.files-of-one", at_most=4.0)
def files_of_one() -> Measurement:
    """A manifest whose files are as they were, against looking at each of them; hashes are kept."""
    root = tree(COUNT, FILES)
    look = Catalogue(FolderSource(root)).load()
    skill_files(look, {"id": SKILL})
    return interleave(
        timed(lambda: skill_files(look, {"id": SKILL}), times=20),
        timed(lambda: _opened_and_read(root / SKILL), times=20),
    )


@goal("skills.file-page", at_most=12.0)
def file_page() -> Measurement:
    """One page with the hash of the whole, against open, read and close."""
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
