from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory import limits
from iii_directory.catalog.folder_scanning import Tree
from iii_directory.documents.model import ParsedFile

if TYPE_CHECKING:
    import pytest

FILE = ParsedFile()


def test_a_directory_that_was_moved_away_takes_nothing_more() -> None:
    tree = Tree()
    directory = tree.adopt(tree.root, "ns")
    assert directory is not None
    tree.record(directory, "a.md", "ns/a.md", FILE, None)
    assert list(tree.detach(tree.root, "ns")) == [directory]
    tree.changed.clear()

    tree.record(directory, "b.md", "ns/b.md", FILE, None)

    assert tree.adopt(directory, "below") is None
    assert tree.changed == {}
    assert tree.count == 0


def test_an_equal_entry_is_not_a_change() -> None:
    tree = Tree()
    tree.record(tree.root, "a.md", "a.md", FILE, None)
    tree.changed.clear()

    tree.record(tree.root, "a.md", "a.md", ParsedFile(), (1, 2, 3, 4))

    assert tree.changed == {}
    assert tree.root.stamps == {"a.md": (1, 2, 3, 4)}


def test_a_detached_directory_is_counted_and_reported_down_to_the_last_file() -> None:
    tree = Tree()
    a = tree.adopt(tree.root, "a")
    assert a is not None
    b = tree.adopt(a, "b")
    assert b is not None
    tree.record(b, "x.md", "a/b/x.md", FILE, None)
    assert tree.get("a/b/x.md") is FILE
    assert tree.get("a/c/x.md") is None
    assert (tree.count, list(tree.paths_in("a")), list(tree.paths_in("c"))) == (3, ["a/b/x.md"], [])

    assert list(tree.detach(tree.root, "a")) == [b, a]

    assert (tree.count, tree.changed) == (0, {"a/b/x.md": None})
    assert list(tree.detach(tree.root, "a")) == []


def test_a_full_tree_takes_what_it_knows_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_FOLDER_ENTRIES", 1)
    tree = Tree()
    tree.record(tree.root, "a.md", "a.md", FILE, None)
    assert not tree.full

    tree.record(tree.root, "a.md", "a.md", ParsedFile(), None)
    tree.record(tree.root, "b.md", "b.md", FILE, None)

    assert tree.adopt(tree.root, "ns") is None
    assert tree.full
    assert set(tree.root.entries) == {"a.md"}
