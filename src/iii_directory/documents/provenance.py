"""Where a document comes from: one type, its JSON, and the short mark of it that indexes show. Pure.

Every reading function, the command line and MCP show the source of a document in the words of this module.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from iii_directory.limits import MAX_MARKED_NAME_CHARS
from iii_directory.text import cut

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["file", "installed", "written", "registered", "built-in"]
State = Literal["verified", "edited", "connected", "gone", "unknown"]
# What is equally relevant is shown in this order.
_ORDER: Final[tuple[Kind, ...]] = ("file", "installed", "written", "registered", "built-in")
UNKNOWN: Final = "unknown"
META_KEY: Final = "dev.iii.directory/provenance"
"""The key under which MCP clients find the source of a document in ``_meta``."""
# A worker chooses its name. Nothing of it may look like the end of a mark, or like markdown.
_UNSAFE_IN_MARK: Final = re.compile(r"[^\w.@/:+ -]")


class Author(NamedTuple):
    """The worker that registered or wrote a document, as the engine named the caller."""

    worker_id: str = UNKNOWN
    worker: str = UNKNOWN


NO_AUTHOR: Final = Author()


class Provenance(NamedTuple):
    """The source of one document. Only the fields that the kind of source has are set."""

    kind: Kind
    root: str | None = None
    """The folder that holds the file: skills, local, or the last two names of a root."""
    origin: str | None = None
    """What it was installed from: registry, repo, site, archive or folder."""
    address: str | None = None
    """The address of that registry, repository or site, or the path of that folder."""
    version: str | None = None
    """The version or the commit that was installed."""
    worker: str | None = None
    worker_id: str | None = None
    since: str | None = None
    """When it was registered, written or installed, in RFC 3339."""
    state: State | None = None
    """Whether the file is as it was installed or written, or whether the registrant is still connected."""

    def as_json(self) -> dict[str, Any]:
        """Every field that is set, by the names that replies show."""
        return {_NAMES.get(name, name): value for name, value in self._asdict().items() if value is not None}

    def brief(self) -> dict[str, Any]:
        """The fields of `as_json` that fit a row of a search."""
        whole = self.as_json()
        return {name: whole[name] for name in _BRIEF if name in whole}

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> Provenance:
        """The provenance in a row of a reply; what is missing or misspelt there is left out."""
        known = {field: row.get(_NAMES.get(field, field)) for field in cls._fields}
        texts = {field: value for field, value in known.items() if isinstance(value, str)}
        kind = texts.pop("kind", None)
        return cls(kind if kind in _ORDER else "file", **cast("dict[str, Any]", texts))

    @property
    def author(self) -> str:
        """The worker id of the registrant, and empty for everything that is a file."""
        return (self.worker_id or UNKNOWN) if self.kind == "registered" else ""

    @property
    def order(self) -> int:
        """The place of this source among equally relevant documents, lowest first."""
        return _ORDER.index(self.kind)

    def mark(self) -> str:
        """A few words for an index: the kind of source and its name."""
        tail = f", {self.state}" if self.state in ("edited", "gone") else ""
        match self.kind:
            case "file":
                return "file" if self.root in (None, "skills") else f"file in {_plain(self.root)}"
            case "installed":
                return f"installed from {_plain(self.address or self.origin)}{tail}"
            case "written" | "registered":
                return f"{self.kind} by {_plain(self.worker)}{tail}"
            case "built-in":
                return "built in"


_NAMES: Final = {"origin": "from"}
_BRIEF: Final = ("kind", "root", "from", "version", "worker", "state")
OPERATOR: Final = Provenance("file")
"""A file of a folder that has no name, as of a folder that is only checked."""


def _plain(name: str | None) -> str:
    return cut(_UNSAFE_IN_MARK.sub("?", name or UNKNOWN), MAX_MARKED_NAME_CHARS)
