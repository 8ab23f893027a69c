"""The project that a command serves: the folder with its configuration, its skills and its data directory."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iii_directory.cli.common import STATE_FOLDER, default_data, settings_from
from iii_directory.config import BY_KEY, DEFAULT_ROOTS, read_document, real_path

if TYPE_CHECKING:
    from iii_directory.config import Settings

HOME_VARIABLE: Final = "III_DIRECTORY_HOME"
CONFIG: Final = "config.yaml"


@dataclass(frozen=True, slots=True)
class Project:
    """One project. ``home`` is the folder of its configuration."""

    home: Path
    config: Path
    settings: Settings

    @property
    def data(self) -> Path:
        """Where an embedded engine keeps its state by default, and where run files are."""
        return default_data(self.home, self.settings.skills_folder)


def project_of(config: Path | None, skills_folder: Path | None) -> Project:
    """Find the project that the options name, else the nearest one from the current folder upward."""
    folder = None if skills_folder is None else real_path(skills_folder.expanduser())
    if config is None:
        home = folder.parent if folder else _chosen_home() or nearest_project(Path.cwd())
        config = home / CONFIG
    config = real_path(config)
    settings = settings_from(config)
    if folder is not None:
        settings = replace(settings, skills_folder=folder)
    return Project(config.parent, config, settings)


def nearest_project(start: Path) -> Path:
    """The nearest folder from ``start`` upward that is a project; without one, ``start`` itself.

    The search ends below the user's home folder, whose skills belong to the user and not to a project.
    """
    start = real_path(start)
    user_home = None
    with suppress(RuntimeError, OSError):
        user_home = real_path(Path.home())
    for folder in (start, *start.parents):
        if folder != start and (folder == user_home or folder == folder.parent):
            break
        if _is_project(folder):
            return folder
    return start


def _chosen_home() -> Path | None:
    chosen = os.environ.get(HOME_VARIABLE)
    return Path(chosen).expanduser() if chosen else None


def _is_project(folder: Path) -> bool:
    try:
        if any((folder / name).is_dir() for name in (STATE_FOLDER, *DEFAULT_ROOTS)):
            return True
        # A folder called skills is only ours if a skill is in it, and config.yaml if it has one of our keys.
        if any((folder / "skills").glob("*/SKILL.md")):
            return True
        said, _ = read_document(folder / CONFIG)
    except OSError:
        return False
    return not BY_KEY.keys().isdisjoint(said)
