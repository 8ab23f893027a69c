"""Folders of documents to measure on, made once a run and removed at its end."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from functools import lru_cache
from pathlib import Path

from iii_directory import limits

PER_NAMESPACE = 20
DOCUMENT_BYTES = 2_600

_LINE = "Call it with the name of the table, and look at the reply before you go on with the next step.\n"


def document(number: int) -> bytes:
    """A how-to of 2.6 KB with the keys of the contract, and another, in its front matter."""
    head = (
        "---\n"
        f"title: How to do step {number}\n"
        "type: how-to\n"
        f"function_id: worker-{number // PER_NAMESPACE}::step-{number}\n"
        f"description: What step {number} does, when to take it, and what it leaves behind\n"
        "license: Apache-2.0\n"
        "---\n"
        f"# Step {number}\n\n"
    )
    return (head + _LINE * 40).encode()[:DOCUMENT_BYTES]


def path_of(number: int) -> str:
    """Where a document lies below its folder."""
    return f"worker-{number // PER_NAMESPACE}/step-{number}.md"


def make_tree(root: Path, count: int) -> None:
    for number in range(count):
        path = root / path_of(number)
        if number % PER_NAMESPACE == 0:
            path.parent.mkdir(parents=True)
        with open(path, "wb") as file:
            file.write(document(number))


def make_files(root: Path, count: int, files: int) -> None:
    """An overview for every folder, and scripts beside its documents, so that each folder is a skill."""
    for number in range(count):
        scripts = (root / path_of(number)).parent / "scripts"
        if number % PER_NAMESPACE == 0:
            scripts.mkdir()
            (scripts.parent / "SKILL.md").write_bytes(document(number))
        for other in range(files):
            with open(scripts / f"step-{number}-{other}.py", "wb") as file:
                file.write(b"print('done')\n" * 40)


@lru_cache
def tree(count: int, files: int = 0) -> Path:
    """A folder of so many documents, and files for each, all older than what counts as racy."""
    root = Path(tempfile.mkdtemp(prefix="iii-directory-benchmark-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    make_tree(root, count)
    if files:
        make_files(root, count, files)
    time.sleep(limits.RACY_SECONDS + 0.1)
    return root


def read_all(root: Path) -> int:
    """Read every file with open(): what the first scan is measured against."""
    total = 0
    for directory in os.scandir(root):
        for item in os.scandir(directory.path):
            with open(item.path, "rb") as file:
                total += len(file.read())
    return total


def stat_all(root: Path) -> int:
    """scandir and lstat of everything: what a list without a snapshot costs at least."""
    total = 0
    for directory in os.scandir(root):
        directory.stat(follow_symlinks=False)
        for item in os.scandir(directory.path):
            total += item.stat(follow_symlinks=False).st_size
    return total
