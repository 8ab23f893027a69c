"""Bodies that were read lately, each good for as long as its file is in the state it was read in. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory.limits import MAX_KEPT_BODY_CHARS

if TYPE_CHECKING:
    from iii_directory.disk.stamps import Stamp


class Bodies:
    """A few bodies by path; the one unused for longest goes first."""

    def __init__(self, room: int = MAX_KEPT_BODY_CHARS) -> None:
        self._room = room
        self._kept: dict[str, tuple[Stamp, str]] = {}

    def get(self, path: str, stamp: Stamp | None) -> str | None:
        """The body of a file in this state, if it is here."""
        kept = self._kept.get(path)
        if kept is None or kept[0] != stamp:
            return None
        # The order of a dictionary is that of insertion: the newest is last.
        del self._kept[path]
        self._kept[path] = kept
        return kept[1]

    def keep(self, path: str, stamp: Stamp | None, body: str) -> None:
        """Keep what was read from a file that was in this state just before; without a stamp, nothing."""
        old = self._kept.pop(path, None)
        if old is not None:
            self._room += len(old[1])
        if stamp is None:
            return
        self._kept[path] = (stamp, body)
        self._room -= len(body)
        while self._room < 0:
            oldest = next(iter(self._kept))
            self._room += len(self._kept.pop(oldest)[1])
