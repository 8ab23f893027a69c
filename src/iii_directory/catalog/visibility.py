"""Which documents are shown: namespaces of installed workers, and what the operator's table says. Pure."""

from __future__ import annotations

import re
from fnmatch import translate
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.documents.ids import RESERVED_NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from iii_directory.documents.model import ParsedFile
    from iii_directory.lockfile.format import Entry

# The engine and this worker are there wherever the catalogue is.
ALWAYS_SHOWN: Final = RESERVED_NAMESPACES


FULL: Final = "full"
NAME: Final = "name"
MANUAL: Final = "manual"
OFF: Final = "off"


class Levels:
    """The table ``visibility`` of the settings: how much of each skill is offered; the first match wins."""

    def __init__(self, table: Mapping[str, str] = MappingProxyType({})) -> None:
        self.table = table
        self._rules = [(re.compile(translate(pattern)), pattern, level) for pattern, level in table.items()]

    def rule_for(self, *names: str) -> tuple[str, str] | None:
        """Give the pattern and the level for a document by its path, id or name; None if no rule fits.

        A rule for a skill covers everything below it.
        """
        wanted = {above for name in names for above in _with_those_above(name)}
        for pattern, written, level in self._rules:
            if any(pattern.match(name) for name in wanted):
                return written, level
        return None

    def shown(self, key: str, entry: ParsedFile | None) -> ParsedFile | None:
        """Give what readers who ask for it by name may see of an entry."""
        return None if entry is not None and self._level(key, entry) == OFF else entry

    def listed(self, key: str, entry: ParsedFile | None) -> ParsedFile | None:
        """Give what lists, indexes and search may see of an entry."""
        level = FULL if entry is None else self._level(key, entry)
        if entry is None or level in (OFF, MANUAL):
            return None
        if level == NAME:
            skill = None if entry.skill is None else entry.skill._replace(description="")
            prompt = None if entry.prompt is None else entry.prompt._replace(description="")
            return entry._replace(skill=skill, prompt=prompt)
        return entry

    def _level(self, key: str, entry: ParsedFile) -> str:
        document = entry.skill or entry.prompt
        names = [key] if document is None or document.path is not None else []
        if entry.skill is not None:
            names.append(entry.skill.id)
        if entry.prompt is not None:
            names.append(entry.prompt.name)
        rule = self.rule_for(*names)
        return FULL if rule is None else rule[1]


def _with_those_above(name: str) -> Iterable[str]:
    parts = name.removesuffix(".md").split("/")
    return ("/".join(parts[:length]) for length in range(1, len(parts) + 1))


class Visibility(NamedTuple):
    """The rule of ``filter_unregistered``; as it stands here, it hides nothing."""

    installed: frozenset[str] | None = None
    """Names of the installed workers; None when the engine cannot say, or when nothing is to be hidden."""
    recorded: Mapping[str, Entry] = MappingProxyType({})
    """What the lock file says of each namespace."""
    local: frozenset[str] = frozenset()
    """Namespaces that come from ``local_skills_folder``."""

    def is_like(self, other: Visibility) -> bool:
        """Whether both hide the same; quick, because one reading of the lock file is one object."""
        return (
            self.recorded is other.recorded
            and self.installed == other.installed
            and self.local == other.local
        )

    def shows(self, namespace: str, paths: Iterable[str]) -> bool:
        """Whether a namespace is shown that holds documents at ``paths`` below the folder."""
        if self.installed is None or namespace in self.installed:
            return True
        if namespace in ALWAYS_SHOWN or namespace in self.local:
            return True
        record = self.recorded.get(namespace)
        if record is None or record.by != "auto":
            return True
        start = len(namespace) + 1
        return any(path[start:] not in record.files for path in paths)
