"""Bodies that are kept: never older than the file, never more than there is room for."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from tests.support.folders import Folder, no_watcher

from iii_directory import limits
from iii_directory.catalog.catalogue import Catalogue
from iii_directory.catalog.folder_source import FolderSource
from iii_directory.catalog.folder_watching import system_watcher
from iii_directory.catalog.view import BodyCache
from iii_directory.documents.parse import document_of
from iii_directory.errors import DirectoryError

if TYPE_CHECKING:
    from pathlib import Path

    from iii_directory.catalog.folder_watching import Inotify

OLD, NEW = (1, 1, 1, 1), (1, 1, 2, 1)


def test_a_body_is_there_while_its_file_stays_as_it_was() -> None:
    bodies = BodyCache()
    bodies.keep("a", OLD, document_of("text"))

    assert bodies.get("a", OLD) == document_of("text")
    assert bodies.get("a", NEW) is None
    assert bodies.get("b", OLD) is None
    bodies.keep("a", NEW, document_of("other"))
    assert bodies.get("a", NEW) == document_of("other")


def test_a_body_without_a_stamp_is_not_cached_and_drops_the_cached_one() -> None:
    bodies = BodyCache()
    bodies.keep("a", OLD, document_of("text"))
    bodies.keep("a", None, document_of("other"))

    assert bodies.get("a", OLD) is None
    assert bodies.get("a", None) is None


def test_the_body_unused_for_longest_makes_room() -> None:
    bodies = BodyCache(room=10)
    bodies.keep("a", OLD, document_of("x" * 4))
    bodies.keep("b", OLD, document_of("x" * 4))
    bodies.get("a", OLD)
    bodies.keep("c", OLD, document_of("x" * 4))

    assert [bodies.get(path, OLD) is not None for path in "abc"] == [True, False, True]
    bodies.keep("large", OLD, document_of("x" * 11))
    assert [bodies.get(path, OLD) for path in ("a", "c", "large")] == [None, None, None]
    bodies.keep("d", OLD, document_of("x" * 10))
    assert bodies.get("d", OLD) == document_of("x" * 10)


class Library:
    """A catalogue over a folder, and how often it read a file."""

    def __init__(self, root: Path, watcher: Inotify | None) -> None:
        self.reads = 0
        self.folder = FolderSource(root, watcher=lambda: watcher)
        self._read = self.folder.read_body
        self.folder.read_body = self._counted
        self.catalogue = Catalogue(self.folder)

    def body(self, skill_id: str) -> str:
        view = self.catalogue.load()
        skill = view.snapshot.find(skill_id)
        assert skill is not None
        return view.read_skill(skill)

    def _counted(self, path: str) -> bytes:
        self.reads += 1
        return self._read(path)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every change were long ago."""
    monkeypatch.setattr(limits, "RACY_SECONDS", -1000)


@pytest.fixture
def library(skills: Folder, settled: None) -> Library:
    if sys.platform != "linux":
        pytest.skip("only Linux has inotify")
    return Library(skills.root, system_watcher())


def test_a_file_that_stays_is_read_once(skills: Folder, library: Library) -> None:
    skills.document("a.md", "A")
    skills.document("b.md", "B")

    assert library.body("a") == library.body("a") == "# A\n\nAbout A.\n"
    assert library.reads == 1
    skills.document("b.md", "C")
    assert library.body("a") == "# A\n\nAbout A.\n"
    assert library.reads == 1
    assert library.body("b") == "# C\n\nAbout C.\n"


def test_an_edit_that_leaves_size_and_time_alone_is_seen(skills: Folder, library: Library) -> None:
    skills.document("a.md", "One")
    before = skills.path("a.md").stat()
    library.body("a")

    for title in ("Two", "Six"):
        skills.document("a.md", title)
        skills.put_time_back("a.md", before)
        assert library.body("a") == f"# {title}\n\nAbout {title}.\n"


def test_an_edit_through_another_name_of_the_file_is_seen(
    skills: Folder, library: Library, tmp_path: Path
) -> None:
    skills.document("a.md", "One")
    os.link(skills.path("a.md"), tmp_path / "elsewhere")
    library.body("a")

    (tmp_path / "elsewhere").write_text("# Two\n", encoding="utf-8")

    assert library.body("a") == "# Two\n"


def test_another_name_given_after_the_first_read_is_noticed(
    skills: Folder, library: Library, tmp_path: Path
) -> None:
    skills.document("a.md", "One")
    library.body("a")
    os.link(skills.path("a.md"), tmp_path / "elsewhere")
    library.body("a")

    (tmp_path / "elsewhere").write_text("# Two\n", encoding="utf-8")

    assert library.body("a") == "# Two\n"


def test_a_file_that_became_a_link_is_not_served_from_memory(
    skills: Folder, library: Library, tmp_path: Path
) -> None:
    skills.document("a.md", "One")
    library.body("a")
    view = library.catalogue.load()
    skill = view.snapshot.find("a")
    assert skill is not None
    skills.move("a.md", "../a.md")
    skills.link("a.md", tmp_path / "a.md")
    library.folder.catch_up()

    with pytest.raises(DirectoryError, match="not found"):
        view.read_skill(skill)


@pytest.mark.usefixtures("settled")
def test_a_folder_that_is_not_watched_is_read_every_time(skills: Folder) -> None:
    library = Library(skills.root, no_watcher())
    skills.document("a.md", "A")

    library.body("a")
    library.body("a")

    assert library.reads == 2


def test_a_file_changed_a_moment_ago_is_read_every_time(skills: Folder) -> None:
    library = Library(skills.root, system_watcher())
    skills.document("a.md", "A")

    library.body("a")
    library.body("a")

    assert library.reads == 2
