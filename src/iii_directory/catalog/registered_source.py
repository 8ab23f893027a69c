"""Provide registered documents to the catalogue, and say why some may be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory.catalog.registered import PROMPTS, SKILLS, UNSEALED, Seal, Table
from iii_directory.documents.model import Finding
from iii_directory.errors import SKILL_NOT_FOUND, DirectoryError

if TYPE_CHECKING:
    import asyncio

    from iii_directory.documents.model import ParsedFile


_KEEP = "nothing; writes survive a crash at once where the engine's state has a store that flushes each"
_FIX = "see that the engine runs iii-state; it is tried again until it answers"


class RegisteredSource:
    """Holds both tables of registered entries. The worker keeps them in step with iii-state."""

    def __init__(self, patience_seconds: float = 0.0, seal: Seal = UNSEALED) -> None:
        self.skills = Table(SKILLS, seal)
        self.prompts = Table(PROMPTS, seal)
        self.problem: str | None = None
        """Why the tables are not complete; None if they are."""
        self.topics: Finding | None = None
        """Why registrations of other engines are seen late; None if they are seen at once."""
        self.restored = 0
        """The number of acknowledged writes that the state had lost and has again."""
        self._patience = patience_seconds
        self._patient_until: float | None = None
        self.is_ready = patience_seconds <= 0
        """True when readers need not wait for the first load."""
        self._waiting: asyncio.Event | None = None

    async def ready(self) -> None:
        """Wait for the first attempt to load after a connect, but not longer than the patience."""
        if self.is_ready:
            return
        # Only here, because a command that lists a folder should not pay for importing asyncio.
        import asyncio
        import contextlib

        if self._patient_until is None:
            self._patient_until = asyncio.get_running_loop().time() + self._patience
        if self._waiting is None:
            self._waiting = asyncio.Event()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._patient_until):
                await self._waiting.wait()

    def outdated(self) -> None:
        """Let readers wait for the next load, because writes during a lost connection are not known."""
        self.is_ready = self._patience <= 0
        self._patient_until = None

    def tried(self, problem: str | None) -> None:
        """Let readers go on, because the tables were loaded or could not be."""
        self.problem = problem
        self.is_ready = True
        if self._waiting is not None:
            self._waiting.set()
            self._waiting = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return why registered entries may be missing, and what was missing for a while."""
        found = () if self.topics is None else (self.topics,)
        if self.problem is not None:
            reason = f"registered skills and prompts cannot be loaded: {self.problem}"
            found = (Finding("unavailable", "iii-state", reason, _FIX), *found)
        if self.restored:
            reason = (
                f"the engine came back without {self.restored} of the last registrations that were "
                "acknowledged; they were written again"
            )
            found = (*found, Finding("restored", "iii-state", reason, _KEEP, urgent=False))
        return found

    @property
    def has_changes(self) -> bool:
        """Return whether `take_changes` would return any change."""
        return bool(self.skills.changed or self.prompts.changed)

    def take_changes(self) -> dict[str, ParsedFile | None]:
        """Return and clear the documents that are new, changed or (None) gone, by a key of both kinds."""
        return {**self.skills.take_changes(), **self.prompts.take_changes()}

    def body(self, skill_id: str) -> str:
        """Return the body of a registered skill as it is now; D110 if it is missing."""
        record = self.skills.get(skill_id)
        if record is None:
            raise DirectoryError(SKILL_NOT_FOUND, f"skill '{skill_id}' not found: it has just gone")
        return record["skill"]
