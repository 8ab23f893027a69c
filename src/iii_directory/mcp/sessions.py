"""Sessions of 2025 clients: whose they are, and which of them makes room for a new one. Pure.

A session holds memory until its client ends it or says nothing for long. One client gets only so many: to
open another ends its oldest that nothing was asked in, or the one that has been quiet the longest. A session
with a request under way, or with a stream for news, is never ended for that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from iii_directory.limits import MAX_CLIENT_MCP_SESSIONS, MCP_SESSION_IDLE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Hashable


@dataclass(slots=True)
class _Session:
    heard_at: float
    requests: int = 0
    under_way: int = 0

    @property
    def used(self) -> bool:
        """Whether anything was asked after the opening, and the word that the client is ready."""
        return self.requests > 1


@dataclass(slots=True)
class _Client:
    sessions: dict[str, _Session] = field(default_factory=dict[str, _Session])
    opening: int = 0


class Ledger:
    """Who has which sessions. Times are seconds of any clock that does not go back."""

    def __init__(self, most: int = MAX_CLIENT_MCP_SESSIONS) -> None:
        self._most = most
        self._clients: dict[Hashable, _Client] = {}
        self._owners: dict[str, Hashable] = {}

    def room_for(self, client: Hashable, now: float) -> list[str] | None:
        """Which sessions to end before the client opens one more; None if it cannot: all are in use.

        Whoever may go on says so with `opening`.
        """
        known = self._clients.get(client)
        if known is None:
            return []
        for session_id, session in list(known.sessions.items()):
            if not session.under_way and now - session.heard_at > MCP_SESSION_IDLE_SECONDS:
                self.ended(session_id)
        surplus = len(known.sessions) + known.opening + 1 - self._most
        quiet = sorted(
            (session_id for session_id, session in known.sessions.items() if not session.under_way),
            key=lambda session_id: (known.sessions[session_id].used, known.sessions[session_id].heard_at),
        )
        return None if surplus > len(quiet) else quiet[: max(surplus, 0)]

    def opening(self, client: Hashable) -> None:
        self._clients.setdefault(client, _Client()).opening += 1

    def opened(self, client: Hashable, session_id: str | None, now: float) -> None:
        """What came of an opening; None if nothing did."""
        known = self._clients[client]
        known.opening -= 1
        if session_id is not None:
            known.sessions[session_id] = _Session(now)
            self._owners[session_id] = client
        self._forget_if_empty(client)

    def began(self, session_id: str, now: float) -> None:
        if (session := self._found(session_id)) is not None:
            session.under_way += 1
            session.requests += 1
            session.heard_at = now

    def finished(self, session_id: str, now: float) -> None:
        if (session := self._found(session_id)) is not None:
            session.under_way -= 1
            session.heard_at = now

    def ended(self, session_id: str) -> None:
        client = self._owners.pop(session_id, None)
        if client is not None:
            del self._clients[client].sessions[session_id]
            self._forget_if_empty(client)

    def _found(self, session_id: str) -> _Session | None:
        client = self._owners.get(session_id)
        return None if client is None else self._clients[client].sessions[session_id]

    def _forget_if_empty(self, client: Hashable) -> None:
        known = self._clients[client]
        if not known.sessions and not known.opening:
            del self._clients[client]
