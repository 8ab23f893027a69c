"""Report functions and trigger types of this worker that another worker owns, and take them over later.

An engine gives a function id of a namespace to one worker and refuses it to the next. It gives a trigger type
to the last worker that provides it. When that worker leaves, the type has no provider, and its subscribers
would hear nothing more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from iii_directory.bus.tasks import Tasks
from iii_directory.documents.model import Finding
from iii_directory.limits import LOOK_SECONDS, MAX_SUGGESTIONS, OFFER_PAUSE_SECONDS
from iii_directory.shapes import rows_of, text_of
from iii_directory.text import quoted
from iii_directory.worker.engine_view import function_row

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from iii_directory.bus.seam import Payload, WorkerBus
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.diagnostics import Notes
    from iii_directory.worker.change_events import ChangeEvents
    from iii_directory.worker.engine_view import EngineCalls

log = logging.getLogger("iii_directory.worker")
_NOTES: Final = "of others "
_STOP_ONE: Final = (
    "stop one of the two workers, or give this one a namespace of its own with III_NAMESPACE; what the other "
    "leaves behind is taken over"
)


@dataclass(eq=False)
class RegistrationConflicts:
    """Registers again what the engine refused or lost. Belongs to the bus's event loop.

    One round at a time finds what is missing and registers it again: when a function was refused, when a
    worker disconnected, and once a minute. ``_learn`` is awaited before functions are taken over whose
    listeners were refused too, so that our answers know what the other worker knew.
    """

    _bus: WorkerBus
    _engine: EngineCalls
    _catalogue: Catalogue
    _notes: Notes
    _events: ChangeEvents
    _listeners: frozenset[str]
    _learn: Callable[[], Awaitable[None]]
    _wanted: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: Tasks = field(default_factory=Tasks)
    _refused: frozenset[str] = frozenset()
    """The functions that were still refused after the last round."""

    def connected(self) -> None:
        """Start the rounds on a new connection."""
        self.lost()
        self._wanted.set()
        self._tasks.start(self._look_after())

    def lost(self) -> None:
        self._tasks.cancel()
        self._refused = frozenset()
        self._notes.drop(_NOTES)

    def refused(self) -> None:
        """Start a round, because the engine has refused a function."""
        self._wanted.set()

    def workers_changed(self, event: Payload) -> None:
        """Start a round when a worker has left: it may have owned one of our functions."""
        if event.get("event") == "worker_disconnected":
            self._wanted.set()

    # Inner workings

    async def _look_after(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._wanted.wait()
            # Events that come together cause one round, and so do workers that come and go all the time.
            await asyncio.sleep(OFFER_PAUSE_SECONDS)
            self._wanted.clear()
            await self._round()

    async def _round(self) -> None:
        missing, taken = await self._types_of_others()
        renewing = [self._events.types[type_id] for type_id in missing]
        for subscribers in renewing:
            subscribers.renew()
        hearing = self._listeners & self._bus.refused.keys()
        self._bus.offer_again((*missing, *hearing))
        # Its answer comes after whatever the engine says to these offers.
        await self._names()
        for subscribers in renewing:
            subscribers.renewed()
        if hearing - self._bus.refused.keys():
            await self._learn()
        # Functions whose owner also has our listeners wait: if the owner left at this moment, our answers
        # would lack what it heard last. The next round gets the listeners, loads the state, and takes them.
        refusals = {key: refusal for key, refusal in self._bus.refused.items() if refusal.message is None}
        hearers = {refusals[key].owner_id for key in self._listeners & refusals.keys()}
        withheld = frozenset(key for key, row in refusals.items() if row.owner_id in hearers)
        withheld -= self._listeners
        given_up = await self._given_up(withheld)
        if given_up:
            await self._learn()
        self._bus.offer_again(self._bus.refused.keys() - self._listeners - (withheld - given_up))
        before = self._notes.findings
        self._say(await self._names(), taken)
        if self._notes.findings != before:
            # The next view logs the findings. Nothing is paid for it by many clients that come and go.
            await self._catalogue.current()

    async def _given_up(self, withheld: frozenset[str]) -> frozenset[str]:
        """Return the refused functions whose owner is still connected but has since unregistered them.

        A refusal names the owner of that time; an engine that names no owners makes all seem to have one.
        """
        if not withheld:
            return withheld
        answer = await self._engine.find("engine::functions::list", {"include_internal": True})
        if answer is None:
            return frozenset()
        rows, here = rows_of(answer, "functions"), self._bus.namespace
        held = {function_row(row)["function_id"] for row in rows if row.get("namespace", here) == here}
        # Asked after the list: a worker that is there now was there when the functions were listed.
        owners = {"", *await self._names()}
        refused = self._bus.refused
        return frozenset(key for key in withheld - held if key in refused and refused[key].owner_id in owners)

    async def _types_of_others(self) -> tuple[list[str], dict[str, str]]:
        """Return our trigger types without a provider, and the other workers that provide some of them."""
        answer = await self._engine.find("engine::triggers::list", {})
        if answer is None:
            return [], {}
        rows, here = rows_of(answer, "triggers"), self._bus.namespace
        names = {row.get("id"): row.get("worker_name") for row in rows if row.get("namespace", here) == here}
        missing = [key for key in self._events.types if key not in names]
        owners = {key: name for key in self._events.types if (name := text_of(names.get(key))) is not None}
        return missing, {key: name for key, name in owners.items() if name != self._bus.name}

    def _say(self, names: dict[str, str], taken: dict[str, str]) -> None:
        """Note every conflict for the diagnostics, and log what was taken over."""
        still, here = self._bus.refused, quoted(self._bus.namespace)
        self._notes.drop(_NOTES)
        for function_id, refusal in still.items():
            owner = names.get(refusal.owner_id)
            who = f"the worker {quoted(owner)}" if owner else "another worker"
            reason = f"{who} has this function in the namespace {here} and answers its calls"
            fix = _STOP_ONE
            if refusal.message is not None:
                reason = f"the engine does not take this function: {refusal.message}"
                fix = "see the engine's log"
            self._notes.put(f"{_NOTES}{function_id}", Finding("refused", function_id, reason, fix))
        for type_id, owner in taken.items():
            reason = (
                f"the worker {quoted(owner)} provides this trigger type in the namespace {here}: "
                "new subscribers hear of its changes alone"
            )
            self._notes.put(f"{_NOTES}{type_id}", Finding("refused", type_id, reason, _STOP_ONE))
        gained = sorted(self._refused - still.keys())
        if gained:
            more = len(gained) - MAX_SUGGESTIONS
            names_of_some = ", ".join(gained[:MAX_SUGGESTIONS]) + (f" and {more} more" if more > 0 else "")
            log.warning("took over what another worker had: %s", names_of_some)
        self._refused = frozenset(still)

    async def _names(self) -> dict[str, str]:
        """Return the workers' names by the ids of their connections; empty if the engine does not answer."""
        rows = rows_of(await self._engine.find("engine::workers::list", {}), "workers")
        return {str(row.get("id")): name for row in rows if (name := text_of(row.get("name")))}
