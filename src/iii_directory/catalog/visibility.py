"""Which namespaces of the folder are shown: those of installed workers, and those somebody asked for.

Pure."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.documents.ids import RESERVED_NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from iii_directory.lockfile.format import Entry

# The engine and this worker are there wherever the catalogue is.
ALWAYS_SHOWN: Final = RESERVED_NAMESPACES


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
