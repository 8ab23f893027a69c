"""What is wrong around the documents: the configuration, the folders, the engine, programs and packages."""

from __future__ import annotations

import shutil
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.cli.common import is_named, listens, program
from iii_directory.config import load_settings, real_path
from iii_directory.text import shown_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from iii_directory.config import Settings

_PACKAGES: Final = {"mcp": (2, 3), "websockets": (16, 0)}
"""Packages that another program may have replaced by an older one, and the first that does."""


class Problem(NamedTuple):
    """A row for the doctor, in the columns of a finding."""

    kind: str
    subject: str
    reason: str
    fix: str
    urgent: bool = True


def problems(config_path: Path, url: str) -> list[Problem]:
    """Everything that is wrong; nothing where all is well."""
    settings, warnings = load_settings(config_path)
    found = [
        Problem(
            "config", config_path.name, warning, "mend the file; iii-directory config check says the same"
        )
        for warning in warnings
    ]
    return [
        *found,
        *_folders(settings, config_path),
        *(_engine(url) if is_named(None) else ()),
        *_packages(),
        *_programs(),
    ]


def _folders(settings: Settings, config_path: Path) -> Iterator[Problem]:
    """Folders that somebody chose and that are not there; the usual one comes with the first skill."""
    usual = real_path(config_path).parent / "skills"
    chosen = {
        "skills_folder": None if settings.skills_folder == usual else settings.skills_folder,
        "local_skills_folder": settings.local_skills_folder,
    }
    for key, folder in chosen.items():
        if folder is not None and not folder.is_dir():
            yield Problem("folder", key, f"there is no folder {folder}", f"make it, or mend {key}")


def _engine(url: str) -> Iterator[Problem]:
    if not listens(url):
        reason = "no engine answers there, so only the folder can be seen"
        yield Problem(
            "engine", shown_url(url), reason, f"nothing, or start one: {program()} up", urgent=False
        )


def _packages() -> Iterator[Problem]:
    for name, first in _PACKAGES.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            yield Problem("package", name, "it is not installed", "install iii-directory again")
            continue
        numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
        if numbers < first:
            wanted = ".".join(map(str, first))
            yield Problem(
                "package", name, f"{found} is older than {wanted}", f"install {name} {wanted} or newer"
            )


def _programs() -> Iterator[Problem]:
    if shutil.which("git") is None:
        reason = "it is not installed, so nothing can be installed from repositories"
        yield Problem("program", "git", reason, "nothing, or install git", urgent=False)
