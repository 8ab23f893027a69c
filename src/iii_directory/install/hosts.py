"""Place installed skills where the hosts that load skills look for them: as a relative link, or as a copy.

A link is ours if it leads into the skills folder. A copy is ours if it has the marker file that says of which
skill it is a copy, and which bytes were copied. Nothing else is replaced or removed; edited files of a copy
stay.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from iii_directory.documents.ids import COPY_MARKER, OVERVIEW, is_safe_path
from iii_directory.errors import refused
from iii_directory.shapes import is_text_map, object_of
from iii_directory.text import close_names, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class KnownHost(NamedTuple):
    """A program that loads skills, and where its documentation says it looks for them."""

    name: str
    project: str
    """The folder below a project."""
    user: str
    """The folder below the home folder."""
    follows_links: bool
    """Whether it documents, or is known, to follow a link to a skill; else it gets a copy."""
    source: str
    """The page that says so."""


HOSTS: Final = tuple(
    KnownHost(name, project, user, links == "link", source)
    for name, project, user, links, source in (
        ("claude-code", ".claude/skills", ".claude/skills", "link", "https://code.claude.com/docs/en/skills"),
        ("codex", ".agents/skills", ".agents/skills", "link", "https://developers.openai.com/codex/skills"),
        ("cursor", ".agents/skills", ".agents/skills", "copy", "https://cursor.com/docs/skills"),
        ("gemini", ".gemini/skills", ".gemini/skills", "link", "https://geminicli.com/docs/cli/using-agent-skills/"),
        ("vscode", ".github/skills", ".copilot/skills", "copy", "https://docs.github.com/en/copilot/concepts/agents/about-agent-skills"),
        ("goose", ".agents/skills", ".agents/skills", "copy", "https://block.github.io/goose/docs/guides/context-engineering/using-skills"),
        ("windsurf", ".windsurf/skills", ".codeium/windsurf/skills", "copy", "https://docs.windsurf.com/windsurf/cascade/skills"),
        ("agents", ".agents/skills", ".agents/skills", "link", "https://agentskills.io"),
    )
)  # fmt: skip
"""Where a host reads several folders, the first that it documents. Where it does not say that it follows
links, or is known not to, it gets a copy."""

Outcome = Literal["linked", "copied", "current", "removed", "kept", "refused"]
_NEW: Final = ".iii-directory-new"


class Placed(NamedTuple):
    """What became of one skill in one host's folder."""

    skill: str
    place: str
    outcome: Outcome
    reason: str = ""


def host_named(name: str) -> KnownHost:
    """Find a host by its name; an unknown one is refused with the close ones."""
    for host in HOSTS:
        if host.name == name:
            return host
    close = close_names(name, {host.name for host in HOSTS})
    hint = f" Did you mean {close[0]}?" if close else ""
    known = ", ".join(host.name for host in HOSTS)
    raise refused(f"{quoted(name)} is not a known host.{hint} Known are {known}")


class HostFolders:
    """Place skills of one skills folder in the hosts' folders of a project and of its user. It blocks."""

    def __init__(self, skills_folder: Path, project: Path, home: Path | None) -> None:
        self._skills = os.path.realpath(skills_folder)
        self._project = os.path.realpath(project)
        self._home = None if home is None else os.path.realpath(home)

    def place(self, skill: str, hosts: Iterable[KnownHost], *, is_user: bool = False) -> list[Placed]:
        """Make a skill appear in the folders of hosts; a folder that several of them read gets one entry."""
        if not is_safe_path(skill) or not os.path.isfile(os.path.join(self._skills, skill, OVERVIEW)):
            raise refused(f"no skill {quoted(skill)} is in the skills folder")
        follows: dict[str, bool] = {}
        for host in hosts:
            folder = host.user if is_user else host.project
            follows[folder] = follows.get(folder, True) and host.follows_links
        return [
            self._put(skill, self._folder(folder, is_user=is_user), as_link=as_link)
            for folder, as_link in follows.items()
        ]

    def take_away(self, skill: str, hosts: Iterable[KnownHost] = HOSTS) -> list[Placed]:
        """Remove the links to a skill and its copies from hosts of the project and of the user."""
        found = [self._take(skill, folder) for folder in self._folders(hosts)]
        return [placed for placed in found if placed is not None]

    def refresh(self, skills: Iterable[str]) -> list[Placed]:
        """Bring the copies of skills up to date; links need nothing."""
        folders = list(self._folders(HOSTS))
        return [
            self._copy(skill, folder)
            for skill in skills
            for folder in folders
            if _marker(os.path.join(folder, _name(skill))) is not None and self._is_of(skill, folder)
        ]

    def _folders(self, hosts: Iterable[KnownHost]) -> Iterator[str]:
        wanted: dict[str, None] = {}
        for host in hosts:
            wanted[os.path.realpath(os.path.join(self._project, host.project))] = None
            if self._home is not None:
                wanted[os.path.realpath(os.path.join(self._home, host.user))] = None
        return (folder for folder in wanted if folder != self._skills and os.path.isdir(folder))

    def _folder(self, inner: str, *, is_user: bool) -> str:
        """Give the real path of a host's folder; one that leads out of its project or home is refused."""
        base = self._home if is_user else self._project
        if base is None:
            raise refused("the home folder is unknown")
        folder = os.path.realpath(os.path.join(base, inner))
        if folder != base and not folder.startswith(f"{base.rstrip('/')}/"):
            raise refused(f"{inner} is a link that leads out of {base}; nothing is written there")
        return folder

    def _is_of(self, skill: str, folder: str) -> bool:
        """Return whether the entry of a host's folder is a link to this skill, or a copy of it."""
        place = os.path.join(folder, _name(skill))
        if os.path.islink(place):
            leads_to = os.path.join(folder, os.readlink(place))
        else:
            marker = _marker(place)
            leads_to = "" if marker is None else os.path.join(place, marker.copy_of)
        return os.path.normpath(leads_to) == os.path.join(self._skills, skill)

    def _put(self, skill: str, folder: str, *, as_link: bool) -> Placed:
        place = os.path.join(folder, _name(skill))
        if folder == self._skills:
            return Placed(skill, place, "current")
        if os.path.lexists(place) and not self._is_of(skill, folder):
            return Placed(skill, place, "refused", "something else is there; it stays")
        is_copy = os.path.isdir(place) and not os.path.islink(place)
        try:
            os.makedirs(folder, exist_ok=True)
            if is_copy or not as_link:
                return self._copy(skill, folder)
            if os.path.islink(place):
                return Placed(skill, place, "current")
        except OSError as error:
            return Placed(skill, place, "refused", f"it cannot be written: {error.strerror}")
        try:
            os.symlink(os.path.relpath(os.path.join(self._skills, skill), folder), place)
        except OSError:
            # Some file systems have no links.
            return self._copy(skill, folder)
        return Placed(skill, place, "linked")

    def _copy(self, skill: str, folder: str) -> Placed:
        """Copy a skill, or replace our copy of it where it was not edited."""
        place, source = os.path.join(folder, _name(skill)), os.path.join(self._skills, skill)
        marker = None if os.path.islink(place) else _marker(place)
        files = _hashes(source)
        here = {} if marker is None else _hashes(place)
        if marker is not None and here == files == marker.files:
            return Placed(skill, place, "current")
        edited = sorted(path for path, digest in here.items() if marker and marker.files.get(path) != digest)
        if edited:
            return Placed(skill, place, "kept", f"{', '.join(edited)} was edited there")
        new = f"{place}{_NEW}"
        try:
            shutil.rmtree(new, ignore_errors=True)
            os.mkdir(new)
            for path in files:
                target = os.path.join(new, path)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copyfile(os.path.join(source, path), target, follow_symlinks=False)
                shutil.copymode(os.path.join(source, path), target)
            text = json.dumps({"copy_of": os.path.relpath(source, place), "files": files}, indent=1)
            Path(new, COPY_MARKER).write_text(f"{text}\n", encoding="utf-8")
            if os.path.islink(place):
                os.unlink(place)
            elif os.path.isdir(place):
                shutil.rmtree(place)
            os.rename(new, place)
        except OSError as error:
            shutil.rmtree(new, ignore_errors=True)
            return Placed(skill, place, "refused", f"it cannot be written: {error.strerror}")
        return Placed(skill, place, "copied")

    def _take(self, skill: str, folder: str) -> Placed | None:
        place = os.path.join(folder, _name(skill))
        if not self._is_of(skill, folder):
            return None
        marker = _marker(place)
        if marker is None:
            os.unlink(place)
        elif edited := _remove_copied(place, marker.files):
            return Placed(skill, place, "kept", f"{', '.join(edited)} was edited there")
        # A host's folder that holds nothing any more goes, with those above it below project or home.
        with suppress(OSError):
            while folder not in (self._project, self._home, os.path.dirname(folder)):
                os.rmdir(folder)
                folder = os.path.dirname(folder)
        return Placed(skill, place, "removed")


class _Marker(NamedTuple):
    copy_of: str
    files: dict[str, str]


def _marker(place: str) -> _Marker | None:
    """Read what a copy says of itself; None for a folder that is not our copy."""
    path = os.path.join(place, COPY_MARKER)
    if os.path.islink(place) or os.path.islink(path):
        return None
    try:
        said = object_of(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
    files, copy_of = said.get("files"), said.get("copy_of")
    if not isinstance(copy_of, str) or not is_text_map(files) or not all(map(is_safe_path, files)):
        return None
    return _Marker(copy_of, files)


def _name(skill: str) -> str:
    """Give the name of a skill in a host's folder, which has no categories."""
    return skill.rpartition("/")[2]


def _hashes(folder: str) -> dict[str, str]:
    """Hash every file of a skill; links and the marker are left out."""
    found: dict[str, str] = {}
    for below, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(below, name)
            inner = os.path.relpath(path, folder)
            if inner != COPY_MARKER and not os.path.islink(path) and os.path.isfile(path):
                mode = "x" if os.access(path, os.X_OK) else "-"
                found[inner] = f"{hashlib.sha256(Path(path).read_bytes()).hexdigest()}{mode}"
    return dict(sorted(found.items()))


def _remove_copied(place: str, files: dict[str, str]) -> list[str]:
    """Remove the copied files that are as they were, the marker and empty folders; return what stays."""
    here = _hashes(place)
    for path, digest in files.items():
        if here.get(path) == digest:
            os.unlink(os.path.join(place, path))
    os.unlink(os.path.join(place, COPY_MARKER))
    for below, _, _ in os.walk(place, topdown=False):
        with suppress(OSError):
            os.rmdir(below)
    return sorted(path for path in here if os.path.lexists(os.path.join(place, path)))
