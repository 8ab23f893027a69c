"""Any sequence of edits ends in what a new scan of the folder finds, watched or rescanned."""

from __future__ import annotations

import os
import random
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.folders import View, no_watcher, real_watcher, scanned

from iii_directory.catalog.folder_source import FolderSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.catalog.folder_watching import Inotify
    from iii_directory.documents.model import ParsedFile

DIRECTORIES = ("a", "b", "c", "prompts", ".hidden")
FILES = ("x.md", "y.md", "SKILL.md", "a", "b", "notes.txt", ".dot.md", "skills.lock.json")


class Editor:
    """Random edits of a folder, a local folder and a place outside; the same for the same seed."""

    def __init__(self, base: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.roots = [base / "skills", base / "local"]
        self.outside = base / "outside"
        self.moved_out = 0
        for root in (*self.roots, self.outside):
            root.mkdir(parents=True, exist_ok=True)
        self.edits: list[Callable[[], None]] = [
            *([self.write] * 6),
            *([self.append] * 2),
            *([self.delete] * 2),
            *([self.rename] * 4),
            *([self.make_directories] * 3),
            self.replace_file,
            self.put_time_back,
            self.touch,
            self.change_mode,
            self.remove_tree,
            self.replace_directory,
            self.link,
            self.move_in,
            self.move_out,
            self.change_places,
        ]

    def edit(self) -> None:
        # Many edits meet something of the wrong kind, or nothing: that is part of the game.
        with suppress(OSError):
            self.random.choice(self.edits)()

    def directory(self) -> Path:
        steps = self.random.choices(DIRECTORIES, k=self.random.choice((0, 1, 1, 1, 2, 2, 3)))
        return self.random.choice((self.roots[0], self.roots[0], self.roots[1])).joinpath(*steps)

    def file(self) -> Path:
        return self.directory() / self.random.choice(FILES)

    def anything(self) -> Path:
        return self.file() if self.random.random() < 0.4 else self.directory()

    def text(self) -> str:
        """One of many documents of few sizes."""
        title = f"{self.random.randrange(1000):03}"
        front = self.random.choice(("", "", f"---\ndescription: About {title}\n---\n"))
        return f"{front}# {title}\n"

    def write(self) -> None:
        path = self.file()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text(), encoding="utf-8")

    def append(self) -> None:
        with open(self.file(), "r+", encoding="utf-8") as file:
            file.seek(0, os.SEEK_END)
            file.write("More.\n")

    def delete(self) -> None:
        self.file().unlink()

    def rename(self) -> None:
        os.rename(self.anything(), self.anything())

    def make_directories(self) -> None:
        self.directory().mkdir(parents=True, exist_ok=True)

    def replace_file(self) -> None:
        path = self.file()
        new = path.with_name(".new")
        new.write_text(self.text(), encoding="utf-8")
        os.replace(new, path)

    def put_time_back(self) -> None:
        path = self.file()
        state = os.stat(path)
        path.write_text(self.text(), encoding="utf-8")
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))

    def touch(self) -> None:
        os.utime(self.anything(), (1, self.random.randrange(10)))

    def change_mode(self) -> None:
        os.chmod(self.anything(), self.random.choice((0o755, 0o700)))

    def remove_tree(self) -> None:
        shutil.rmtree(self.directory())

    def replace_directory(self) -> None:
        path = self.directory()
        shutil.rmtree(path)
        path.mkdir()
        (path / "x.md").write_text(self.text(), encoding="utf-8")

    def link(self) -> None:
        os.symlink(self.random.choice((self.anything(), self.outside, Path("x.md"))), self.anything())

    def move_in(self) -> None:
        tree = self.outside / "tree"
        (tree / "b").mkdir(parents=True, exist_ok=True)
        (tree / "b" / "x.md").write_text(self.text(), encoding="utf-8")
        os.rename(tree, self.directory())

    def move_out(self) -> None:
        self.moved_out += 1
        os.rename(self.anything(), self.outside / f"out-{self.moved_out}")

    def change_places(self) -> None:
        one, other, between = self.anything(), self.anything(), self.outside / "between"
        os.rename(one, between)
        try:
            os.rename(other, one)
        finally:
            # Out of sight rather than in the way of the next two.
            self.moved_out += 1
            lost = self.outside / f"out-{self.moved_out}"
            os.rename(between, lost if os.path.lexists(other) else other)


def expected(editor: Editor) -> dict[str, ParsedFile]:
    """A new scan. It would resolve a folder that became a link, which one from before must not follow."""
    return scanned(*(root.with_name("absent") if root.is_symlink() else root for root in editor.roots))


def check(base: Path, seed: int, steps: int, watcher: Callable[[], Inotify | None]) -> None:
    editor = Editor(base, seed)
    view = View(FolderSource(*editor.roots, watcher=watcher))
    try:
        for _ in range(steps):
            editor.edit()
            if editor.random.random() < 0.3:
                view.refresh()
                assert view.files == expected(editor)
        view.refresh()
        assert view.files == expected(editor)
        assert not view.refresh()
    finally:
        view.source.close()


@pytest.mark.parametrize("block", range(4))
def test_any_sequence_of_edits_ends_as_a_new_scan(tmp_path: Path, watcher: Any, block: int) -> None:
    for seed in range(block * 25, block * 25 + 25):
        check(tmp_path / str(seed), seed, 50, watcher)


def edit_while_reading(base: Path, seed: int, steps: int, watcher: Callable[[], Inotify | None]) -> None:
    editor = Editor(base, seed)
    view = View(FolderSource(*editor.roots, watcher=watcher))

    def edit() -> None:
        for _ in range(steps):
            editor.edit()

    thread = threading.Thread(target=edit)
    thread.start()
    while thread.is_alive():
        view.refresh()
    thread.join()
    view.refresh()
    assert view.files == expected(editor)
    assert len(view.source.wake_fds()) == (0 if watcher is no_watcher else 2)
    view.source.close()


def test_edits_during_the_refreshes_are_all_seen_in_the_end(tmp_path: Path, watcher: Any) -> None:
    for seed in range(10):
        edit_while_reading(tmp_path / str(seed), seed, 300, watcher)


@pytest.mark.soak
@pytest.mark.parametrize("how", [real_watcher, no_watcher], ids=["watched", "unwatched"])
def test_ten_thousand_long_sequences_end_as_a_new_scan(tmp_path: Path, how: Any) -> None:
    for seed in range(1000, 6000):
        check(tmp_path / "one", seed, 100, how)
        shutil.rmtree(tmp_path / "one")
        edit_while_reading(tmp_path / "two", seed, 300, how)
        shutil.rmtree(tmp_path / "two")
