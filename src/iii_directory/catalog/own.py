"""The documents this package carries about itself, so that the first run is not empty."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Final

from iii_directory.documents.parse import parse_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iii_directory.documents.model import ParsedFile

NAMESPACE: Final = "iii-directory"
# They change only with the package, so one date stands for all of them.
MODIFIED_AT: Final = "2026-11-15T00:00:00Z"


class OwnDocuments:
    """What is in ``iii_directory/own_skills``, read once."""

    def __init__(self) -> None:
        folder = resources.files("iii_directory") / "own_skills"
        self._raw = {
            f"{NAMESPACE}/{entry.name}": entry.read_bytes()
            for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
            if entry.name.endswith(".md")
        }
        self.files: Mapping[str, ParsedFile] = {
            path: parse_file(path, raw, len(raw), MODIFIED_AT) for path, raw in self._raw.items()
        }

    def read(self, path: str) -> bytes:
        return self._raw[path]
