from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from tests.support.folders import Folder, View, no_watcher, real_watcher

from iii_directory.catalog.folder_source import FolderSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from iii_directory.catalog.folder_watching import Inotify


@pytest.fixture
def skills(tmp_path: Path) -> Folder:
    """An empty skills folder."""
    root = tmp_path / "skills"
    root.mkdir()
    return Folder(root)


@pytest.fixture
def local(tmp_path: Path) -> Folder:
    """An empty local skills folder."""
    root = tmp_path / "local"
    root.mkdir()
    return Folder(root)


@pytest.fixture(params=["watched", "rescanned"])
def watcher(request: pytest.FixtureRequest) -> Callable[[], Inotify | None]:
    """How a source learns of changes: both ways must give the same."""
    if request.param == "rescanned":
        return no_watcher
    if sys.platform != "linux":
        pytest.skip("only Linux has inotify")
    return real_watcher


@pytest.fixture
def view(skills: Folder, watcher: Callable[[], Inotify | None]) -> Iterator[View]:
    """A view of the skills folder, refreshed once."""
    source = FolderSource(skills.root, watcher=watcher)
    found = View(source)
    found.refresh()
    yield found
    source.close()
