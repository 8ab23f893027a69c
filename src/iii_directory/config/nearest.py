"""Find the project that a command works for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from iii_directory.config.loading import home_folder, read_document, real_path
from iii_directory.config.settings import BY_KEY, DEFAULT_ROOTS
from iii_directory.documents.ids import OVERVIEWS

CONFIG_FILE: Final = "config.yaml"
HOME_VARIABLE: Final = "III_DIRECTORY_HOME"
DATA_FOLDER: Final = ".iii-directory"


def nearest_project(start: Path) -> Path:
    """Give the folder that ``III_DIRECTORY_HOME`` names, else the nearest project from ``start`` upward.

    The search ends at the home folder and at the root of the file system that ``start`` lies on. Without a
    project it is ``start`` itself.
    """
    named = os.environ.get(HOME_VARIABLE)
    if named:
        return Path(named).expanduser()
    start = real_path(start)
    home = home_folder()
    home = None if home is None else real_path(home)
    for folder in (start, *start.parents):
        if _is_project(folder, is_home=folder == home):
            return folder
        if folder == home or os.path.ismount(folder):
            break
    return start


def _is_project(folder: Path, *, is_home: bool) -> bool:
    if _is_our_config(folder / CONFIG_FILE) or (folder / DATA_FOLDER).is_dir():
        return True
    # In the home folder these are the user's, for every project.
    roots = () if is_home else DEFAULT_ROOTS
    return any((folder / root).is_dir() for root in roots) or _has_skill(folder / "skills")


def _is_our_config(path: Path) -> bool:
    """Whether a file is our configuration: it has a key that we know."""
    if not path.is_file():
        return False
    document, _ = read_document(path)
    return any(key in BY_KEY for key in document)


def _has_skill(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(
                os.path.isfile(os.path.join(entry.path, name))
                for entry in entries
                if not entry.name.startswith(".")
                for name in OVERVIEWS
            )
    except OSError:
        return False
