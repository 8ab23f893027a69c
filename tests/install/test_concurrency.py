"""Processes that install the same namespaces while others read them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.support.installs import bundle_of, install

from iii_directory.install.skills_folder import SkillsFolder

if TYPE_CHECKING:
    from pathlib import Path

FILES = 6
NAMESPACES = ("db", "web")

WRITER = """
import pathlib, sys
from tests.support.installs import bundle_of, install, remove

folder, number, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for step in range(count):
    mark = f"{number}-{step}".encode()
    for namespace in ("db", "web"):
        files = {f"f{n}.md": mark * 500 for n in range(FILES)}
        install(folder, bundle_of(files, f"{number}.{step}.0", namespace), wait=60.0, allow_downgrade=True)
    own = f"only-{number}"
    install(folder, bundle_of({"SKILL.md": mark}, f"1.{step}.0", own), wait=60.0)
print("done")
"""

READER = """
import os, sys

folder, stop = sys.argv[1], sys.argv[2]
torn, whole = 0, 0

def read(namespace):
    opened = os.open(os.path.join(folder, namespace), os.O_RDONLY | os.O_DIRECTORY)
    try:
        return [open(os.open(f"f{n}.md", os.O_RDONLY, dir_fd=opened), "rb").read() for n in range(FILES)]
    finally:
        os.close(opened)

while not os.path.exists(stop):
    for namespace in ("db", "web"):
        try:
            found = read(namespace)
        except FileNotFoundError:
            # The folder was replaced while it was read: a reader starts again.
            continue
        mark = found[0][: len(found[0]) // 500]
        if all(content == mark * 500 for content in found):
            whole += 1
        else:
            torn += 1
        if not os.path.exists(os.path.join(folder, namespace, "f0.md")):
            torn += 1
print(whole, torn)
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    code = f"FILES = {FILES}\n{program}"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])},
    )


@pytest.mark.parametrize(
    ("writers", "readers", "count"),
    [(8, 4, 6), pytest.param(8, 4, 200, marks=[pytest.mark.soak, pytest.mark.timeout(3000)])],
)
def test_processes_at_the_same_namespaces_lose_no_install_and_tear_no_read(
    tmp_path: Path, writers: int, readers: int, count: int
) -> None:
    folder, stop = tmp_path / "skills", tmp_path / "stop"
    for namespace in NAMESPACES:
        install(folder, bundle_of({f"f{n}.md": b"x" * 500 for n in range(FILES)}, "99.0.0", namespace))
    reading = [start(READER, str(folder), str(stop)) for _ in range(readers)]
    writing = [start(WRITER, str(folder), str(number), str(count)) for number in range(writers)]
    written = [process.communicate(timeout=2900)[0].strip() for process in writing]
    stop.touch()
    read = [process.communicate(timeout=60)[0].split() for process in reading]

    assert written == ["done"] * writers
    for whole, torn in read:
        assert int(torn) == 0
        assert int(whole) > 0
    lock = SkillsFolder(folder).lock()
    assert lock.namespaces.keys() == {*NAMESPACES, *(f"only-{number}" for number in range(writers))}
    assert all(lock.namespaces[f"only-{number}"].resolved == f"1.{count - 1}.0" for number in range(writers))
    for namespace in lock.namespaces:
        disk, entry = SkillsFolder(folder).look(namespace)
        assert entry is not None
        assert disk.hashes == entry.files
    assert sorted(path.name for path in folder.iterdir()) == sorted([*lock.namespaces, "skills.lock.json"])
