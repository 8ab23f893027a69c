"""Files that are edited while they are read: a hash is that of the bytes that were served beside it."""

from __future__ import annotations

import hashlib
import os
import threading
from typing import TYPE_CHECKING

import pytest
from tests.contract.requirements import requirement

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.reader import Reader


class Editor(threading.Thread):
    """Writes one version after another, in place and by renaming, of different and of equal sizes."""

    def __init__(self, path: Path, edits: int) -> None:
        super().__init__()
        self._path = path
        self._edits = edits
        self.written: dict[str, bytes] = {}
        self.done = threading.Event()

    def version(self, number: int) -> bytes:
        text = b"%08d\n" % number * (1 + number % 3 * 1000)
        self.written[hashlib.sha256(text).hexdigest()] = text
        return text

    def run(self) -> None:
        aside = self._path.with_name("aside.tmp")
        for number in range(self._edits):
            text = self.version(number)
            if number % 2:
                aside.write_bytes(text)
                aside.rename(self._path)
            else:
                self._path.write_bytes(text)
        self.done.set()


@pytest.mark.parametrize("edits", [400, pytest.param(10_000, marks=pytest.mark.soak)])
@requirement("files.fresh")
def test_no_hash_differs_from_the_bytes_served_with_it(directory: Reader, edits: int) -> None:
    directory.skills.document("s/SKILL.md", "S")
    path = directory.skills.path("s/data.txt")
    editor = Editor(path, edits)
    path.write_bytes(editor.version(0))
    editor.start()
    reads = 0
    # What is read in the middle of a write in place is a part of a version, and has the hash of that part.
    while not editor.done.is_set() or reads < 10:
        part = directory.call("directory::skills::file", id="s", path="data.txt")
        assert hashlib.sha256(part["content"].encode()).hexdigest() == part["sha256"]
        assert part["bytes"] == len(part["content"].encode())
        uri = directory.read_uri("skill://s/data.txt")["text"]
        assert any(version.decode().startswith(uri) for version in list(editor.written.values()))
        reads += 1
    editor.join()

    rows = {row["path"]: row for row in directory.call("directory::skills::files", id="s")["files"]}
    last = path.read_bytes()
    assert rows["data.txt"]["sha256"] == hashlib.sha256(last).hexdigest()
    assert editor.written[rows["data.txt"]["sha256"]] == last


@requirement("files.fresh")
def test_a_file_that_is_written_in_the_middle_of_a_read_is_served_as_one_version(
    directory: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.skills.document("s/SKILL.md", "S")
    path = directory.skills.path("s/data.txt")
    path.write_text("old\n", encoding="utf-8")
    read = os.pread

    def interrupted(file: int, count: int, offset: int) -> bytes:
        raw = read(file, count, offset)
        if raw == b"old\n":
            path.write_text("new\n" * 3, encoding="utf-8")
        return raw

    monkeypatch.setattr(os, "pread", interrupted)
    assert directory.call("directory::skills::file", id="s", path="data.txt")["content"] == "new\n" * 3


@pytest.mark.parametrize("edits", [300, pytest.param(10_000, marks=pytest.mark.soak)])
@requirement("files.fresh")
def test_a_list_of_files_and_a_read_after_an_edit_agree_every_time(directory: Reader, edits: int) -> None:
    directory.skills.document("s/SKILL.md", "S")
    path = directory.skills.path("s/data.txt")

    for number in range(edits):
        # Of one size, and mostly within one tick of the clock.
        text = f"{number:08}\n"
        path.write_text(text, encoding="utf-8")
        rows = {row["path"]: row for row in directory.call("directory::skills::files", id="s")["files"]}
        part = directory.call("directory::skills::file", id="s", path="data.txt")
        assert part["content"] == text
        assert rows["data.txt"]["sha256"] == part["sha256"] == hashlib.sha256(text.encode()).hexdigest()
