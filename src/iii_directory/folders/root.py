"""A folder of skills that somebody else keeps, only read: each directory of it with a ``SKILL.md``, whole.

Installers of other tools put skills there, and links from one such folder to another. A link that leads to a
skill which is shown anyway, from ``skills_folder`` or from another root, is that skill, once, without a word;
any other is refused as everywhere, and named.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from iii_directory.disk.reasons import LINK
from iii_directory.documents.ids import OVERVIEW
from iii_directory.documents.model import Finding, ParsedFile
from iii_directory.documents.parse import parse_file
from iii_directory.folders.bundled import BundledDocuments
from iii_directory.folders.folder import FolderSource
from iii_directory.folders.follow import FollowedFolder
from iii_directory.folders.watch import system_watcher

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from iii_directory.config import Settings
    from iii_directory.folders.watch import Watcher


class RootFolder(FollowedFolder):
    """One root. What lies beside the skills in it is none of ours."""

    def __init__(self, path: str, label: str, homes: Collection[str], watcher: Watcher | None) -> None:
        super().__init__(path, label, label, parse_file, watcher)
        self._homes = tuple(f"{home}/" for home in homes)
        self._shown: frozenset[str] = frozenset()
        self._reshaped = False

    def namespaces(self) -> Collection[str]:
        """The skills, by the names of their folders."""
        return self._shown

    def has_file(self, name: str) -> bool:  # noqa: ARG002 (a file beside the skills is no document)
        return False

    def take_changes(self) -> dict[str, ParsedFile | None]:
        """As of any folder; what becomes a skill by its overview comes whole, or goes with it."""
        changed = super().take_changes()
        self._name_links()
        before, folders = self._shown, self.tree.root.subdirectories
        self._shown = frozenset(name for name, folder in folders.items() if OVERVIEW in folder.entries)
        self._reshaped = self._reshaped or self._shown != before
        for name in before ^ self._shown:
            for path in self.tree.paths_in(name):
                changed.setdefault(path, self.tree.get(path))
        return changed

    def take_reshaped(self) -> bool:
        """Whether a skill came or went, which is told by its overview and not by its folder."""
        reshaped, self._reshaped = self._reshaped, False
        return reshaped

    def _name_links(self) -> None:
        """Links at the root that lead to no skill which is shown anyway."""
        entries = self.tree.root.entries
        links = [name for name, entry in entries.items() if _is_link(entry) and not self._leads_home(name)]
        for part in [part for part in self.problems if part.startswith("link ")]:
            del self.problems[part]
        for name in links:
            reason = f"the link {name} leads to no skill of another root"
            self.problems[f"link {name}"] = Finding("skipped", self.label, reason, LINK.fix)

    def _leads_home(self, name: str) -> bool:
        target = os.path.realpath(os.path.join(self.path, name))
        return target.startswith(self._homes) and os.path.isfile(os.path.join(target, OVERVIEW))


def roots_of(
    roots: Sequence[Path],
    skills_folder: Path,
    *,
    watcher: Callable[[], Watcher | None] = system_watcher,
) -> list[RootFolder]:
    """The roots in their order; the same folder twice is one, and ``skills_folder`` is none."""
    main = os.path.realpath(skills_folder)
    paths = [path for path in dict.fromkeys(map(os.path.realpath, roots)) if path != main]
    return [
        RootFolder(path, label_of(path), [main, *(other for other in paths if other != path)], watcher())
        for path in paths
    ]


def layers_of(settings: Settings) -> FolderSource:
    """Every folder the settings name, with what this package brings as the lowest."""
    return FolderSource(
        settings.skills_folder,
        settings.local_skills_folder,
        below=[*roots_of(settings.roots, settings.skills_folder), BundledDocuments()],
    )


def label_of(path: str) -> str:
    """What a root is called in rows and findings: its last two names, which tell no one where it lies."""
    return "/".join(path.rstrip("/").split("/")[-2:])


def _is_link(entry: ParsedFile) -> bool:
    return any(finding.reason == LINK.text for finding in entry.findings)
