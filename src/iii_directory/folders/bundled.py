"""The documents this package carries about itself, so that the first run is not empty: the lowest layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from iii_directory.disk.reasons import GONE, RefusedError
from iii_directory.documents.parse import parse_file
from iii_directory.folders.tree import ShownTree, Tree

if TYPE_CHECKING:
    from iii_directory.disk.stamps import Stamp
    from iii_directory.documents.model import Finding

NAMESPACE: Final = "iii-directory"
# They change only with the package, so one date stands for all of them.
MODIFIED_AT: Final = "2026-11-15T00:00:00Z"


class BundledDocuments(ShownTree):
    """What is in ``iii_directory/bundled_skills``, read once."""

    label = None
    path = None

    def __init__(self) -> None:
        # Not by importlib.resources, which takes longer to import than they to read (``joined.start``).
        folder = Path(__file__).parent.parent / "bundled_skills"
        super().__init__(Tree())
        self.problems: dict[str, Finding] = {}
        self._raw: dict[str, bytes] = {}
        namespace = self.tree.adopt(self.tree.root, NAMESPACE)
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if namespace is not None and entry.name.endswith(".md"):
                path, raw = f"{NAMESPACE}/{entry.name}", entry.read_bytes()
                self._raw[path] = raw
                parsed = parse_file(path, raw, len(raw), MODIFIED_AT)
                self.tree.record(namespace, entry.name, path, parsed, None)

    def catch_up(self, at_most: int | None = None) -> bool:  # noqa: ARG002 (there is never anything to do)
        return True

    def read(self, path: str) -> bytes:
        if path not in self._raw:
            raise RefusedError(GONE)
        return self._raw[path]

    def stamp(self, path: str) -> Stamp | None:  # noqa: ARG002 (reading it is as quick)
        return None

    def wake_fd(self) -> int | None:
        return None

    def close(self) -> None:
        """There are no watches to give back."""
