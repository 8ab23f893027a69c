"""What is worth a line beside the documents: notes for the diagnostics, and the log that says each once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from iii_directory.catalog.diagnostics import log_lines
from iii_directory.limits import MAX_LOGGED_FINDINGS
from iii_directory.text import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from iii_directory.documents.model import Finding

log = logging.getLogger("iii_directory.catalog")


class Notes:
    """Findings that no document and no folder has, by keys of those who made them."""

    def __init__(self) -> None:
        self._noted: dict[str, Finding] = {}
        self.findings: tuple[Finding, ...] = ()
        """All of them, as one object for as long as nothing changes."""
        self.logged: frozenset[Finding] = frozenset()
        """Those that whoever noted them has said in the log."""

    def put(self, key: str, finding: Finding, *, logged: bool = False) -> None:
        """Something is worth a line, in place of what was noted under the key.

        ``logged`` says that the log has a line about it already.
        """
        self._noted[key] = finding
        if logged:
            self.logged = frozenset((*(self.logged & frozenset(self._noted.values())), finding))
        self.findings = tuple(self._noted.values())

    def drop(self, *starts: str) -> None:
        """What was noted under keys that start so is no more."""
        for key in [key for key in self._noted if key.startswith(starts)]:
            del self._noted[key]
            self.findings = tuple(self._noted.values())


class FindingLog:
    """The log says each finding once, and many of a kind in one line."""

    def __init__(self) -> None:
        self._logged: dict[Finding, None] = {}
        """The newest is last; what was logged long ago may be logged again."""

    def __len__(self) -> int:
        """How many findings it remembers having said."""
        return len(self._logged)

    def say(self, found: Iterable[Finding]) -> None:
        new = [finding for finding in dict.fromkeys(found) if finding not in self._logged]
        for urgent, line in log_lines(new):
            log.log(logging.WARNING if urgent else logging.INFO, "%s", escaped(line))
        self._logged.update(dict.fromkeys(new))
        if len(self._logged) > MAX_LOGGED_FINDINGS:
            # Not one by one: with many, each look for the oldest takes longer than the last.
            self._logged = dict.fromkeys(list(self._logged)[-MAX_LOGGED_FINDINGS:])
