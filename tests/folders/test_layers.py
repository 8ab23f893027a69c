"""Layers of folders: what lies on top replaces a namespace, and what lies below comes back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.support.folders import Folder, View

from iii_directory.catalog.folder_source import FolderSource
from iii_directory.catalog.folders import NAMESPACE, BundledDocuments, FollowedFolder
from iii_directory.documents.parse import parse_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from iii_directory.catalog.folder_watching import Inotify

OVERVIEW = f"{NAMESPACE}/index.md"


def test_what_the_package_brings_is_shown_until_a_folder_has_a_namespace_of_its_name(
    skills: Folder, watcher: Callable[[], Inotify | None]
) -> None:
    view = View(FolderSource(skills.root, below=[BundledDocuments()], watcher=watcher))
    bundled = view.titles()
    assert OVERVIEW in bundled
    assert b"iii-directory" in view.source.read_body(OVERVIEW)

    skills.document(f"{NAMESPACE}/mine.md", "Mine")
    assert view.titles() == {f"{NAMESPACE}/mine.md": "Mine"}
    assert "shadowed" not in {finding.kind for finding in view.source.findings}

    skills.remove(NAMESPACE)
    assert view.titles() == bundled
    view.source.close()


def test_the_topmost_layer_that_has_a_namespace_owns_it(
    skills: Folder, local: Folder, tmp_path: Path, watcher: Callable[[], Inotify | None]
) -> None:
    lowest = Folder(tmp_path / "lowest")
    shared = FollowedFolder(os.fspath(lowest.root), "a shared folder", "shared", parse_file, watcher())
    below = [shared, BundledDocuments()]
    view = View(FolderSource(skills.root, local.root, below=below, watcher=watcher))
    for folder, title in ((lowest, "Lowest"), (skills, "Base"), (local, "Local")):
        folder.document(f"{NAMESPACE}/index.md", title)

    assert view.titles() == {OVERVIEW: "Local"}
    assert view.source.local_namespaces == {NAMESPACE}
    assert [f.reason for f in view.source.findings if f.kind == "shadowed"] == [
        "the namespace of the same name in local_skills_folder replaces it"
    ] * 2
    for folder, title in ((local, "Base"), (skills, "Lowest")):
        folder.remove(NAMESPACE)
        assert view.titles() == {OVERVIEW: title}
        assert view.source.local_namespaces == frozenset()
        assert view.source.read_body(OVERVIEW) == f"# {title}\n\nAbout {title}.\n".encode()
    lowest.remove(NAMESPACE)
    assert len(view.titles()) > 1
    view.source.close()
