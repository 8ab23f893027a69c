"""The layers below ``skills_folder``: folders that other tools manage, and the documents of this package."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iii_directory.catalog.folder.folder_tree import ShownTree, Tree
from iii_directory.catalog.folder.following import FollowedFolder
from iii_directory.catalog.folder.watching import system_watcher
from iii_directory.disk.reasons import GONE, LINK, RefusedError
from iii_directory.documents.ids import OVERVIEW
from iii_directory.documents.model import Finding, ParsedFile
from iii_directory.documents.parse import parse_file
from iii_directory.documents.provenance import Provenance
from iii_directory.lockfile.names import COPY_MARKER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from iii_directory.catalog.folder.watching import Watcher
    from iii_directory.disk.files import Stamp

NAMESPACE: Final = "iii-directory"
# The bundled documents change only with the package, so one date stands for all of them.
MODIFIED_AT: Final = "2026-11-15T00:00:00Z"
_BUILT_IN: Final = Provenance("built-in")


class RootFolder(FollowedFolder):
    """A read-only folder of skills that another tool manages, such as ``.claude/skills``.

    Only directories with a ``SKILL.md`` are served. Installers of other tools also place links from one such
    folder to another: a link to a skill that is served anyway is ignored, any other link is refused and
    reported.
    """

    def __init__(self, path: str, label: str, homes: Collection[str], watcher: Watcher | None) -> None:
        """``homes`` are the other served folders, to which links may lead."""
        super().__init__(path, label, label, parse_file, watcher)
        self._homes = tuple(f"{home}/" for home in homes)
        self._shown: frozenset[str] = frozenset()
        self._reshaped = False

    def namespaces(self) -> Collection[str]:
        """Return the names of the skill directories."""
        return self._shown

    def has_file(self, name: str) -> bool:  # noqa: ARG002 (files beside the skills are never served)
        return False

    def take_changes(self) -> dict[str, ParsedFile | None]:
        """Return and clear the changed paths; a gained or lost ``SKILL.md`` changes its whole directory."""
        changed = super().take_changes()
        self._report_links()
        before, folders = self._shown, self.tree.root.subdirectories
        self._shown = frozenset(
            name for name, folder in folders.items() if OVERVIEW in folder.entries and not self._is_copy(name)
        )
        self._reshaped = self._reshaped or self._shown != before
        for name in before ^ self._shown:
            for path in self.tree.paths_in(name):
                changed.setdefault(path, self.tree.get(path))
        return changed

    def take_reshaped(self) -> bool:
        """Return whether a skill came or went since the last call."""
        reshaped, self._reshaped = self._reshaped, False
        return reshaped

    def _report_links(self) -> None:
        """Report the links at the root that do not lead to a skill that is served anyway."""
        for part in [part for part in self.problems if part.startswith("link ")]:
            del self.problems[part]
        for name, entry in self.tree.root.entries.items():
            is_link = any(finding.reason == LINK.text for finding in entry.findings)
            if is_link and not self._leads_home(name):
                reason = f"the link {name} does not lead to a skill of another root"
                self.problems[f"link {name}"] = Finding("skipped", self.label, reason, LINK.fix)

    def _is_copy(self, name: str) -> bool:
        """Return whether a directory is our copy, for a host, of a skill that is served anyway."""
        return os.path.isfile(os.path.join(self.path, name, COPY_MARKER)) and any(
            os.path.isfile(os.path.join(home, name, OVERVIEW)) for home in self._homes
        )

    def _leads_home(self, name: str) -> bool:
        target = os.path.realpath(os.path.join(self.path, name))
        return target.startswith(self._homes) and os.path.isfile(os.path.join(target, OVERVIEW))


def roots_of(
    roots: Sequence[Path],
    skills_folder: Path,
    *,
    watcher: Callable[[], Watcher | None] = system_watcher,
) -> list[RootFolder]:
    """Create the root folders in order, without duplicates and without ``skills_folder`` itself."""
    main = os.path.realpath(skills_folder)
    paths = [path for path in dict.fromkeys(map(os.path.realpath, roots)) if path != main]
    return [
        RootFolder(path, label_of(path), [main, *(other for other in paths if other != path)], watcher())
        for path in paths
    ]


def label_of(path: str) -> str:
    """Return the name of a root in rows and findings: its last two parts, which do not reveal where it is."""
    return "/".join(path.rstrip("/").split("/")[-2:])


class BundledDocuments(ShownTree):
    """The manual of this package, read once; the lowest layer, so that a first run is not empty."""

    label = None
    path = None

    def __init__(self) -> None:
        # importlib.resources takes longer to import than these files take to read (``joined.start``).
        folder = Path(__file__).parents[2] / "bundled_skills"
        super().__init__(Tree())
        self.problems: dict[str, Finding] = {}
        self._raw: dict[str, bytes] = {}
        namespace = self.tree.adopt(self.tree.root, NAMESPACE)
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if namespace is not None and entry.name.endswith(".md"):
                path, raw = f"{NAMESPACE}/{entry.name}", entry.read_bytes()
                self._raw[path] = raw
                parsed = parse_file(path, raw, len(raw), MODIFIED_AT, _BUILT_IN)
                self.tree.record(namespace, entry.name, path, parsed, None)

    def catch_up(self, at_most: int | None = None) -> bool:  # noqa: ARG002 (the files never change)
        return True

    def read(self, path: str) -> bytes:
        if path not in self._raw:
            raise RefusedError(GONE)
        return self._raw[path]

    def stamp(self, path: str) -> Stamp | None:  # noqa: ARG002 (reading from memory is as quick)
        return None

    def wake_fd(self) -> int | None:
        return None

    def close(self) -> None:
        """Do nothing: there are no watches to release."""
