"""The note a transaction leaves before it switches, and what it means after a crash. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from iii_directory.lockfile.format import Entry, parse_entry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iii_directory.disk.stamps import Mark

JOURNAL: Final = "journal.json"


@dataclass(frozen=True, slots=True)
class Journal:
    """What a switch is about to do to one namespace."""

    namespace: str
    staged: int
    """The inode of the new tree, by which it is known under either name."""
    entry: Entry | None
    marks: Mapping[str, Mark]
    """The files of the old tree as they were when the plan was made."""
    writes: Mapping[str, str]
    """The paths the new tree brings, with their hashes."""
    deletes: frozenset[str]
    edits_win: bool

    @property
    def given_up(self) -> frozenset[str]:
        """Paths that were to be replaced or removed whatever they hold by now."""
        return frozenset[str]() if self.edits_win else self.deletes | self.writes.keys()


def render_journal(journal: Journal) -> bytes:
    document = {
        "namespace": journal.namespace,
        "staged": journal.staged,
        "entry": None if journal.entry is None else journal.entry.as_dict(),
        "marks": {path: list(mark) for path, mark in journal.marks.items()},
        "writes": dict(journal.writes),
        "deletes": sorted(journal.deletes),
        "edits_win": journal.edits_win,
    }
    return json.dumps(document).encode()


def parse_journal(content: bytes | None, namespace: str) -> Journal | None:
    """The journal of a namespace, or None: a journal cut short by a crash was never acted upon."""
    try:
        document: dict[str, Any] = json.loads(content or b"")
        entry = None if document["entry"] is None else parse_entry(document["entry"])
        marks = {path: cast("Mark", tuple(mark)) for path, mark in document["marks"].items()}
        writes = cast("dict[str, str]", document["writes"])
        deletes = frozenset(cast("list[str]", document["deletes"]))
        if document["namespace"] != namespace or (entry is None) != (document["entry"] is None):
            return None
        return Journal(namespace, document["staged"], entry, marks, writes, deletes, document["edits_win"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
