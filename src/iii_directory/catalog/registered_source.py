"""What is registered, as a source of the catalogue: both tables, and whether they are complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory.catalog.records import PROMPTS, SKILLS, UNSEALED, Seal
from iii_directory.catalog.registered import Table
from iii_directory.documents.model import Finding
from iii_directory.errors import SKILL_NOT_FOUND, DirectoryError

if TYPE_CHECKING:
    import asyncio

    from iii_directory.documents.model import ParsedFile

_KEEP = "nothing; writes survive a crash at once where the engine's state has a store that flushes each"
_FIX = "see that the engine runs iii-state; it is tried again until it answers"


class RegisteredSource:
    """Both kinds of registered entries. Whoever keeps them in step with iii-state says when it tried to."""

    def __init__(self, patience_seconds: float = 0.0, seal: Seal = UNSEALED) -> None:
        self.skills = Table(SKILLS, seal)
        self.prompts = Table(PROMPTS, seal)
        self.findings: tuple[Finding, ...] = ()
        """Why not everything that is registered may be here, if so; and what was missing for a while."""
        self._problem: str | None = None
        self._topics: Finding | None = None
        self._restored = 0
        self._patience = patience_seconds
        self._patient_until: float | None = None
        self.is_ready = patience_seconds <= 0
        """True when nobody need wait for the first load any more."""
        self._waiting: asyncio.Event | None = None

    async def ready(self) -> None:
        """Wait for the first attempt to load after a connect, for as long as that is worth waiting for."""
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
        """What was written while there was no connection is not known: readers wait for the next attempt."""
        self.is_ready = self._patience <= 0
        self._patient_until = None

    def tried(self, problem: str | None) -> None:
        """The tables were loaded, or could not be; readers wait no longer."""
        self.says(problem)
        self.is_ready = True
        if self._waiting is not None:
            self._waiting.set()
            self._waiting = None

    def says(self, problem: str | None) -> None:
        """What keeps the tables from being complete; None when nothing does."""
        self._problem = problem
        self._find()

    def says_of_topics(self, finding: Finding | None) -> None:
        """Set what keeps other engines' registrations from being seen at once, if anything does."""
        self._topics = finding
        self._find()

    def restored(self, count: int) -> None:
        """Count acknowledged writes that the state had lost and has again."""
        if count:
            self._restored += count
            self._find()

    def _find(self) -> None:
        found: list[Finding] = []
        if self._problem is not None:
            reason = f"registered skills and prompts cannot be loaded: {self._problem}"
            found.append(Finding("unavailable", "iii-state", reason, _FIX))
        if self._topics is not None:
            found.append(self._topics)
        if self._restored:
            reason = (
                f"the engine came back without {self._restored} of the last registrations that were "
                "acknowledged; they were written again"
            )
            found.append(Finding("restored", "iii-state", reason, _KEEP, urgent=False))
        self.findings = tuple(found)

    @property
    def has_changes(self) -> bool:
        """True when `take_changes` has something to give."""
        return self.skills.has_changes or self.prompts.has_changes

    def take_changes(self) -> dict[str, ParsedFile | None]:
        """The documents that are new, other, or (None) gone since the last call, by a key of both kinds."""
        return {**self.skills.take_changes(), **self.prompts.take_changes()}

    def body(self, skill_id: str) -> str:
        """The body of a registered skill as it is now; D110 when there is none."""
        record = self.skills.get(skill_id)
        if record is None:
            raise DirectoryError(SKILL_NOT_FOUND, f"skill '{skill_id}' not found: it has just gone")
        return record["skill"]
