"""The project that a command serves: the folder with its configuration, its skills and its data directory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from iii_directory.cli.common import default_data, settings_from
from iii_directory.config import CONFIG_FILE, nearest_project, real_path

if TYPE_CHECKING:
    from iii_directory.config import Settings


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
        home = folder.parent if folder else nearest_project(Path.cwd())
        config = home / CONFIG_FILE
    config = real_path(config)
    settings = settings_from(config)
    if folder is not None:
        settings = replace(settings, skills_folder=folder)
    return Project(config.parent, config, settings)
